"""The line of waiting nodes, a list in the lock: its order, which nodes may take a claim, and how many seconds the
agents of waiting nodes sleep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Budget, BudgetKind, Order, Policy
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.selectors import Selector
from careen.core.lock import order
from careen.core.lock.content import LockContent
from careen.core.lock.groups import groups
from careen.core.lock.line import Line
from tests.careen.core.builders import a_node, a_policy, an_entry, held


def a_waiter(name: str, since: str = "12:00", zone: str = "a", label: str = "ready", **changes: Any) -> NodeView:
    labels = {keys.REBOOT_LABEL: label, keys.ZONE: zone, **changes.pop("labels", {})}
    progress = Progress(phase=Phase.WAITING.value, need_since=f"2026-03-04T{since}:00Z")
    return a_node(name, labels=labels, annotations={keys.PROGRESS: to_annotation(progress)}, **changes)


def next_names(waiters: Sequence[NodeView], content: LockContent, policy: Policy, **more: Any) -> tuple[str, ...]:
    return order.name_next(content, waiters, policy, at="12:00", **more).line.names


CONTROL_PLANE = {keys.CONTROL_PLANE: ""}
FREE = LockContent()


def test_nodes_are_ordered_by_how_long_they_have_needed_a_reboot_and_then_by_name() -> None:
    waiters = [a_waiter("n3", "09:00"), a_waiter("n2", "08:00"), a_waiter("n1", "09:00")]
    assert next_names(waiters, FREE, a_policy()) == ("n2", "n1", "n3")


def with_pods(waiter: NodeView, moves: int, in_zone: int = 0) -> NodeView:
    counted = {keys.MOVES: str(moves), keys.MOVES_IN_ZONE: str(in_zone)}
    return replace(waiter, annotations={**waiter.annotations, **counted})


def test_zones_take_turns_if_several_nodes_may_be_down_at_once() -> None:
    waiters = [
        with_pods(a_waiter(name, zone=zone), pods)
        for name, zone, pods in (("n1", "a", 5), ("n2", "a", 3), ("n3", "b", 4), ("n4", "b", 9), ("n5", "c", 8))
    ]
    assert next_names(waiters, FREE, a_policy(concurrency=2)) == ("n2", "n3", "n5", "n1", "n4")
    assert next_names(waiters, FREE, a_policy(concurrency=1)) == ("n2", "n1", "n3", "n4", "n5")


def test_a_smaller_limit_in_the_lock_finishes_zone_after_zone() -> None:
    waiters = [a_waiter("n1"), a_waiter("n2"), a_waiter("n3", zone="b")]
    content = held(an_entry("n9", zone="a", limit=1))
    assert next_names(waiters, content, a_policy(concurrency=2), zone="a") == ("n1", "n2", "n3")
    assert next_names(waiters, FREE, a_policy(concurrency=2), zone="a") == ("n1", "n3", "n2")


def test_an_older_need_goes_before_the_turn_of_its_zone() -> None:
    waiters = [a_waiter("n1", "09:00"), a_waiter("n2", "09:10"), a_waiter("n3", "10:00", zone="b")]
    assert next_names(waiters, FREE, a_policy(concurrency=2)) == ("n1", "n2", "n3")


def test_a_node_that_may_not_come_takes_no_turn_of_its_zone() -> None:
    waiters = [a_waiter("n1", ready=False), a_waiter("n2"), a_waiter("n3", zone="b")]
    assert next_names(waiters, FREE, a_policy(concurrency=2)) == ("n2", "n3", "n1")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), min_size=1, max_size=9), st.integers(2, 9))
def test_no_zone_is_two_nodes_ahead_of_a_zone_that_has_nodes_left(nodes: list[tuple[str, int]], at_once: int) -> None:
    waiters = [with_pods(a_waiter(f"n{number}", zone=zone), pods) for number, (zone, pods) in enumerate(nodes)]
    zone_of = {node.name: node.zone for node in waiters}
    zones = [zone_of[name] for name in next_names(waiters, FREE, a_policy(concurrency=at_once))]
    for length in range(len(zones) + 1):
        counts = {zone: zones[:length].count(zone) for zone in set(zones)}
        unfinished = [count for zone, count in counts.items() if count < zones.count(zone)]
        assert max(counts.values(), default=0) - min(unfinished, default=max(counts.values(), default=0)) <= 1


def test_the_node_with_the_fewest_pods_is_first_among_nodes_whose_need_began_in_the_same_hour() -> None:
    waiters = [
        with_pods(a_waiter("n1", "09:00"), 7),
        with_pods(a_waiter("n2", "09:59"), 6),
        with_pods(a_waiter("n3", "10:00"), 1),
        a_waiter("n4", "09:00"),
    ]
    assert next_names(waiters, FREE, a_policy()) == ("n2", "n1", "n4", "n3")


def test_zones_are_ordered_by_the_lowest_pod_count_of_their_worker_nodes() -> None:
    waiters = [
        with_pods(a_waiter("a1", zone="a"), 5),
        with_pods(a_waiter("a2", zone="a"), 5),
        with_pods(a_waiter("b1", zone="b"), 9),
        with_pods(a_waiter("b2", zone="b"), 4),
        with_pods(a_waiter("c1", zone="c"), 6),
        with_pods(a_waiter("c0", zone="c", labels=CONTROL_PLANE), 0),
    ]
    assert next_names(waiters, FREE, a_policy()) == ("b2", "b1", "a1", "a2", "c1", "c0")
    assert next_names(waiters, FREE, BY_ZONE) == ("b2", "b1", "a1", "a2", "c1", "c0")
    assert next_names(waiters, FREE, a_policy(), zone="a") == ("a1", "a2", "b2", "b1", "c1", "c0")


THREE_ZONES = [
    with_pods(a_waiter("a1", zone="a"), 6, 1),
    with_pods(a_waiter("a2", zone="a"), 4, 3),
    with_pods(a_waiter("b1", zone="b"), 7, 5),
    with_pods(a_waiter("b2", zone="b"), 5, 4),
    with_pods(a_waiter("c1", zone="c"), 8, 2),
    with_pods(a_waiter("c2", zone="c"), 4, 3),
]


@pytest.mark.parametrize(
    ("content", "zone", "names"),
    [
        pytest.param(
            FREE,
            None,
            ("b2", "b1", "a1", "a2", "c1", "c2"),
            id="no node has rebooted yet",
        ),
        pytest.param(
            FREE,
            "a",
            ("a2", "a1", "c1", "c2", "b2", "b1"),
            id="the last rebooted node is in zone a",
        ),
        pytest.param(FREE, "d", ("a1", "a2", "c1", "c2", "b2", "b1"), id="the last rebooted node is in zone d"),
    ],
)
@pytest.mark.parametrize("by", [Order.OLDEST, Order.ZONE])
def test_in_each_later_zone_the_node_with_the_fewest_zone_bound_pods_comes_first(
    content: LockContent, zone: str | None, names: tuple[str, ...], by: Order
) -> None:
    assert next_names(THREE_ZONES, content, a_policy(order=by), zone=zone) == names


@pytest.mark.parametrize(
    ("zone", "names"),
    [
        pytest.param("d", ("a1", "a2", "c1", "c2", "b2", "b1"), id="no node of the holder's zone waits"),
        pytest.param("b", ("b2", "b1", "a1", "a2", "c1", "c2"), id="the holder's zone comes first"),
        pytest.param(None, ("a1", "a2", "c1", "c2", "b2", "b1"), id="the holder's zone is unknown"),
    ],
)
def test_the_zone_of_a_node_that_holds_a_claim_comes_first_in_the_line(
    zone: str | None, names: tuple[str, ...]
) -> None:
    assert next_names(THREE_ZONES, held(an_entry("d0", zone=zone)), a_policy()) == names


@pytest.mark.parametrize("by", [Order.OLDEST, Order.ZONE])
def test_the_zone_of_the_first_node_in_line_comes_first_while_no_node_holds_a_claim(by: Order) -> None:
    names = next_names(THREE_ZONES, LockContent(line=Line(names=("c1",))), a_policy(order=by))
    assert names == ("c1", "c2", "a1", "a2", "b2", "b1")


ZONE_B = [with_pods(a_waiter("b1", zone="b"), 9, 0), with_pods(a_waiter("b2", zone="b"), 1, 1)]


@pytest.mark.parametrize(
    ("other", "passed"),
    [
        pytest.param(
            a_waiter("a1", "07:00", "a", label="required"),
            (),
            id="the other zone's only node is refused and has waited longest",
        ),
        pytest.param(
            with_pods(a_waiter("a1", zone="a", label="required"), 0),
            (),
            id="the other zone's only node is refused and has no pods",
        ),
        pytest.param(
            replace(a_waiter("a1", "07:00", "a"), ready=False),
            (),
            id="the other zone's only node is not ready and has waited longest",
        ),
        pytest.param(
            with_pods(a_waiter("a1", zone="a"), 0),
            ("a1",),
            id="the other zone's only node was passed over and has no pods",
        ),
    ],
)
@pytest.mark.parametrize("by", [Order.OLDEST, Order.ZONE])
def test_a_roll_out_begins_in_a_zone_in_which_a_node_can_reboot(
    other: NodeView, passed: tuple[str, ...], by: Order
) -> None:
    content = LockContent(line=Line(passed=passed))
    names = next_names([other, *ZONE_B], content, a_policy(order=by))
    assert names[:2] == ("b2", "b1")


def test_the_node_with_the_fewest_pods_comes_first_even_if_no_node_can_reboot() -> None:
    unready = [replace(node, ready=False) for node in ZONE_B]
    assert next_names(unready, FREE, a_policy()) == ("b2", "b1")


def test_waiting_an_hour_longer_matters_more_than_the_number_of_zone_bound_pods() -> None:
    waiters = [
        with_pods(a_waiter("a1", "09:00", "a"), 9, 9),
        with_pods(a_waiter("b1", "10:00", "b"), 1),
        with_pods(a_waiter("c1", "10:00", "c"), 9, 9),
        with_pods(a_waiter("c2", "09:00", "c"), 9, 8),
    ]
    assert next_names(waiters, FREE, a_policy()) == ("a1", "c2", "c1", "b1")
    assert next_names(waiters, FREE, a_policy(), zone="d") == ("c2", "c1", "a1", "b1")


counts = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: (max(pair), min(pair)))


# A pod moves twice if it first moves to a node that reboots later. The docstring says which pods move twice if the
# nodes reboot zone by zone. careen's order of zones and nodes is the best one: with every other order, at least as many
# pods move twice. `least` is the smallest number of such pods for any order.
@given(st.lists(st.tuples(st.sampled_from("abc"), counts), min_size=1, max_size=12))
def test_no_other_order_of_zones_and_nodes_moves_fewer_pods_twice(nodes: list[tuple[str, tuple[int, int]]]) -> None:
    """The nodes reboot zone by zone. All pods of the first node of the first zone move twice. In each later zone, only
    the zone-bound pods of that zone's first node move twice."""
    waiters = {f"n{n:02}": with_pods(a_waiter(f"n{n:02}", zone=zone), *pods) for n, (zone, pods) in enumerate(nodes)}
    names = next_names([*waiters.values()], FREE, a_policy())
    firsts: dict[str, NodeView] = {}
    for name in names:
        firsts.setdefault(waiters[name].zone, waiters[name])
    least_in = {
        zone: min(order.moves_in_zone(node) for node in waiters.values() if node.zone == zone) for zone in firsts
    }
    least = min(order.moves(node) + sum(least_in.values()) - least_in[node.zone] for node in waiters.values())
    first, *later = firsts.values()
    assert order.moves(first) + sum(map(order.moves_in_zone, later)) == least


@pytest.mark.parametrize(
    ("moves", "in_zone", "expected"),
    [
        pytest.param("5", "3", 3, id="the Node shows a valid number of all pods and of zone-bound pods"),
        pytest.param("5", "", 0, id="the number of zone-bound pods is an empty text"),
        pytest.param("5", "-1", 0, id="the number of zone-bound pods is negative"),
        pytest.param("5", "9" * 5000, 0, id="a number of 5,000 digits"),
        pytest.param("5", "6", 5, id="more zone-bound pods than pods in total"),
        pytest.param("", "3", 10**9, id="the number of all pods is an empty text"),
    ],
)
def test_the_number_of_zone_bound_pods_is_at_least_zero_and_at_most_the_number_of_all_pods(
    moves: str, in_zone: str, expected: int
) -> None:
    node = a_node("n1", annotations={keys.MOVES: moves, keys.MOVES_IN_ZONE: in_zone})
    assert order.moves_in_zone(node) == expected


def test_a_roll_out_begins_in_the_zone_of_a_node_with_a_known_pod_count() -> None:
    waiters = [a_waiter("a1", zone="a"), with_pods(a_waiter("b1", zone="b"), 9, 1)]
    assert next_names(waiters, FREE, a_policy()) == ("b1", "a1")


@pytest.mark.parametrize("nonsense", ["-1", "1e3", "٣٤x", "9" * 5000, ""])
def test_an_invalid_pod_count_puts_the_node_last(nonsense: str) -> None:
    waiter = a_waiter("n1")
    waiters = [
        replace(waiter, annotations={**waiter.annotations, keys.MOVES: nonsense}),
        with_pods(a_waiter("n2"), 500),
    ]
    assert next_names(waiters, FREE, a_policy()) == ("n2", "n1")


def test_nodes_that_hold_a_claim_do_not_influence_the_order_of_the_zones() -> None:
    waiters = [with_pods(a_waiter("a0", "01:00", "a"), 1), a_waiter("a1", "09:00", "a"), a_waiter("b1", "08:00", "b")]
    assert next_names(waiters, held(an_entry("a0")), a_policy()) == ("b1", "a1")
    assert next_names(waiters, FREE, a_policy(), leave_out="a0") == ("b1", "a1")


def test_control_plane_nodes_come_last() -> None:
    waiters = [a_waiter("cp", "01:00", labels=CONTROL_PLANE), a_waiter("n1", "09:00")]
    assert next_names(waiters, FREE, a_policy()) == ("n1", "cp")


def test_a_zone_with_a_rebooted_node_is_finished_before_a_zone_that_has_waited_longer() -> None:
    waiters = [
        a_waiter("a1", "09:00", "a"),
        a_waiter("b1", "08:00", "b"),
        a_waiter("b2", "10:00", "b"),
        a_waiter("c1", "07:00", "c"),
    ]
    assert next_names(waiters, FREE, a_policy()) == ("c1", "b1", "b2", "a1")
    assert next_names(waiters, FREE, a_policy(), zone="a") == ("a1", "c1", "b1", "b2")


def test_a_node_whose_need_has_no_known_start_time_comes_last() -> None:
    silent = a_node("n1", labels={keys.REBOOT_LABEL: "ready", keys.ZONE: "a"})
    assert next_names([silent, a_waiter("n2", "11:00")], FREE, a_policy()) == ("n2", "n1")


def test_nodes_that_are_already_named_keep_their_position_in_line() -> None:
    waiters = [a_waiter("n1", "01:00"), a_waiter("n2", "02:00"), a_waiter("n3", "03:00")]
    assert next_names(waiters, LockContent(line=Line(names=("n3", "n2"))), a_policy()) == ("n3", "n2", "n1")


def test_nodes_that_were_passed_over_or_are_unready_come_last() -> None:
    waiters = [a_waiter("n1", "01:00"), a_waiter("n2", "02:00", ready=False), a_waiter("n3", "03:00")]
    assert next_names(waiters, LockContent(line=Line(passed=("n1",))), a_policy()) == ("n3", "n1", "n2")


def test_the_line_contains_only_nodes_whose_reboot_label_is_ready_and_that_hold_no_claim() -> None:
    """n1 has the label value `required`, n3 holds a claim, and the caller leaves out n4. So the line contains only
    n2."""
    waiters = [a_waiter("n1", label="required"), a_waiter("n2"), a_waiter("n3"), a_waiter("n4")]
    assert next_names(waiters, held(an_entry("n3")), a_policy(), leave_out="n4") == ("n2",)


def test_a_node_comes_first_if_the_budget_of_its_zone_allows_its_reboot() -> None:
    policy = a_policy(concurrency=3, budgets=(Budget(kind=BudgetKind.ZONE, limit=1),))
    waiters = [
        a_waiter("a1", "01:00", "a"),
        a_waiter("b1", "02:00", "b"),
        a_waiter("b2", "03:00", "b"),
        a_waiter("c1", "04:00", "c"),
    ]
    content = held(an_entry("a0", groups=("zone=a",), limit=3))
    assert next_names(waiters, content, policy) == ("b1", "c1", "a1", "b2")


def test_control_plane_nodes_come_last_while_a_control_plane_node_holds_a_claim() -> None:
    waiters = [a_waiter("cp1", labels=CONTROL_PLANE), a_waiter("cp2", labels=CONTROL_PLANE), a_waiter("n1", "23:00")]
    assert next_names(waiters, held(an_entry("cp0", groups=("control-plane",))), a_policy(concurrency=3)) == (
        "n1",
        "cp1",
        "cp2",
    )


def test_the_line_is_a_few_nodes_longer_than_the_limit_of_claims() -> None:
    waiters = [a_waiter(f"n{number:03}") for number in range(100)]
    assert len(next_names(waiters, FREE, a_policy(concurrency=4))) == 4 + order.SPARE_NAMES


def test_each_budget_that_selects_a_node_gives_the_node_a_group_and_a_limit() -> None:
    policy = a_policy(
        budgets=(
            Budget(kind=BudgetKind.ZONE, limit=2),
            Budget(kind=BudgetKind.SELECTOR, limit=3, selector=Selector.parse("pool=db")),
            Budget(kind=BudgetKind.CONTROL_PLANE, limit=2),
        )
    )
    node = a_node(labels={keys.ZONE: "a", "pool": "db", keys.MASTER: ""})
    assert groups(node, policy) == {"zone=a": 2, "selector:pool=db": 3, "control-plane": 1}
    assert groups(a_node(), policy) == {}


BY_ZONE = a_policy(order=Order.ZONE, concurrency=3)
TWO_ZONES = [
    a_waiter("a1", "09:00", "a"),
    a_waiter("b1", "08:00", "b"),
    a_waiter("a2", "07:00", "a"),
    a_waiter("b2", "10:00", "b"),
]


@pytest.mark.parametrize(
    ("content", "zone", "names", "abreast"),
    [
        pytest.param(
            FREE,
            None,
            ("a2", "a1", "b1", "b2"),
            2,
            id="no node holds a claim: the zone that has waited longest comes first",
        ),
        pytest.param(FREE, "b", ("b1", "b2", "a2", "a1"), 2, id="the zone of the releasing node comes first"),
        pytest.param(
            held(an_entry("b0", zone="b", limit=3)),
            "a",
            ("b1", "b2", "a2", "a1"),
            2,
            id="the holder's zone comes before the zone of the node that writes the lock",
        ),
        pytest.param(
            held(an_entry("b0", zone="b", limit=3), line=Line(names=("a1",))),
            None,
            ("b1", "b2", "a1", "a2"),
            2,
            id="the holder's zone comes before the zone of the first node in line",
        ),
        pytest.param(
            LockContent(line=Line(names=("b2", "a1"))),
            None,
            ("b2", "b1", "a1", "a2"),
            2,
            id="no node holds a claim: the zone of the first node in line comes first",
        ),
        pytest.param(
            held(an_entry("c0", zone="c", limit=3)),
            None,
            ("a2", "a1", "b1", "b2"),
            0,
            id="no node of the holder's zone waits",
        ),
        pytest.param(
            held(an_entry("old", zone=None, limit=3)),
            None,
            ("a2", "a1", "b1", "b2"),
            0,
            id="the holder's zone is unknown",
        ),
        pytest.param(
            held(an_entry("a0", zone="a", limit=3), an_entry("b0", zone="b", limit=3)),
            None,
            ("a2", "a1", "b1", "b2"),
            0,
            id="nodes of two zones hold claims",
        ),
    ],
)
def test_if_the_order_is_zone_the_lock_records_how_many_nodes_may_claim_together(
    content: LockContent, zone: str | None, names: tuple[str, ...], abreast: int
) -> None:
    line = order.name_next(content, TWO_ZONES, BY_ZONE, at="12:00", zone=zone).line
    assert (line.names, line.abreast) == (names, abreast)


def test_control_plane_nodes_come_last_if_the_order_is_zone() -> None:
    waiters = [a_waiter("cp-a", "01:00", "a", labels=CONTROL_PLANE), a_waiter("b1", "09:00", "b")]
    line = order.name_next(held(an_entry("a1", zone="a", limit=3)), waiters, BY_ZONE, at="12:00").line
    assert (line.names, line.abreast) == (("b1", "cp-a"), 0)


def test_nodes_without_a_zone_label_form_one_zone() -> None:
    waiters = [a_waiter("n1", zone=""), a_waiter("n2", zone="a")]
    assert order.name_next(held(an_entry("n0", zone="", limit=3)), waiters, BY_ZONE, at="").line.abreast == 1


@pytest.mark.parametrize("policy", [a_policy(), a_policy(order=Order.FEWEST_MOVES)])
def test_the_line_does_not_limit_how_many_nodes_claim_together_if_the_order_is_not_zone(policy: Policy) -> None:
    assert order.name_next(FREE, TWO_ZONES, policy, at="").line.abreast is None


def a_counted(name: str, moves: str | None, since: str = "09:00", **changes: Any) -> NodeView:
    waiter = a_waiter(name, since, **changes)
    return waiter if moves is None else replace(waiter, annotations={**waiter.annotations, keys.MOVES: moves})


def test_nodes_are_sorted_by_pod_count_and_then_by_waiting_time_if_the_order_is_fewest_moves() -> None:
    waiters = [
        a_counted("n1", "7"),
        a_counted("n2", None),
        a_counted("n3", "12"),
        a_counted("n4", "7", "08:00"),
        a_counted("n5", "many"),
        a_counted("cp", "0", labels=CONTROL_PLANE),
    ]
    assert next_names(waiters, FREE, FEWEST) == ("n4", "n1", "n3", "n2", "n5", "cp")


def test_named_nodes_come_first_if_the_order_is_fewest_moves() -> None:
    waiters = [a_counted("n1", "5"), a_counted("n2", "4"), a_counted("n3", "3")]
    assert next_names(waiters, LockContent(line=Line(names=("n1", "n2"))), FEWEST) == ("n2", "n1", "n3")


def test_room_in_a_budget_matters_more_than_a_low_pod_count_if_the_order_is_fewest_moves() -> None:
    policy = a_policy(order=Order.FEWEST_MOVES, concurrency=3, budgets=(Budget(kind=BudgetKind.ZONE, limit=1),))
    waiters = [a_counted("a1", "1", zone="a"), a_counted("b1", "9", zone="b")]
    assert next_names(waiters, held(an_entry("a0", groups=("zone=a",), limit=3)), policy) == ("b1", "a1")


FEWEST = a_policy(order=Order.FEWEST_MOVES)


@given(
    st.permutations([a_waiter(f"n{number}", f"{number % 3:02}:00", "ab"[number % 2]) for number in range(8)]),
    st.sampled_from(list(Order)),
)
def test_the_line_of_waiting_nodes_does_not_depend_on_the_order_of_the_listed_nodes(
    waiters: list[NodeView], how: Order
) -> None:
    policy = Policy(node_name="n1", order=how)
    assert next_names(waiters, FREE, policy) == next_names(sorted(waiters, key=lambda node: node.name), FREE, policy)

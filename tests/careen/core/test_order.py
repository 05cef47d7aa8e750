"""Who goes next, whose turn it is, and how long the others sleep."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core import keys, order
from careen.core.lock import LockContent
from careen.core.memory import Memory
from careen.core.observation import NodeView
from careen.core.phases import Phase
from careen.core.policy import Budget, BudgetKind, Policy
from careen.core.progress import Progress, to_annotation
from careen.core.selectors import Selector
from tests.careen.core.builders import a_node, a_policy, an_entry, held


def a_waiter(name: str, since: str = "12:00", zone: str = "a", label: str = "ready", **changes: Any) -> NodeView:
    labels = {keys.REBOOT_LABEL: label, keys.ZONE: zone, **changes.pop("labels", {})}
    progress = Progress(phase=Phase.WAITING.value, need_since=f"2026-03-04T{since}:00Z")
    return a_node(name, labels=labels, annotations={keys.PROGRESS: to_annotation(progress)}, **changes)


CONTROL_PLANE = {keys.CONTROL_PLANE: ""}
FREE = LockContent()


def test_the_oldest_need_goes_first_and_ties_go_by_name() -> None:
    waiters = [a_waiter("n3", "09:00"), a_waiter("n2", "08:00"), a_waiter("n1", "09:00")]
    assert order.next_names(waiters, FREE, a_policy()) == ("n2", "n1", "n3")


def test_the_control_plane_goes_last() -> None:
    waiters = [a_waiter("cp", "01:00", labels=CONTROL_PLANE), a_waiter("n1", "09:00")]
    assert order.next_names(waiters, FREE, a_policy()) == ("n1", "cp")


def test_the_zone_at_work_is_finished_first_then_the_zone_with_the_oldest_need() -> None:
    waiters = [a_waiter("a1", "09:00", "a"), a_waiter("b1", "08:00", "b"), a_waiter("b2", "10:00", "b"), a_waiter("c1", "07:00", "c")]
    assert order.next_names(waiters, FREE, a_policy()) == ("c1", "b1", "b2", "a1")
    assert order.next_names(waiters, FREE, a_policy(), zone="a") == ("a1", "c1", "b1", "b2")


def test_who_is_named_already_keeps_its_place() -> None:
    waiters = [a_waiter("n1", "01:00"), a_waiter("n2", "02:00"), a_waiter("n3", "03:00")]
    assert order.next_names(waiters, LockContent(next=("n3", "n2")), a_policy()) == ("n3", "n2", "n1")


def test_who_did_not_come_or_is_not_ready_comes_last() -> None:
    waiters = [a_waiter("n1", "01:00"), a_waiter("n2", "02:00", ready=False), a_waiter("n3", "03:00")]
    assert order.next_names(waiters, LockContent(passed=("n1",)), a_policy()) == ("n3", "n1", "n2")


def test_only_ready_nodes_that_hold_no_claim_are_named() -> None:
    waiters = [a_waiter("n1", label="required"), a_waiter("n2"), a_waiter("n3"), a_waiter("n4")]
    assert order.next_names(waiters, held(an_entry("n3")), a_policy(), leave_out="n4") == ("n2",)


def test_a_node_whose_budget_has_room_goes_before_one_whose_budget_is_spent() -> None:
    policy = a_policy(concurrency=3, budgets=(Budget(kind=BudgetKind.ZONE, limit=1),))
    waiters = [a_waiter("a1", "01:00", "a"), a_waiter("b1", "02:00", "b"), a_waiter("b2", "03:00", "b"), a_waiter("c1", "04:00", "c")]
    content = held(an_entry("a0", groups=("zone=a",), limit=3))
    assert order.next_names(waiters, content, policy) == ("b1", "c1", "a1", "b2")


def test_at_most_one_control_plane_node_has_room_at_a_time() -> None:
    waiters = [a_waiter("cp1", labels=CONTROL_PLANE), a_waiter("cp2", labels=CONTROL_PLANE), a_waiter("n1", "23:00")]
    assert order.next_names(waiters, held(an_entry("cp0", groups=("control-plane",))), a_policy(concurrency=3)) == ("n1", "cp1", "cp2")


def test_the_line_is_no_longer_than_it_must_be() -> None:
    waiters = [a_waiter(f"n{number:03}") for number in range(100)]
    assert len(order.next_names(waiters, FREE, a_policy(concurrency=4))) == 4 + order.SPARE_NAMES


def test_a_node_belongs_to_the_groups_of_every_budget_with_the_smallest_limit() -> None:
    policy = a_policy(budgets=(
        Budget(kind=BudgetKind.ZONE, limit=2), Budget(kind=BudgetKind.SELECTOR, limit=3, selector=Selector.parse("pool=db")),
        Budget(kind=BudgetKind.CONTROL_PLANE, limit=2),
    ))
    node = a_node(labels={keys.ZONE: "a", "pool": "db", keys.MASTER: ""})
    assert order.groups(node, policy) == {"zone=a": 2, "selector:pool=db": 3, "control-plane": 1}
    assert order.groups(a_node(), policy) == {}


NAMED = LockContent(next=("n1", "n2", "n3"), next_at="t")


def turn(name: str, content: LockContent, waited: float = 0.0, concurrency: int = 1, memory: Memory | None = None) -> order.Turn:
    first = order.whose_turn(name, content, a_policy(concurrency=concurrency), memory or Memory(), 1000.0)
    return order.whose_turn(name, content, a_policy(concurrency=concurrency), first.memory, 1000.0 + waited)


@pytest.mark.parametrize(("name", "waited", "concurrency", "expected"), [
    ("n1", 0, 1, True), ("n2", 0, 1, False), ("n2", 0, 2, True), ("n2", 59, 1, False), ("n2", 60, 1, True), ("n3", 60, 1, False),
    ("n3", 120, 1, True), ("n9", 120, 1, False), ("n9", 180, 1, True),
])
def test_the_named_come_in_order_and_who_does_not_come_within_a_minute_is_passed_over(name: str, waited: float, concurrency: int, expected: bool) -> None:
    assert turn(name, NAMED, waited, concurrency).is_ours is expected


def test_a_full_or_paused_lock_is_nobodys_turn_and_stops_the_watch() -> None:
    assert not turn("n1", held(an_entry("n9"), next=("n1",)), 500).is_ours
    assert not turn("n1", LockContent(next=("n1",), is_paused=True), 500).is_ours
    watching = turn("n2", NAMED, 59).memory
    stopped = order.whose_turn("n2", held(an_entry("n9"), next=NAMED.next), a_policy(), watching, 1059.0).memory
    assert not turn("n2", NAMED, 0, memory=stopped).is_ours


def test_a_new_hand_over_begins_a_new_watch() -> None:
    watching = turn("n2", NAMED, 59).memory
    again = order.whose_turn("n2", LockContent(next=NAMED.next, next_at="later"), a_policy(), watching, 1060.0)
    assert not again.is_ours


def test_when_nobody_is_named_the_order_has_to_be_looked_up() -> None:
    assert turn("n1", LockContent()).asks_waiters


def test_whoever_comes_out_of_order_knows_who_did_not_come() -> None:
    assert turn("n3", NAMED, 120).passed == ("n1", "n2")
    assert turn("n1", NAMED, 0).passed == ()


@pytest.mark.parametrize(("name", "waiting", "seconds"), [
    ("n1", 5000, 3.0), ("n3", 5000, 3.0), ("n4", 5000, 10.0), ("other", 0, 30.0), ("other", 180, 30.0), ("other", 6000, 1000.0),
])
def test_the_first_look_often_and_the_others_rarely(name: str, waiting: int, seconds: float) -> None:
    content = LockContent(next=("n1", "n2", "n3", "n4"), waiting=waiting)
    assert order.look_again_seconds(name, content, 0.5) == seconds


def test_five_thousand_waiting_nodes_cost_less_than_twenty_requests_a_second() -> None:
    """Two requests a look: the lock, and the own Node."""
    waiting = 5000
    line = LockContent(next=tuple(f"n{number}" for number in range(1 + order.SPARE_NAMES)), waiting=waiting)
    looks = sum(1 / order.look_again_seconds(name, line, 0.0) for name in line.next)
    looks += (waiting - len(line.next)) / order.look_again_seconds("other", line, 0.0)
    assert 2 * looks < 20


@given(st.permutations([a_waiter(f"n{number}", f"{number % 3:02}:00", "ab"[number % 2]) for number in range(8)]))
def test_the_order_does_not_depend_on_the_order_of_the_list(waiters: list[NodeView]) -> None:
    assert order.next_names(waiters, FREE, Policy(node_name="n1")) == order.next_names(sorted(waiters, key=lambda node: node.name), FREE, Policy(node_name="n1"))

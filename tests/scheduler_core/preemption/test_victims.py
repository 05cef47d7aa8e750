"""Tests which pods on one node become victims. The filter in these tests is simple: a node has a capacity, and each pod
a size."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.verdict import SUCCESS, Verdict, VerdictCode, error, unresolvable, unschedulable
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.labels import LabelSelector, Requirement
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Container, HostPort, Pod, PodSpec
from scheduler_core.preemption.victims import (
    VictimRules,
    Victims,
    is_more_important,
    most_important_first,
    select_victims,
    split_by_budget,
    unordered_budgets,
)
from scheduler_core.snapshot.node_info import NodeInfo

FULL = unschedulable("Insufficient room")


def a_pod(
    name: str,
    priority: int = 0,
    *,
    size: int = 1,
    started: float | None = 0.0,
    app: str = "",
    namespace: str = "default",
    ports: Collection[int] = (),
) -> Pod:
    container = Container(name="c", host_ports=tuple(HostPort("0.0.0.0", "TCP", each) for each in sorted(ports)))
    return Pod(
        name=name,
        namespace=namespace,
        uid=name,
        labels={"size": str(size), **({"app": app} if app else {})},
        spec=PodSpec(priority=priority, containers=(container,) if ports else ()),
        start_time=started,
    )


def size_of(pod: Pod) -> int:
    return int(pod.labels["size"])


@dataclass
class Room:
    """A filter that accepts a pod if the sizes of this pod and of all pods on the node add up to at most `room`. If
    `there` has the names of the pods on the node, `filter_node` also checks that preemption called `pod_removed` for
    each removed pod and `pod_added` for each pod that was added back."""

    room: int
    bad: Verdict = SUCCESS
    there: set[str] | None = None
    log: list[str] = field(default_factory=list)
    counts: bool = True
    wants_ports: bool = False
    asked: list[bool] = field(default_factory=list)

    def counts_pods(self, state: CycleState) -> bool:
        return self.counts

    def filter_node(self, state: CycleState, pod: Pod, node_info: NodeInfo, *, has_passed: bool = False) -> Verdict:
        self.asked.append(has_passed)
        if self.wants_ports and node_info.used_ports.intersection(pod.spec.host_ports):
            return FULL
        if self.there is not None:
            assert self.there == {other.name for other in node_info.pods}
        return SUCCESS if sum(map(size_of, node_info.pods)) + size_of(pod) <= self.room else FULL

    def pod_added(self, state: CycleState, pod: Pod, added: Pod, node_info: NodeInfo) -> Verdict:
        self.log.append(f"+{added.name}")
        if self.there is not None:
            self.there.add(added.name)
        return self.bad

    def pod_removed(self, state: CycleState, pod: Pod, removed: Pod, node_info: NodeInfo) -> Verdict:
        self.log.append(f"-{removed.name}")
        if self.there is not None:
            self.there.remove(removed.name)
        return self.bad


def select(pod: Pod, *others: Pod, room: int, budgets: tuple[DisruptionBudget, ...] = ()) -> Victims | Verdict:
    trial = Room(room, there={other.name for other in others})
    return select_victims(trial, CycleState(), pod, NodeInfo.of(Node(name="n1"), others), budgets)


def names(found: Victims | Verdict) -> tuple[str, ...]:
    assert isinstance(found, Victims)
    return tuple(victim.name for victim in found.pods)


PREEMPTOR = a_pod("preemptor", 100)


def test_the_most_important_pods_are_spared_first() -> None:
    assert names(select(PREEMPTOR, a_pod("low", 1), a_pod("high", 9), a_pod("mid", 5), room=3)) == ("low",)


def test_of_two_pods_with_equal_priority_the_pod_that_started_earlier_is_spared() -> None:
    assert names(
        select(
            PREEMPTOR,
            a_pod("young", started=20.0),
            a_pod("old", started=10.0),
            a_pod("unstarted", started=None),
            room=3,
        )
    ) == ("unstarted",)


def test_several_small_pods_may_be_evicted_to_spare_a_large_important_pod() -> None:
    # Not the smallest set: evicting `large` alone would do.
    found = select(PREEMPTOR, a_pod("large", 9, size=2), a_pod("small1", 1), a_pod("small2", 1), room=3)
    assert names(found) == ("small1", "small2")


def test_a_small_pod_is_spared_if_a_more_important_pod_is_too_large_to_stay() -> None:
    assert names(select(PREEMPTOR, a_pod("large", 9, size=3), a_pod("small", 1), room=3)) == ("large",)


def test_victims_are_listed_by_importance_regardless_of_budgets() -> None:
    budget = DisruptionBudget(
        name="b",
        namespace="default",
        selector=LabelSelector((Requirement("app", "In", ("x",)),)),
        disruptions_allowed=0,
    )
    found = select(PREEMPTOR, a_pod("low", 1, app="x"), a_pod("high", 9), a_pod("mid", 5), room=1, budgets=(budget,))
    assert names(found) == ("high", "mid", "low")
    assert isinstance(found, Victims)
    assert found.budget_violations == 1


def test_a_pod_under_an_exhausted_budget_is_spared_first() -> None:
    budget = DisruptionBudget(
        name="b",
        namespace="default",
        selector=LabelSelector((Requirement("app", "In", ("x",)),)),
        disruptions_allowed=0,
    )
    found = select(PREEMPTOR, a_pod("guarded", 1, app="x"), a_pod("free", 9), room=2, budgets=(budget,))
    assert names(found) == ("free",)
    assert isinstance(found, Victims)
    assert found.budget_violations == 0


def test_without_pods_of_lower_priority_there_are_no_victims() -> None:
    assert select(PREEMPTOR, a_pod("equal", 100), room=1) == unresolvable(
        "No preemption victims found for incoming pod"
    )


def test_preemption_reports_why_a_node_is_too_small_even_without_pods() -> None:
    assert select(PREEMPTOR, a_pod("equal", 100), a_pod("low", 1), room=1) == FULL


def test_preemption_on_a_node_that_needs_no_victim_is_an_error() -> None:
    # The search refused it, and yet it fits: something is out of step.
    assert select(PREEMPTOR, a_pod("low", 1), room=2) == error('expected at least one victim pod on node "n1"')


def test_preemption_returns_the_error_of_a_plugin() -> None:
    trial = Room(1, bad=error("broken"))
    assert select_victims(trial, CycleState(), PREEMPTOR, NodeInfo.of(Node(name="n1"), [a_pod("low", 1)]), ()) == error(
        "broken"
    )


def test_plugins_see_every_pod_that_preemption_removes_and_adds_back() -> None:
    trial = Room(2)
    select_victims(
        trial, CycleState(), PREEMPTOR, NodeInfo.of(Node(name="n1"), [a_pod("low", 1), a_pod("high", 9)]), ()
    )
    assert trial.log == ["-low", "-high", "+high", "+low", "-low"]


def test_filters_of_the_node_alone_are_asked_once() -> None:
    trial = Room(2)
    select_victims(
        trial, CycleState(), PREEMPTOR, NodeInfo.of(Node(name="n1"), [a_pod("low", 1), a_pod("high", 9)]), ()
    )
    assert trial.asked == [False, True, True]


@given(
    pods=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12), st.sets(st.integers(1, 3))), min_size=1, max_size=6),
    port=st.integers(1, 3),
    room=st.integers(1, 16),
)
def test_the_victims_are_the_same_whether_or_not_plugins_count_the_pods(
    pods: list[tuple[int, int, set[int]]], port: int, room: int
) -> None:
    """Even where several pods claim one port, which the removal of one of them frees."""
    others = [
        a_pod(f"p{index}", priority, size=size, ports=ports) for index, (size, priority, ports) in enumerate(pods)
    ]
    preemptor = a_pod("preemptor", 10, ports={port})
    info = NodeInfo.of(Node(name="n1"), others)
    one, other = [
        select_victims(Room(room, counts=counts, wants_ports=True), CycleState(), preemptor, info, ())
        for counts in (True, False)
    ]
    assert one == other


@given(
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.floats(0, 5)), min_size=1, max_size=8),
    room=st.integers(1, 16),
)
def test_the_victims_are_enough_and_none_of_them_could_be_spared(
    sizes: list[tuple[int, int, float]], room: int
) -> None:
    others = [
        a_pod(f"p{index}", priority, size=size, started=started)
        for index, (size, priority, started) in enumerate(sizes)
    ]
    found = select(PREEMPTOR, *others, room=room)
    total = sum(map(size_of, others)) + 1
    if isinstance(found, Verdict):
        assert (found.code is VerdictCode.ERROR) is (total <= room)
        return
    kept = [other for other in others if other not in found.pods]
    used = sum(map(size_of, kept)) + 1
    assert used <= room < total
    for victim in found.pods:
        more_important = [other for other in kept if not is_more_important(victim, other)]
        assert sum(map(size_of, more_important)) + size_of(victim) + 1 > room


@pytest.mark.parametrize(
    ("one", "other", "first"),
    [
        pytest.param(a_pod("a", 2), a_pod("b", 1), True, id="a pod of higher priority is more important"),
        pytest.param(
            a_pod("a", 1, started=0.0),
            a_pod("b", 2, started=9.0),
            False,
            id="the priority is compared before the start time",
        ),
        pytest.param(
            a_pod("a", started=1.0), a_pod("b", started=2.0), True, id="a pod that started earlier is more important"
        ),
        pytest.param(
            a_pod("a", started=1.0), a_pod("b", started=1.0), False, id="of two equal pods, neither is more important"
        ),
        pytest.param(
            a_pod("a", started=1.0),
            a_pod("b", started=None),
            True,
            id="a started pod is more important than a pod that has not started",
        ),
        pytest.param(
            a_pod("a", started=None),
            a_pod("b", started=1.0),
            False,
            id="a pod that has not started is less important than a started pod",
        ),
        pytest.param(
            a_pod("a", started=None),
            a_pod("b", started=None),
            True,
            id="of two pods that have not started, the first argument is more important",
        ),
    ],
)
def test_the_importance_of_pods_follows_priority_and_then_start_time(one: Pod, other: Pod, first: bool) -> None:
    assert is_more_important(one, other) is first


def test_equally_important_pods_are_ordered_as_by_kube_scheduler() -> None:
    # Thirteen pods of one ReplicaSet: more than Go sorts by insertion. All equal, they stay as they are; one
    # that stands out moves the others.
    pods = [a_pod(f"p{index}") for index in range(13)]
    assert most_important_first(pods) == pods
    pods[12] = a_pod("p12", 1)
    assert [pod.name for pod in most_important_first(pods)] == [
        f"p{index}" for index in (12, 6, 2, 3, 4, 5, 0, 7, 8, 9, 10, 11, 1)
    ]


# ---- budgets ----


def budget(
    allowed: int, *, namespace: str = "default", disrupted: tuple[str, ...] = (), selector: Any = None
) -> DisruptionBudget:
    chosen = LabelSelector((Requirement("app", "In", ("x",)),)) if selector is None else selector
    return DisruptionBudget(
        name="b", namespace=namespace, selector=chosen, disruptions_allowed=allowed, disrupted_pods=frozenset(disrupted)
    )


PODS = [a_pod("a", app="x"), a_pod("b", app="x"), a_pod("c", app="y")]


@pytest.mark.parametrize(
    ("budgets", "violating"),
    [
        pytest.param([budget(2)], "", id="a budget of two allows both evictions"),
        pytest.param([budget(1)], "b", id="a budget of one is violated by the second eviction"),
        pytest.param([budget(0)], "ab", id="a budget of zero is violated by both evictions"),
        pytest.param([budget(0, namespace="other")], "", id="a budget of another namespace selects no pod"),
        pytest.param([budget(0, disrupted=("a",))], "b", id="a pod in the budget's disruptedPods is not counted again"),
        pytest.param([budget(0, selector=LabelSelector(()))], "", id="a budget with an empty selector selects no pod"),
        pytest.param([budget(0, selector=LabelSelector(None))], "", id="a budget without a selector selects no pod"),
        pytest.param(
            [budget(1), budget(0, selector=LabelSelector((Requirement("app", "Exists"),)))],
            "abc",
            id="a victim violates a budget if any of its budgets allows no eviction",
        ),
        pytest.param(
            [budget(1, selector=LabelSelector((Requirement("app", "Exists"),))), budget(5)],
            "bc",
            id="an eviction that violates one budget still uses up another budget",
        ),
    ],
)
def test_the_victims_that_violate_a_budget_are_the_same_as_in_kube_scheduler(
    budgets: list[DisruptionBudget], violating: str
) -> None:
    found, others = split_by_budget(PODS, budgets)
    assert "".join(pod.name for pod in found) == violating
    assert {pod.name for pod in others} == {"a", "b", "c"} - set(violating)


def test_no_budget_selects_a_pod_without_labels() -> None:
    bare = Pod(name="bare")
    assert split_by_budget([bare], [budget(0, selector=LabelSelector((Requirement("app", "DoesNotExist"),)))]) == (
        [],
        [bare],
    )


EVERY_APP = LabelSelector((Requirement("app", "Exists"),))


@pytest.mark.parametrize(
    ("overlapping", "named"),
    [
        (replace(budget(0, selector=EVERY_APP), name="all"), {"default/all", "default/b"}),
        (replace(budget(9, selector=EVERY_APP), name="all"), {"default/all", "default/b"}),
        (replace(budget(9, namespace="other"), name="all"), set()),
    ],
)
def test_budgets_that_select_one_pod_are_named_if_one_is_overdrawn(
    overlapping: DisruptionBudget, named: set[str]
) -> None:
    rules = VictimRules(stops_at_overdrawn=True)
    several = [budget(0), overlapping]
    assert unordered_budgets(split_by_budget(PODS, several, rules)[0], several) == named

"""Tests roll-outs of small clusters. Each drain starts from the result of the earlier drains, and times are exact to
the second."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.forecast import Forecast, Outcome
from scheduler_core.simulation.rollout import Durations, simulate_rollout
from scheduler_core.simulation.timeline import Closing, Hindrance, Left, Obstacle, Span, Step, Timeline, Wait
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot, UnknownNodeError
from scheduler_core.testing.builders import NodeBuilder, PodBuilder, a_budget, a_node, a_pod, manifests

T0 = datetime(2026, 3, 4, 22, 0, tzinfo=UTC)
ROUND = 60 + 180 + 30
"""The seconds from a node's claim on the reboot lock to its release, with the default durations."""


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


@dataclass
class TestRules:
    """Rules that let at most `limit` nodes hold the lock at the same time. The nodes ask for the lock in the given
    order. A test may set further rules."""

    __test__ = False

    limit: int = 1
    forbids: Callable[[str, datetime, Forecast | None], str] = lambda *_: ""
    forbids_late: Callable[[str, datetime], str] = lambda *_: ""
    openings: Sequence[datetime] = ()
    closings: Sequence[datetime] = ()
    holders: list[str] = field(default_factory=list)

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        return list(waiting) if len(self.holders) < self.limit else ()

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        return _obstacle(self.forbids(node, at, forecast))

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        return _obstacle(self.forbids_late(node, at))

    def claimed(self, node: str, at: datetime) -> None:
        self.holders.append(node)

    def released(self, node: str, at: datetime) -> None:
        self.holders.remove(node)

    def next_opening(self, at: datetime) -> datetime | None:
        return next((each for each in self.openings if each > at), None)

    def next_closing(self, at: datetime) -> datetime | None:
        return next((each for each in self.closings if each >= at), None)


class FewestMovesFirst(TestRules):
    """Rules that sort the waiting nodes by the number of pods that their drain would move now, fewest first."""

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        return sorted(super().line(waiting, at, movable), key=movable)


def _obstacle(sentence: str) -> Obstacle | None:
    return Obstacle(rule="test", subject=sentence, sentence=sentence) if sentence else None


def a_replica(name: str, node: str, cpu: str = "1", app: str = "web") -> PodBuilder:
    ready = [{"type": "Ready", "status": "True"}]
    return (
        a_pod(name)
        .labelled(app=app)
        .requesting(cpu=cpu)
        .owned_by("ReplicaSet", app)
        .on(node)
        .with_field("status.conditions", ready)
    )


def rollout(
    *objects: NodeBuilder | PodBuilder | Any,
    nodes: Sequence[str],
    rules: TestRules | None = None,
    taint_key: str | None = "soft",
    **more: Any,
) -> Timeline:
    snapshot = load_objects(manifests(*objects))
    given = {"begins": T0, "durations": Durations(), "taint_key": taint_key, **more}
    return simulate_rollout(snapshot, nodes, Scheduler(), rules or TestRules(), **given)


def moves(timeline: Timeline) -> list[tuple[str, str, str]]:
    return [(move.pod.removeprefix("default/"), move.source, move.target) for move in timeline.moves]


def test_the_next_node_is_drained_after_the_previous_node_has_rebooted_and_settled() -> None:
    timeline = rollout(a_node("n1"), a_node("n2"), nodes=["n1", "n2"])
    first, second = timeline.visits
    assert first.spans == (
        Span(step=Step.DRAINING, start=at(0), end=at(60)),
        Span(step=Step.REBOOTING, start=at(60), end=at(240)),
        Span(step=Step.SETTLING, start=at(240), end=at(270)),
    )
    assert (second.node, second.start, timeline.ends, timeline.left) == ("n2", at(ROUND + 5), at(2 * ROUND + 5), ())


def test_the_number_of_movable_pods_is_updated_after_each_drain_of_the_roll_out() -> None:
    big = [a_node("n1").offering(cpu="8"), a_node("n2").offering(cpu="8")]
    full = a_node("n3").offering(cpu="2")
    pods = [
        a_replica(f"{node}-{number}", node)
        for node, many in (("n1", 1), ("n2", 2), ("n3", 2))
        for number in range(many)
    ]
    timeline = rollout(*big, full, *pods, nodes=["n1", "n2", "n3"], rules=FewestMovesFirst())
    assert [(visit.node, visit.moves) for visit in timeline.visits] == [("n1", 1), ("n3", 2), ("n2", 3)]


def test_a_simulated_reboot_takes_the_boot_time_that_was_measured_on_the_node() -> None:
    timeline = rollout(a_node("n1"), a_node("n2"), nodes=["n1", "n2"], durations=Durations(boot_of={"n2": 1000.0}))
    assert [(visit.end - visit.start).total_seconds() for visit in timeline.visits] == [ROUND, 60 + 1000 + 30]


def test_each_drain_starts_from_the_placements_after_the_previous_drain() -> None:
    timeline = rollout(a_node("n1"), a_node("n2"), a_replica("p", "n1"), nodes=["n1", "n2"])
    assert moves(timeline) == [("p", "n1", "n2"), ("p", "n2", "n1")]
    assert timeline.double_moves == 1


@pytest.mark.parametrize(("taint_key", "landing"), [("soft", "n3"), (None, "n2")])
def test_the_soft_taint_keeps_pods_off_nodes_that_still_have_to_reboot(taint_key: str | None, landing: str) -> None:
    """The nodes n1 and n2 must reboot. Node n3 need not reboot, but already has a pod. Without the taint, the pod of n1
    would prefer the empty node n2, and would be moved a second time when n2 reboots."""
    timeline = rollout(
        a_node("n1"),
        a_node("n2"),
        a_node("n3"),
        a_replica("p", "n1"),
        a_replica("q", "n3", app="db"),
        nodes=["n1", "n2"],
        taint_key=taint_key,
    )
    assert moves(timeline)[0] == ("p", "n1", landing)


def test_a_rebooted_node_has_no_soft_taint() -> None:
    """The nodes reboot in the order n3, n2, n1. When node n2 is drained, n3 has rebooted and n1 must still reboot. Both
    nodes are empty, but only n1 has the soft taint. So the pod of n2 lands on n3."""
    timeline = rollout(a_node("n1"), a_node("n2"), a_node("n3"), a_replica("p", "n2"), nodes=["n3", "n2", "n1"])
    assert moves(timeline) == [("p", "n2", "n3")]


def test_a_reboot_removes_a_soft_taint_that_existed_before_the_rollout() -> None:
    waiting = a_node("n3").tainted("soft", effect="PreferNoSchedule")
    timeline = rollout(a_node("n1"), a_node("n2"), waiting, a_replica("p", "n2"), nodes=["n3", "n2", "n1"])
    assert moves(timeline) == [("p", "n2", "n3")]


def test_nodes_that_are_down_together_do_not_receive_each_others_pods() -> None:
    timeline = rollout(
        a_node("n1"),
        a_node("n2"),
        a_node("n3"),
        a_replica("p", "n1"),
        a_replica("q", "n2", app="db"),
        nodes=["n1", "n2"],
        rules=TestRules(limit=2),
    )
    assert moves(timeline)[1] == ("q", "n2", "n3")
    assert timeline.most_at_once() == 2


def test_a_pod_without_room_is_placed_when_a_node_comes_back() -> None:
    timeline = rollout(
        a_node("n1"), a_node("n2"), a_replica("p", "n1", cpu="3"), a_replica("q", "n2", cpu="3", app="db"), nodes=["n1"]
    )
    (wait,) = timeline.waits
    assert (wait.pod, wait.node, wait.since, wait.until, wait.returns) == ("default/p", "n1", at(0), at(240), False)
    assert wait.why.startswith("0/2 nodes are available")
    assert (timeline.pending_seconds, timeline.moves) == (240, ())


def test_a_pod_that_fits_only_on_its_node_waits_for_the_reboot() -> None:
    only_here = a_replica("p", "n1").with_field("spec.nodeSelector", {"kubernetes.io/hostname": "n1"})
    timeline = rollout(a_node("n1"), a_node("n2"), only_here, nodes=["n1", "n2"])
    (wait,) = timeline.waits
    assert (wait.until, wait.returns, timeline.pending) == (at(240), True, ())


def test_a_pod_that_never_finds_room_waits_until_the_end_of_the_roll_out() -> None:
    """The nodes n1 and n2 have room for one pod each. Another client cordoned n2 before the roll-out, so n2 stays
    cordoned after its reboot. Node n2 is drained first. Its pod q has a higher priority than the pod p of n1, so q
    preempts p and moves to n1. Then n1 is full and n2 is cordoned, so p finds no room."""
    timeline = rollout(
        a_node("n1"),
        a_node("n2").cordoned(),
        a_replica("p", "n1", cpu="4"),
        a_replica("q", "n2", cpu="4", app="db").with_priority(5),
        nodes=["n2", "n1"],
    )
    assert moves(timeline)[0] == ("q", "n2", "n1")
    assert {(wait.pod, wait.until) for wait in timeline.waits} >= {("default/p", None)}


def test_a_preempted_pod_is_counted_as_moved() -> None:
    timeline = rollout(
        a_node("n1"),
        a_node("n2"),
        a_node("n3").offering(cpu="1"),
        a_replica("big", "n1", cpu="4").with_priority(9),
        a_replica("small", "n2", app="db"),
        nodes=["n1"],
    )
    assert [(move.pod, move.target, move.is_preempted) for move in timeline.moves] == [
        ("default/big", "n2", False),
        ("default/small", "n3", True),
    ]


def test_a_budget_allows_the_next_eviction_once_the_replacement_is_placed() -> None:
    budget = (
        a_budget()
        .selecting(app="web")
        .allowing(1)
        .with_field("status.currentHealthy", 2)
        .with_field("status.desiredHealthy", 1)
        .with_field("status.expectedPods", 2)
    )
    full = a_replica("other", "n3", cpu="3", app="db")
    seen: list[tuple[str, float, int]] = []

    def forbids(node: str, now: datetime, forecast: Forecast | None) -> str:
        blocked = forecast.count(Outcome.BLOCKED) if forecast else 0
        if forecast and node == "n2":
            seen.append((node, (now - T0).total_seconds(), blocked))
        return "the budget" if blocked else ""

    timeline = rollout(
        a_node("n1"),
        a_node("n2"),
        a_node("n3"),
        full,
        a_replica("p", "n1", cpu="3"),
        a_replica("q", "n2", cpu="3"),
        budget,
        nodes=["n1", "n2"],
        rules=TestRules(limit=2, forbids=forbids),
    )
    assert [(when, blocked) for _, when, blocked in seen][:2] == [(0, 1), (240, 0)]
    assert [visit.node for visit in timeline.visits] == ["n1", "n2"]
    assert timeline.hindrances == (Hindrance(rule="test", subject="the budget", seconds=240, nodes=("n2",)),)


def test_a_budget_covers_a_pod_again_after_the_pod_has_moved() -> None:
    """Pod p moves from node n1 to node n2. Pod r can run only on node n3 and waits until n3 is back, so pod r uses up
    the budget. Therefore pod p may not be evicted from n2."""
    budget = a_budget().selecting(app="web").allowing(1)
    blocked: dict[str, int] = {}

    def forbids(node: str, now: datetime, forecast: Forecast | None) -> str:
        if forecast and now == T0:
            blocked[node] = forecast.count(Outcome.BLOCKED)
        return "the budget" if forecast and forecast.count(Outcome.BLOCKED) else ""

    big = a_node("n3").offering(cpu="8")
    rollout(
        a_node("n1"),
        a_node("n2"),
        a_node("n4"),
        big,
        a_replica("p", "n1"),
        a_replica("o", "n4", app="db"),
        a_replica("r", "n3", cpu="6"),
        budget,
        nodes=["n1", "n3", "n2"],
        rules=TestRules(limit=3, forbids=forbids),
        taint_key=None,
    )
    assert blocked == {"n1": 0, "n3": 0, "n2": 1}


def test_a_refused_node_does_not_delay_other_nodes() -> None:
    rules = TestRules(forbids=lambda node, now, _: "held" if node == "n1" and now < at(100) else "")
    timeline = rollout(a_node("n1"), a_node("n2"), nodes=["n1", "n2"], rules=rules)
    assert ([visit.node for visit in timeline.visits], timeline.hindrances) == (["n2", "n1"], ())


def test_only_one_of_several_identical_replicas_is_tried_when_a_node_returns() -> None:
    """The nodes n1 and n3 are drained together. The four pods of n1 are identical replicas. Node n3 returns first,
    after 70 seconds, but is too small for any of these pods. The simulation tries to place one replica on n3, and does
    not try the other three. All four pods wait until n1 returns, after 240 seconds."""
    tries: list[str] = []

    class Counting(Scheduler):
        def schedule(self, snapshot: Snapshot, pod: Pod, **more: Any) -> CycleResult:
            if not snapshot.node("n3").unschedulable and snapshot.node("n1").unschedulable:
                tries.append(pod.key)
            return super().schedule(snapshot, pod, **more)

    pods = [a_replica(f"p{number}", "n1", cpu="4") for number in range(4)]
    snapshot = load_objects(manifests(a_node("n1").offering(cpu="16"), a_node("n3").offering(cpu="1"), pods))
    durations = Durations(boot_of={"n3": 10.0})
    timeline = simulate_rollout(
        snapshot, ["n3", "n1"], Counting(), TestRules(limit=2), begins=T0, durations=durations, taint_key=None
    )
    assert tries == ["default/p0~"]
    assert {wait.until for wait in timeline.waits} == {at(240)}


def test_an_undone_drain_is_repeated_in_the_next_window() -> None:
    day = 86_400
    rules = TestRules(
        forbids=lambda _node, now, _: "" if now < at(30) or now >= at(day) else "shut",
        forbids_late=lambda _node, now: "shut" if at(30) <= now < at(day) else "",
        openings=[at(day)],
    )
    timeline = rollout(a_node("n1"), a_node("n2"), a_replica("p", "n1"), nodes=["n1"], rules=rules)
    assert [(visit.start, visit.end, visit.undone, visit.moves) for visit in timeline.visits] == [
        (at(0), at(60), "shut", 1),
        (at(day), at(day + ROUND), "", 0),
    ]


def test_a_node_takes_pods_again_after_its_drain_was_undone() -> None:
    """After the drain of node n1 was undone, n1 is uncordoned. So the pod of node n2, which is too big for any other
    node, lands on n1."""
    rules = TestRules(
        forbids=lambda node, now, _: "shut" if node == "n1" and now > T0 else "",
        forbids_late=lambda node, _: "shut" if node == "n1" else "",
    )
    timeline = rollout(a_node("n1"), a_node("n2"), a_replica("p", "n2", cpu="4"), nodes=["n1", "n2"], rules=rules)
    assert moves(timeline) == [("p", "n2", "n1")]
    assert timeline.left == (Left(node="n1", obstacle=Obstacle(rule="test", subject="shut", sentence="shut")),)


def test_a_node_that_is_never_allowed_to_reboot_is_reported() -> None:
    rules = TestRules(forbids=lambda node, _now, _forecast: "held" if node == "n1" else "")
    timeline = rollout(a_node("n1"), a_node("n2"), nodes=["n1", "n2"], rules=rules)
    assert [visit.node for visit in timeline.reboots] == ["n2"]
    assert [(left.node, left.obstacle.sentence) for left in timeline.left] == [("n1", "held")]


def test_a_node_is_not_drained_if_the_rules_refuse_it_after_the_drain_delay() -> None:
    rules = TestRules(forbids=lambda _node, now, _: "too late" if now >= at(50) else "")
    timeline = rollout(
        a_node("n1"), a_node("n2"), a_replica("p", "n1"), nodes=["n1"], rules=rules, durations=Durations(held_back=50.0)
    )
    assert [(visit.undone, [span.step for span in visit.spans]) for visit in timeline.visits] == [
        ("too late", [Step.HELD_BACK])
    ]
    assert timeline.moves == ()


def test_the_rollout_reports_how_many_nodes_are_left_when_a_window_ends() -> None:
    day = 86_400
    rules = TestRules(
        forbids=lambda _node, now, _: "" if now <= at(400) or now >= at(day) else "shut",
        openings=[at(day)],
        closings=[at(400), at(day + 400)],
    )
    timeline = rollout(a_node("n1"), a_node("n2"), a_node("n3"), nodes=["n1", "n2", "n3"], rules=rules)
    assert timeline.closings == (Closing(at=at(400), left=2),)
    assert timeline.ends == at(day + ROUND)


def test_reaching_the_limit_of_simulated_time_is_reported() -> None:
    timeline = rollout(a_node("n1"), a_node("n2"), nodes=["n1", "n2"], most_days=ROUND / 86_400)
    assert [visit.node for visit in timeline.visits] == ["n1"]
    assert timeline.left[0].obstacle.sentence == (
        "the node could not begin its reboot within the simulated time, which ends at 2026-03-04 22:04"
    )


def test_a_node_cordoned_before_the_rollout_stays_cordoned() -> None:
    timeline = rollout(
        a_node("n1").cordoned(),
        a_node("n2"),
        a_replica("p", "n1", cpu="3"),
        a_replica("q", "n2", cpu="3", app="db"),
        nodes=["n1"],
    )
    assert [(wait.pod, wait.until) for wait in timeline.waits] == [("default/p", None)]


def test_unmanaged_pods_are_lost_and_pods_of_other_schedulers_are_unknown() -> None:
    timeline = rollout(
        a_node("n1"),
        a_node("n2"),
        a_pod("bare").on("n1"),
        a_replica("odd", "n1").with_field("spec.schedulerName", "mine"),
        nodes=["n1"],
    )
    assert (timeline.lost, timeline.unknown, timeline.moves) == (("default/bare",), ("default/odd",), ())


def test_a_simulation_does_not_change_the_snapshot_and_is_deterministic() -> None:
    snapshot = load_objects(manifests(a_node("n1"), a_node("n2"), a_replica("p", "n1")))
    first, again = (
        simulate_rollout(
            snapshot, ["n1", "n2"], Scheduler(), TestRules(), begins=T0, durations=Durations(), taint_key="soft"
        )
        for _ in range(2)
    )
    assert first == again
    assert ([pod.key for pod in snapshot.pods_on("n1")], snapshot.node("n1").taints) == (["default/p"], ())


def test_a_missing_node_is_an_error_with_its_name() -> None:
    with pytest.raises(UnknownNodeError, match="n9"):
        rollout(a_node("n1"), nodes=["n9"])


def test_the_rollout_reports_its_progress_until_all_nodes_rebooted() -> None:
    told: list[int] = []
    rollout(a_node("n1"), a_node("n2"), nodes=["n1", "n2"], on_progress=told.append)
    assert told == sorted(told)
    assert set(told) == {0, 1, 2}


def test_a_wait_without_an_end_is_measured_until_the_end_of_the_roll_out() -> None:
    assert Wait(pod="p", node="n", since=at(10), until=None, returns=False, why="").seconds(at(25)) == 15


def a_choice(*, nodes: int = 5) -> list[NodeBuilder | PodBuilder]:
    """Returns a cluster with one pod on the first node, and several other nodes that are equally good for the pod."""
    return [*(a_node(f"n{number}") for number in range(nodes)), a_replica("web-1", "n0")]


def test_a_seed_always_makes_the_same_choices_among_equal_nodes() -> None:
    drawn = [rollout(*a_choice(), nodes=["n0"], seed=seed) for seed in range(20)]
    assert {move.target for each in drawn for move in each.moves} == {"n1", "n2", "n3", "n4"}
    assert all(each.is_open for each in drawn)
    assert [rollout(*a_choice(), nodes=["n0"], seed=seed) for seed in range(20)] == drawn


def test_without_ties_every_seed_gives_the_same_result() -> None:
    drawn = [rollout(*a_choice(nodes=2), nodes=["n0", "n1"], seed=seed) for seed in range(5)]
    assert not drawn[0].is_open
    assert drawn == [drawn[0]] * 5


def test_the_seed_changes_nothing_for_a_pod_that_fits_only_on_the_rebooted_node() -> None:
    def placed(seed: int) -> tuple[bool, str]:
        timeline = rollout(
            *(a_node(name).offering(cpu="4") for name in ("n0", "n1", "n2")),
            a_replica("web-1", "n0", cpu="3"),
            a_replica("big-1", "n1", cpu="3", app="big"),
            a_replica("big-2", "n2", cpu="3", app="big"),
            nodes=["n0"],
            rules=TestRules(),
            seed=seed,
        )
        return timeline.is_open, next((wait.pod for wait in timeline.waits), "")

    assert placed(0) == placed(1) == (False, "default/web-1")  # only the rebooted node has room for it


def test_the_seed_decides_where_the_search_of_a_large_cluster_starts() -> None:
    cluster = [*(a_node(f"n{number:03}") for number in range(130)), *(a_replica(f"web-{n}", "n000") for n in range(3))]
    whole = rollout(*cluster, nodes=["n000"])
    drawn = [rollout(*cluster, nodes=["n000"], seed=seed) for seed in (1, 2, 3, 4)]
    assert whole.is_open
    assert all(each.is_open for each in drawn)
    assert len({tuple(moves(each)) for each in drawn}) > 1
    assert all(len(each.moves) == 3 for each in drawn)

"""Tests that the simulated roll-out of a plan follows the rules of the agents, such as gates and limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from careen.core import gates
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import ROW, Evidence, Phase
from careen.core.facts.policy import (
    AlertPolicy,
    BlockingPods,
    BlockingScope,
    BoundPods,
    Budget,
    BudgetKind,
    DrainPolicy,
    ForecastPolicy,
    LatePolicy,
    Order,
    Policy,
)
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.facts.times import rfc3339
from careen.core.facts.windows import Cron, Dates, NamedWindow, Window
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, Gate, No, When, gate
from careen.core.situation import Situation
from careen.core.windows import openings
from careen.core.windows.daily import is_open
from careen.plan import rollout_rules
from careen.plan.rollout_rules import RolloutRules
from careen.plan.simulated_agent import ALL_CLEAR, unforeseen
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.forecast import BudgetNumbers, Forecast, Outcome, PodForecast
from scheduler_core.simulation.rollout import Durations, simulate_rollout
from scheduler_core.simulation.timeline import Timeline
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.testing.builders import a_node as a_core_node
from tests.careen.core.builders import NOW, a_node

POLICY = Policy(node_name="any")
NIGHT = Window(start=time(22, 0), end=time(2, 0))
DURATIONS = Durations(drain=60, boot=180, settle=30, handover=5)


def in_zone(name: str, zone: str, **more: object) -> NodeView:
    return a_node(name, labels={keys.ZONE: zone}, **more)


def plan(nodes: Sequence[NodeView], policy: Policy = POLICY, *, begins: datetime = NOW, days: float = 3) -> Timeline:
    """Simulate a roll-out over these nodes, which have no pods."""
    snapshot = Snapshot.of(
        [
            replace(a_core_node(node.name).build(), labels=node.labels, unschedulable=node.unschedulable)
            for node in nodes
        ]
    )
    return simulate_rollout(
        snapshot,
        [node.name for node in nodes],
        Scheduler(),
        RolloutRules(nodes, policy),
        begins=begins,
        durations=DURATIONS,
        taint_key=None,
        most_days=days,
    )


def claim(rules: RolloutRules, name: str) -> None:
    """Let the node take its claim and begin its drain. The node has no pods."""
    assert rules.refusal(name, NOW, Forecast(node=name, made_at="")) is None
    rules.claimed(name, NOW)


def reboot(rules: RolloutRules, name: str) -> None:
    """Let the drained node reboot and release its claim."""
    assert rules.late_refusal(name, NOW) is None
    rules.released(name, NOW)


def order(timeline: Timeline) -> list[str]:
    return [visit.node for visit in timeline.reboots]


def since(name: str, day: int, zone: str = "a") -> NodeView:
    return in_zone(
        name,
        zone,
        annotations={
            keys.PROGRESS: json.dumps({"version": 1, "phase": "Waiting", "need_since": f"2026-03-0{day}T00:00:00Z"})
        },
    )


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(
            [since("n1", 3), since("n2", 1), since("n3", 2)],
            ["n2", "n3", "n1"],
            id="the node that has needed a reboot for longest is first",
        ),
        pytest.param(
            [since("n1", 1, "a"), since("n2", 2, "b"), since("n3", 3, "a")],
            ["n1", "n3", "n2"],
            id="all nodes of one zone reboot before the next zone starts",
        ),
        pytest.param(
            [a_node("cp", labels={keys.CONTROL_PLANE: ""}), in_zone("n2", "a"), in_zone("n1", "b")],
            ["n2", "n1", "cp"],
            id="the control plane node is last",
        ),
    ],
)
def test_a_plan_orders_the_nodes_by_default_as_the_agents_do(nodes: list[NodeView], expected: list[str]) -> None:
    assert order(plan(nodes)) == expected


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        pytest.param(POLICY, "bound-pods", id="by default the plan refuses the drain"),
        pytest.param(
            replace(POLICY, forecast=ForecastPolicy.WARN),
            "bound-pods",
            id="the plan refuses the drain despite --forecast=warn",
        ),
        pytest.param(
            replace(POLICY, drain=DrainPolicy(bound_pods=BoundPods.STAY)),
            "",
            id="--pods-bound-to-node=stay allows the drain",
        ),
    ],
)
def test_a_plan_refuses_to_drain_a_node_with_pods_whose_controller_sets_the_node_name(
    policy: Policy, rule: str
) -> None:
    rules = RolloutRules([a_node("n1"), a_node("n2")], policy)
    bound = PodForecast(
        namespace="shop",
        name="p",
        uid="u",
        outcome=Outcome.STAYS,
        sentence="comes again",
        owner="ReplicaSet shop/web",
        is_bound=True,
    )
    obstacle = rules.refusal("n1", NOW, Forecast(node="n1", made_at="", pods=(bound,)))
    assert (obstacle.rule if obstacle else "") == rule
    if obstacle:
        assert obstacle.subject == "ReplicaSet shop/web (spec.nodeName)"
        assert "shop/p (ReplicaSet shop/web)" in obstacle.sentence


def test_a_plan_keeps_the_minimum_interval_of_the_cluster_between_reboots() -> None:
    nodes = [a_node(f"n{number}") for number in range(4)]
    timeline = plan(nodes, replace(POLICY, concurrency=3, cluster_interval_seconds=7200))
    visits = sorted(timeline.visits, key=lambda visit: visit.start)
    assert len(visits) == 4
    pauses = [(after.start - before.end).total_seconds() for before, after in pairwise(visits)]
    assert pauses == [7200 + DURATIONS.handover] * 3
    (wait,) = timeline.hindrances
    assert (wait.rule, wait.nodes) == ("cluster-interval", ("n1", "n2", "n3"))
    assert wait.seconds == 3 * 7200


def test_a_plan_begins_when_the_minimum_interval_after_the_last_real_reboot_is_over() -> None:
    policy = replace(POLICY, cluster_interval_seconds=7200)
    rules = RolloutRules([a_node("n1"), a_node("n2")], policy, released_at=rfc3339(NOW - timedelta(hours=1)))
    # One node represents all: its refusal is the plan's reason for the wait.
    assert list(rules.line(["n1", "n2"], NOW, lambda _name: 0)) == ["n1"]
    assert list(rules.line(["n2"], NOW, lambda _name: 0)) == []
    assert rules.next_opening(NOW) == NOW + timedelta(hours=1)
    obstacle = rules.refusal("n1", NOW, None)
    assert obstacle is not None
    assert (obstacle.rule, obstacle.subject) == ("cluster-interval", "the last reboot of the cluster is too recent")
    assert rules.line(["n1"], NOW + timedelta(hours=1), lambda _name: 0) == ("n1",)


def test_in_a_plan_a_requested_reboot_does_not_wait_for_the_minimum_interval() -> None:
    policy = replace(POLICY, cluster_interval_seconds=7200)
    wanted = a_node("n2", annotations={keys.REBOOT_NOW: "until=2026-03-05T00:00:00Z"})
    timeline = plan([a_node("n1"), wanted], policy)
    (first, second) = sorted(timeline.visits, key=lambda visit: visit.start)
    assert (second.node, (second.start - first.end).total_seconds()) == ("n2", DURATIONS.handover)


def test_a_plan_in_zone_order_takes_down_the_nodes_of_one_zone_at_a_time() -> None:
    nodes = [in_zone(f"{zone}{number}", zone) for zone in "ab" for number in range(3)]
    timeline = plan(nodes, replace(POLICY, concurrency=2, order=Order.ZONE))
    assert order(timeline) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert max(visit.end for visit in timeline.visits if visit.node[0] == "a") <= min(
        visit.start for visit in timeline.visits if visit.node[0] == "b"
    )
    oldest = plan(nodes, replace(POLICY, concurrency=2))
    assert max(visit.end for visit in oldest.visits if visit.node[0] == "a") > min(
        visit.start for visit in oldest.visits if visit.node[0] == "b"
    )


def test_a_plan_counts_the_movable_pods_of_each_node_if_the_order_is_fewest_moves() -> None:
    movable = {"n1": 3, "n2": 1, "n3": 2, "cp": 0}
    nodes = [a_node("n1"), a_node("n2"), a_node("n3"), a_node("cp", labels={keys.CONTROL_PLANE: ""})]
    assert list(
        RolloutRules(nodes, replace(POLICY, order=Order.FEWEST_MOVES)).line(list(movable), NOW, movable.__getitem__)
    ) == ["n2", "n3", "n1", "cp"]


def test_a_plan_keeps_the_pod_counts_from_its_start_even_if_simulated_pods_move() -> None:
    """The annotation `careen.dev/moves` of a Node has the number of pods that a drain of the node would evict. For a
    Node without this annotation, the plan counts these pods once, at the start of the plan."""
    nodes = [a_node("n1"), a_node("n2"), a_node("n3", annotations={keys.MOVES: "1"})]
    rules = RolloutRules(nodes, POLICY, moves={"n1": 3, "n2": 2, "n3": 9})
    assert list(rules.line(["n1", "n2", "n3"], NOW, {"n1": 0, "n2": 8, "n3": 8}.__getitem__)) == ["n3", "n2", "n1"]


def test_a_plan_counts_zone_bound_pods_as_the_agents_do() -> None:
    # An agent wrote this annotation. An agent that finds no zone-bound pods writes no `keys.MOVES_IN_ZONE`.
    said = {keys.MOVES: "3"}
    nodes = [
        in_zone("a1", "a"),
        in_zone("b1", "b"),
        in_zone("b2", "b"),
        a_node("b3", labels={keys.ZONE: "b"}, annotations=said),
    ]
    moves, moves_in_zone = {"a1": 1, "b1": 4, "b2": 5, "b3": 9}, {"b1": 4, "b2": 1, "b3": 9}
    rules = RolloutRules(nodes, POLICY, moves=moves, moves_in_zone=moves_in_zone)
    assert list(rules.line(["a1", "b1", "b2"], NOW, lambda _: 0)) == ["a1", "b2", "b1"]
    rules = RolloutRules(nodes, POLICY, moves=moves, moves_in_zone=moves_in_zone)
    assert list(rules.line(["a1", "b1", "b2", "b3"], NOW, lambda _: 0)) == ["a1", "b3", "b2", "b1"]


def test_nodes_in_the_zone_of_the_last_rebooted_node_come_first() -> None:
    rules = RolloutRules([since("a1", 3, "a"), since("a2", 3, "a"), since("b1", 1, "b")], POLICY)
    claim(rules, "a1")
    reboot(rules, "a1")
    assert list(rules.line(["b1", "a2"], NOW, lambda _: 0)) == ["a2", "b1"]


def test_a_node_whose_budget_has_room_reboots_before_a_node_whose_budget_is_used_up() -> None:
    policy = replace(POLICY, concurrency=3, budgets=(Budget(kind=BudgetKind.ZONE, limit=1),))
    rules = RolloutRules([in_zone("a1", "a"), in_zone("a2", "a"), in_zone("b1", "b")], policy)
    claim(rules, "a1")
    assert list(rules.line(["a2", "b1"], NOW, lambda _: 0)) == ["b1", "a2"]


def a_new_gate(when: frozenset[When], cost: Cost = Cost.CHEAP) -> Gate:
    """A gate that refuses n1."""

    @gate("moon", when=when, cost=cost)
    def moon(situation: Situation) -> No | None:
        return No(Code.HELD, "the moon is full") if situation.node.name == "n1" else None

    return moon


@pytest.mark.parametrize("cost", list(Cost))
@pytest.mark.parametrize("when", list(When))
def test_a_plan_asks_a_new_gate_when_the_agents_ask_it(when: When, cost: Cost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "GATES", (*gates.GATES, a_new_gate(frozenset({when}), cost)))
    (left,), (visit,) = (timeline := plan([a_node("n1"), a_node("n2")], days=0.01)).left, timeline.reboots
    assert (left.node, visit.node) == ("n1", "n2")
    undone = [each.undone for each in timeline.undone]
    assert set(undone) == ({"the moon is full"} if when is When.BEFORE_REBOOT else set())
    if not undone:
        assert (left.obstacle.rule, left.obstacle.subject) == ("moon", "held by a person")


def test_a_plan_waits_until_the_end_of_a_gates_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    end = NOW + timedelta(hours=3)

    @gate("moon", when=BEFORE_THE_CORDON, cost=Cost.CHEAP, ends=lambda _node, _policy: end)
    def moon(situation: Situation) -> No | None:
        return None if situation.seen.now >= end else No(Code.HELD, "the moon is full")

    for module in (gates, rollout_rules):
        monkeypatch.setattr(module, "GATES", (*gates.GATES, moon))
    (visit,) = plan([a_node("n1")]).visits
    assert visit.start == end


def test_a_plan_supplies_or_declares_each_kind_of_evidence() -> None:
    """`HOLDERS` and `CROWD` are never wanted: a simulated agent neither watches over the holders nor counts."""
    simulated = {*ROW[Phase.DRAINING].evidence, Evidence.FLEET, Evidence.PEERS, Evidence.WAITERS}
    of_the_forecast = {Evidence.FORECAST, Evidence.EVICTABILITY, Evidence.OWNERS, Evidence.DISRUPTIONS}
    assert set(Evidence) == {*simulated, *of_the_forecast, *ALL_CLEAR, Evidence.HOLDERS, Evidence.CROWD}


def test_a_plan_does_not_mention_facts_that_no_setting_asks_for() -> None:
    whole = replace(
        POLICY,
        alerts=AlertPolicy(),
        blocking_pods=(BlockingPods(name="batch", selector=Selector.parse("a=b"), scope=BlockingScope.CLUSTER),),
    )
    more = set(unforeseen(whole)) - set(unforeseen(POLICY))
    assert more == {"alerts", "pods that block the reboots of a group or of the cluster (--blocking-pods)"}
    assert "other reboot coordinators" in unforeseen(POLICY)


@pytest.mark.parametrize("line", list(Order))
def test_a_plan_begins_no_drain_while_the_lock_is_full(line: Order) -> None:
    rules = RolloutRules([a_node("n1"), a_node("n2")], replace(POLICY, order=line))
    claim(rules, "n1")
    assert list(rules.line(["n2"], NOW, lambda _: 0)) == []
    reboot(rules, "n1")
    assert list(rules.line(["n2"], NOW, lambda _: 0)) == ["n2"]


@pytest.mark.parametrize(
    ("node", "policy", "rule", "subject"),
    [
        pytest.param(
            a_node("n1", annotations={keys.HOLD: "the auditors are here"}),
            POLICY,
            "hold",
            "held by a person",
            id="the node has a hold annotation",
        ),
        pytest.param(
            a_node("n1"),
            replace(POLICY, window=NIGHT),
            "maintenance-window",
            "outside the window",
            id="the window is closed",
        ),
        pytest.param(
            a_node("n1", annotations={keys.LAST_REBOOT: '{"at": "2026-03-04T11:00:00Z"}'}),
            replace(POLICY, minimum_interval_seconds=7200.0),
            "minimum-interval",
            "the last reboot is too recent",
            id="the last reboot is too recent",
        ),
        pytest.param(
            a_node("n1"),
            replace(POLICY, concurrency=1),
            "budgets",
            "n2 is cordoned by somebody, not by careen",
            id="a person cordoned another node",
        ),
        pytest.param(
            in_zone("n1", "z"),
            replace(POLICY, concurrency=5, budgets=(Budget(kind=BudgetKind.ZONE, limit=1),)),
            "budgets",
            "the budget zone=z allows 1",
            id="the budget of the zone is used up",
        ),
    ],
)
def test_a_plan_contains_the_reason_of_each_gate_that_refuses_a_reboot(
    node: NodeView, policy: Policy, rule: str, subject: str
) -> None:
    rules = RolloutRules([node, in_zone("n2", "z", unschedulable=True)], policy)
    obstacle = rules.refusal("n1", NOW, None)
    assert obstacle is not None
    assert (obstacle.rule, obstacle.subject) == (rule, subject)


def a_forecast(outcome: Outcome, *, is_never: bool = False) -> Forecast:
    budget = (
        BudgetNumbers(
            namespace="shop", name="web", disruptions_allowed=0, current_healthy=1, desired_healthy=1, expected_pods=2
        )
        if outcome is Outcome.BLOCKED
        else None
    )
    pod = PodForecast(
        namespace="shop",
        name="web-1",
        uid="u",
        outcome=outcome,
        sentence="because",
        owner="ReplicaSet shop/web",
        is_never=is_never,
        budget=budget,
    )
    return Forecast(node="n1", made_at="", pods=(pod,))


@pytest.mark.parametrize(
    ("forecast", "policy", "found"),
    [
        (a_forecast(Outcome.MOVES), POLICY, None),
        (a_forecast(Outcome.PENDING), POLICY, ("forecast", "no room for ReplicaSet shop/web")),
        (a_forecast(Outcome.PENDING), replace(POLICY, forecast_pending_allowed=1), None),
        (a_forecast(Outcome.PENDING), replace(POLICY, forecast=ForecastPolicy.WARN), None),
        (a_forecast(Outcome.UNKNOWN), POLICY, ("forecast", "pods that cannot be predicted")),
        (a_forecast(Outcome.BLOCKED, is_never=True), POLICY, ("forecast", "the disruption budget shop/web")),
        (a_forecast(Outcome.BLOCKED), POLICY, ("dry-run-evictions", "the disruption budget shop/web")),
        (
            a_forecast(Outcome.BLOCKED),
            replace(POLICY, forecast=ForecastPolicy.OFF),
            ("dry-run-evictions", "the disruption budget shop/web"),
        ),
    ],
    ids=lambda value: "",
)
def test_a_plan_judges_a_forecast_as_the_agents_do(
    forecast: Forecast, policy: Policy, found: tuple[str, str] | None
) -> None:
    obstacle = RolloutRules([a_node("n1")], policy).refusal("n1", NOW, forecast)
    assert (obstacle and (obstacle.rule, obstacle.subject)) == found


@pytest.mark.parametrize(("late_policy", "is_undone"), [(LatePolicy.UNDO, True), (LatePolicy.REBOOT, False)])
def test_a_plan_applies_the_late_policy_if_the_window_closes_during_the_drain(
    late_policy: LatePolicy, is_undone: bool
) -> None:
    begins = datetime(2026, 3, 4, 1, 59, 30, tzinfo=UTC)
    timeline = plan([a_node("n1")], replace(POLICY, window=NIGHT, late_policy=late_policy), begins=begins)
    assert bool(timeline.undone) is is_undone
    assert [visit.start for visit in timeline.reboots] == [
        begins.replace(hour=22, minute=0, second=0) if is_undone else begins
    ]


def test_nodes_that_do_not_fit_into_the_window_continue_in_the_next_window() -> None:
    """The reboot of a node takes 275 s, so 52 nodes finish within four hours. The 53rd node begins its drain in the
    window and finishes after the window has closed."""
    nodes = [a_node(f"n{number:03}") for number in range(120)]
    timeline = plan(nodes, replace(POLICY, window=NIGHT), begins=datetime(2026, 3, 4, 22, 0, tzinfo=UTC))
    assert [(closing.at, closing.left) for closing in timeline.closings] == [
        (datetime(2026, 3, 5, 2, 0, tzinfo=UTC), 120 - 52),
        (datetime(2026, 3, 6, 2, 0, tzinfo=UTC), 120 - 53 - 52),
    ]
    assert len(timeline.reboots) == 120


def test_a_plan_waits_until_the_hold_annotation_of_a_node_expires() -> None:
    held = a_node("n1", annotations={keys.HOLD: "until=2026-03-04T15:00:00Z"})
    (visit,) = plan([held]).visits
    assert visit.start == datetime(2026, 3, 4, 15, 0, tzinfo=UTC)


@pytest.mark.parametrize("microsecond", [0, 400, 600, 999_999])
def test_a_plan_may_begin_at_any_fraction_of_a_second(microsecond: int) -> None:
    """A record has its instants in milliseconds. The claim and the cordon follow at the same simulated instant."""
    begins = NOW.replace(microsecond=microsecond)
    (visit,) = plan([a_node("n1")], begins=begins).reboots
    assert visit.start == begins


@pytest.mark.parametrize(
    "waiver",
    [{keys.REBOOT_NOW: "until=2026-03-04T13:00:00Z"}, {keys.REQUEST: '{"want":"reboot","now":true}'}],
    ids=["reboot-now", "a request with --now"],
)
def test_in_a_plan_a_node_with_the_annotation_reboot_now_does_not_wait_for_the_window(waiver: dict[str, str]) -> None:
    hurried = a_node("n2", annotations=waiver)
    timeline = plan([a_node("n1"), hurried], replace(POLICY, window=NIGHT))
    assert [(visit.node, visit.start.hour) for visit in timeline.visits] == [("n2", 12), ("n1", 22)]


def test_a_percentage_budget_of_a_rack_counts_all_nodes_of_the_rack() -> None:
    """The budget allows 40 percent of the rack's five nodes to be down, so the plan must count healthy nodes too."""
    budget = Budget(kind=BudgetKind.TOPOLOGY, limit=2**31 - 1, key="rack", percent=40)
    nodes = [a_node(f"n{number}", labels={"rack": "r1"}) for number in range(5)]
    timeline = plan(nodes, replace(POLICY, budgets=(budget,), concurrency=5))
    starts = sorted(visit.start for visit in timeline.visits)
    at_once = max(sum(1 for other in timeline.visits if other.start <= at < other.end) for at in starts)
    assert (len(starts), at_once) == (5, 2)


BATCH = NamedWindow(name="batch", opens=Cron(expression="0 2 * * *", seconds=3600), nodes=Selector.parse("pool=batch"))
EVENING = NamedWindow(
    name="evening",
    opens=Window(start=time(18), end=time(20)),
    nodes=Selector.parse("pool=web"),
    excluded=(Dates(first=date(2026, 3, 4), last=date(2026, 3, 4)),),
)


def test_each_group_of_nodes_uses_its_own_windows() -> None:
    nodes = [a_node(f"n{number}", labels={"pool": pool}) for number, pool in enumerate(["web", "batch", "db"])]
    timeline = plan(nodes, replace(POLICY, windows=(BATCH, EVENING)))
    assert [(visit.node, visit.start) for visit in timeline.visits] == [
        ("n1", datetime(2026, 3, 5, 2, tzinfo=UTC)),
        ("n0", datetime(2026, 3, 5, 18, tzinfo=UTC)),
    ]
    assert [(left.node, left.obstacle.rule, left.obstacle.subject) for left in timeline.left] == [
        ("n2", "maintenance-window", "no window selects the node")
    ]


OLDEST = Progress(phase="Waiting", need_since="2026-03-01T00:00:00Z")


def test_a_node_outside_its_windows_does_not_delay_other_nodes() -> None:
    """The lock allows one claim. The node that has waited longest is outside of its window, so the other nodes reboot
    first."""
    nodes = [
        a_node("n0", labels={"pool": "web"}, annotations={keys.PROGRESS: to_annotation(OLDEST)}),
        a_node("n1"),
        a_node("n2"),
    ]
    everybody = NamedWindow(name="rest", opens=Window(), nodes=Selector.parse("pool!=web"))
    timeline = plan(nodes, replace(POLICY, windows=(EVENING, everybody)))
    assert [visit.node for visit in timeline.visits] == ["n1", "n2", "n0"]


def test_the_next_opening_and_closing_consider_the_windows_of_all_groups() -> None:
    rules = RolloutRules(
        [a_node("n0", labels={"pool": "web"}), a_node("n1", labels={"pool": "batch"})],
        replace(POLICY, windows=(BATCH, EVENING)),
    )
    at = datetime(2026, 3, 10, 1, tzinfo=UTC)
    assert rules.next_opening(at) == at.replace(hour=2)
    assert rules.next_closing(at) == datetime(2026, 3, 10, 2, 59, 59, tzinfo=UTC)
    assert rules.next_opening(at.replace(hour=3)) == at.replace(hour=18)
    assert rules.next_closing(at.replace(hour=3)) == datetime(2026, 3, 10, 20, 0, 0, tzinfo=UTC)


def test_a_plan_does_not_compute_the_opening_of_a_maintenance_window_again_for_every_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All 30 nodes have the same maintenance window. For each opening and each closing of the window, the plan computes
    the instant at most three times on average. A plan of thousands of nodes would otherwise be slow."""
    asked: list[datetime] = []
    real = openings.change_after

    def counted(windows: Sequence[NamedWindow], at: datetime) -> datetime | None:
        asked.append(at)
        return real(windows, at)

    monkeypatch.setattr(openings, "change_after", counted)
    nodes = [a_node(f"n{number:03}", labels={"pool": "batch"}) for number in range(30)]
    timeline = plan(nodes, replace(POLICY, windows=(BATCH,)))
    changes = 2 * len({visit.start.date() for visit in timeline.visits}) + 1
    assert len(timeline.reboots) == 30
    assert len(asked) <= 3 * changes


def test_a_plan_keeps_the_quorum_of_three_control_plane_nodes() -> None:
    nodes = [a_node(f"cp{number}", labels={keys.CONTROL_PLANE: ""}, ready=number != 2) for number in range(3)]
    timeline = plan(nodes, replace(POLICY, concurrency=3))
    assert order(timeline) == ["cp2"]
    assert {left.node: left.obstacle.rule for left in timeline.left} == {"cp0": "budgets", "cp1": "budgets"}


# ---- the law ----


ZONES, TIERS = ("", "a", "b"), ("", "db", "web")


@st.composite
def fleets(draw: st.DrawFn) -> list[NodeView]:
    nodes = []
    for number in range(draw(st.integers(1, 9))):
        labels = {"tier": draw(st.sampled_from(TIERS)), keys.ZONE: draw(st.sampled_from(ZONES))}
        labels |= {keys.CONTROL_PLANE: ""} if draw(st.integers(0, 3)) == 0 else {}
        nodes.append(
            a_node(
                f"n{number}",
                labels={key: value for key, value in labels.items() if value or key == keys.CONTROL_PLANE},
                ready=draw(st.integers(0, 7)) > 0,
                unschedulable=draw(st.integers(0, 7)) == 0,
            )
        )
    return nodes


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    budgets = []
    if draw(st.booleans()):
        budgets.append(Budget(kind=BudgetKind.ZONE, limit=draw(st.integers(1, 2))))
    if draw(st.booleans()):
        budgets.append(
            Budget(kind=BudgetKind.SELECTOR, limit=draw(st.integers(1, 2)), selector=Selector.parse("tier=db"))
        )
    window = draw(st.sampled_from([Window(), NIGHT, Window(start=time(11, 0), end=time(12, 6))]))
    return replace(
        POLICY,
        concurrency=draw(st.integers(1, 4)),
        budgets=tuple(budgets),
        order=draw(st.sampled_from(list(Order))),
        window=window,
        late_policy=draw(st.sampled_from(list(LatePolicy))),
    )


# The gate `budgets` counts the nodes that are down. To save time, a plan does not show this gate the worker Nodes that
# are ready and not cordoned. The test computes the refusals twice: without these healthy Nodes, and with all Nodes.
# Both times, the same nodes must get the same refusals.
@given(fleet=fleets(), policy=policies(), drawn=st.data())
@settings(max_examples=150, deadline=None)
def test_budgets_refuse_the_same_nodes_if_healthy_nodes_are_left_out_of_the_count(
    fleet: list[NodeView], policy: Policy, drawn: st.DataObject
) -> None:
    policy = replace(policy, order=Order.OLDEST)  # with the order zone, the lock would refuse some of the claims
    claimed = drawn.draw(
        st.lists(st.sampled_from([node.name for node in fleet]), max_size=policy.concurrency, unique=True)
    )

    def answers() -> list[object]:
        rules = RolloutRules(fleet, policy)
        for name in claimed:
            if rules.refusal(name, NOW, Forecast(node=name, made_at="")) is None:
                rules.claimed(name, NOW)
        return [rules.refusal(node.name, NOW, None) for node in fleet]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollout_rules, "_counts_for_the_budgets", lambda _: True)
        about_all = answers()
    assert answers() == about_all


@given(fleet=fleets(), policy=policies())
@settings(max_examples=150, deadline=None)
def test_a_plan_takes_no_more_nodes_down_than_the_limits_allow(fleet: list[NodeView], policy: Policy) -> None:
    """At the beginning of each drain, the test counts the nodes that are down in each group of the draining node: nodes
    with a claim, and nodes that were down before the plan. The test reads only the result of the plan."""
    timeline = plan(fleet, policy)
    broken = {node.name for node in fleet if not node.ready or node.unschedulable}
    limits: list[tuple[set[str], int]] = [
        ({node.name for node in fleet}, policy.concurrency),
        ({node.name for node in fleet if node.is_control_plane}, 1),
    ]
    for budget in policy.budgets:
        groups = {budget.group_of(node.labels) for node in fleet} - {None}
        limits += [
            ({node.name for node in fleet if budget.group_of(node.labels) == group}, budget.limit) for group in groups
        ]
    for visit in timeline.visits:
        at_work = {other.node for other in timeline.visits if other.start <= visit.start < other.end}
        for members, limit in limits:
            if visit.node in members:
                assert len((at_work | broken | {visit.node}) & members) <= limit
        assert is_open(policy.window, visit.start)
        if policy.late_policy is LatePolicy.UNDO and not visit.undone:
            assert is_open(policy.window, visit.spans[1].start)


@given(fleet=fleets(), policy=policies())
@settings(max_examples=80, deadline=None)
def test_every_node_reboots_once_or_is_left_out_with_a_reason(fleet: list[NodeView], policy: Policy) -> None:
    timeline = plan(fleet, policy)
    assert sorted([*order(timeline), *(left.node for left in timeline.left)]) == sorted(node.name for node in fleet)
    assert all(left.obstacle.sentence for left in timeline.left)
    if all(node.ready and not node.unschedulable for node in fleet):
        assert timeline.left == () or policy.window not in (Window(), NIGHT)

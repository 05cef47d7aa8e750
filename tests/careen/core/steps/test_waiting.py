"""The phase Waiting. Gates are checks that can forbid the reboot. The agent first evaluates all cheap gates, and writes
their refusals together to the Node. If no cheap gate refuses and the node is next in line, the agent evaluates the
costly gates. If no costly gate refuses, the agent writes its claim to the Node, and in a later round into the lock.

A node that still has a claim from an earlier attempt first releases this claim
(`careen.core.steps.shared.release`). A node that no longer needs a reboot becomes idle.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from careen.core.actions import PatchNode, WriteLock
from careen.core.decision import Decision, Refusal
from careen.core.facts import keys
from careen.core.facts.memory import (
    EvictAnswer,
    EvictionMemory,
    Memory,
    NewPodsMemory,
    RebootMemory,
    RebootOutcome,
)
from careen.core.facts.observation import NOT_ASKED, Alert, Chance, Holders, NodeView, Taint, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import AlertPolicy, BoundPods, DrainPolicy, HealthQuery, Order, Policy
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.facts.times import rfc3339
from careen.core.facts.windows import Window
from careen.core.lock import changes, clearance, order, pauses
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from careen.core.lock.pauses import SPREAD_SECONDS
from careen.core.steps.line import LOOK_SECONDS
from careen.core.steps.waiting import OPENING_SECONDS
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.careen.core.builders import (
    BOOT,
    LOCK_OBJECT,
    NO,
    NOW,
    UNKNOWN_NEED,
    UPTIME,
    a_daemon_pod,
    a_fleet,
    a_marked_node,
    a_node,
    a_pod,
    a_policy,
    a_progress,
    ago,
    an_entry,
    an_owner,
    decided,
    held,
    kinds,
    remembering,
    the_lock,
    the_patch,
    the_record,
    with_parts,
)

OURS = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
TAINTED = {"taints": (OURS,)}
RECORD = a_progress(Phase.WAITING, taint_key=OURS.key, tainted_at="2026-03-04T11:00:00Z")
READY = {**TAINTED, "label": "ready"}
NAMED = LockContent(line=Line(names=("n1", "n2"), at="2026-03-04T11:59:59Z", waiting=2))
N2 = a_marked_node(a_progress(Phase.WAITING), name="n2", label="ready")


def waiting(node: dict[str, Any] | None = None, **changes: Any) -> Decision:
    changed = {**READY, **(node or {})}
    return decided(
        RECORD, node={**changed, "annotations": {keys.MOVES: "0", **changed.get("annotations", {})}}, **changes
    )


def codes(refusals: tuple[Refusal, ...]) -> list[Code]:
    return [refusal.code for refusal in refusals]


def test_a_node_that_no_longer_needs_a_reboot_removes_only_what_careen_added() -> None:
    theirs = Taint(key="x", effect="NoSchedule")
    decision = waiting(
        node={"taints": (theirs, OURS), "annotations": {keys.HOLD: "people", keys.REFUSALS: "[]"}}, need=NO
    )
    assert (decision.phase, decision.reason.code) == (Phase.IDLE, Code.NEED_GONE)
    patch = the_patch(decision)
    assert patch.taints == (theirs,)
    assert patch.labels == {keys.REBOOT_LABEL: None}
    assert patch.annotations == {keys.PHASE: None, keys.PROGRESS: None, keys.REFUSALS: None, keys.MOVES: None}
    assert patch.unschedulable is None


def test_a_node_that_no_longer_needs_a_reboot_keeps_a_foreign_taint() -> None:
    record = replace(RECORD, taint_key="")
    assert the_patch(decided(record, node=READY, need=NO)).taints is None


def test_a_node_keeps_waiting_while_its_reboot_need_is_unknown() -> None:
    decision = waiting(need=UNKNOWN_NEED)
    assert (decision.phase, decision.reason.code, codes(decision.refusals)) == (
        Phase.WAITING,
        Code.REFUSED,
        [Code.NEED_UNKNOWN],
    )


def test_the_node_lists_the_refusals_of_all_cheap_gates_in_order_with_their_start_times() -> None:
    stored = '[{"gate":"hold","code":"held","sentence":"old words","since":"2026-03-04T10:00:00Z"}]'
    policy = a_policy(window=Window(days=frozenset()), blocking_pod_selectors=(Selector.parse("app=db"),))
    decision = waiting(
        node={"annotations": {keys.HOLD: "people", keys.REFUSALS: stored}},
        policy=policy,
        pods=(a_pod(labels={"app": "db"}),),
        fleet=NOT_ASKED,
        forecast=NOT_ASKED,
        foreign=NOT_ASKED,
    )
    assert codes(decision.refusals) == [Code.HELD, Code.OUTSIDE_WINDOW, Code.BLOCKING_POD]
    assert decision.refusals[0].since == datetime(2026, 3, 4, 10, tzinfo=UTC)
    assert decision.refusals[1].since == datetime(2026, 3, 4, 12, tzinfo=UTC)
    patch = the_patch(decision)
    assert patch.labels == {keys.REBOOT_LABEL: "required"}
    assert patch.annotations[keys.REASON] == "held: people"
    assert '"since":"2026-03-04T10:00:00Z"' in str(patch.annotations[keys.REFUSALS])


def test_a_known_refusal_is_not_written_again() -> None:
    first = waiting(node={"annotations": {keys.HOLD: "people"}})
    told = the_patch(first).annotations
    again = decided(
        RECORD,
        node={
            **TAINTED,
            "annotations": {
                keys.HOLD: "people",
                keys.REASON: str(told[keys.REASON]),
                keys.REFUSALS: str(told[keys.REFUSALS]),
            },
        },
        memory=first.memory,
    )
    assert again.actions == ()


def test_a_waiting_node_lists_its_pods_only_if_a_gate_needs_them() -> None:
    stay = DrainPolicy(bound_pods=BoundPods.STAY, skip_wait_for_delete_seconds=60.0)
    assert Evidence.PODS not in waiting(pods=NOT_ASKED, policy=a_policy(drain=stay, protects_pods=False)).wants
    assert waiting(pods=NOT_ASKED, policy=a_policy(drain=stay)).wants == {Evidence.PODS}
    assert waiting(
        pods=NOT_ASKED,
        policy=a_policy(drain=stay, protects_pods=False, blocking_pod_selectors=(Selector.parse("app=db"),)),
    ).wants == {Evidence.PODS}
    assert waiting(pods=NOT_ASKED).wants == {Evidence.PODS}


def test_the_event_of_a_claim_lists_the_unready_daemonsets() -> None:
    decision = waiting(pods=(a_daemon_pod(is_ready=False), a_daemon_pod("cni-1", owner_name="cni", owner_uid="ds-cni")))
    assert decision.phase is Phase.CLAIMING
    assert decision.reason.sentence == (
        "this node is next in line: its agent takes a claim and asks all gates again; the node will not wait after "
        "its reboot for pods that are not ready now: DaemonSet kube-system/proxy"
    )


def test_the_agent_takes_no_claim_if_an_evicted_pod_would_return_to_the_node() -> None:
    """The pod's owner binds its pods to the node, so the gate `bound-pods` refuses. The reason names the setting that
    leaves such pods on the node."""
    decision = waiting(pods=(a_pod(came_bound=True),), owners=(an_owner(bound_to="n1"),))
    assert (decision.phase, [(each.gate, each.code) for each in decision.refusals]) == (
        Phase.WAITING,
        [("bound-pods", Code.BOUND_POD)],
    )
    assert "--pods-bound-to-node=stay" in decision.reason.sentence


def test_a_node_is_labelled_ready_before_its_agent_lists_the_other_nodes_with_this_label() -> None:
    decision = decided(RECORD, node=TAINTED, waiters=NOT_ASKED)
    assert (decision.reason.code, decision.wants) == (Code.WAITING_FOR_TURN, frozenset())
    assert the_patch(decision).labels == {keys.REBOOT_LABEL: "ready"}
    assert decision.look_again_seconds == 0.0


def test_the_node_that_has_waited_longest_takes_a_claim_if_no_node_is_named() -> None:
    older = a_marked_node(a_progress(Phase.WAITING, need_since="2026-03-04T01:00:00Z"), name="n2", label="ready")
    younger = a_marked_node(a_progress(Phase.WAITING, need_since="2026-03-04T11:30:00Z"), name="n3", label="ready")
    assert waiting(waiters=NOT_ASKED).wants == {Evidence.WAITERS}
    assert waiting(waiters=(younger,)).phase is Phase.CLAIMING
    assert waiting(waiters=(older,)).phase is Phase.WAITING
    assert waiting(waiters=Unknown("503")).phase is Phase.WAITING


@pytest.mark.parametrize(("how", "phase"), [(Order.OLDEST, Phase.CLAIMING), (Order.ZONE, Phase.WAITING)])
def test_if_the_order_is_zone_a_node_of_a_later_zone_waits_for_the_first_zone(how: Order, phase: Phase) -> None:
    zones = [{keys.ZONE: "a", keys.REBOOT_LABEL: "ready"}, {keys.ZONE: "b"}]
    first = a_progress(Phase.WAITING, need_since="2026-03-04T01:00:00Z")
    in_a = a_marked_node(first, name="n2", label="ready", labels=zones[0])
    policy = a_policy(order=how, concurrency=2)
    assert waiting(node={"labels": zones[1]}, waiters=(in_a,), policy=policy).phase is phase


def test_a_ready_node_waits_before_it_takes_the_first_claim_of_a_roll_out() -> None:
    """During this wait, each agent counts the pods of its node. After the wait, the agents know which node has the
    fewest pods. Until then, the lock lists no next node."""
    first = waiting(memory=remembering(line__key="another line"), waiters=NOT_ASKED)
    assert (first.phase, first.reason.code, first.wants) == (Phase.WAITING, Code.WAITING_FOR_TURN, frozenset())
    assert WriteLock not in kinds(first)
    assert first.look_again_seconds == pauses.NEXT_LOOK_SECONDS

    def later(seconds: float) -> Decision:
        return waiting(memory=first.memory, uptime=UPTIME + seconds, waiters=NOT_ASKED)

    assert later(pauses.GATHER_SECONDS - 1).look_again_seconds == 1
    assert later(pauses.GATHER_SECONDS).wants == {Evidence.WAITERS}


@pytest.mark.parametrize(("agents", "look"), [(None, 3.0), (300, 3.0), (5000, 50.0)])
def test_agents_of_a_large_fleet_decide_rarely_before_the_first_claim(agents: int | None, look: float) -> None:
    first = waiting(memory=remembering(line__key="another line", agents=agents), waiters=NOT_ASKED)
    assert first.look_again_seconds == look
    last = pauses.gather_seconds(agents) - 2.0
    assert waiting(memory=first.memory, uptime=UPTIME + last, waiters=NOT_ASKED).look_again_seconds == 2.0
    assert look < clearance.PASSED_OVER_SECONDS, "a named node that sleeps this long would be passed over"


def test_a_refusal_restarts_the_wait_before_the_first_claim_of_a_roll_out() -> None:
    """If a gate refuses all nodes, all of them become ready at the same time when the refusal ends. Without a new wait,
    all of them would try to take a claim at that time."""
    assert waiting(node={"annotations": {keys.HOLD: "people"}}).memory.line.key == ""


@pytest.mark.parametrize(("jitter", "look"), [(0.0, 20.0), (0.999, 20.0 + 0.999 * OPENING_SECONDS)])
def test_every_agent_decides_again_when_the_maintenance_window_opens(jitter: float, look: float) -> None:
    """The window opens in 20 s. Each agent decides again at most 2 s after the opening. The first claim of the roll-out
    follows later, when each agent has counted the pods of its node."""
    shut = Window(start=(NOW + timedelta(seconds=20)).time(), end=(NOW + timedelta(hours=1)).time())
    assert waiting(
        policy=a_policy(window=shut), chance=Chance(claim_id="fresh", jitter=jitter)
    ).look_again_seconds == pytest.approx(look)
    assert OPENING_SECONDS < pauses.GATHER_SECONDS


def test_an_agent_sleeps_for_the_usual_time_if_the_window_opens_later() -> None:
    shut = Window(start=(NOW + timedelta(seconds=40)).time(), end=(NOW + timedelta(hours=1)).time())
    assert waiting(policy=a_policy(window=shut)).look_again_seconds == LOOK_SECONDS


@pytest.mark.parametrize(
    ("agents", "jitter", "look"), [(None, 0.5, 30), (180, 0.999, 37), (600, 0.0, 75), (600, 0.5, 100), (5000, 0.0, 625)]
)
def test_agents_of_a_large_fleet_decide_rarely_outside_the_maintenance_window(
    agents: int | None, jitter: float, look: float
) -> None:
    """Outside of the window, the lock lists no next nodes and does not contain the number of waiting nodes. Each round
    of an agent's loop sends two requests. 5,000 agents together must send fewer than 20 requests a second."""
    shut = a_policy(window=Window(days=frozenset()))
    decision = waiting(
        policy=shut,
        lock=LockContent(),
        memory=remembering(agents=agents),
        chance=Chance(claim_id="fresh", jitter=jitter),
    )
    assert decision.look_again_seconds == pytest.approx(look, abs=1)
    assert agents is None or 2 * agents / decision.look_again_seconds < 20


@pytest.mark.parametrize("number", [10**6, 10**13, 10**30, 10**400])
def test_a_huge_count_of_waiting_nodes_makes_the_agent_sleep_for_a_limited_time(number: int) -> None:
    shut = a_policy(window=Window(days=frozenset()))
    assert waiting(
        policy=shut, lock=f'{{"nodeID":"","locks":[],"waiting":{number}}}'
    ).look_again_seconds == pytest.approx(100_000 / pauses.LOOKS_PER_SECOND)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"lock": LockContent(is_paused=True)}, id="the lock is paused"),
        pytest.param({"node": {"annotations": {keys.HOLD: "people"}}}, id="a hold annotation forbids the reboot"),
        pytest.param({"need": UNKNOWN_NEED}, id="it is unknown whether the host needs a reboot"),
        pytest.param({"lock": "{"}, id="the lock contains unparsable text"),
        pytest.param({"lock": Unknown("503")}, id="the lock cannot be read"),
        pytest.param({"lock": held(an_entry("n9", failed="never-ready"))}, id="a failed node halts the roll-out"),
    ],
)
@pytest.mark.parametrize(("agents", "look"), [(None, 30.0), (100, 30.0), (5000, 5000 / 6)])
def test_agents_of_a_large_fleet_decide_rarely_while_a_gate_refuses(
    agents: int | None, look: float, changes: dict[str, Any]
) -> None:
    decision = waiting(memory=remembering(agents=agents, holder_check__at=UPTIME + 1), **changes)
    assert decision.reason.code is Code.REFUSED
    assert decision.look_again_seconds == pytest.approx(look)


def test_agents_of_named_nodes_sleep_for_the_usual_time_while_the_lock_is_paused() -> None:
    """The lock lists only few nodes as next, so the requests of their agents are few. These nodes must begin their
    reboot soon after a person ends the pause of the lock."""
    paused = replace(NAMED, is_paused=True)
    assert waiting(lock=paused, memory=remembering(agents=5000)).look_again_seconds == LOOK_SECONDS


def test_a_cluster_wide_refusal_causes_a_new_count_of_waiting_nodes() -> None:
    """Without a new count, the lock would keep the number of nodes that waited when the list of next nodes was last
    written."""
    late = tuple(a_marked_node(a_progress(Phase.WAITING), name=f"m{number}", label="required") for number in range(7))
    decision = waiting(
        lock=NAMED, waiters=(N2, *late), alerts=(Alert(name="A"),), policy=a_policy(alerts=AlertPolicy())
    )
    assert (the_lock(decision).line.names, the_lock(decision).line.waiting) == (("n1", "n2"), 9)


def test_agents_of_a_large_fleet_decide_soon_after_the_maintenance_window_opens() -> None:
    opening = timedelta(minutes=9)
    shut = Window(start=(NOW + opening).time(), end=(NOW + timedelta(hours=1)).time())
    look = waiting(
        policy=a_policy(window=shut), memory=remembering(agents=5000), chance=Chance(claim_id="fresh", jitter=0.25)
    ).look_again_seconds
    assert look == pytest.approx(opening.total_seconds() + 0.25 * (OPENING_SECONDS + SPREAD_SECONDS))


def test_agents_of_a_large_fleet_spread_their_decisions_after_the_window_opens() -> None:
    shut = Window(start=(NOW + timedelta(seconds=5)).time(), end=(NOW + timedelta(hours=1)).time())
    look = waiting(
        policy=a_policy(window=shut), memory=remembering(agents=501), chance=Chance(claim_id="fresh", jitter=0.25)
    ).look_again_seconds
    assert look == pytest.approx(5 + 0.25 * (OPENING_SECONDS + SPREAD_SECONDS))


def test_a_node_takes_a_claim_at_once_if_the_roll_out_has_already_begun() -> None:
    """The roll-out has begun if the lock names the next node, or if another node holds a claim. Only the first claim of
    a roll-out must wait until the agents have counted the pods of their nodes."""
    just_now = remembering(line__key="another line")
    assert waiting(memory=just_now, lock=NAMED).phase is Phase.CLAIMING
    assert (
        waiting(memory=just_now, lock=held(an_entry("n9", limit=2)), policy=a_policy(concurrency=2)).phase
        is Phase.CLAIMING
    )


def test_a_restarted_agent_keeps_the_start_time_of_a_refusal_by_a_costly_gate() -> None:
    refused = '[{"gate":"forecast","code":"forecast-unknown","sentence":"no answer","since":"2026-03-04T10:00:00Z"}]'
    decision = waiting(
        node={"annotations": {keys.REFUSALS: refused}},
        memory=remembering(line__key="another line"),
        forecast=Unknown("killed"),
        policy=a_policy(),
    )
    assert [(each.gate, each.since) for each in decision.refusals] == [
        ("forecast", datetime(2026, 3, 4, 10, tzinfo=UTC))
    ]


def test_a_claim_is_written_on_the_node_before_it_is_written_into_the_lock() -> None:
    decision = waiting(lock=NAMED)
    assert (decision.phase, decision.reason.code) == (Phase.CLAIMING, Code.TAKING_CLAIM)
    assert kinds(decision) == [PatchNode]
    record = the_record(decision)
    assert (record.claim, record.lock, record.boot_left, record.phase) == ("fresh", LOCK_OBJECT, BOOT, "Claiming")
    assert record.claimed == ago(0), "--drain-delay starts with the claim"
    assert the_patch(decision).labels == {keys.REBOOT_LABEL: "in-progress"}
    assert the_patch(decision).unschedulable is None


@pytest.mark.parametrize(
    "content", [held(an_entry("n2"), line=Line(names=("n1",))), LockContent(line=Line(names=("n2", "n1")))]
)
def test_a_node_that_may_not_claim_yet_reads_no_costly_facts(content: LockContent) -> None:
    decision = waiting(
        lock=content,
        fleet=NOT_ASKED,
        forecast=NOT_ASKED,
        foreign=NOT_ASKED,
        alerts=NOT_ASKED,
        holders=Holders(),
        waiters=(),
    )
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.WAITING_FOR_TURN)


def test_a_waiting_node_writes_nothing_when_one_node_releases_its_claim_and_another_node_claims() -> None:
    first = waiting(lock=LINE)
    told = {"annotations": {keys.REASON: first.reason.sentence}}
    assert (
        waiting(
            lock=replace(LINE, entries=(an_entry("n8", "c8"),), line=replace(LINE.line, names=("n1",))),
            node=told,
            memory=first.memory,
            uptime=UPTIME + 60,
        ).actions
        == ()
    )


def test_a_waiting_node_reads_costly_facts_one_kind_at_a_time() -> None:
    policy = a_policy(alerts=AlertPolicy())
    lacking: dict[str, Any] = dict.fromkeys(("foreign", "fleet", "alerts", "forecast"), NOT_ASKED)
    asked = []
    for given in ({}, {"foreign": ()}, {"fleet": a_fleet(a_node())}, {"alerts": ()}):
        lacking |= given
        asked.append(waiting(lock=NAMED, policy=policy, **lacking).wants)
    assert asked == [{Evidence.FOREIGN}, {Evidence.FLEET}, {Evidence.ALERTS}, {Evidence.FORECAST}]


def test_the_first_refusal_by_a_costly_gate_ends_the_evaluation() -> None:
    decision = waiting(lock=NAMED, foreign=("kured runs",), fleet=NOT_ASKED, forecast=NOT_ASKED)
    assert codes(decision.refusals) == [Code.FOREIGN_COORDINATOR]


def test_a_refusal_by_a_costly_gate_moves_the_node_behind_the_next_node_in_line() -> None:
    decision = waiting(lock=NAMED, forecast=Unknown("out of memory"), waiters=(N2,))
    assert decision.reason.code is Code.REFUSED
    content = the_lock(decision)
    assert content.line.names == ("n2", "n1")
    assert content.line.passed == ("n1",)
    assert codes(decision.refusals) == [Code.FORECAST_UNKNOWN]


def test_the_node_shows_a_summary_of_a_forecast_that_forbids_its_reboot() -> None:
    pending = PodForecast(namespace="shop", name="a", uid="1", outcome=Outcome.PENDING, sentence="nowhere")
    decision = waiting(lock=NAMED, forecast=Forecast(node="n1", made_at="t", pods=(pending,)), waiters=(N2,))
    assert the_patch(decision).annotations[keys.FORECAST] == '{"at":"t","counts":{"pending":1},"pods":{}}'


def test_a_cluster_wide_refusal_keeps_the_order_of_the_waiting_nodes() -> None:
    decision = waiting(
        lock=NAMED, policy=a_policy(alerts=AlertPolicy()), alerts=(Alert(name="DiskFull"),), waiters=(N2,)
    )
    content = the_lock(decision)
    assert content.line.names == NAMED.line.names
    assert content.line.at == "2026-03-04T12:00:00Z"


@pytest.mark.parametrize(("is_of_node", "line"), [(False, ("n1", "n2")), (True, ("n2", "n1"))])
def test_a_node_moves_back_in_line_only_if_a_health_query_about_this_node_refuses(
    is_of_node: bool, line: tuple[str, ...]
) -> None:
    query = HealthQuery(name="ceph", query="x", comparison="==", bound=0, fresh_seconds=60, is_of_node=is_of_node)
    named = replace(NAMED, line=replace(NAMED.line, names=("n1", "n2")))
    decision = waiting(
        lock=named, policy=a_policy(health_queries=(query,)), queries={"ceph": Unknown("503")}, waiters=(N2,)
    )
    assert the_lock(decision).line.names == line


def test_a_refusal_by_the_gate_cluster_interval_keeps_the_order_of_the_line() -> None:
    named = replace(NAMED, released_at="2026-03-04T11:59:00Z", line=replace(NAMED.line, names=("n1", "n2")))
    decision = waiting(lock=named, policy=a_policy(cluster_interval_seconds=3600), waiters=(N2,))
    assert (decision.reason.code, [each.gate for each in decision.refusals]) == (Code.REFUSED, ["cluster-interval"])
    assert (the_lock(decision).line.names, the_lock(decision).released_at) == (named.line.names, named.released_at)


CORDONED = a_marked_node(a_progress(Phase.WAITING), name="n3", label="ready", unschedulable=True)


@pytest.mark.parametrize(
    ("others", "line"),
    [
        pytest.param((N2, CORDONED), ("n3", "n1", "n2"), id="the cordoned node waits and is ready"),
        pytest.param((N2, replace(CORDONED, ready=False)), ("n1", "n2"), id="the cordoned node is not ready"),
        pytest.param(
            (N2, a_node("n3", unschedulable=True)), ("n1", "n2"), id="the cordoned node does not wait for a reboot"
        ),
        pytest.param(
            (N2, CORDONED, a_node("n4", ready=False)),
            ("n1", "n2"),
            id="besides the cordoned node, an unready node blocks reboots",
        ),
    ],
)
def test_a_waiting_node_whose_cordon_blocks_other_nodes_goes_first(
    others: tuple[NodeView, ...], line: tuple[str, ...]
) -> None:
    """A person cordons a node and requests its reboot. The gates treat this node as down, so they refuse the reboots of
    all other nodes until the cordoned node has rebooted."""
    decision = waiting(
        lock=NAMED,
        fleet=a_fleet(a_node(), *others),
        waiters=tuple(node for node in others if keys.REBOOT_LABEL in node.labels),
    )
    assert codes(decision.refusals) == [Code.NODES_DOWN]
    assert the_lock(decision).line.names == line


def test_a_refusal_delays_the_next_evaluation_of_costly_gates_by_a_back_off() -> None:
    refused = waiting(lock=NAMED, forecast=Unknown("out of memory"), waiters=(N2,))
    again = waiting(lock=NAMED, forecast=NOT_ASKED, foreign=NOT_ASKED, memory=refused.memory)
    assert again.wants == frozenset()
    assert again.phase is Phase.WAITING


@pytest.mark.parametrize("gate", ["forecast", "dry-run-evictions"])
@pytest.mark.parametrize("not_before", [UPTIME + 50, 0.0])
def test_a_refusal_by_a_costly_gate_stands_until_the_gate_is_asked_again(not_before: float, gate: str) -> None:
    refused = f'[{{"gate":"{gate}","code":"forecast-unknown","sentence":"no answer","since":"2026-03-04T10:00:00Z"}}]'
    node = {"labels": {keys.REBOOT_LABEL: "ready"}, "annotations": {keys.REFUSALS: refused}}
    memory = remembering(costly__not_before=not_before, costly__holders=("n9",))
    decision = waiting(node=node, lock=LINE, memory=memory, forecast=NOT_ASKED)
    assert decision.wants == frozenset()
    assert (decision.reason.code, decision.reason.sentence) == (Code.REFUSED, "no answer")
    assert [(each.gate, each.since) for each in decision.refusals] == [(gate, datetime(2026, 3, 4, 10, tzinfo=UTC))]


@pytest.mark.parametrize(("gate", "is_kept"), [("dry-run-evictions", True), ("forecast", False)])
def test_a_refusal_of_a_gate_that_is_asked_under_the_claim_stands_while_the_node_takes_it(
    gate: str, is_kept: bool
) -> None:
    """Otherwise its age would begin anew with each claim, although nothing has changed."""
    refused = f'[{{"gate":"{gate}","code":"eviction-refused","sentence":"no","since":"2026-03-04T10:00:00Z"}}]'
    decision = waiting(node={"annotations": {keys.REFUSALS: refused}})
    assert decision.phase is Phase.CLAIMING
    assert [(each.gate, each.since) for each in decision.refusals] == (
        [(gate, datetime(2026, 3, 4, 10, tzinfo=UTC))] if is_kept else []
    )
    assert (f"before, `{gate}` refused: no" in decision.reason.sentence) is is_kept


@pytest.mark.parametrize(("refusals", "pause"), [(0, 10), (1, 20), (2, 40), (3, 60), (99, 60)])
def test_the_back_off_of_costly_gates_doubles_up_to_a_minute(refusals: int, pause: float) -> None:
    memory = remembering(costly__refusals=refusals)
    after = waiting(lock=NAMED, forecast=Unknown("out of memory"), waiters=(N2,), memory=memory).memory
    assert after.costly.not_before == UPTIME + pause
    assert after.costly.refusals == refusals + 1


def beside(age: float) -> LockContent:
    created = rfc3339(NOW - timedelta(seconds=age))
    return held(an_entry("n9", "c9", limit=2, created=created), line=Line(names=("n1",)))


@pytest.mark.parametrize(("age", "asks"), [(4, False), (6, True)])
def test_only_the_release_of_a_node_at_work_ends_the_back_off_of_costly_gates(age: float, asks: bool) -> None:
    """A claim that was given back because a gate refused it brings nothing new: otherwise two refused nodes would end
    each other's back-off again and again."""
    policy = a_policy(concurrency=2)
    refused = waiting(lock=beside(age), policy=policy, forecast=Unknown("out of memory"), waiters=(N2,))
    assert codes(refused.refusals) == [Code.FORECAST_UNKNOWN]
    alone = waiting(lock=NAMED, policy=policy, forecast=NOT_ASKED, memory=refused.memory)
    assert (alone.wants == {Evidence.FORECAST}) is asks


def test_a_drain_that_began_during_the_back_off_of_costly_gates_ends_it_when_it_is_over() -> None:
    policy = a_policy(concurrency=2)
    refused = waiting(lock=NAMED, policy=policy, forecast=Unknown("out of memory"), waiters=(N2,))
    meanwhile = waiting(lock=beside(9), policy=policy, forecast=NOT_ASKED, memory=refused.memory)
    assert meanwhile.wants == frozenset()
    after = waiting(lock=NAMED, policy=policy, forecast=NOT_ASKED, memory=meanwhile.memory)
    assert after.wants == {Evidence.FORECAST}


FULL = tuple(f"m{number}" for number in range(1 + order.SPARE_NAMES))


@pytest.mark.parametrize(
    ("named", "look"), [((), 3), (("n2",), 5), (("n2", "n3"), 10), (("n2", "n3", "n1"), 10), (FULL, 30)]
)
def test_a_refused_node_reads_the_lock_less_often_if_more_nodes_are_named(named: tuple[str, ...], look: float) -> None:
    """If a gate refuses the reboot of a node, the node leaves the lock's list of next nodes. A node that releases its
    claim may put the refused node into the list again. If the list is short, the refused node may then be the next to
    reboot, so its agent must read the lock often."""
    memory = remembering(costly__not_before=UPTIME + 50, costly__holders=("n9",))
    assert (
        waiting(lock=held(an_entry("n9"), line=Line(names=named)), memory=memory, forecast=NOT_ASKED).look_again_seconds
        == look
    )


def test_a_refused_node_reads_the_lock_often_if_no_other_node_is_named() -> None:
    """If the refusal ends, this node may be the next to begin its reboot, because the lock lists no other node."""
    refused = waiting(
        lock=held(an_entry("n9", limit=2)),
        policy=a_policy(concurrency=2),
        forecast=Unknown("out of memory"),
        waiters=(N2,),
        memory=remembering(line__key="another"),
    )
    assert (codes(refused.refusals), refused.look_again_seconds) == ([Code.FORECAST_UNKNOWN], pauses.NEXT_LOOK_SECONDS)


def test_a_refused_node_reads_the_lock_rarely_if_no_node_holds_a_claim() -> None:
    memory = remembering(costly__not_before=UPTIME + 50)
    assert (
        waiting(lock=LockContent(line=Line(names=("n2",))), memory=memory, forecast=NOT_ASKED).look_again_seconds > 10
    )


def test_a_waiting_node_adds_itself_to_the_lock_if_too_few_nodes_are_named() -> None:
    named = waiting(lock=held(an_entry("n9"), line=Line(names=("n2",))), waiters=(N2,))
    assert the_lock(named).line.names == ("n2", "n1")
    assert the_lock(named).holders == ("n9",)


AT_WORK = a_marked_node(a_progress(Phase.DRAINING), name="n9")
LINE = held(an_entry("n9"), line=Line(names=("n2", "n1", *(f"m{number}" for number in range(20)))))


@pytest.mark.parametrize(
    ("content", "pause"),
    [
        (replace(LINE, line=replace(LINE.line, names=("n1", *LINE.line.names[2:]))), 30),
        (LINE, 60),
        (replace(LINE, line=replace(LINE.line, names=LINE.line.names[2:])), 3600),
        (replace(LINE, line=replace(LINE.line, names=("n2",) * 20)), 3600),
    ],
)
def test_an_old_claim_is_checked_later_by_nodes_farther_back_in_the_line(content: LockContent, pause: float) -> None:
    def looking(age: float, memory: Memory | None = None, uptime: float = UPTIME) -> Decision:
        entry = an_entry("n9", created=rfc3339(NOW - timedelta(seconds=age)))
        return waiting(
            lock=replace(content, entries=(entry,)), holders=NOT_ASKED, memory=memory or remembering(), uptime=uptime
        )

    assert looking(pause - 1).wants == frozenset()
    assert looking(pause).wants == {Evidence.HOLDERS}
    looked = waiting(
        lock=content,
        holders=Holders(nodes=(AT_WORK,)),
        memory=remembering(holder_check__at=UPTIME),
        now=NOW + timedelta(seconds=pause),
    ).memory
    assert looking(pause * 2, looked, UPTIME + pause - 1).wants == frozenset()
    assert looking(pause * 2, looked, UPTIME + pause).wants == {Evidence.HOLDERS}


def test_a_new_agent_process_reads_the_age_of_claims_from_the_lock() -> None:
    """Agents may be killed every five seconds, so the memory of an agent cannot tell how old the claims are. The agent
    must still check the nodes that hold old claims."""
    assert waiting(
        lock=replace(LINE, line=replace(LINE.line, names=("n1", *LINE.line.names[2:]))), holders=NOT_ASKED
    ).wants == {Evidence.HOLDERS}


@pytest.mark.parametrize("created", ["", "yesterday", "2026-12-01T00:00:00Z"])
def test_a_claim_with_an_unreadable_or_future_time_is_treated_as_old(created: str) -> None:
    """The agent of a waiting node reads the Nodes of old claims."""
    content = held(an_entry("n9", created=created), line=Line(names=("n1",)))
    assert waiting(lock=content, holders=NOT_ASKED).wants == {Evidence.HOLDERS}


def behind(
    holders: Holders, uptime: float = UPTIME, memory: Memory | None = None, content: LockContent = LINE
) -> Decision:
    return waiting(
        lock=content, holders=holders, memory=with_parts(memory or remembering(), holder_check__at=0), uptime=uptime
    )


def test_a_waiting_node_removes_a_claim_that_provably_has_no_holder() -> None:
    living = a_marked_node(a_progress(Phase.DRAINING), name="n9")
    assert WriteLock not in kinds(behind(Holders(nodes=(living,))))
    freed = behind(Holders(nodes=(a_node("n9"),)))
    assert freed.reason.code is Code.STALE_CLAIM_FREED
    assert the_lock(freed).entries == ()


def test_a_deleted_nodes_claim_is_removed_after_the_reboot_deadline() -> None:
    gone = Holders(absent=frozenset({"n9"}))
    first = behind(gone)
    marked = the_lock(first)
    assert marked.holders == ("n9",)
    assert WriteLock not in kinds(behind(gone, UPTIME + 899, first.memory, marked))
    assert the_lock(behind(gone, UPTIME + 901, first.memory, marked)).entries == ()


HALTED = held(an_entry("n9", failed="never-ready", limit=3), line=Line(names=("n1", "n2"), at="t", waiting=2))
THREE = a_policy(concurrency=3)


def test_the_failure_of_another_node_refuses_the_reboot_and_keeps_the_line_unchanged() -> None:
    decision = waiting(lock=HALTED, policy=THREE, holders=NOT_ASKED, memory=remembering(holder_check__at=UPTIME + 1))
    assert (decision.phase, codes(decision.refusals)) == (Phase.WAITING, [Code.HALTED])
    assert "n9 failed" in str(the_patch(decision).annotations[keys.REASON])
    assert "careen retry n9" in str(the_patch(decision).annotations[keys.REFUSALS])
    assert decision.wants == frozenset()
    assert WriteLock not in kinds(decision)
    assert decided(RECORD, node=TAINTED, lock=HALTED, policy=THREE).refusals == decision.refusals
    assert the_patch(decided(RECORD, node=TAINTED, lock=HALTED, policy=THREE)).labels == {keys.REBOOT_LABEL: "ready"}


def test_the_node_lists_another_nodes_failure_beside_other_refusals() -> None:
    decision = waiting(lock=HALTED, policy=THREE, node={"annotations": {keys.HOLD: "people"}})
    assert codes(decision.refusals) == [Code.HELD, Code.HALTED]
    assert the_patch(decision).labels == {keys.REBOOT_LABEL: "required"}


def test_the_first_node_in_line_checks_the_failed_node_that_halts_the_roll_out() -> None:
    def looking(holders: Any, uptime: float = UPTIME, memory: Memory | None = None) -> Decision:
        memory = memory or remembering()
        return waiting(
            lock=HALTED, policy=THREE, holders=holders, memory=with_parts(memory, holder_check__at=0), uptime=uptime
        )

    assert looking(NOT_ASKED).wants == {Evidence.HOLDERS}
    failed = a_marked_node(a_progress(Phase.FAILED, failed="never-ready"), name="n9")
    assert codes(looking(Holders(nodes=(failed,))).refusals) == [Code.HALTED]
    assert codes(looking(Unknown("503")).refusals) == [Code.HALTED]
    first = looking(Holders(absent=frozenset({"n9"})))
    assert WriteLock not in kinds(looking(Holders(absent=frozenset({"n9"})), UPTIME + 899, first.memory))
    assert the_lock(looking(Holders(absent=frozenset({"n9"})), UPTIME + 901, first.memory)).entries == ()


def test_a_claim_without_a_failure_mark_does_not_halt_other_nodes() -> None:
    assert waiting(lock=replace(HALTED, entries=(an_entry("n9", limit=3),)), policy=THREE).phase is Phase.CLAIMING


def test_a_longer_lock_ttl_keeps_a_deleted_nodes_claim_longer() -> None:
    assert a_policy(lock_ttl_seconds=60).absence_seconds == 900
    assert a_policy(lock_ttl_seconds=7200).absence_seconds == 7200


@pytest.mark.parametrize("changes", [{"node": {"annotations": {keys.HOLD: "people"}}}, {"need": NO}])
def test_a_node_with_a_hold_annotation_or_without_a_reboot_need_leaves_the_line(changes: dict[str, Any]) -> None:
    decision = waiting(lock=NAMED, **changes)
    assert the_lock(decision).line.names == ("n2",)


def test_a_node_stays_in_line_while_the_lock_is_paused() -> None:
    assert WriteLock not in kinds(waiting(lock=changes.pause(NAMED, "", 1)))


def test_the_retry_annotation_resets_the_count_of_reboots_of_a_node() -> None:
    record = replace(RECORD, reboots_for_need=5, tries=3, failures=2)
    refused = decided(record, node=READY)
    assert codes(refused.refusals) == [Code.LOOP_LIMIT]
    decision = decided(record, node={**READY, "annotations": {keys.RETRY: "2026-03-04T12:00:00Z"}})
    assert decision.reason.code is Code.RETRY
    after = the_record(decision)
    assert (after.reboots_for_need, after.tries, after.failures) == (0, 0, 0)
    assert the_patch(decision).annotations[keys.RETRY] is None


def test_a_removed_taint_is_restored_while_the_host_needs_a_reboot() -> None:
    decision = decided(RECORD, node={"taints": ()})
    assert the_patch(decision).taints == (OURS,)


def test_a_changed_taint_key_replaces_the_taint_in_one_patch() -> None:
    decision = decided(RECORD, node=TAINTED, policy=a_policy(taint_key="example.org/reboot"))
    assert the_patch(decision).taints == (Taint(key="example.org/reboot", effect="PreferNoSchedule"),)
    assert the_record(decision).taint_key == "example.org/reboot"


BACK = a_progress(Phase.WAITING, taint_key=OURS.key, claim="c1", boot_left=BOOT, lock=LOCK_OBJECT, is_releasing=True)


def releasing(lock_now: Any) -> Any:
    return decided(BACK, node=TAINTED, lock=lock_now)


def test_a_claim_is_removed_from_the_lock_before_it_is_removed_from_the_node() -> None:
    first = releasing(held(an_entry("n1"), an_entry("n2", "c2")))
    assert kinds(first) == [WriteLock]
    assert the_lock(first).holders == ("n2",)
    second = releasing(held(an_entry("n2", "c2")))
    assert (second.reason.code, kinds(second)) == (Code.RELEASING, [PatchNode])
    record = the_record(second)
    assert (record.claim, record.is_releasing, record.boot_left, record.taint_key) == ("", False, "", OURS.key)


@pytest.mark.parametrize(("content", "code"), [(Unknown("503"), Code.LOCK_UNKNOWN), ("garbage", Code.LOCK_GARBAGE)])
def test_the_node_keeps_its_claim_while_the_lock_is_unreadable(content: Any, code: Code) -> None:
    decision = releasing(content)
    assert decision.reason.code is code
    assert all(keys.PROGRESS not in action.annotations for action in decision.actions if isinstance(action, PatchNode))


@pytest.mark.parametrize("policy", [a_policy(), a_policy(concurrency=3)])
def test_a_paused_lock_refuses_the_reboot_of_every_node(policy: Policy) -> None:
    decision = waiting(lock=changes.pause(LockContent(), "holidays", 1), policy=policy)
    assert codes(decision.refusals) == [Code.PAUSED]


def test_an_agent_starts_a_new_claim_with_a_cleared_memory() -> None:
    """What the agent remembers about an earlier claim (refusals, evictions and reboot requests) does not apply to the
    new claim."""
    memory: Memory = remembering(
        claiming__claimers={"x/1": 1.0},
        patience__since=3.0,
        drain__evictions={"uid-web-1": EvictionMemory(attempts=3, not_before=1.0, answer=EvictAnswer.DENIED)},
        drain__new_pods={"rs-web": NewPodsMemory(rounds=6, not_before=1.0, judgements=6)},
        reboot=RebootMemory(claim="c0", announcement=1, outcome=RebootOutcome.ACCEPTED),
    )
    after = waiting(lock=NAMED, memory=memory).memory
    assert (after.claiming.claimers, after.patience.since) == ({}, None)
    assert (after.drain.evictions, after.drain.new_pods, after.reboot) == ({}, {}, None)


def test_an_agent_uses_a_newer_read_of_its_node_instead_of_an_older_list_of_nodes() -> None:
    stale: NodeView = a_marked_node(a_progress(Phase.WAITING), label="required")
    assert waiting(waiters=(stale,)).phase is Phase.CLAIMING

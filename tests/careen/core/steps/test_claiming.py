"""The phase Claiming. The node's claim is written into the lock, all gates run again on new data, and one patch records
the claim on the Node and cordons the node. Two nodes never take the same free place in the lock."""

from __future__ import annotations

import zlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from careen.core.actions import PatchNode, WriteLock
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import NOT_ASKED, DryRunAnswer, Evictable, NodeView, Taint, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import DrainPolicy, Order
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.facts.times import rfc3339
from careen.core.gates import asked
from careen.core.gates.question import Cost, When
from careen.core.lock import changes
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from careen.core.lock.reading import LockReading
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.careen.core.builders import (
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
    a_reading,
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
)

RECORD = a_progress(Phase.CLAIMING)
OWN = held(an_entry())


def claiming(**changes: Any) -> Decision:
    return decided(RECORD, **changes)


def withdraws_the_claim(decision: Decision) -> bool:
    """Whether the decision's first action is a patch that marks the claim on the Node as withdrawn."""
    patches = kinds(decision)
    record = the_record(decision)
    return decision.phase is Phase.WAITING and patches[0] is PatchNode and record.is_releasing and record.claim == "c1"


def test_going_back_lifts_a_cordon_that_careen_set_although_the_record_is_from_before_it() -> None:
    """Another client put back the record from before the cordon: the claim must not go before the cordon."""
    for author, expected in ((keys.FIELD_MANAGER, False), ("kubectl", None)):
        back = claiming(need=NO, node={"unschedulable": True, "cordoned_by": (author,)})
        assert withdraws_the_claim(back)
        assert the_patch(back).unschedulable is expected


def test_one_write_adds_the_claim_to_the_lock_and_names_the_next_nodes() -> None:
    n2 = a_marked_node(a_progress(Phase.WAITING), name="n2", label="ready")
    n3 = a_marked_node(a_progress(Phase.WAITING), name="n3", label="required")
    assert claiming(lock=LockContent(), waiters=NOT_ASKED).wants == {Evidence.WAITERS}
    decision = claiming(lock=LockContent(line=Line(names=("n1",))), waiters=(n2, n3))
    assert kinds(decision) == [WriteLock]
    content = the_lock(decision)
    assert (content.holders, content.line.names, content.line.waiting) == (("n1",), ("n2",), 2)
    (entry,) = content.entries
    assert (entry.id, entry.uid, entry.boot, entry.limit) == ("c1", "uid-n1", "boot-1", 1)


JUST_NAMED = LockContent(line=Line(names=("n1", "n2"), at=rfc3339(NOW), waiting=2))


def test_a_claiming_agent_does_not_list_nodes_if_every_waiting_node_is_named() -> None:
    decision = claiming(lock=JUST_NAMED, waiters=NOT_ASKED)
    content = the_lock(decision)
    assert (content.holders, content.line.names, content.line.at, content.line.waiting) == (
        ("n1",),
        ("n2",),
        rfc3339(NOW),
        1,
    )


@pytest.mark.parametrize(
    ("content", "memory"),
    [
        pytest.param(
            replace(JUST_NAMED, line=replace(JUST_NAMED.line, waiting=3)),
            remembering(),
            id="more nodes wait than are named in the lock",
        ),
        pytest.param(
            replace(JUST_NAMED, line=replace(JUST_NAMED.line, at=rfc3339(NOW - timedelta(seconds=6)))),
            remembering(),
            id="the list of next nodes in the lock is six seconds old",
        ),
        pytest.param(
            replace(JUST_NAMED, line=replace(JUST_NAMED.line, at=rfc3339(NOW + timedelta(hours=1)))),
            remembering(),
            id="according to the lock, the next nodes were named an hour in the future",
        ),
        pytest.param(
            replace(JUST_NAMED, line=replace(JUST_NAMED.line, at="soon")),
            remembering(),
            id="the lock contains no readable time at which the next nodes were named",
        ),
        pytest.param(
            replace(JUST_NAMED, line=replace(JUST_NAMED.line, names=("n2", "n3"))),
            remembering(),
            id="this node is not named in the lock",
        ),
        pytest.param(JUST_NAMED, remembering(line__passed=("n0",)), id="another named node did not claim in time"),
    ],
)
def test_a_claiming_agent_lists_the_waiting_nodes_if_the_list_in_the_lock_may_be_incomplete(
    content: LockContent, memory: Memory
) -> None:
    assert claiming(lock=content, waiters=NOT_ASKED, memory=memory).wants == {Evidence.WAITERS}


def test_the_claim_contains_the_earlier_cordon_and_the_budgets_that_select_the_node() -> None:
    node = {"unschedulable": True, "labels": {keys.CONTROL_PLANE: ""}}
    (entry,) = the_lock(decided(RECORD, node=node, lock=LockContent())).entries
    assert (entry.cordoned, entry.groups) == (True, ("control-plane",))


@pytest.mark.parametrize(("how", "phase"), [(Order.OLDEST, Phase.CLAIMING), (Order.ZONE, Phase.WAITING)])
def test_if_the_order_is_zone_no_node_claims_while_a_node_of_another_zone_holds_a_claim(
    how: Order, phase: Phase
) -> None:
    policy = a_policy(order=how, concurrency=2)
    content = held(an_entry("n2", "c2", zone="a", limit=2))
    assert claiming(lock=content, policy=policy, node={"labels": {keys.ZONE: "b"}}).phase is phase


def test_a_claiming_node_records_in_the_lock_which_nodes_it_passed_over() -> None:
    decision = claiming(
        lock=LockContent(line=Line(names=("n2", "n1"))),
        memory=remembering(line__passed=("n2",)),
        waiters=(a_node("n2"),),
    )
    assert the_lock(decision).line.passed == ("n2",)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param({"lock": held(an_entry("n2", "c2"))}, Code.LIMIT_REACHED, id="another node claimed first"),
        pytest.param(
            {"lock": changes.pause(LockContent(), "", 1)}, Code.PAUSED, id="the lock is paused and lacks the claim"
        ),
        pytest.param({"lock": changes.pause(OWN, "", 1)}, Code.PAUSED, id="the lock is paused and contains the claim"),
        pytest.param({"lock": "garbage"}, Code.LOCK_GARBAGE, id="the lock contains unparsable text"),
        pytest.param({"lock": Unknown("503")}, Code.LOCK_UNKNOWN, id="the lock cannot be read"),
        pytest.param(
            {"lock": replace(a_reading(OWN), daemonset_uid="another")}, Code.SURPLUS, id="the DaemonSet was recreated"
        ),
        pytest.param({"need": NO}, Code.NEED_GONE, id="the host no longer needs a reboot"),
        pytest.param({"need": UNKNOWN_NEED}, Code.NEED_UNKNOWN, id="it is unknown whether the host needs a reboot"),
        pytest.param(
            {"node": {"annotations": {keys.HOLD: "people"}}}, Code.HELD, id="a hold annotation forbids the reboot"
        ),
        pytest.param({"foreign": ("kured runs",)}, Code.FOREIGN_COORDINATOR, id="kured runs in the cluster"),
        pytest.param({"forecast": Unknown("out of memory")}, Code.FORECAST_UNKNOWN, id="the forecast failed"),
        pytest.param({"pods": Unknown("503")}, Code.PODS_UNKNOWN, id="the list of pods is unknown"),
        pytest.param({"owners": Unknown("503")}, Code.OWNERS_UNKNOWN, id="the health of the workloads is unknown"),
        pytest.param({"fleet": Unknown("503")}, Code.FLEET_UNKNOWN, id="the list of nodes is unknown"),
        pytest.param({"peers": Unknown("503")}, Code.FLEET_UNKNOWN, id="the list of rebooting nodes is unknown"),
        pytest.param(
            {"fleet": a_fleet(a_node(), a_node("n2", ready=False))}, Code.NODES_DOWN, id="another node went down"
        ),
        pytest.param(
            {"pods": (a_pod(),), "evictability": {"uid-web-1": DryRunAnswer(answer=Evictable.BUDGET)}},
            Code.EVICTION_REFUSED,
            id="a disruption budget refuses an eviction",
        ),
    ],
)
def test_any_refusal_withdraws_the_claim(changes: dict[str, Any], code: Code) -> None:
    decision = claiming(**{"memory": remembering(patience__since=UPTIME - 15), **changes})
    assert decision.reason.code is code
    assert withdraws_the_claim(decision)
    assert the_patch(decision).unschedulable is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"need": UNKNOWN_NEED}, Code.NEED_UNKNOWN),
        ({"lock": Unknown("503")}, Code.LOCK_UNKNOWN),
        ({"pods": Unknown("503")}, Code.PODS_UNKNOWN),
        ({"owners": Unknown("503")}, Code.OWNERS_UNKNOWN),
        ({"fleet": Unknown("503")}, Code.FLEET_UNKNOWN),
        ({"peers": Unknown("503")}, Code.FLEET_UNKNOWN),
        ({"evictability": Unknown("503")}, Code.EVICTIONS_UNKNOWN),
        (
            {"evictability": {"uid-web-1": DryRunAnswer(answer=Evictable.UNKNOWN)}, "pods": (a_pod(),)},
            Code.EVICTIONS_UNKNOWN,
        ),
    ],
)
def test_the_node_keeps_its_claim_for_some_seconds_while_a_fact_is_unknown(changes: dict[str, Any], code: Code) -> None:
    first = claiming(**changes)
    assert (first.phase, first.reason.code, kinds(first), first.look_again_seconds) == (Phase.CLAIMING, code, [], 1.0)
    assert first.memory.patience.since == UPTIME
    assert withdraws_the_claim(claiming(**changes, memory=remembering(patience__since=UPTIME - 15)))


@pytest.mark.parametrize(
    ("changes", "pause", "refusals"),
    [
        ({"lock": held(an_entry("n2", "c2"))}, 5, 1),
        ({"node": {"annotations": {keys.HOLD: "people"}}}, 5, 1),
        ({"forecast": Unknown("out of memory")}, 20, 2),
    ],
)
def test_a_withdrawn_claim_is_retried_after_a_back_off(changes: dict[str, Any], pause: float, refusals: int) -> None:
    after = claiming(memory=remembering(costly__refusals=1), **changes).memory
    assert (after.costly.not_before, after.costly.refusals) == (UPTIME + pause, refusals)


def test_the_agent_patches_the_node_before_it_removes_a_withdrawn_claim_from_the_lock() -> None:
    """The patch writes into the Node's record that the node gives the claim back."""
    decision = claiming(foreign=("kured runs",))
    assert kinds(decision) == [PatchNode, WriteLock]
    assert the_lock(decision).entries == ()


def test_a_claiming_node_lists_its_pods_again_if_pods_may_block_the_reboot() -> None:
    assert claiming(policy=a_policy(blocking_pod_selectors=(Selector.parse("app=db"),)), pods=NOT_ASKED).wants == {
        Evidence.PODS
    }


def test_a_claiming_agent_reads_costly_facts_in_the_order_of_the_gates() -> None:
    facts = {"foreign": (), "pods": (), "owners": (), "forecast": Forecast(node="n1", made_at=""), "evictability": {}}
    expected: list[frozenset[Evidence]] = []
    for gate in asked(When.CLAIMED, Cost.COSTLY):
        new = {kind for kind in gate.needs(a_policy()) if kind.value in facts}.difference(*expected)
        expected += [frozenset(new)] if new else []
    seen: dict[str, Any] = dict.fromkeys(facts, NOT_ASKED)
    read = []
    while wanted := claiming(**seen).wants:
        read.append(wanted)
        seen |= {kind.value: facts[kind.value] for kind in wanted}
    assert read == expected
    assert len(read) >= 4


def test_a_gate_that_needs_every_node_does_not_replace_the_last_reads_before_the_cordon() -> None:
    """--blocking-pods with the scope `group` reads the Nodes first. The agent must still read the nodes at work."""
    decision = claiming(fleet=a_fleet(a_node()), peers=NOT_ASKED)
    assert decision.wants == {Evidence.LOCK, Evidence.PEERS, Evidence.FLEET}


@pytest.mark.parametrize(("age", "is_good"), [(0.0, True), (8.0, True), (8.1, False), (60.0, False)])
def test_a_claiming_node_replaces_an_old_list_of_nodes_before_the_cordon(age: float, is_good: bool) -> None:
    decision = claiming(fleet=a_fleet(a_node(), age=age))
    assert (decision.phase is Phase.DRAINING) is is_good
    assert decision.wants == (frozenset() if is_good else {Evidence.LOCK, Evidence.PEERS, Evidence.FLEET})


def test_one_patch_with_a_deadline_cordons_the_node_and_writes_the_progress_record() -> None:
    pods = (a_pod("a"), a_pod("b", owner_uid="rs-other"))
    decision = claiming(
        pods=pods,
        owners=(an_owner(), an_owner("unrelated")),
        fleet=a_fleet(a_node(), age=3.0),
        policy=a_policy(pre_reboot_labels={"pool": "away", "x": "1"}),
        node={"labels": {"pool": "web", "x": "1"}},
    )
    assert (decision.phase, decision.reason.code, kinds(decision)) == (Phase.DRAINING, Code.DRAIN_STARTED, [PatchNode])
    patch, record = the_patch(decision), the_record(decision)
    assert patch.unschedulable is True
    assert patch.send_before == UPTIME - 3.0 + 10.0
    assert patch.labels == {keys.REBOOT_LABEL: "in-progress", "pool": "away", "x": "1"}
    assert (record.is_cordoned_by_us, record.prior_unschedulable, record.prior_labels) == (True, False, {"pool": "web"})
    assert (record.owners, record.displaced, record.boot_left) == ((an_owner(),), 2, "boot-1")
    assert (record.drain_started, record.drain_started_at) == (ago(0), "2026-03-04T12:00:00Z")


def test_the_start_of_the_drain_is_recorded_in_the_api_servers_time() -> None:
    """The recorded start of the drain is compared with the creation times of pods, which the API server sets."""
    assert the_record(claiming(clock_skew_seconds=30.0)).drain_started_at == "2026-03-04T11:59:30Z"


def test_the_progress_record_lists_the_readiness_taints_from_before_the_cordon() -> None:
    taints = tuple(
        Taint(key=key, effect="NoSchedule") for key in ("readiness.k8s.io/gpu", "acme.com/x", "readiness.k8s.io/cni")
    )
    assert the_record(claiming(node={"taints": taints})).prior_readiness == (
        "readiness.k8s.io/cni",
        "readiness.k8s.io/gpu",
    )


def test_the_cordon_records_all_daemonsets_and_reports_unready_daemonsets() -> None:
    pods = (
        a_daemon_pod("proxy-1", labels={"controller-revision-hash": "5d9"}),
        a_daemon_pod("cni-1", owner_name="cni", owner_uid="ds-cni", is_ready=False),
        a_daemon_pod("kured-1", owner_name="kured", owner_uid="ds-kured", is_ready=False),  # the agent's own
        a_daemon_pod("old-1", owner_name="old", owner_uid="ds-old", phase="Failed"),
    )
    decision = claiming(pods=pods)
    rows = [(row.kind, row.name, row.uid, row.generation, row.ready) for row in the_record(decision).owners]
    assert rows == [("DaemonSet", "cni", "ds-cni", 0, 0), ("DaemonSet", "proxy", "ds-proxy", zlib.crc32(b"5d9"), 1)]
    assert (
        decision.reason.sentence
        == "cordoned; 0 pods have to leave the node; the node will not wait after its reboot for pods that are not "
        "ready now: DaemonSet kube-system/cni"
    )


def test_a_long_list_of_daemonsets_is_shortened_and_keeps_unready_daemonsets() -> None:
    pods = tuple(
        a_daemon_pod(f"d{n:03}", owner_name=f"d{n:03}", owner_uid=f"ds-{n:03}", is_ready=n != 299) for n in range(300)
    )
    rows = the_record(claiming(pods=pods)).owners
    assert (len(rows), rows[0].name, rows[0].ready) == (110, "d299", 0)


def test_the_cordon_resets_the_number_of_earlier_refusals() -> None:
    cordoned = claiming(memory=remembering(costly__refusals=4))
    assert cordoned.phase is Phase.DRAINING
    assert decided(the_record(cordoned), memory=cordoned.memory).memory.costly.refusals == 0


def test_a_persons_cordon_is_recorded_as_not_set_by_careen() -> None:
    record = the_record(claiming(node={"unschedulable": True}))
    assert (record.is_cordoned_by_us, record.prior_unschedulable) == (False, True)


@pytest.mark.parametrize(
    ("authors", "is_ours"),
    [
        ((keys.FIELD_MANAGER,), True),
        (("kubectl-cordon",), False),
        ((keys.FIELD_MANAGER, "kubectl-cordon"), False),
        ((), False),
    ],
)
def test_a_claiming_node_adopts_a_cordon_only_if_managed_fields_name_careen(
    authors: tuple[str, ...], is_ours: bool
) -> None:
    node = {"unschedulable": True, "cordoned_by": authors}
    record = the_record(claiming(node=node))
    assert (record.is_cordoned_by_us, record.prior_unschedulable) == (is_ours, not is_ours)
    (entry,) = the_lock(decided(RECORD, node=node, lock=LockContent())).entries
    assert entry.cordoned is not is_ours


def test_the_node_keeps_a_summary_of_the_forecast_that_allowed_the_drain() -> None:
    pods = (
        PodForecast(namespace="shop", name="a", uid="1", outcome=Outcome.MOVES, sentence="", landing=("n2", "n3")),
        PodForecast(namespace="shop", name="b", uid="2", outcome=Outcome.STAYS, sentence=""),
    )
    text = the_patch(claiming(forecast=Forecast(node="n1", made_at="2026-03-04T12:00:00Z", pods=pods))).annotations[
        keys.FORECAST
    ]
    assert text == '{"at":"2026-03-04T12:00:00Z","counts":{"stays":1,"moves":1},"pods":{"shop/a":["n2","n3"]}}'


def made(ago_seconds: float, holders: tuple[str, ...] = ()) -> Memory:
    return remembering(
        claiming__forecast=Forecast(node="n1", made_at=""), claiming__at=UPTIME - ago_seconds, claiming__holders=holders
    )


@pytest.mark.parametrize(
    ("memory", "is_good"), [(made(10), True), (made(11), False), (made(1, ("n9",)), False), (remembering(), False)]
)
def test_a_recent_forecast_is_reused_if_the_holders_of_claims_have_not_changed(memory: Memory, is_good: bool) -> None:
    decision = claiming(forecast=NOT_ASKED, memory=memory)
    assert (decision.phase is Phase.DRAINING) is is_good
    assert decision.wants == (frozenset() if is_good else {Evidence.FORECAST})


def test_costly_gates_are_evaluated_only_after_the_drain_delay() -> None:
    record = replace(RECORD, claimed=ago(10))
    early = decided(record, policy=a_policy(drain=DrainPolicy(delay_seconds=30)), foreign=NOT_ASKED)
    assert (early.phase, early.wants, early.look_again_seconds) == (Phase.CLAIMING, frozenset(), 5.0)
    assert decided(record, policy=a_policy(drain=DrainPolicy(delay_seconds=10))).phase is Phase.DRAINING


# Other nodes that claim at the same time.

WORKING = a_marked_node(a_progress(Phase.DRAINING), name="n2")
ELSEWHERE = a_marked_node(a_progress(Phase.CLAIMING, lock="another/lock"), name="n2")
BESIDE = a_marked_node(a_progress(Phase.CLAIMING, claim="c2"), name="n2")


def test_a_node_withdraws_its_claim_if_another_node_drains_without_a_claim_in_the_lock() -> None:
    decision = claiming(peers=(WORKING,))
    assert decision.reason.code is Code.SURPLUS
    assert withdraws_the_claim(decision)


def test_a_node_keeps_its_claim_beside_a_draining_node_if_the_limit_allows_two_claims() -> None:
    own = held(an_entry(limit=2))
    fleet = a_fleet(a_node(), replace(WORKING))
    assert claiming(peers=(WORKING,), fleet=fleet, lock=own, policy=a_policy(concurrency=2)).phase is Phase.DRAINING


def test_a_node_withdraws_its_claim_if_another_node_claims_in_another_lock() -> None:
    decision = claiming(peers=(ELSEWHERE,))
    assert decision.reason.code is Code.SURPLUS
    assert withdraws_the_claim(decision)


def test_a_claiming_node_waits_15_seconds_for_another_claiming_node_that_has_no_claim_in_the_lock() -> None:
    """n1 and n2 are both in the phase Claiming, but only n1's claim is in the lock. n2 should notice this and go back
    to the phase Waiting. If n2 is still in the phase Claiming after 16 seconds, n1 begins its drain."""
    first = claiming(peers=(BESIDE,))
    assert (first.phase, first.reason.code, first.actions) == (Phase.CLAIMING, Code.TAKING_CLAIM, ())
    early = claiming(
        peers=(BESIDE,),
        memory=first.memory,
        uptime=UPTIME + 15,
        fleet=replace(a_fleet(a_node()), read_at_uptime=UPTIME + 15),
    )
    assert early.phase is Phase.CLAIMING
    late = claiming(
        peers=(BESIDE,),
        memory=first.memory,
        uptime=UPTIME + 16,
        fleet=replace(a_fleet(a_node()), read_at_uptime=UPTIME + 16),
    )
    assert late.phase is Phase.DRAINING


def test_the_wait_for_another_claiming_node_restarts_if_the_resource_version_of_that_node_changes() -> None:
    memory = claiming(peers=(BESIDE,)).memory
    changed: NodeView = replace(BESIDE, resource_version="99")
    later = claiming(
        peers=(changed,),
        memory=memory,
        uptime=UPTIME + 16,
        fleet=replace(a_fleet(a_node()), read_at_uptime=UPTIME + 16),
    )
    assert later.phase is Phase.CLAIMING


def test_a_node_keeps_its_claim_beside_other_claims_in_the_lock() -> None:
    own = held(an_entry(limit=2), an_entry("n2", "c2", limit=2))
    fleet = a_fleet(a_node(), WORKING)
    itself = a_marked_node(RECORD)
    assert (
        claiming(peers=(WORKING, itself), fleet=fleet, lock=own, policy=a_policy(concurrency=2)).phase is Phase.DRAINING
    )


def test_a_lock_is_identified_by_the_uid_of_its_daemonset_and_the_key_of_its_annotation() -> None:
    reading = LockReading.of(None, resource_version="1", daemonset_uid="u", annotation="key")
    assert reading.object_id == "u/key"


def test_the_cordon_records_how_many_volumes_are_attached() -> None:
    assert the_record(claiming(node={"volumes": ("a", "b")})).volumes == 2


def test_the_baseline_of_a_workload_that_has_not_recovered_is_the_earlier_one() -> None:
    owed = replace(held(an_entry()), unsettled=(an_owner(ready=3),))
    assert [
        row.ready for row in the_record(claiming(lock=owed, pods=(a_pod(),), owners=(an_owner(ready=1),))).owners
    ] == [3]


@pytest.mark.parametrize(("age", "is_good"), [(None, True), (2.9, True), (3.1, False)])
def test_a_baseline_from_before_a_late_answer_is_taken_again(age: float | None, *, is_good: bool) -> None:
    """The API server may have been away since then, and pods of another node's drain may be back."""
    decision = claiming(owners_at=None if age is None else UPTIME - age)
    assert (decision.phase is Phase.DRAINING) is is_good
    assert decision.wants == (frozenset() if is_good else {Evidence.OWNERS})


def test_the_baseline_counts_what_other_nodes_at_work_have_taken() -> None:
    rows = (an_owner(ready=3),)
    other = a_marked_node(a_progress(Phase.REBOOTING, claim="c2", owners=rows), name="n2")
    back = a_marked_node(a_progress(Phase.WAITING), name="n3")
    policy = a_policy(concurrency=2)
    lock = held(an_entry(limit=2), an_entry("n2", "c2", limit=2))
    decision = claiming(
        policy=policy,
        lock=replace(lock, max_owners=2),
        pods=(a_pod(),),
        owners=(an_owner(ready=2),),
        peers=(other,),
        fleet=a_fleet(a_node(), other, back),
    )
    (found,) = the_record(decision).owners
    assert (found.ready, found.containers) == (3, 1)

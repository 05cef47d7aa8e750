"""The phase Draining (with `careen.core.steps.shared.late_gates` and `careen.core.steps.shared.working`). The agent
evicts pods until its node is drained or the drain cannot continue. If a drain is cancelled, one patch restores the
Node, before the claim leaves the lock."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from careen.core import gates
from careen.core.actions import AskReboot, ConfirmClaim, Evict, PatchNode, WriteLock
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import EvictAnswer, EvictionMemory, Memory, SlowWatch, after_eviction
from careen.core.facts.observation import NOT_ASKED, Alert, PodView, Taint, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import AlertPolicy, DrainPolicy, LatePolicy, Policy
from careen.core.facts.reasons import Code
from careen.core.facts.windows import Window
from careen.core.gates.question import No, When
from careen.core.lock import changes
from careen.core.lock.content import LockContent
from scheduler_core.values import replace_value
from tests.careen.core.builders import (
    DAEMONSET,
    NO,
    NOW,
    UNKNOWN_NEED,
    UPTIME,
    a_daemon_pod,
    a_pod,
    a_policy,
    a_progress,
    ago,
    an_entry,
    an_owner,
    decided,
    evicted,
    held,
    kinds,
    remembering,
    the_lock,
    the_patch,
    the_record,
    with_parts,
)

OURS = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
RECORD = a_progress(
    Phase.DRAINING, prior_labels={"pool": "web", "new": None}, taint_key=OURS.key, drain_started=ago(30)
)
PRE = {"pool": "away", "new": "1"}
LABELS = {"labels": PRE, "taints": (OURS,)}


def draining(node: dict[str, Any] | None = None, policy: Policy | None = None, **changes: Any) -> Decision:
    return decided(RECORD, policy or a_policy(pre_reboot_labels=PRE), {**LABELS, **(node or {})}, **changes)


def refused(attempts: int = 1, wait: float = 5.0, answer: EvictAnswer = EvictAnswer.BUDGET) -> Memory:
    return remembering(
        drain__evictions={
            "uid-web-1": EvictionMemory(attempts=attempts, not_before=UPTIME + wait, answer=answer, detail="budget web")
        }
    )


def is_undone(decision: Decision) -> bool:
    """Check that one patch undoes every change of the drain on the Node. Only the claim's id stays on the Node until
    the claim has left the lock. Return True."""
    patch, record = the_patch(decision), the_record(decision)
    assert patch.unschedulable is False
    assert {"pool": patch.labels["pool"], "new": patch.labels["new"]} == {"pool": "web", "new": None}
    assert (record.is_releasing, record.claim, record.is_cordoned_by_us) == (True, "c1", False)
    assert (record.drain_started, record.drained, record.owners) == (None, None, ())
    assert kinds(decision)[0] is PatchNode
    return True


def test_pods_are_evicted_in_parallel_up_to_the_limit() -> None:
    decision = draining(pods=(a_pod("a"), a_pod("b"), a_daemon_pod()))
    assert (decision.phase, decision.reason.code, evicted(decision)) == (Phase.DRAINING, Code.DRAINING, ["a", "b"])
    assert [action.parallel for action in decision.actions if isinstance(action, Evict)] == [1]
    assert decision.look_again_seconds == 1.0


def test_a_refused_eviction_is_not_repeated_before_its_back_off_ends() -> None:
    decision = draining(pods=(a_pod("web-1"),), memory=refused())
    assert evicted(decision) == []
    assert decision.reason.sentence == "1 pod has to leave the node: shop/web-1 (budget web; 1 eviction request)"
    assert evicted(draining(pods=(a_pod("web-1"),), memory=refused(wait=0))) == ["web-1"]


def test_evictions_of_pods_created_after_the_cordon_have_a_back_off() -> None:
    came = a_pod("web-2", created_at=NOW - timedelta(seconds=5))
    decision = draining(pods=(came,))
    assert evicted(decision) == ["web-2"]
    assert evicted(draining(pods=(a_pod("web-3", created_at=NOW),), memory=decision.memory)) == []
    assert decision.memory.drain.new_pods["rs-web"].not_before == UPTIME + 1.5


def test_a_recreated_pod_that_tolerates_the_cordon_does_not_delay_the_reboot() -> None:
    assert draining(pods=(a_pod("web-2", created_at=NOW, tolerates_cordon=True),)).phase is Phase.REBOOTING


def test_the_drain_waits_for_a_terminating_pod_that_tolerates_the_cordon() -> None:
    """Its successor comes back after each eviction and then stays; the pod itself ends, and may need that time."""
    ends = a_pod("web-2", created_at=NOW, tolerates_cordon=True, deletion_timestamp=NOW)
    decision = draining(pods=(ends,))
    assert (decision.phase, evicted(decision)) == (Phase.DRAINING, [])


def test_a_pod_that_its_owner_binds_to_the_node_is_evicted_once_and_the_drain_continues() -> None:
    """The pod's owner sets `spec.nodeName` in its pods, so no scheduler places them. After each eviction, a new pod
    runs on the node within a second."""
    first = draining(pods=(a_pod("pinned-1", came_bound=True),))
    assert evicted(first) == ["pinned-1"]
    again = draining(pods=(a_pod("pinned-2", came_bound=True, created_at=NOW),), memory=first.memory)
    assert (again.phase, evicted(again)) == (Phase.REBOOTING, [])
    assert again.reason.sentence.startswith(
        "the node is drained (these pods stay on the node, because each eviction brings them back: shop/pinned-2), "
        "and no gate refuses"
    )


def test_the_drain_stops_evicting_a_recreated_pod_after_six_rounds() -> None:
    memory, phases = remembering(), []
    for turn in range(60):
        decision = draining(pods=(a_pod(f"web-{turn}", created_at=NOW),), memory=memory, uptime=UPTIME + turn * 2)
        memory = decision.memory
        phases.append(decision.phase)
        if decision.phase is Phase.REBOOTING:
            break
    assert phases[-1] is Phase.REBOOTING
    assert memory.drain.new_pods["rs-web"].rounds == 6


def test_the_drain_forgets_the_back_offs_of_deleted_pods() -> None:
    assert draining(pods=(a_pod("other"),), memory=refused()).memory.drain.evictions == {}


@pytest.mark.parametrize(
    ("entry", "idle", "answer", "gives_way"),
    [
        ({}, 601, EvictAnswer.BUDGET, True),
        ({}, 601, EvictAnswer.DENIED, True),
        ({}, 599, EvictAnswer.BUDGET, False),
        ({}, 601, EvictAnswer.UNCLEAR, False),
        ({"created": "2026-03-04T12:59:00Z"}, 601, EvictAnswer.BUDGET, False),
        ({"failed": "never-ready"}, 601, EvictAnswer.BUDGET, False),
    ],
)
def test_a_drain_that_is_refused_for_long_gives_way_to_an_older_claim(
    entry: dict[str, Any], idle: float, answer: EvictAnswer, gives_way: bool
) -> None:
    given: dict[str, Any] = {"created": "2026-03-04T06:00:00Z", **entry}
    other = an_entry("n2", **given)
    watch = SlowWatch(states=frozenset({("uid-web-1", False)}), moved_at=UPTIME - idle)
    memory = with_parts(refused(answer=answer), drain__slow=watch)
    decision = draining(pods=(a_pod("web-1"),), lock=held(an_entry(), other), memory=memory)
    assert (decision.phase is Phase.FAILED) is gives_way
    assert ("gives way to that of n2" in decision.reason.sentence) is gives_way


def test_a_drain_does_not_give_way_while_a_pod_still_ends() -> None:
    states = frozenset({("uid-web-1", False), ("uid-web-2", True)})
    memory = with_parts(refused(), drain__slow=SlowWatch(states=states, moved_at=UPTIME - 601))
    lock = held(an_entry(), an_entry("n2", created="2026-03-04T06:00:00Z"))
    pods = (a_pod("web-1"), a_pod("web-2", deletion_timestamp=NOW))
    assert draining(pods=pods, lock=lock, memory=memory).phase is Phase.DRAINING


def test_the_drain_remembers_the_pods_of_its_first_look() -> None:
    first = draining(pods=(a_pod("web-1"),)).memory
    assert first.drain.first == {"uid-web-1"}
    assert draining(pods=(a_pod("web-2"),), memory=first).memory.drain.first == {"uid-web-1"}


def test_after_the_drain_the_agent_announces_the_reboot_then_confirms_its_claim_then_asks_the_host() -> None:
    decision = draining(pods=(a_daemon_pod(),))
    assert (decision.phase, decision.reason.code) == (Phase.REBOOTING, Code.REBOOT_ANNOUNCED)
    assert kinds(decision) == [PatchNode, ConfirmClaim, AskReboot]
    assert the_record(decision).announcement == 1
    assert the_patch(decision).unschedulable is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param({"need": NO}, Code.NEED_GONE, id="the host no longer needs a reboot"),
        pytest.param(
            {"node": {"annotations": {keys.HOLD: "people"}}}, Code.HELD, id="a hold annotation forbids the reboot"
        ),
        pytest.param({"lock": changes.pause(held(an_entry()), "", 1)}, Code.PAUSED, id="the lock is paused"),
        pytest.param(
            {"lock": '{"nodeID":"manual"}'},
            Code.PAUSED,
            id="the lock is paused with kured's manual lock",
        ),
        pytest.param({"lock": "garbage"}, Code.LOCK_GARBAGE, id="the lock contains unparsable text"),
    ],
)
@pytest.mark.parametrize("pods", [(a_pod(),), ()])
def test_the_drain_is_undone_if_the_reboot_is_no_longer_needed_or_no_longer_allowed(
    changes: dict[str, Any], code: Code, pods: Any
) -> None:
    decision = draining(pods=pods, **changes)
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, code)
    assert is_undone(decision)


def test_a_cancelled_drain_is_undone_on_the_node_before_the_claim_leaves_the_lock() -> None:
    decision = draining(need=NO)
    assert kinds(decision) == [PatchNode, WriteLock]
    assert the_lock(decision).entries == ()
    (write,) = [action for action in decision.actions if isinstance(action, WriteLock)]
    assert (write.expected_resource_version, write.daemonset_uid) == ("42", DAEMONSET), (
        "the write must name the DaemonSet that the agent read in this turn"
    )


def test_an_agent_that_cancels_its_drain_does_not_write_to_an_unreadable_lock() -> None:
    assert kinds(draining(lock="garbage")) == [PatchNode]


def test_an_uncordon_by_a_person_ends_the_drain_with_a_back_off() -> None:
    decision = draining(node={"unschedulable": False}, pods=(a_pod(),))
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.UNCORDONED_BY_HAND)
    assert the_patch(decision).unschedulable is None
    assert the_record(decision).is_releasing


def test_an_earlier_cordon_by_a_person_stays_when_the_drain_is_undone() -> None:
    record = a_progress(Phase.DRAINING, is_cordoned_by_us=False, prior_unschedulable=True)
    assert the_patch(decided(record, need=NO)).unschedulable is None


def test_undoing_a_drain_keeps_a_label_that_was_changed_during_the_drain() -> None:
    patch = the_patch(draining(node={"labels": {**PRE, "pool": "theirs"}}, need=NO))
    assert "pool" not in patch.labels
    assert patch.labels["new"] is None


def test_a_draining_node_restores_its_missing_claim_even_if_the_lock_is_full() -> None:
    decision = draining(lock=held(an_entry("n2", "c2")), pods=(a_pod(),))
    assert decision.reason.code is Code.ENTRY_PUT_BACK
    assert the_lock(decision).holders == ("n2", "n1")
    assert evicted(decision) == []
    assert [entry.boot for entry in the_lock(decision).entries_of("n1")] == ["boot-1"]


def test_if_another_lock_now_contains_the_nodes_claim_the_progress_record_refers_to_that_lock() -> None:
    record = a_progress(Phase.DRAINING, lock="old/lock")
    decision = decided(record, pods=(a_pod(),))
    assert the_record(decision).lock == "ds-uid/weave.works/kured-node-lock"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"lock": Unknown("503")}, Code.LOCK_UNKNOWN),
        ({"need": UNKNOWN_NEED}, Code.NEED_UNKNOWN),
        ({"pods": Unknown("503")}, Code.PODS_UNKNOWN),
    ],
)
def test_an_unknown_fact_stops_the_evictions_and_then_undoes_the_drain(changes: dict[str, Any], code: Code) -> None:
    given: dict[str, Any] = {"pods": (a_pod(),), **changes}
    first = draining(**given)
    assert (first.phase, first.reason.code, evicted(first)) == (Phase.DRAINING, code, [])
    patient = draining(**given, memory=first.memory, uptime=UPTIME + 600)
    assert patient.phase is Phase.DRAINING
    undone = draining(**given, memory=first.memory, uptime=UPTIME + 601)
    assert (undone.phase, undone.reason.code) == (Phase.FAILED, Code.LATE_REFUSAL)
    assert first.reason.sentence in undone.reason.sentence
    assert is_undone(undone)


def test_a_fact_that_is_known_again_ends_the_wait_for_unknown_facts() -> None:
    first = draining(pods=(a_pod(),), need=UNKNOWN_NEED)
    assert draining(pods=(a_pod(),), memory=first.memory).memory.patience.since is None


TIMEOUT = DrainPolicy(timeout_seconds=20)
FORCE = DrainPolicy(timeout_seconds=20, force_reboot=True)


def timed_out(drain: DrainPolicy, memory: Memory) -> Decision:
    return draining(policy=a_policy(drain=drain, pre_reboot_labels=PRE), pods=(a_pod("web-1"),), memory=memory)


def test_a_timed_out_drain_is_undone_and_its_message_lists_the_remaining_pods() -> None:
    decision = timed_out(TIMEOUT, refused())
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.DRAIN_TIMEOUT)
    assert (
        decision.reason.sentence == "the drain did not finish within 20s: shop/web-1 (budget web; 1 eviction request)"
    )
    assert is_undone(decision)
    assert (the_record(decision).failed, the_record(decision).failures) == ("drain-timeout", 1)


def test_a_drain_without_a_configured_timeout_continues() -> None:
    assert timed_out(DrainPolicy(), refused()).phase is Phase.DRAINING


@pytest.mark.parametrize(
    ("drain", "memory", "phase", "code"),
    [
        pytest.param(
            FORCE,
            refused(3, answer=EvictAnswer.DENIED),
            Phase.REBOOTING,
            Code.FORCED,
            id="a webhook refused three evictions",
        ),
        pytest.param(
            FORCE,
            refused(2, answer=EvictAnswer.DENIED),
            Phase.DRAINING,
            Code.DRAINING,
            id="a webhook refused two evictions",
        ),
        pytest.param(
            FORCE, refused(9), Phase.FAILED, Code.DRAIN_TIMEOUT, id="a disruption budget refused nine evictions"
        ),
        pytest.param(
            DrainPolicy(timeout_seconds=20, force_reboot=True, force_past_budgets=True),
            refused(3),
            Phase.REBOOTING,
            Code.FORCED,
            id="--force-reboot-past-budgets ignores a disruption budget",
        ),
    ],
)
def test_a_reboot_is_forced_only_after_three_evictions_with_a_conclusive_result(
    drain: DrainPolicy, memory: Memory, phase: Phase, code: Code
) -> None:
    decision = timed_out(drain, memory)
    assert (decision.phase, decision.reason.code) == (phase, code)
    if phase is Phase.REBOOTING:
        assert the_record(decision).is_forced


@pytest.mark.parametrize("answer", [EvictAnswer.UNCLEAR, EvictAnswer.BARRED])
def test_evictions_with_an_inconclusive_result_do_not_count_towards_a_forced_reboot(answer: EvictAnswer) -> None:
    """The result is inconclusive if the eviction was not sent, or if it failed because the server was busy, because a
    webhook was down, or because a permission was missing."""
    memory = remembering()
    for _ in range(2):
        memory = after_eviction(memory, pod_uid="uid-web-1", answer=answer, uptime=UPTIME - 60, jitter=0.0)
    again = timed_out(FORCE, memory)
    assert (again.phase, evicted(again)) == (Phase.DRAINING, ["web-1"])
    decision = timed_out(FORCE, after_eviction(memory, pod_uid="uid-web-1", answer=answer, uptime=UPTIME, jitter=0.0))
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.DRAIN_TIMEOUT)
    assert is_undone(decision)


def test_a_forced_reboot_still_obeys_the_gates() -> None:
    policy = a_policy(drain=FORCE, window=Window(days=frozenset()))
    decision = draining(policy=policy, pods=(a_pod("web-1"),), memory=refused(3, answer=EvictAnswer.DENIED))
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.LATE_REFUSAL)


# The gates are evaluated again.

SHUT = Window(days=frozenset())
LATE = {
    "the maintenance window is closed": {"policy": {"window": SHUT}},
    "an alert is active": {"policy": {"alerts": AlertPolicy()}, "alerts": (Alert(name="DiskFull"),)},
    "kured runs in the cluster": {"policy": {}, "foreign": ("kured runs",)},
}


@pytest.mark.parametrize("case", LATE.values(), ids=LATE.keys())
def test_the_flag_late_policy_decides_whether_a_refusal_after_the_drain_undoes_the_drain(
    case: dict[str, Any],
) -> None:
    """With --late-policy=undo, the agent undoes the drain at once because of a closed window, and after ten minutes
    because of everything else. With --late-policy=reboot, the node reboots."""
    more: dict[str, Any] = {key: value for key, value in case.items() if key != "policy"}
    policy = a_policy(pre_reboot_labels=PRE, **case["policy"])
    undone = draining(policy=policy, **more)
    if undone.phase is Phase.DRAINING:
        node = {"annotations": {keys.KNOWN_AT_THE_CLAIM: the_patch(undone).annotations[keys.KNOWN_AT_THE_CLAIM]}}
        undone = draining(policy=policy, node=node, uptime=UPTIME + 601, **more)
        assert undone.phase is Phase.FAILED
    assert undone.reason.code is Code.LATE_REFUSAL
    assert is_undone(undone)
    assert draining(policy=a_policy(late_policy=LatePolicy.REBOOT, **case["policy"]), **more).phase is Phase.REBOOTING


@pytest.mark.parametrize("name", [gate.name for gate in gates.asked(When.BEFORE_REBOOT)])
def test_each_gate_that_is_asked_before_the_reboot_prevents_the_reboot(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(gate: gates.Gate) -> gates.Gate:
        def question(_situation: object) -> No:
            return No(Code.LATE_REFUSAL, "not now")

        return replace_value(gate, question=question, takes_when=False, evidence=frozenset())

    monkeypatch.setattr(gates, "GATES", tuple(refusing(each) if each.name == name else each for each in gates.GATES))
    assert AskReboot not in kinds(draining())


UNTOLD = {
    "the alerts are unknown": {"policy": {"alerts": AlertPolicy()}, "alerts": Unknown("timed out")},
    "it is unknown whether kured runs": {"policy": {}, "foreign": Unknown("503")},
}


@pytest.mark.parametrize("case", UNTOLD.values(), ids=UNTOLD.keys())
def test_a_drained_node_waits_for_unknown_facts_and_then_undoes_the_drain(case: dict[str, Any]) -> None:
    more: dict[str, Any] = {key: value for key, value in case.items() if key != "policy"}
    policy = a_policy(pre_reboot_labels=PRE, **case["policy"])
    first = draining(policy=policy, **more)
    assert first.phase is Phase.DRAINING
    assert draining(policy=policy, **more, memory=first.memory, uptime=UPTIME + 600).phase is Phase.DRAINING
    assert is_undone(draining(policy=policy, **more, memory=first.memory, uptime=UPTIME + 601))
    assert draining(policy=a_policy(late_policy=LatePolicy.REBOOT, **case["policy"]), **more).phase is Phase.REBOOTING


@pytest.mark.parametrize("late_policy", list(LatePolicy))
def test_a_wrong_clock_prevents_the_reboot_of_a_drained_node(
    late_policy: LatePolicy,
) -> None:
    """This holds for both values of --late-policy, which says what the agent does if a gate refuses after the drain."""
    decision = draining(policy=a_policy(late_policy=late_policy), clock_skew_seconds=100.0)
    assert (decision.phase, decision.reason.code) == (Phase.DRAINING, Code.CLOCK_SKEW)


def test_after_the_drain_the_agent_reads_the_facts_for_its_gates_again() -> None:
    assert draining(foreign=NOT_ASKED).wants == {Evidence.FOREIGN}


def test_the_agent_does_not_restart_a_reboot_delay_that_has_begun() -> None:
    record = a_progress(Phase.DRAINING, drained=ago(5))
    decision = decided(record, a_policy(reboot_delay_seconds=10.0))
    assert (decision.reason.code, decision.phase) == (Code.DRAINED, Phase.DRAINING)
    assert all(keys.PROGRESS not in action.annotations for action in decision.actions if isinstance(action, PatchNode))


def test_the_agent_does_not_undo_a_drain_because_of_a_refusal_from_before_the_drain() -> None:
    """The drain began 30 seconds ago. The agent has just started and cannot list the pods. An annotation of the Node
    still contains a refusal from the phase Waiting: the pods were unknown three hours ago. The agent must not conclude
    that the pods have been unknown for three hours, because it would then undo the drain."""
    stored = '[{"gate":"drain","code":"pods-unknown","sentence":"503","since":"2026-03-04T09:00:00Z"}]'
    decision = draining(node={"annotations": {keys.REFUSALS: stored}}, pods=Unknown("503"))
    assert (decision.phase, decision.reason.code) == (Phase.DRAINING, Code.PODS_UNKNOWN)


def test_a_node_with_an_unknown_boot_id_evicts_no_pod() -> None:
    decision = draining(pods=(a_pod(),), boot_id=Unknown("permission denied"))
    assert (decision.phase, decision.reason.code) == (Phase.DRAINING, Code.BOOT_ID_UNKNOWN)
    assert evicted(decision) == []


def test_the_gates_are_evaluated_after_the_reboot_delay() -> None:
    policy = a_policy(reboot_delay_seconds=60)
    first = draining(policy=policy, foreign=NOT_ASKED)
    assert (first.phase, first.reason.code) == (Phase.DRAINING, Code.DRAINED)
    assert the_record(first).drained == ago(0)
    waited = {"policy": policy, "foreign": NOT_ASKED}
    early = decided(a_progress(Phase.DRAINING, drained=ago(59)), **waited)
    assert (early.phase, early.wants) == (Phase.DRAINING, frozenset())
    assert decided(a_progress(Phase.DRAINING, drained=ago(60)), **waited).wants == {Evidence.FOREIGN}


def test_an_agent_that_cancels_a_drain_does_not_write_to_a_lock_that_lacks_the_nodes_claim() -> None:
    assert kinds(draining(need=NO, lock=LockContent())) == [PatchNode]


def test_a_drain_with_incomplete_settings_is_undone_before_the_next_eviction() -> None:
    policy = a_policy(pre_reboot_labels=PRE, settings_problem="the ConfigMap is bad", are_settings_whole=False)
    decision = draining(policy=policy, pods=(a_pod(),))
    assert is_undone(decision)
    assert decision.reason.code is Code.SETTINGS_UNUSABLE
    whole = a_policy(pre_reboot_labels=PRE, settings_problem="the ConfigMap is bad")
    assert evicted(draining(policy=whole, pods=(a_pod(),))) == ["web-1"]


def test_a_forced_reboot_also_waits_for_the_reboot_delay() -> None:
    policy = a_policy(drain=FORCE, reboot_delay_seconds=60)
    stuck: dict[str, Any] = {"pods": (a_pod("web-1"),), "memory": refused(3, answer=EvictAnswer.DENIED)}
    first = draining(policy=policy, **stuck)
    assert (first.phase, first.reason.code, the_record(first).drained) == (Phase.DRAINING, Code.DRAINED, ago(0))
    for seconds, phase in ((59, Phase.DRAINING), (60, Phase.REBOOTING)):
        record = a_progress(Phase.DRAINING, drain_started=ago(90), drained=ago(seconds))
        assert decided(record, policy, **stuck).phase is phase


def test_a_workload_whose_first_pod_came_after_the_baseline_is_counted_before_its_pod_is_evicted() -> None:
    """For example the pod of another node's drain, which was placed here a moment before the cordon."""
    late = a_pod("db-1", owner_name="db", owner_uid="rs-db")
    counted = draining(pods=(late,), owners=(an_owner("db"),))
    assert the_record(counted).owners == (an_owner("db"),)
    assert (evicted(counted), counted.phase) == ([], Phase.DRAINING)
    again = decided(the_record(counted), a_policy(pre_reboot_labels=PRE), LABELS, pods=(late,), owners=NOT_ASKED)
    assert evicted(again) == ["db-1"]


def test_a_late_count_adds_to_the_baseline_and_changes_none_of_its_rows() -> None:
    late, before = a_pod("db-1", owner_name="db", owner_uid="rs-db"), an_owner(ready=3)
    record = replace_value(RECORD, owners=(before,))
    owners = (an_owner(ready=1), an_owner("db"))
    counted = decided(record, a_policy(pre_reboot_labels=PRE), LABELS, pods=(late, a_pod()), owners=owners)
    assert the_record(counted).owners == (before, an_owner("db"))


def test_a_late_pod_that_terminates_already_is_not_counted() -> None:
    going = a_pod("db-1", owner_name="db", owner_uid="rs-db", deletion_timestamp=NOW)
    decision = draining(pods=(going,), owners=NOT_ASKED)
    assert (evicted(decision), decision.reason.code) == ([], Code.DRAINING)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod("db-1", owner_kind="", owner_uid=""), id="no controller"),
        pytest.param(a_pod("db-1", owner_kind="Workflow", owner_uid="wf", is_work=True), id="a piece of work"),
    ],
)
def test_a_late_pod_that_nobody_waits_for_is_evicted_without_a_count(pod: PodView) -> None:
    assert evicted(draining(pods=(pod,), owners=NOT_ASKED)) == ["db-1"]


def test_a_late_pod_is_not_evicted_while_its_workload_cannot_be_counted_unless_the_workload_is_gone() -> None:
    late = a_pod("db-1", owner_name="db", owner_uid="rs-db")
    unknown = draining(pods=(late,), owners=Unknown("503"))
    assert (evicted(unknown), unknown.reason.code) == ([], Code.OWNERS_UNKNOWN)
    assert evicted(draining(pods=(late,), owners=())) == ["db-1"]


@pytest.mark.parametrize(
    ("need", "sentence"),
    [
        ("", "the host no longer asks for a reboot: the drain is undone"),
        ("a person asked for maintenance: disk swap", "the person's request is withdrawn or over: the drain is undone"),
    ],
)
def test_an_undone_drain_for_maintenance_is_not_called_a_reboot(need: str, sentence: str) -> None:
    decision = decided(a_progress(Phase.DRAINING), need=NO, node={"annotations": {keys.NEED: need}})
    assert decision.reason.sentence == sentence

"""The phase Rebooting. The agent records on the Node that a reboot follows (the announcement), confirms its claim and
asks the host to reboot. The tests include every way in which the host may fail to reboot."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.actions import (
    AskReboot,
    ConfirmClaim,
    Notify,
    Occasion,
    PatchNode,
    PostEvent,
    SilenceAlerts,
    WriteLock,
)
from careen.core.decide import decide
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import Memory, RebootMemory, RebootOutcome, StrangerMemory
from careen.core.facts.observation import NOT_ASKED, Need, Taint, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import LatePolicy
from careen.core.facts.progress import Announcement, Progress, from_annotation, to_annotation
from careen.core.facts.reasons import Code
from careen.core.facts.windows import Window
from careen.core.lock import changes
from careen.core.lock.content import LockContent
from careen.core.steps.rebooting import stranger_patience_seconds
from tests.careen.core.builders import (
    BOOT,
    NO,
    UPTIME,
    YES,
    a_pod,
    a_policy,
    a_progress,
    ago,
    an_entry,
    an_observation,
    an_owner,
    decided,
    held,
    kinds,
    remembering,
    the_lock,
    the_patch,
    the_record,
)

RECORD = a_progress(Phase.REBOOTING)


def having(outcome: RebootOutcome, detail: str = "", announcement: int = 1) -> Memory:
    return remembering(reboot=RebootMemory(claim="c1", announcement=announcement, outcome=outcome, detail=detail))


def watching(seconds: float, by: str = "") -> Memory:
    """Return the memory of an agent process that saw the announcement of another process `seconds` ago."""
    return remembering(stranger=StrangerMemory(by=by, announcement=1, since=UPTIME - seconds))


def rebooting(outcome: RebootOutcome | None = None, announced_ago: float = 20, **changes: Any) -> Decision:
    """Return the decision of an agent process in the phase Rebooting. With `outcome`, this process made the
    announcement, and `outcome` is the result of its reboot request. Without `outcome`, another process made the
    announcement, and has been silent long enough to be treated as dead."""
    memory = having(outcome, "exit code 1") if outcome else watching(150)
    return decided(a_progress(Phase.REBOOTING, announced=ago(announced_ago)), **{"memory": memory, **changes})


def asks(decision: Decision) -> bool:
    return kinds(decision) == [PatchNode, ConfirmClaim, AskReboot]


def test_a_static_pod_whose_manifest_was_removed_during_the_drain_is_not_missed_after_the_boot() -> None:
    rows = tuple(an_owner(name, kind="StaticPod", ready=1) for name in ("etcd-n1", "proxy-n1"))
    left = a_pod("proxy-n1", namespace=rows[1].namespace, is_mirror=True)
    decision = decided(a_progress(Phase.DRAINING, owners=rows), pods=(left,))
    assert [row.name for row in the_record(decision).owners] == ["proxy-n1"]


def test_after_the_announcement_the_agent_remembers_that_it_has_not_asked_the_host() -> None:
    decision = decided(a_progress(Phase.DRAINING))
    assert decision.memory.reboot == RebootMemory(
        claim="c1", announcement=1, outcome=RebootOutcome.NOT_ASKED, by="fresh", at=UPTIME
    )


def test_alerts_are_silenced_before_the_reboot_is_recorded_on_the_node() -> None:
    decision = decided(a_progress(Phase.DRAINING), a_policy(silences_alerts=True))
    assert kinds(decision) == [SilenceAlerts, PatchNode, ConfirmClaim, AskReboot]
    assert kinds(decided(a_progress(Phase.DRAINING))) == [PatchNode, ConfirmClaim, AskReboot], (
        "by default careen silences no alert"
    )


def told(decision: Decision) -> list[tuple[Occasion, str]]:
    return [(action.occasion, action.claim) for action in decision.actions if isinstance(action, Notify)]


def test_a_restarted_agent_does_not_repeat_the_message_about_the_reboot() -> None:
    """A process sends the message when it announces the reboot, and again when it repeats its own announcement. A
    restarted agent does not send the message, because the earlier process has sent it."""
    assert told(decided(a_progress(Phase.DRAINING))) == [(Occasion.REBOOT, "c1")]
    assert told(rebooting(RebootOutcome.NOT_ASKED)) == [(Occasion.REBOOT, "c1")]
    assert asks(rebooting())
    assert told(rebooting()) == []


def test_the_host_is_asked_to_reboot_only_within_five_seconds_after_the_claim_is_confirmed() -> None:
    decision = decided(a_progress(Phase.DRAINING))
    assert [action.within_seconds for action in decision.actions if isinstance(action, AskReboot)] == [5.0]
    assert [(action.claim, action.node) for action in decision.actions if isinstance(action, ConfirmClaim)] == [
        ("c1", "n1")
    ]


@pytest.mark.parametrize("outcome", [RebootOutcome.ACCEPTED, RebootOutcome.UNCLEAR])
def test_a_host_is_not_asked_twice_to_reboot(outcome: RebootOutcome) -> None:
    decision = rebooting(outcome)
    words = {
        RebootOutcome.ACCEPTED: "the host was asked to reboot",
        RebootOutcome.UNCLEAR: "the host was asked to reboot: exit code 1",
    }
    assert decision.reason.sentence == words[outcome]
    assert (decision.phase, decision.reason.code) == (Phase.REBOOTING, Code.REBOOT_ASKED)
    assert not asks(decision)


@pytest.mark.parametrize(
    "changes",
    [{"need": NO}, {"node": {"annotations": {keys.HOLD: "people"}}}, {"lock": changes.pause(held(an_entry()), "", 1)}],
)
@pytest.mark.parametrize("outcome", [RebootOutcome.ACCEPTED, RebootOutcome.UNCLEAR, None])
def test_the_drain_is_not_undone_if_the_host_may_have_been_asked_to_reboot(
    outcome: RebootOutcome | None, changes: dict[str, Any]
) -> None:
    decision = rebooting(outcome, **changes)
    assert (decision.phase, decision.reason.code) == (Phase.REBOOTING, Code.REBOOT_ASKED)
    assert not asks(decision)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"need": NO}, Code.NEED_GONE),
        ({"node": {"annotations": {keys.HOLD: "people"}}}, Code.HELD),
        ({"lock": changes.pause(held(an_entry()), "", 1)}, Code.PAUSED),
        ({"policy": a_policy(window=Window(days=frozenset()))}, Code.LATE_REFUSAL),
    ],
)
def test_an_announced_reboot_can_be_cancelled_if_the_host_was_certainly_not_asked(
    changes: dict[str, Any], code: Code
) -> None:
    decision = rebooting(RebootOutcome.NOT_ASKED, **changes)
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, code)
    assert the_patch(decision).unschedulable is False
    assert the_record(decision).is_releasing


@pytest.mark.parametrize("pods", [(a_pod(),), Unknown("503")])
def test_a_drained_node_with_pods_again_undoes_the_drain_and_tries_again_after_a_back_off(pods: Any) -> None:
    decision = rebooting(RebootOutcome.NOT_ASKED, pods=pods)
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.LATE_REFUSAL)
    assert (the_record(decision).is_releasing, the_record(decision).failures) == (True, 1)


def test_a_manual_uncordon_before_the_host_is_asked_cancels_the_reboot() -> None:
    decision = rebooting(RebootOutcome.NOT_ASKED, node={"unschedulable": False})
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.UNCORDONED_BY_HAND)


def test_a_hold_annotation_set_before_the_host_is_asked_always_undoes_the_drain() -> None:
    decision = rebooting(
        RebootOutcome.NOT_ASKED,
        policy=a_policy(late_policy=LatePolicy.REBOOT),
        node={"annotations": {keys.HOLD: "people"}},
    )
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.HELD)


@pytest.mark.parametrize("changes", [{"need": NO}, {"node": {"annotations": {keys.HOLD: "people"}}}])
def test_a_cancelled_reboot_does_not_restore_a_missing_claim(changes: dict[str, Any]) -> None:
    """A person has removed the claim from the lock and forbidden the node's reboot. The agent therefore does not write
    the lock."""
    decision = rebooting(RebootOutcome.NOT_ASKED, lock=LockContent(), **changes)
    assert decision.phase is Phase.WAITING
    assert WriteLock not in kinds(decision)


def test_the_agent_announces_the_reboot_again_if_it_has_not_asked_the_host() -> None:
    """The agent then asks the host to reboot."""
    decision = rebooting(RebootOutcome.NOT_ASKED, announced_ago=0)
    assert asks(decision)
    assert the_record(decision).announcement == 2


def test_remaining_pods_do_not_delay_the_second_attempt_of_a_forced_reboot() -> None:
    decision = decided(
        a_progress(Phase.REBOOTING, is_forced=True), memory=having(RebootOutcome.NOT_ASKED), pods=(a_pod(),)
    )
    assert asks(decision)
    assert the_record(decision).is_forced


def test_the_result_of_a_reboot_request_for_another_announcement_is_ignored() -> None:
    assert decided(RECORD, memory=having(RebootOutcome.FAILED, announcement=9)).phase is Phase.REBOOTING


# Two processes on one node, or a process and its successor.


def record_by(by: str, *, is_asked: bool = False, announced_ago: float = 20, **changes: Any) -> Progress:
    announced = Announcement(boot=BOOT, uptime=UPTIME - announced_ago, by=by, is_asked=is_asked)
    return a_progress(Phase.REBOOTING, announced=announced, **changes)


def mine(outcome: RebootOutcome, by: str = "mine") -> Memory:
    return remembering(reboot=RebootMemory(claim="c1", announcement=1, outcome=outcome, by=by))


def test_the_announcement_names_the_agent_process_and_the_host_is_asked_within_30_seconds() -> None:
    decision = decided(a_progress(Phase.DRAINING))
    assert the_record(decision).announced == Announcement(boot=BOOT, uptime=UPTIME, by="fresh")
    assert [action.send_before for action in decision.actions if isinstance(action, AskReboot)] == [UPTIME + 30]


def test_the_announcement_contains_the_kernel_that_the_reboot_leaves() -> None:
    decision = decided(a_progress(Phase.DRAINING), node={"kernel": "6.1.0-28"})
    announced = the_record(decision).announced
    assert announced is not None
    assert announced.kernel == "6.1.0-28"
    assert from_annotation(to_annotation(Progress(announced=announced))) == Progress(announced=announced)


@pytest.mark.parametrize("outcome", [RebootOutcome.NOT_ASKED, RebootOutcome.FAILED])
@pytest.mark.parametrize("changes", [{}, {"need": NO}, {"pods": (a_pod(),)}, {"node": {"unschedulable": False}}])
def test_a_process_does_nothing_about_a_reboot_that_another_process_announced(
    outcome: RebootOutcome, changes: dict[str, Any]
) -> None:
    """Two processes of one node have each announced a reboot, and the announcement of the other process took effect.
    The other process may be about to reboot the host, so this process does nothing."""
    decision = decided(record_by("other"), memory=mine(outcome), **changes)
    assert (decision.phase, decision.reason.code, asks(decision)) == (Phase.REBOOTING, Code.REBOOT_ASKED, False)
    assert not [action for action in decision.actions if isinstance(action, WriteLock)]


@pytest.mark.parametrize("outcome", [RebootOutcome.ACCEPTED, RebootOutcome.UNCLEAR])
@pytest.mark.parametrize("by", ["mine", "other"])
def test_the_process_that_asked_the_host_to_reboot_records_the_request_on_the_node(
    outcome: RebootOutcome, by: str
) -> None:
    decision = decided(record_by(by), memory=mine(outcome))
    assert (decision.phase, decision.reason.code, kinds(decision)) == (Phase.REBOOTING, Code.REBOOT_ASKED, [PatchNode])
    assert the_record(decision).announced == Announcement(boot=BOOT, uptime=UPTIME - 20, by=by, is_asked=True)


@pytest.mark.parametrize(
    "memory", [watching(899, "other"), mine(RebootOutcome.NOT_ASKED, "other"), mine(RebootOutcome.FAILED, "other")]
)
@pytest.mark.parametrize("changes", [{}, {"need": NO}, {"pods": (a_pod(),)}])
def test_a_process_waits_for_the_reboot_that_another_process_requested(memory: Memory, changes: dict[str, Any]) -> None:
    decision = decided(record_by("other", is_asked=True, announced_ago=899), memory=memory, **changes)
    assert (decision.phase, decision.reason.code, asks(decision)) == (Phase.REBOOTING, Code.REBOOT_ASKED, False)


@pytest.mark.parametrize(("seconds", "expected"), [(0, False), (149.9, False), (150, True)])
def test_a_process_that_announced_a_reboot_and_stays_silent_is_treated_as_dead(seconds: float, expected: bool) -> None:
    assert asks(decided(record_by("other"), memory=watching(seconds, "other"))) is expected


def test_the_wait_for_another_process_depends_on_the_reboot_command_timeout() -> None:
    assert stranger_patience_seconds(a_policy(reboot_command_seconds=200)) == 290
    assert stranger_patience_seconds(a_policy(reboot_command_seconds=200, reboot_deadline_seconds=400)) == 200


def test_a_process_waits_another_150_seconds_if_the_announcement_changes_or_cannot_be_read() -> None:
    """A process waits until the announcement of another process has not changed for 150 seconds. The 150 seconds begin
    again if a third process announces the reboot, or if the Node cannot be read."""
    assert not asks(decided(record_by("third"), memory=watching(150, "other")))
    assert asks(decided(record_by("other"), memory=watching(150, "other")))
    blind = decide(an_observation(Unknown("503"), memory=watching(150, "other")), a_policy())
    assert not asks(decided(record_by("other"), memory=blind.memory))


def test_a_reboot_that_another_process_announced_fails_after_the_reboot_deadline() -> None:
    """The other process announced the reboot 901 seconds ago. The reboot deadline is 900 seconds, so the reboot has
    failed. A process waits up to 150 seconds for another process, and this process has waited for only 10 seconds. This
    wait does not delay the failure."""
    decision = decided(record_by("other", announced_ago=901), memory=watching(10, "other"))
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.REBOOT_NOT_HAPPENED)
    assert not the_record(decision).is_releasing


@pytest.mark.parametrize(
    "changes",
    [{"pods": (a_pod(),)}, {"node": {"unschedulable": False}}, {"policy": a_policy(window=Window(days=frozenset()))}],
)
def test_a_restarted_agent_does_not_request_the_reboot_again_if_a_gate_refuses(changes: dict[str, Any]) -> None:
    decision = rebooting(**changes)
    assert (decision.phase, asks(decision)) == (Phase.REBOOTING, False)


def test_a_restarted_agent_does_not_ask_for_a_reboot_if_an_autoscaler_removes_the_node() -> None:
    removed = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule")
    decision = decided(record_by("other"), memory=watching(1000, "other"), node={"taints": (removed,)})
    assert (decision.phase, asks(decision)) == (Phase.REBOOTING, False)
    assert asks(decided(record_by("other"), memory=watching(1000, "other")))


def test_the_agent_lists_the_pods_again_before_it_repeats_the_reboot_request() -> None:
    assert rebooting(pods=NOT_ASKED).wants == {Evidence.PODS}


def test_after_a_failed_reboot_command_the_drain_is_undone_and_the_node_fails() -> None:
    decision = rebooting(RebootOutcome.FAILED)
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.REBOOT_COMMAND_FAILED)
    assert decision.reason.sentence == "the host did not accept the reboot: exit code 1"
    record = the_record(decision)
    assert (record.tries, record.is_releasing, record.failed) == (1, True, "reboot-command-failed")
    assert the_patch(decision).unschedulable is False


@pytest.mark.parametrize("outcome", [RebootOutcome.ACCEPTED, RebootOutcome.UNCLEAR, None])
@pytest.mark.parametrize(("waited", "is_over"), [(899, False), (901, True)])
def test_an_unchanged_boot_id_after_the_deadline_halts_the_roll_out(
    outcome: RebootOutcome | None, waited: float, is_over: bool
) -> None:
    decision = rebooting(outcome, announced_ago=waited, foreign=("kured runs",))
    assert (decision.phase is Phase.FAILED) is is_over
    if is_over:
        assert decision.reason.code is Code.REBOOT_NOT_HAPPENED
        record = the_record(decision)
        assert (record.claim, record.is_releasing) == ("c1", False)
        assert kinds(decision) == [PatchNode, WriteLock]


@pytest.mark.parametrize(
    ("announced_ago", "need", "signs"),
    [
        (901, NO, "it no longer asks for a reboot"),
        (-1000, YES, "its uptime began again"),
        (-1, NO, "its uptime began again and it no longer asks for a reboot"),
    ],
)
def test_a_boot_id_that_stays_the_same_after_a_reboot_is_named_as_the_cause(
    announced_ago: float, need: Need, signs: str
) -> None:
    decision = rebooting(RebootOutcome.ACCEPTED, announced_ago=announced_ago, need=need)
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.SAME_BOOT_ID)
    assert f"the same boot id as before it was asked to reboot, although {signs}: a container such as LXC" in (
        decision.reason.sentence
    )
    assert the_record(decision).claim == "c1"


def test_within_the_deadline_a_need_that_is_gone_is_no_proof_of_a_boot() -> None:
    assert rebooting(RebootOutcome.ACCEPTED, announced_ago=899, need=NO).phase is Phase.REBOOTING


@pytest.mark.parametrize(("ready", "unschedulable"), [(True, False), (False, None)])
def test_only_a_ready_node_is_uncordoned_when_the_reboot_deadline_has_passed(
    ready: bool, unschedulable: bool | None
) -> None:
    decision = rebooting(RebootOutcome.ACCEPTED, announced_ago=901, node={"ready": ready})
    assert the_patch(decision).unschedulable is unschedulable
    assert the_record(decision).is_cordoned_by_us is not ready


@pytest.mark.parametrize("outcome", [RebootOutcome.ACCEPTED, RebootOutcome.NOT_ASKED, None])
def test_a_rebooting_node_restores_its_missing_claim(outcome: RebootOutcome | None) -> None:
    decision = rebooting(outcome, lock=LockContent())
    assert decision.reason.code is Code.ENTRY_PUT_BACK
    assert the_lock(decision).holders == ("n1",)


@pytest.mark.parametrize("announced", [None, Announcement(boot="boot-9", uptime=UPTIME - 20)])
@pytest.mark.parametrize("outcome", [None, RebootOutcome.ACCEPTED])
def test_a_missing_or_outdated_announcement_halts_the_roll_out(
    announced: Announcement | None, outcome: RebootOutcome | None
) -> None:
    """The Node's annotation contains no announcement for the host's present boot. The agent cannot compute the reboot
    deadline, so it stops the roll-out instead of waiting for ever."""
    memory = having(outcome) if outcome else watching(0)
    decision = decided(a_progress(Phase.REBOOTING, announced=announced), memory=memory)
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.REBOOT_NOT_HAPPENED)


def test_a_new_boot_clears_the_memory_of_the_reboot_request() -> None:
    decision = decided(RECORD, boot_id="boot-2", memory=having(RebootOutcome.ACCEPTED))
    assert (decision.phase, decision.memory.reboot) == (Phase.VERIFYING, None)


def test_an_unreadable_lock_does_not_cancel_the_reboot() -> None:
    decision = rebooting(lock=Unknown("503"))
    assert decision.reason.sentence == "the lock cannot be read: 503"
    assert codes_of(decision) == [Code.LOCK_UNKNOWN], "an unreadable lock must not be treated as paused"


def codes_of(decision: Decision) -> list[Code]:
    return [refusal.code for refusal in decision.refusals]


def test_an_unreadable_lock_prevents_a_second_reboot_request() -> None:
    assert not asks(rebooting(RebootOutcome.NOT_ASKED, lock=Unknown("503")))
    assert not asks(rebooting(lock=Unknown("503")))


# ---- the announcement is taken back ----


def test_an_announcement_that_another_client_removed_is_written_again_and_the_host_is_not_asked_again() -> None:
    asked = RebootMemory(claim="c1", announcement=2, outcome=RebootOutcome.ACCEPTED, by="x", at=UPTIME - 30)
    decision = decided(a_progress(Phase.DRAINING), memory=remembering(reboot=asked), pods=())
    assert (decision.phase, decision.reason.code) == (Phase.REBOOTING, Code.REBOOT_ASKED)
    assert AskReboot not in kinds(decision)
    written = the_record(decision)
    assert written.announcement == 2
    assert written.announced == Announcement(boot=BOOT, uptime=UPTIME - 30, by="x", is_asked=True)


def test_the_deadline_of_an_announcement_that_was_removed_counts_from_the_first_one() -> None:
    late = RebootMemory(claim="c1", announcement=1, outcome=RebootOutcome.ACCEPTED, by="x", at=UPTIME - 5000)
    decision = decided(a_progress(Phase.DRAINING), memory=remembering(reboot=late), pods=())
    again = decided(the_record(decision), memory=decision.memory)
    assert (again.phase, again.reason.code) == (Phase.FAILED, Code.REBOOT_NOT_HAPPENED)


def test_the_event_about_the_reboot_is_posted_before_the_host_is_asked() -> None:
    """Afterwards the host may go down at any moment."""
    actions = decided(a_progress(Phase.DRAINING)).actions
    (event,) = (each for each in actions if isinstance(each, PostEvent))
    assert event.code is Code.REBOOT_ANNOUNCED
    assert actions.index(event) < next(place for place, each in enumerate(actions) if isinstance(each, ConfirmClaim))


def test_a_pause_before_the_reboot_has_an_event() -> None:
    decision = decided(a_progress(Phase.DRAINING), a_policy(reboot_delay_seconds=60))
    assert [each.code for each in decision.actions if isinstance(each, PostEvent)] == [Code.DRAINED]

"""The phase Failed. If the agent has undone the drain, the node tries again after a back-off. If the failure stopped
the roll-out, the node keeps its claim until a person acts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from careen.core.actions import PatchNode, WriteLock
from careen.core.decision import Decision
from careen.core.drain import drain_memory
from careen.core.drain.drain_memory import DrainMemory
from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.lock.content import LockContent
from tests.careen.core.builders import (
    BOOT,
    NO,
    NOW,
    YES,
    a_policy,
    a_progress,
    a_reading,
    ago,
    an_entry,
    an_owner,
    decided,
    held,
    kinds,
    the_lock,
    the_patch,
    the_record,
)


def halted(code: Code, **changes: Any) -> Any:
    is_rebooted = code not in {Code.REBOOT_NOT_HAPPENED, Code.SAME_BOOT_ID}
    boots = {"boot_left": "boot-0", "verify_started": ago(100)} if is_rebooted else {"boot_left": BOOT}
    return a_progress(
        Phase.FAILED, failed=code.value, failed_at=ago(5), failures=1, reboots_for_need=2, **{**boots, **changes}
    )


def released(code: Code, **changes: Any) -> Any:
    return a_progress(
        Phase.FAILED,
        claim="",
        lock="",
        boot_left="",
        claimed=None,
        failed=code.value,
        **{"failed_at": ago(5), "failures": 1, **changes},
    )


RETRY = {"annotations": {keys.RETRY: "2026-03-04T12:00:00Z", keys.REASON: "old words"}}
HALTS = [Code.REBOOT_NOT_HAPPENED, Code.SAME_BOOT_ID, Code.NEVER_READY, Code.SETTLE_TIMEOUT, Code.REBOOT_LOOP]


@pytest.mark.parametrize("code", HALTS, ids=str)
@pytest.mark.parametrize("uptime_more", [0, 1_000_000])
def test_a_node_whose_failure_halts_the_roll_out_keeps_its_claim_without_a_time_limit(
    code: Code, uptime_more: float
) -> None:
    record = halted(code, owners=(an_owner(),))
    kept = held(an_entry(boot=record.boot_left, failed=code.value))
    decision = decided(record, uptime=10_000.0 + uptime_more, owners=(an_owner(ready=1),), lock=kept)
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, code)
    assert WriteLock not in kinds(decision)


@pytest.mark.parametrize("code", HALTS, ids=str)
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({}, id="the claim has no failure mark"),
        pytest.param({"failed": "other"}, id="the claim has the mark of an earlier failure"),
    ],
)
def test_a_failed_node_marks_its_claim_so_that_no_other_node_reboots(code: Code, entry: dict[str, Any]) -> None:
    record = halted(code, owners=(an_owner(),))
    others = an_entry("n2", "c2", limit=3)
    decision = decided(record, owners=(an_owner(ready=1),), lock=held(an_entry(boot=record.boot_left, **entry), others))
    assert {each.node: each.failed for each in the_lock(decision).entries} == {"n1": code.value, "n2": ""}


def test_a_failure_is_recorded_on_the_node_before_the_claim_is_marked_as_failed() -> None:
    record = a_progress(Phase.VERIFYING, verify_started=ago(1000))
    decision = decided(record, node={"ready": False})
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.NEVER_READY)
    assert kinds(decision) == [PatchNode, WriteLock]
    assert [(each.node, each.failed) for each in the_lock(decision).failed] == [("n1", "never-ready")]


@pytest.mark.parametrize("code", HALTS, ids=str)
def test_a_failed_node_restores_its_claim_with_the_failure_mark_in_a_new_lock(code: Code) -> None:
    record = halted(code, owners=(an_owner(),), lock="another DaemonSet")
    decision = decided(record, owners=(an_owner(ready=1),), lock=LockContent())
    assert [each.failed for each in the_lock(decision).entries] == [code.value]


@pytest.mark.parametrize(
    ("code", "phase"),
    [
        (Code.REBOOT_NOT_HAPPENED, Phase.WAITING),
        (Code.SAME_BOOT_ID, Phase.WAITING),
        (Code.NEVER_READY, Phase.VERIFYING),
        (Code.SETTLE_TIMEOUT, Phase.VERIFYING),
        (Code.REBOOT_LOOP, Phase.WAITING),
    ],
)
def test_the_retry_annotation_lets_a_failed_node_try_again(code: Code, phase: Phase) -> None:
    owners = (an_owner(),) if phase is Phase.VERIFYING else ()
    decision = decided(halted(code, owners=owners), node=RETRY, owners=(an_owner(ready=1),))
    assert (decision.phase, decision.reason.code) == (phase, Code.RETRY)
    assert the_patch(decision).annotations[keys.RETRY] is None
    record = the_record(decision)
    assert record.failed == ""
    if phase is Phase.WAITING:
        assert (record.is_releasing, record.reboots_for_need, record.tries) == (True, 0, 0)
        assert the_lock(decision).entries == ()


def test_after_a_manual_unlock_a_failed_node_still_records_the_cordon_and_the_labels_to_restore() -> None:
    record = halted(Code.NEVER_READY, is_cordoned_by_us=True, prior_labels={"pool": "web"})
    decision = decided(record, node={"ready": False}, lock=LockContent())
    assert (decision.phase, decision.reason.code, kinds(decision)) == (Phase.FAILED, Code.UNLOCKED_BY_HAND, [PatchNode])
    after = the_record(decision)
    assert (after.claim, after.is_cordoned_by_us, after.prior_labels, after.failed) == (
        "",
        True,
        {"pool": "web"},
        "never-ready",
    )


def test_a_claim_missing_from_a_recreated_lock_is_not_treated_as_a_manual_unlock() -> None:
    decision = decided(halted(Code.NEVER_READY), lock=replace(a_reading(LockContent()), daemonset_uid="recreated"))
    assert decision.reason.code is Code.ENTRY_PUT_BACK
    assert the_lock(decision).holders == ("n1",)


@pytest.mark.parametrize("make", [halted, released])
def test_a_failed_node_that_becomes_ready_returns_to_service(make: Any) -> None:
    record = make(Code.NEVER_READY, is_cordoned_by_us=True, prior_labels={"pool": None})
    waiting = decided(record, node={"ready": False}, policy=a_policy(pre_reboot_labels={"pool": "away"}))
    assert all(action.unschedulable is None for action in waiting.actions if isinstance(action, PatchNode))
    decision = decided(record, node={"labels": {"pool": "away"}}, policy=a_policy(pre_reboot_labels={"pool": "away"}))
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.NEVER_READY)
    assert (the_patch(decision).unschedulable, the_patch(decision).labels["pool"]) == (False, None)
    assert the_record(decision).claim == record.claim


def test_a_kubelet_that_reports_the_old_boot_does_not_prove_readiness() -> None:
    """The kubelet has not reported the new boot yet, so the Ready condition is from before the reboot."""
    decision = decided(halted(Code.NEVER_READY, is_cordoned_by_us=True), node={"boot_id": "boot-0"})
    assert all(action.unschedulable is None for action in decision.actions if isinstance(action, PatchNode))


def test_a_failed_node_returns_to_the_phase_settling_when_its_workloads_recover() -> None:
    record = halted(Code.SETTLE_TIMEOUT, owners=(an_owner(),))
    assert decided(record, owners=NOT_ASKED).wants == {Evidence.OWNERS}
    assert decided(record, owners=(an_owner(ready=1),)).phase is Phase.FAILED
    assert decided(record, owners=(an_owner(),)).phase is Phase.SETTLING


def test_a_node_recovers_from_a_failure_that_only_a_job_caused() -> None:
    job = an_owner("nightly", kind="Job", replicas=1, ready=1)
    record = halted(Code.SETTLE_TIMEOUT, owners=(job,))
    assert decided(record, owners=(an_owner("nightly", kind="Job", replicas=1, ready=0),)).phase is Phase.SETTLING


def test_a_node_in_a_reboot_loop_releases_its_claim_when_it_no_longer_needs_a_reboot() -> None:
    decision = decided(halted(Code.REBOOT_LOOP), need=NO)
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.NEED_GONE)
    assert the_record(decision).is_releasing
    assert decided(halted(Code.REBOOT_NOT_HAPPENED), need=NO).phase is Phase.FAILED


def test_a_failed_node_removes_its_claim_from_the_lock_and_then_from_the_node() -> None:
    record = a_progress(Phase.FAILED, is_releasing=True, failed="drain-timeout", failed_at=ago(5))
    first = decided(record, lock=held(an_entry()))
    assert kinds(first) == [WriteLock]
    second = decided(record, lock=LockContent())
    assert (second.phase, the_record(second).claim, the_record(second).failed) == (Phase.FAILED, "", "drain-timeout")


@pytest.mark.parametrize(
    ("failures", "waited", "expected"),
    [
        (1, 59, Phase.FAILED),
        (1, 60, Phase.WAITING),
        (2, 119, Phase.FAILED),
        (2, 120, Phase.WAITING),
        (20, 3599, Phase.FAILED),
        (20, 3600, Phase.WAITING),
    ],
)
@pytest.mark.parametrize("code", [Code.DRAIN_TIMEOUT, Code.UNCORDONED_BY_HAND], ids=str)
def test_a_failed_node_tries_again_after_a_back_off_that_doubles_with_each_failure(
    code: Code, failures: int, waited: float, expected: Phase
) -> None:
    decision = decided(released(code, failures=failures, failed_at=ago(waited)))
    assert decision.phase is expected
    if expected is Phase.WAITING:
        assert (the_record(decision).failed, the_record(decision).failures) == ("", failures)


@pytest.mark.parametrize(("failures", "pause"), [(1, 300), (2, 600), (9, 3600)])
def test_the_back_off_after_a_failed_reboot_command_is_five_times_the_usual_back_off(
    failures: int, pause: float
) -> None:
    """Each attempt drains the node, and the reboot may fail again. The agent therefore tries less often than after
    other failures."""

    def phase(waited: float) -> Phase:
        return decided(released(Code.REBOOT_COMMAND_FAILED, failures=failures, failed_at=ago(waited), tries=1)).phase

    assert [phase(pause - 1), phase(pause)] == [Phase.FAILED, Phase.WAITING]


def test_a_new_boot_ends_the_back_off_of_a_failed_node() -> None:
    assert decided(released(Code.DRAIN_TIMEOUT, failed_at=ago(1, boot="boot-0"))).phase is Phase.WAITING


@pytest.mark.parametrize(("tries", "phase"), [(2, Phase.WAITING), (3, Phase.FAILED)])
def test_after_three_failed_reboot_commands_the_node_waits_for_a_person(tries: int, phase: Phase) -> None:
    record = released(Code.REBOOT_COMMAND_FAILED, tries=tries, failed_at=ago(9999))
    assert decided(record).phase is phase
    retried = decided(record, node=RETRY)
    assert (retried.phase, the_record(retried).tries) == (Phase.WAITING, 0)


def test_a_node_that_never_became_ready_does_not_try_again_automatically() -> None:
    assert decided(released(Code.NEVER_READY, failed_at=ago(99_999))).phase is Phase.FAILED


def test_a_failed_node_with_careens_cordon_does_not_become_idle() -> None:
    assert decided(released(Code.DRAIN_TIMEOUT), need=NO).phase is Phase.IDLE
    kept: Decision = decided(released(Code.NEVER_READY, is_cordoned_by_us=True), need=NO, node={"ready": False})
    assert kept.phase is Phase.FAILED


def test_a_failed_node_keeps_the_message_of_its_failure() -> None:
    decision = decided(
        halted(Code.NEVER_READY),
        node={"annotations": {keys.REASON: "the node is not ready, 901 s after the agent saw the new boot"}},
        need=YES,
    )
    assert decision.reason.sentence == "the node is not ready, 901 s after the agent saw the new boot"
    assert kinds(decision) == []


@pytest.mark.parametrize(("hours", "phase"), [((23, 5, 2), Phase.FAILED), ((25, 5, 2), Phase.WAITING)])
def test_after_three_undone_drains_within_a_day_a_failed_node_waits_for_the_end_of_the_day(
    hours: tuple[int, ...], phase: Phase
) -> None:
    memory = DrainMemory(undone=tuple(NOW - timedelta(hours=each) for each in hours))
    node = {"annotations": {keys.DRAIN_MEMORY: drain_memory.to_annotation(memory)}}
    record = released(Code.DRAIN_TIMEOUT, failed_at=ago(7200))
    assert decided(record, need=YES, node=node, lock=LockContent()).phase is phase
    retried = {"annotations": {**node["annotations"], **RETRY["annotations"]}}
    again = decided(record, need=YES, node=retried, lock=LockContent())
    assert (again.phase, the_patch(again).annotations[keys.DRAIN_MEMORY]) == (Phase.WAITING, None)

"""The phase Maintenance. On a person's request, careen drains a node and keeps it out of service until the request
ends. Restarts, reboots and manual changes of the lock do not end the maintenance."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from careen.core.actions import AskReboot, PatchNode, WriteLock
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import PersonRequest, RequestKind, SelfTest, Taint, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import DrainPolicy, Policy
from careen.core.facts.reasons import Code
from careen.core.facts.windows import Window
from careen.core.lock.content import LockContent
from careen.core.people.requests import to_annotation
from tests.careen.core.builders import (
    BOOT,
    NO,
    NOW,
    UNKNOWN_NEED,
    UPTIME,
    YES,
    a_pod,
    a_policy,
    a_progress,
    ago,
    an_entry,
    decided,
    evicted,
    held,
    kinds,
    remembering,
    the_lock,
    the_patch,
    the_record,
)

KEEP = PersonRequest(kind=RequestKind.MAINTENANCE, reason="disk swap")
REBOOT = PersonRequest(kind=RequestKind.REBOOT, reason="new kernel", boot=BOOT)
OURS = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
NEW = "boot-2"
WAITS = a_progress(Phase.WAITING, taint_key=OURS.key)
DOWN = a_progress(Phase.MAINTENANCE, prior_labels={"pool": "web"}, taint_key=OURS.key)


def asking(request: PersonRequest | None, **node: Any) -> dict[str, Any]:
    annotations = {keys.REQUEST: to_annotation(request)} if request else {}
    return {"annotations": annotations, **node}


def down(request: PersonRequest | None, policy: Policy | None = None, node: Any = None, **changes: Any) -> Decision:
    """Return the decision of the agent of a node in maintenance."""
    there = {"labels": {"pool": "away"}, "taints": (OURS,), **asking(request), **(node or {})}
    given = {"need": NO, "pods": (), **changes}
    return decided(DOWN, policy or a_policy(pre_reboot_labels={"pool": "away"}), there, **given)


# ---- before the maintenance ----


@pytest.mark.parametrize(("kind", "word"), [(RequestKind.DRAIN, "drain"), (RequestKind.MAINTENANCE, "maintenance")])
def test_a_drained_node_is_kept_in_maintenance_without_a_reboot(kind: RequestKind, word: str) -> None:
    node = asking(PersonRequest(kind=kind, reason="disk swap"))
    decision = decided(a_progress(Phase.DRAINING), node=node, need=NO, pods=())
    assert (decision.phase, decision.reason.code) == (Phase.MAINTENANCE, Code.MAINTENANCE)
    assert kinds(decision) == [PatchNode]
    assert (the_patch(decision).unschedulable, the_record(decision).is_cordoned_by_us) == (None, True)
    assert decision.reason.sentence == f"the node is drained and stays down until `careen {word} n1 --end`: disk swap"


def test_a_host_that_needs_a_reboot_stays_in_maintenance_without_a_reboot() -> None:
    decision = decided(a_progress(Phase.DRAINING), node=asking(KEEP), need=YES, pods=())
    assert decision.phase is Phase.MAINTENANCE


def test_a_persons_reboot_request_drains_and_reboots_the_node() -> None:
    decision = decided(a_progress(Phase.DRAINING), node=asking(REBOOT), need=NO, pods=())
    assert (decision.phase, AskReboot in kinds(decision)) == (Phase.REBOOTING, True)


def test_an_idle_node_with_a_persons_request_enters_waiting_and_shows_the_request() -> None:
    decision = decided(node=asking(REBOOT), need=NO)
    assert (decision.phase, decision.reason.sentence) == (Phase.WAITING, "a person asked for a reboot: new kernel")


def test_remaining_pods_are_evicted_before_the_maintenance() -> None:
    decision = decided(a_progress(Phase.DRAINING), node=asking(KEEP), need=NO, pods=(a_pod("web"),))
    assert (decision.phase, evicted(decision)) == (Phase.DRAINING, ["web"])


def test_a_maintenance_begins_only_when_terminating_pods_are_gone() -> None:
    ending = a_pod("web", deletion_timestamp=NOW)
    decision = decided(a_progress(Phase.DRAINING), node=asking(KEEP), need=NO, pods=(ending,))
    assert (decision.phase, evicted(decision)) == (Phase.DRAINING, [])


def test_force_reboot_does_not_start_a_maintenance_on_an_undrained_node() -> None:
    policy = a_policy(drain=DrainPolicy(timeout_seconds=10, force_reboot=True, attempts_before_force=0))
    decision = decided(a_progress(Phase.DRAINING), policy, asking(KEEP), need=NO, pods=(a_pod("web"),))
    assert decision.phase in {Phase.FAILED, Phase.DRAINING}
    assert AskReboot not in kinds(decision)


def test_a_host_that_cannot_reboot_can_be_in_maintenance() -> None:
    broken = SelfTest(obstacle="no systemctl")
    kept, rebooted = (
        decided(WAITS, node=asking(each, taints=(OURS,)), need=NO, self_test=broken, lock=LockContent())
        for each in (KEEP, REBOOT)
    )
    assert "no systemctl" not in kept.reason.sentence
    assert "no systemctl" in rebooted.reason.sentence


@pytest.mark.parametrize(("is_now", "refused"), [(False, True), (True, False)])
def test_only_an_immediate_request_waives_the_maintenance_window(is_now: bool, refused: bool) -> None:
    """A person's request is immediate if its field `is_now` is true."""
    shut = a_policy(window=Window(days=frozenset()))
    request = PersonRequest(kind=RequestKind.REBOOT, boot=BOOT, is_now=is_now)
    decision = decided(WAITS, shut, asking(request, taints=(OURS,)), need=NO, lock=LockContent())
    assert (decision.reason.code is Code.REFUSED) is refused


@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.DRAINING])
def test_the_withdrawal_of_a_persons_request_ends_the_wait_or_the_drain(phase: Phase) -> None:
    decision = decided(a_progress(phase), node=asking(None), need=NO)
    assert decision.reason.code is Code.NEED_GONE


@pytest.mark.parametrize("phase", [Phase.CLAIMING, Phase.DRAINING])
def test_a_drain_for_a_maintenance_continues_after_an_unexpected_reboot(phase: Phase) -> None:
    decision = decided(a_progress(phase), node=asking(KEEP, boot_id=NEW), need=NO, boot_id=NEW)
    record = the_record(decision)
    assert (decision.phase, record.boot_left, record.claim) == (phase, NEW, "c1")
    assert record.verify_started is None
    assert the_patch(decision).unschedulable is None
    assert record.is_cordoned_by_us is (phase is Phase.DRAINING)


def test_after_an_unexpected_reboot_the_drain_waits_for_load_balancers_once_more() -> None:
    """The record measures in the uptime of the boot, so a record of the earlier boot would never end the wait."""
    policy = a_policy(balancer_settle_seconds=45)
    there: dict[str, Any] = {"need": NO, "boot_id": NEW, "pods": (a_pod("web"),)}
    node = asking(KEEP, boot_id=NEW)
    record = the_record(decided(a_progress(Phase.DRAINING, drain_started=ago(300)), policy, node, **there))
    for seconds, names in ((44, []), (45, ["web"])):
        assert evicted(decided(record, policy, node, **there, uptime=UPTIME + seconds)) == names


# ---- in maintenance ----


def test_a_node_in_maintenance_writes_its_message_only_once() -> None:
    first = down(KEEP)
    assert (first.phase, first.reason.code) == (Phase.MAINTENANCE, Code.MAINTENANCE)
    said = {"annotations": {**asking(KEEP)["annotations"], **the_patch(first).annotations}}
    said["annotations"][keys.PROGRESS] = asking(None)["annotations"].get(keys.PROGRESS) or _progress_text()
    again = down(KEEP, node=said, memory=remembering(reported__code=Code.MAINTENANCE.value))
    assert kinds(again) == []


def _progress_text() -> str:
    from careen.core.facts.progress import to_annotation as of_progress

    return of_progress(DOWN)


@pytest.mark.parametrize(
    "changes",
    [
        {"need": YES},
        {"need": UNKNOWN_NEED},
        {"pods": Unknown("timeout")},
        {"lock": Unknown("timeout")},
        {"lock": "what?"},
        {"lock": held(an_entry(), is_paused=True)},
        {"memory": Memory()},
        {"boot_id": NEW},
        {"boot_id": Unknown("no such file")},
        {"clock_skew_seconds": 900.0},
    ],
    ids=[
        "the host needs a reboot",
        "it is unknown whether the host needs a reboot",
        "the pods cannot be listed",
        "the lock cannot be read",
        "the lock contains unparsable text",
        "the lock is paused",
        "the agent has restarted",
        "the host has a new boot",
        "the boot id is unknown",
        "the clock is wrong",
    ],
)
def test_only_the_end_of_the_request_ends_a_maintenance(changes: dict[str, Any]) -> None:
    decision = down(KEEP, **changes)
    assert decision.phase is Phase.MAINTENANCE
    patches = [each for each in decision.actions if isinstance(each, PatchNode)]
    assert [each.unschedulable for each in patches if each.unschedulable is not None] == []
    assert AskReboot not in kinds(decision)
    assert [each for each in decision.actions if isinstance(each, WriteLock)] == []


def test_a_hold_annotation_does_not_end_a_maintenance() -> None:
    node = asking(KEEP)
    node["annotations"][keys.HOLD] = "hands off"
    assert down(KEEP, node=node).phase is Phase.MAINTENANCE


def test_a_node_in_maintenance_restores_a_claim_removed_from_the_lock() -> None:
    decision = down(KEEP, lock=held(an_entry("n2", "other")))
    assert decision.reason.code is Code.ENTRY_PUT_BACK
    assert set(the_lock(decision).holders) == {"n1", "n2"}


# ---- the end of the maintenance ----


def returns_to_service(decision: Decision) -> bool:
    patch, record = the_patch(decision), the_record(decision)
    assert decision.phase is Phase.SETTLING
    assert (patch.unschedulable, patch.taints, patch.labels["pool"]) == (False, (), "web")
    assert (record.claim, record.is_cordoned_by_us, record.prior_labels) == ("c1", False, {})
    assert record.settle_started == ago(0)
    return True


def test_a_withdrawn_maintenance_request_returns_the_node_to_service_in_one_patch() -> None:
    decision = down(None)
    assert returns_to_service(decision)
    assert decision.reason.code is Code.MAINTENANCE_ENDED


def test_an_expired_maintenance_request_is_removed_and_returns_the_node_to_service() -> None:
    decision = down(PersonRequest(kind=RequestKind.DRAIN, until=NOW - timedelta(seconds=1)))
    assert returns_to_service(decision)
    assert the_patch(decision).annotations[keys.REQUEST] is None


def test_a_manual_uncordon_ends_the_maintenance_and_the_request() -> None:
    decision = down(KEEP, node={"unschedulable": False})
    assert (decision.phase, decision.reason.code) == (Phase.SETTLING, Code.UNCORDONED_BY_HAND)
    assert the_patch(decision).annotations[keys.REQUEST] is None


def test_a_manual_uncordon_ends_a_maintenance_whose_progress_record_was_lost() -> None:
    """The annotation with the node's progress was lost, and the node has taken a new claim. careen had cordoned the
    node under its earlier claim."""
    node = asking(KEEP, unschedulable=True, cordoned_by=(keys.FIELD_MANAGER,))
    drained = decided(a_progress(Phase.CLAIMING), node=node, need=NO, lock=held(an_entry()), pods=())
    kept = decided(the_record(drained), node=node, need=NO, pods=())
    assert (drained.phase, kept.phase) == (Phase.DRAINING, Phase.MAINTENANCE)
    freed = decided(the_record(kept), node=asking(KEEP, unschedulable=False), need=NO, pods=())
    assert (freed.phase, freed.reason.code) == (Phase.SETTLING, Code.UNCORDONED_BY_HAND)


def test_a_node_cordoned_before_its_maintenance_stays_cordoned() -> None:
    before = a_progress(Phase.MAINTENANCE, is_cordoned_by_us=False, prior_unschedulable=True)
    decision = decided(before, node=asking(None), need=NO)
    assert (decision.phase, the_patch(decision).unschedulable) == (Phase.SETTLING, None)


def unready(request: PersonRequest | None, waited: float | None, **node: Any) -> Decision:
    """Return the decision for a node that is not ready and has this maintenance request. `waited` is the number of
    seconds since the agent saw the end of an earlier request, or None."""
    record = replace(DOWN, settle_started=None if waited is None else ago(waited))
    return decided(record, a_policy(verify_timeout_seconds=600), asking(request, ready=False, **node), need=NO, pods=())


def test_an_unready_node_stays_cordoned_after_its_maintenance() -> None:
    decision = unready(None, None)
    assert (decision.phase, decision.reason.code) == (Phase.MAINTENANCE, Code.MAINTENANCE_ENDED)
    assert the_record(decision).settle_started == ago(0)
    assert the_patch(decision).unschedulable is None


@pytest.mark.parametrize(("waited", "phase"), [(599, Phase.MAINTENANCE), (601, Phase.FAILED)])
def test_a_node_that_stays_unready_after_its_maintenance_fails_at_the_deadline(waited: float, phase: Phase) -> None:
    decision = unready(None, waited)
    assert decision.phase is phase
    if phase is Phase.FAILED:
        assert decision.reason.code is Code.NEVER_READY
        assert decision.reason.sentence == "the node is not ready, 10m1s after its maintenance ended"
        record = the_record(decision)
        assert (record.claim, record.is_cordoned_by_us, record.failed) == ("c1", True, "never-ready")
        (entry,) = the_lock(decision).entries
        assert entry.failed == "never-ready"


def test_a_new_maintenance_request_cancels_the_deadline_for_the_unready_node() -> None:
    decision = unready(KEEP, 601)
    assert decision.phase is Phase.MAINTENANCE
    assert the_record(decision).settle_started is None


def failed_after_maintenance(**node: Any) -> Decision:
    record = replace(
        DOWN, phase=Phase.FAILED.value, failed="never-ready", failed_at=ago(60), settle_started=ago(700), **node
    )
    return decided(record, node={"ready": True}, need=NO, lock=held(an_entry(failed="never-ready")))


def test_a_node_that_failed_after_its_maintenance_recovers_when_it_becomes_ready() -> None:
    decision = failed_after_maintenance()
    assert (decision.phase, the_patch(decision).unschedulable) == (Phase.FAILED, False)
    decision = failed_after_maintenance(is_cordoned_by_us=False)
    assert (decision.phase, decision.reason.sentence) == (Phase.SETTLING, "the node became ready after all")
    record = the_record(decision)
    assert (record.claim, record.failed, record.settle_started) == ("c1", "", ago(0))


def test_a_recovered_node_with_a_persons_cordon_gets_its_labels_back() -> None:
    decision = failed_after_maintenance(is_cordoned_by_us=False, prior_unschedulable=True)
    assert decision.phase is Phase.SETTLING
    assert (the_patch(decision).unschedulable, the_patch(decision).labels["pool"]) == (None, "web")
    assert the_record(decision).prior_labels == {}


def test_a_failed_node_with_a_new_boot_waits_for_a_person() -> None:
    record = a_progress(
        Phase.FAILED, failed="never-ready", failed_at=ago(60), is_cordoned_by_us=False, verify_started=ago(700)
    )
    node = {"ready": True, "boot_id": NEW}
    decision = decided(
        replace(record, verify_started=replace(ago(700), boot=NEW)),
        node=node,
        need=NO,
        boot_id=NEW,
        lock=held(an_entry(failed="never-ready")),
    )
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.NEVER_READY)


def test_a_new_boot_during_a_maintenance_is_verified_when_the_maintenance_ends() -> None:
    decision = down(None, boot_id=NEW)
    assert (decision.phase, decision.reason.code) == (Phase.VERIFYING, Code.REBOOTED)
    assert the_record(decision).is_cordoned_by_us


def test_after_a_maintenance_without_a_reboot_the_message_mentions_no_reboot() -> None:
    record = a_progress(Phase.SETTLING, boot_left=BOOT, verify_started=None)
    decision = decided(record, node=asking(None), need=NO)
    assert (decision.phase, decision.reason.sentence) == (
        Phase.IDLE,
        "the node is back in service after maintenance; the claim is released",
    )


def test_a_host_that_needs_a_reboot_keeps_its_taint_after_a_maintenance() -> None:
    decision = down(None, need=YES)
    assert (decision.phase, the_patch(decision).taints) == (Phase.SETTLING, None)
    assert the_record(decision).taint_key == OURS.key


# ---- remaining marks ----


@pytest.mark.parametrize(
    ("request_", "left"),
    [
        (PersonRequest(kind=RequestKind.REBOOT, boot="boot-0"), False),
        (PersonRequest(kind=RequestKind.MAINTENANCE, until=NOW), False),
        (None, False),
    ],
)
def test_an_idle_node_removes_a_persons_request_that_is_fulfilled_or_expired(
    request_: PersonRequest | None, left: bool
) -> None:
    decision = decided(node=asking(request_), need=NO)
    patches = [each for each in decision.actions if isinstance(each, PatchNode)]
    assert [each.annotations for each in patches] == ([{keys.REQUEST: None}] if request_ else [])


def test_an_idle_node_removes_an_invalid_request_of_a_person() -> None:
    decision = decided(node={"annotations": {keys.REQUEST: "soon"}}, need=NO)
    assert the_patch(decision).annotations == {keys.REQUEST: None}


def test_a_new_boot_removes_the_request_for_a_reboot() -> None:
    record = a_progress(Phase.REBOOTING)
    decision = decided(record, node=asking(PersonRequest(kind=RequestKind.REBOOT), boot_id=NEW), need=NO, boot_id=NEW)
    assert (decision.phase, the_patch(decision).annotations[keys.REQUEST]) == (Phase.VERIFYING, None)


def test_a_maintenance_request_stays_on_the_node_during_a_reboot() -> None:
    decision = decided(a_progress(Phase.REBOOTING), node=asking(KEEP, boot_id=NEW), need=NO, boot_id=NEW)
    assert keys.REQUEST not in the_patch(decision).annotations

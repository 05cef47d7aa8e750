"""The release of a claim after an undone drain (`careen.core.steps.shared.release`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.actions import WriteLock
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.lock.content import LockContent
from tests.careen.core.builders import (
    BOOT,
    LOCK_OBJECT,
    a_policy,
    a_progress,
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

UNDONE = "the drain did not finish within 10 min: web-1"
PHASES: dict[Phase, dict[str, Any]] = {
    Phase.WAITING: {"claim": "c1", "boot_left": BOOT, "lock": LOCK_OBJECT},
    Phase.FAILED: {"failed": "drain-timeout", "failed_at": ago(5)},
}


def undone(phase: Phase = Phase.FAILED, waited: float = 5.0, **changes: Any) -> Decision:
    record = a_progress(
        phase, is_releasing=True, owners=(an_owner(ready=3),), settle_started=ago(waited), **PHASES[phase]
    )
    usual = {
        "node": {"annotations": {keys.REASON: UNDONE}},
        "owners": (an_owner(ready=2),),
        "lock": held(an_entry()),
    }
    return decided(record, **{**usual, **changes})


def test_an_undone_drain_keeps_its_claim_and_what_it_displaced() -> None:
    record = a_progress(Phase.DRAINING, is_cordoned_by_us=True, owners=(an_owner(ready=3),), drain_started=ago(30))
    decision = decided(record, node={"unschedulable": True, "annotations": {keys.HOLD: "people"}})
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.HELD)
    assert the_patch(decision).unschedulable is False
    assert (the_record(decision).owners, WriteLock in kinds(decision)) == (record.owners, False)


@pytest.mark.parametrize(
    ("owners", "settle_timeout"), [((), 600.0), ((an_owner(ready=0),), 600.0), ((an_owner(ready=3),), 0.0)]
)
def test_an_undone_drain_that_need_not_wait_releases_its_claim_at_once(owners: Any, settle_timeout: float) -> None:
    record = a_progress(Phase.DRAINING, is_cordoned_by_us=True, owners=owners, drain_started=ago(30))
    decision = decided(
        record,
        a_policy(settle_timeout_seconds=settle_timeout),
        node={"unschedulable": True, "annotations": {keys.HOLD: "people"}},
    )
    assert (the_record(decision).owners, the_lock(decision).entries) == ((), ())


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("owners", [(an_owner(ready=2),), Unknown("503")])
def test_the_claim_is_kept_while_displaced_workloads_are_not_healthy(phase: Phase, owners: Any) -> None:
    decision = undone(phase, owners=owners)
    assert (decision.phase, decision.reason.code, WriteLock in kinds(decision)) == (phase, Code.SETTLING, False)
    assert decision.reason.sentence.startswith(f"{UNDONE}; the node keeps its claim for now: ")


def test_the_claim_is_released_when_the_displaced_workloads_are_healthy() -> None:
    content = the_lock(undone(owners=(an_owner(ready=3),)))
    assert (content.entries, content.unsettled) == ((), ())


def test_after_the_settle_timeout_the_claim_is_released_and_the_lock_keeps_what_has_not_recovered() -> None:
    content = the_lock(undone(waited=601))
    assert content.entries == ()
    assert [(row.uid, row.ready) for row in content.unsettled] == [(an_owner().uid, 3)]


def test_after_the_release_the_node_says_again_why_the_drain_was_undone() -> None:
    told = {"annotations": {keys.REASON: f"{UNDONE}; the node keeps its claim for now: web"}}
    decision = undone(lock=LockContent(), node=told)
    assert the_patch(decision).annotations[keys.REASON] == UNDONE
    assert (the_record(decision).claim, the_record(decision).owners) == ("", ())


def test_a_claim_that_a_person_released_costs_no_look_at_the_workloads() -> None:
    assert Evidence.OWNERS not in undone(lock=LockContent()).wants


def test_the_claim_is_kept_while_an_operator_still_moves_a_workload() -> None:
    before = an_owner(kind="Cluster", generation=0)
    record = a_progress(
        Phase.FAILED, is_releasing=True, owners=(before,), settle_started=ago(5), **PHASES[Phase.FAILED]
    )
    for alive, is_kept in ((4, True), (3, False)):
        decision = decided(record, owners=(replace(before, alive=alive),), lock=held(an_entry()))
        assert (WriteLock not in kinds(decision)) is is_kept, alive


def test_the_lock_does_not_keep_what_another_holder_answers_for() -> None:
    record = a_progress(
        Phase.FAILED,
        is_releasing=True,
        owners=(an_owner(ready=3, containers=1),),
        settle_started=ago(5),
        **PHASES[Phase.FAILED],
    )
    older = an_entry("n2", "c2", created="2026-03-04T10:00:00Z")
    content = the_lock(decided(record, owners=(an_owner(ready=2),), lock=held(an_entry(), older)))
    assert (content.entries, content.unsettled) == ((older,), ())
    alone = decided(record, owners=(an_owner(ready=2),), lock=held(an_entry()))
    assert alone.reason.code is Code.SETTLING

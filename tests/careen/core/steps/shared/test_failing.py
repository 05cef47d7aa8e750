"""What an agent does if a step of a reboot fails. There are two kinds of failures. After a failure of the first kind,
for example a drain timeout, the agent undoes the drain and releases the claim. After a failure of the second kind, for
example if the node does not become ready after its reboot, the agent keeps the claim and marks the claim as failed.
This mark stops the roll-out."""

from __future__ import annotations

from datetime import datetime, timedelta

from careen.core.actions import Notify, PatchNode, WriteLock
from careen.core.drain import drain_memory
from careen.core.drain.drain_memory import DrainMemory
from careen.core.facts import keys
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.steps.shared import failing
from tests.careen.core.builders import (
    NOW,
    a_marked_node,
    a_progress,
    a_reading,
    a_situation,
    an_entry,
    held,
    kinds,
    the_lock,
    the_patch,
    the_record,
)


def situation(*, failed: str = "", undone: tuple[datetime, ...] = ()):  # type: ignore[no-untyped-def]
    remembered = drain_memory.to_annotation(DrainMemory(undone=undone))
    annotations = {keys.DRAIN_MEMORY: remembered} if remembered else {}
    record = a_progress(Phase.DRAINING, is_cordoned_by_us=True)
    node = a_marked_node(record, unschedulable=True, annotations=annotations)
    return a_situation(node, lock=a_reading(held(an_entry(failed=failed))))


def test_a_failure_that_undoes_the_drain_restores_the_node_before_the_claim_is_released() -> None:
    decision = failing.undone(situation(), Code.DRAIN_TIMEOUT, "not drained")
    assert kinds(decision)[:2] == [PatchNode, WriteLock]
    assert the_patch(decision).unschedulable is False
    assert (the_record(decision).failed, the_record(decision).is_releasing) == (Code.DRAIN_TIMEOUT.value, True)
    assert the_lock(decision).entries == ()


def test_a_failure_that_halts_the_roll_out_keeps_the_claim_and_writes_the_failure_mark_a_single_time() -> None:
    code, progress = Code.NEVER_READY, situation().progress
    decision = failing.halted(situation(), code, "not ready", progress=progress)
    assert [entry.failed for entry in the_lock(decision).entries] == [code.value]
    assert the_patch(decision).unschedulable is None
    marked = failing.halted(situation(failed=code.value), code, "not ready", progress=progress)
    assert WriteLock not in kinds(marked)


def test_every_failure_reports_the_node_and_the_reason() -> None:
    for decision in (
        failing.undone(situation(), Code.DRAIN_TIMEOUT, "not drained"),
        failing.halted(situation(), Code.NEVER_READY, "not drained", progress=situation().progress),
    ):
        (told,) = [action for action in decision.actions if isinstance(action, Notify)]
        assert told.sentence == "Node n1: not drained"


HOURS_AGO = (NOW - timedelta(hours=5), NOW - timedelta(hours=1))


def test_the_third_undone_drain_of_a_day_names_the_instant_of_the_next_try() -> None:
    second = failing.undone(situation(undone=HOURS_AGO[:1]), Code.DRAIN_TIMEOUT, "not drained")
    assert second.reason.sentence == "not drained"
    third = failing.undone(situation(undone=HOURS_AGO), Code.DRAIN_TIMEOUT, "not drained")
    assert "the next try is at 2026-03-05T07:00:00Z, or after `careen retry n1`" in third.reason.sentence
    stored = drain_memory.of(a_marked_node(a_progress(Phase.FAILED), annotations=dict(the_patch(third).annotations)))
    assert stored.undone == (*HOURS_AGO, NOW)


def test_a_drain_that_another_client_ended_with_an_uncordon_counts_towards_the_days_undone_drains() -> None:
    decision = failing.undone(situation(undone=HOURS_AGO), Code.UNCORDONED_BY_HAND, "uncordoned")
    assert "the next try is at 2026-03-05T07:00:00Z, or after `careen retry n1`" in decision.reason.sentence


def test_a_drain_that_evicted_nothing_does_not_count_towards_the_days_undone_drains() -> None:
    decision = failing.undone(situation(), Code.WRITE_NOT_KEPT, "not cordoned")
    assert keys.DRAIN_MEMORY not in the_patch(decision).annotations

"""Tests that the agent looks at everything again when a person asks for it."""

from __future__ import annotations

import pytest

from careen.core.actions import PatchNode, PostEvent
from careen.core.facts import keys
from careen.core.facts.memory import Costly, HolderCheck, Memory
from careen.core.facts.observation import NOT_ASKED
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.people.requests import asks_for_recheck
from tests.careen.core.builders import UPTIME, a_node, a_progress, decided, the_patch

ASKED = {"annotations": {keys.RECHECK: "2026-03-04T12:00:00Z"}}


@pytest.mark.parametrize("phase", [Phase.IDLE, Phase.WAITING, Phase.FAILED])
def test_the_agent_removes_the_request_alone_and_looks_again_at_once(phase: Phase) -> None:
    decision = decided(None if phase is Phase.IDLE else a_progress(phase), node=ASKED)
    assert (decision.phase, decision.reason.code, decision.look_again_seconds) == (phase, Code.RECHECK, 0.0)
    assert dict(the_patch(decision).annotations) == {keys.RECHECK: None}
    assert {type(action) for action in decision.actions} <= {PatchNode, PostEvent}


def test_the_agent_forgets_its_pauses_but_not_who_is_overdue() -> None:
    overdue = (("n9", "2026-03-04T11:00:00Z"),)
    memory = Memory(
        node_uid=a_node().uid,
        is_reconciled=True,
        lock_due=UPTIME + 900,
        costly=Costly(not_before=UPTIME + 60, refusals=3, gate="forecast"),
        holder_check=HolderCheck(at=UPTIME + 60, holders_not_before=UPTIME + 60, overdue=overdue),
    )
    after = decided(a_progress(Phase.WAITING), node=ASKED, memory=memory, lock=NOT_ASKED).memory
    assert (after.costly, after.lock_due, after.is_reconciled) == (Costly(), None, False)
    assert after.holder_check == HolderCheck(overdue=overdue)


def test_without_a_request_nothing_is_forgotten() -> None:
    assert asks_for_recheck(a_node(**ASKED))
    assert not asks_for_recheck(a_node())
    assert decided().reason.code is not Code.RECHECK

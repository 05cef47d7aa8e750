"""The phase table. From Idle, every phase can be reached, and from every phase, Idle can be reached. No step makes a
phase change that is not in the table."""

from __future__ import annotations

import pytest

from careen.core.decide import STEPS
from careen.core.facts.phases import MOVES, PHASES, ROW, Evidence, Phase, is_allowed


def reachable(start: Phase) -> set[Phase]:
    found, todo = {start}, [start]
    while todo:
        here = todo.pop()
        new = {after for before, after in MOVES if before is here} - found
        found |= new
        todo += new
    return found


@pytest.mark.parametrize("phase", list(Phase), ids=str)
def test_every_phase_is_reachable_and_leads_to_idle(phase: Phase) -> None:
    assert phase in reachable(Phase.IDLE)
    assert Phase.IDLE in reachable(phase)


def test_every_phase_has_a_row_in_the_phase_table_and_a_step() -> None:
    assert [row.phase for row in PHASES] == list(Phase)
    assert set(STEPS) == set(Phase)


@pytest.mark.parametrize("phase", list(Phase), ids=str)
def test_every_decision_reads_the_node_and_its_boot_id_and_its_reboot_need(phase: Phase) -> None:
    assert ROW[phase].evidence >= {Evidence.NODE, Evidence.BOOT_ID, Evidence.NEED}


def test_every_five_minutes_an_idle_agent_reads_its_own_node_and_nothing_else() -> None:
    assert ROW[Phase.IDLE].evidence == {Evidence.NODE, Evidence.BOOT_ID, Evidence.NEED}
    assert ROW[Phase.IDLE].node_max_age_seconds == 300


def test_a_phase_change_that_the_phase_table_lacks_is_not_allowed() -> None:
    assert not is_allowed(Phase.WAITING, Phase.DRAINING)
    assert not is_allowed(Phase.REBOOTING, Phase.IDLE)
    assert is_allowed(Phase.DRAINING, Phase.DRAINING)
    assert all(reason for reason in MOVES.values())

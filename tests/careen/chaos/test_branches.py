"""A branch is a simulated roll-out that a forked process continues with one fault. The tests show that a branch ends
like a roll-out that runs in one process and has the same fault."""

from __future__ import annotations

import re

import pytest

from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.fleet.branches import Branch, judged
from tests.careen.chaos.fleet.stories import STORIES, played
from tests.careen.chaos.fleet.world import World

STORY = STORIES["one after another"]
FAULTS = {20: [Fault.LOST_AFTER], 60: [Fault.LOST_AFTER, Fault.SLOW], 90: [Fault.LOST_AFTER]}


def trace(world: World) -> str:
    """Return the trace (the log of the simulation) without the ids of claims and processes, because these differ in
    each run."""
    return re.sub(r"\b[0-9a-f]{16}\b", "…", "\n".join(world.agents.trace))


def test_a_fault_has_the_same_effect_in_a_forked_branch_as_in_a_whole_roll_out() -> None:
    branches = judged(STORY, FAULTS, lambda world, _: trace(world))
    assert branches == {
        Branch(number, fault): trace(
            played(STORY, lambda at, _, __, number=number, fault=fault: fault if at == number else None)
        )
        for number, faults in FAULTS.items()
        for fault in faults
    }
    assert len(set(branches.values())) == 4, "no fault made a difference"


def test_a_branch_whose_process_fails_reports_the_exception() -> None:
    def judge(_world: World, branch: Branch) -> str:
        raise KeyError(branch.number)

    [text] = judged(STORY, {30: [Fault.SLOW]}, judge).values()
    assert "KeyError: 30" in text


def test_an_exception_in_the_parent_process_is_raised_instead_of_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "until_home", None)
    with pytest.raises(TypeError):
        judged(STORY, {30: [Fault.SLOW]}, lambda world, _: trace(world))

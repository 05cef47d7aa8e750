"""Tests a run of many storms (random faults and events in a simulated fleet): the run fails with a message if it could
not play all of them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import pytest

from tests.careen.chaos.storm.draw import story_of
from tests.careen.chaos.storm.play import Outcome, Tally
from tests.mutants.mutant import ROOT
from tests.patience import run

FATAL = 3


def calm(seed: int) -> Outcome:
    return Outcome(story_of(seed), [], Tally(storms=1))


def whose_process_is_killed(seed: int) -> Outcome:
    if seed == FATAL:
        os.kill(os.getpid(), signal.SIGKILL)
    return calm(seed)


def whose_run_is_stopped(seed: int) -> Outcome:
    if seed == FATAL:
        os.kill(os.getppid(), signal.SIGTERM)
    return calm(seed)


def played(storm: Callable[[int], Outcome], seeds: int) -> tuple[int, str]:
    program = (
        "import sys\nfrom tests.careen.chaos.storm import many\n"
        f"from tests.careen.chaos.test_many_storms import {storm.__name__} as storm\n"
        "many._play_seed = storm\nmany._STORMS_A_PROCESS = 4\nsys.exit(many.main())"
    )
    done = run([sys.executable, "-c", program, f"--seeds={seeds}", "--jobs=2"], cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def test_all_requested_storms_are_played_even_if_they_need_several_process_pools() -> None:
    code, said = played(calm, 20)
    assert code == 0, said
    assert "20 storms" in said


@pytest.mark.parametrize("storm", [whose_process_is_killed, whose_run_is_stopped])
def test_a_run_with_fewer_storms_than_requested_fails(storm: Callable[[int], Outcome]) -> None:
    code, said = played(storm, 400)
    assert code == 1, said
    assert "of 400 storms were played" in said
    assert ("a process died" in said) == (storm is whose_process_is_killed)

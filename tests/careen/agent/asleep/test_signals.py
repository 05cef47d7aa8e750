"""SIGTERM at any instant around an exec, in both directions: it is never lost, and never an error."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from tests.careen.agent.asleep.slept import Slept, serving
from tests.patience import wait_until

DRAWS = 120
AT_ONCE = 3  # processes that change their form at the same time


def test_sigterm_at_a_drawn_instant_of_endless_changes_ends_the_process(tmp_path: Path) -> None:
    """Each process sleeps and wakes about ten times a second."""
    chance = random.Random(31)
    with serving() as api:
        for draw in range(DRAWS // AT_ONCE):
            agents = []
            for each in range(AT_ONCE):
                (folder := tmp_path / f"{draw}-{each}").mkdir()
                agents.append(Slept(folder, api, again=True, wake_at=0.0).begin())
            try:
                wait_until(lambda agents=agents: all((agent.folder / "asleep").exists() for agent in agents))  # type: ignore[misc]
                for agent in agents:
                    time.sleep(0.12 * chance.random())
                    agent.process.send_signal(signal.SIGTERM)
                assert [(agent.ends(), agent.log.count("Traceback")) for agent in agents] == [(0, 0)] * AT_ONCE
            finally:
                for agent in agents:
                    agent.close()

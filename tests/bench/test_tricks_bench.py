"""The table of the memory that the agent's import tricks save."""

from __future__ import annotations

import re

import pytest

from bench.agent import tricks
from careen.cluster.wire.lean_imports import TRICKS


def test_the_table_names_exactly_the_memory_savings() -> None:
    assert re.findall(r"^\| `([^`]+)` \|", tricks.RESULTS.read_text(), re.MULTILINE) == list(TRICKS)


@pytest.mark.parametrize("trick", TRICKS)
def test_the_cost_of_the_agent_without_each_memory_saving_is_measured(trick: str) -> None:
    assert tricks.cost_without(trick, times=1).private_kib > 0

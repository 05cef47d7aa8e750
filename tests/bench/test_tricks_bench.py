"""Tests the table that shows how much memory the agent saves by each trick that avoids an import."""

from __future__ import annotations

import re

import pytest

from bench.agent import tricks
from careen.cluster.wire.lean_imports import TRICKS


def test_the_table_lists_exactly_the_import_tricks_of_the_bench() -> None:
    assert re.findall(r"^\| `([^`]+)` \|", tricks.RESULTS.read_text(), re.MULTILINE) == list(TRICKS)


@pytest.mark.parametrize("trick", TRICKS)
def test_the_bench_measures_the_agents_memory_with_one_import_trick_switched_off(trick: str) -> None:
    assert tricks.cost_without(trick, times=1).private_kib > 0

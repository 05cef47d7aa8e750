"""Tests `Usage`, the requests of the pods on each node."""

from __future__ import annotations

import random

import numpy as np
import pytest

from scheduler_core.snapshot.pods.usage import Usage

LINES = 6


@pytest.mark.parametrize("size", [0, 1, 2, 1300])
def test_usage_of_selected_rows_keeps_their_order(size: int) -> None:
    chance = random.Random(size)
    whole = np.arange(LINES * size, dtype=np.int64).reshape(LINES, size)
    usage = Usage(whole)
    for count in sorted({0, min(1, size), size // 7, size // 2, size}):
        some = chance.sample(range(size), count)
        for rows in (some, sorted(some), sorted(some, reverse=True)):
            chosen = np.array(rows, dtype=np.intp)
            assert np.array_equal(usage.of(chosen).sums, whole[:, rows])
            assert np.array_equal(usage.of(chosen).requested, whole[:-3, rows])

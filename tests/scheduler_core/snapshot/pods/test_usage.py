"""Tests the requests of the pods on each node (usage). A change does not affect earlier values, and gives each changed
row a new stamp, by which caches see that the row has changed."""

from __future__ import annotations

import random

import numpy as np
import pytest

from scheduler_core.snapshot.pods.usage import Usage, restamped

LINES = 6
SIZES = (0, 1, 2, 1300)


@pytest.mark.parametrize("size", SIZES)
def test_changes_of_usage_add_up_and_do_not_affect_earlier_values(size: int) -> None:
    chance = random.Random(size)
    whole = np.arange(LINES * size, dtype=np.int64).reshape(LINES, size)
    usage = Usage.of_sums(whole.copy())
    for _ in range(20 if size else 0):
        before, expected = usage, whole.copy()
        rows = [chance.randrange(size) for _ in range(chance.randrange(1, 5))]
        usage = before.plus((row, np.full(LINES, row + 1)) for row in rows)
        for row in rows:
            whole[:, row] += row + 1
        assert np.array_equal(usage.sums, whole)
        assert np.array_equal(before.sums, expected)
        assert restamped(before.stamps, usage.stamps).tolist() == sorted(set(rows))
    assert restamped(usage.stamps, usage.stamps).tolist() == []
    assert (len(usage), usage.pods.tolist()) == (size, whole[-1].tolist())


@pytest.mark.parametrize("size", SIZES)
def test_usage_of_selected_rows_keeps_their_order(size: int) -> None:
    chance = random.Random(size)
    whole = np.arange(LINES * size, dtype=np.int64).reshape(LINES, size)
    usage = Usage.of_sums(whole)
    for count in sorted({0, min(1, size), size // 7, size // 2, size}):
        some = chance.sample(range(size), count)
        for rows in (some, sorted(some), sorted(some, reverse=True)):
            chosen = np.array(rows, dtype=np.intp)
            assert np.array_equal(usage.of(chosen).sums, whole[:, rows])
            assert np.array_equal(usage.of(chosen).requested, whole[:-3, rows])


@pytest.mark.parametrize("size", [300, 5000, 20000])  # additions are kept apart for a while if there are many nodes
def test_the_usage_of_selected_nodes_is_right_after_every_change(size: int) -> None:
    chance = random.Random(size)
    usage, versions = Usage.of_sums(np.zeros((LINES, size), dtype=np.int64)), []
    for number in range(60):
        usage = usage.plus((chance.randrange(9), np.full(LINES, number)) for _ in range(2))
        versions.append(usage)
    for each in versions:
        rows = np.array(chance.sample(range(12), 8), dtype=np.intp)
        assert np.array_equal(each.of(rows).sums, each.sums[:, rows])


def test_the_rows_changed_since_an_earlier_version_are_the_rows_with_another_stamp() -> None:
    first = Usage.of_sums(np.zeros((LINES, 1300), dtype=np.int64))
    second = first.plus([(3, np.ones(LINES, dtype=np.int64))])
    third = second.plus([(1299, np.full(LINES, 2))])
    for old, changed, pods in (
        (first, [3, 1299], [1, 2]),
        (second, [1299], [2]),
        (second, [1299], [2]),
        (third, [], []),
    ):
        rows, part = third.since(old.stamps)
        assert (rows.tolist(), part.pods.tolist()) == (changed, pods)


def test_stamps_show_each_row_in_which_two_derived_values_differ() -> None:
    base = Usage.of_sums(np.zeros((LINES, 1300), dtype=np.int64))
    one, other = base.plus([(3, np.ones(LINES, dtype=np.int64))]), base.plus([(1299, np.ones(LINES, dtype=np.int64))])
    assert restamped(one.stamps, other.stamps).tolist() == [3, 1299]


@pytest.mark.parametrize("size", SIZES)
def test_usage_of_more_or_fewer_nodes_keeps_the_stamps_of_existing_nodes(size: int) -> None:
    usage = Usage.of_sums(np.zeros((LINES, 12), dtype=np.int64)).plus([(0, np.ones(LINES, dtype=np.int64))])
    other = usage.with_sums(np.zeros((LINES, size), dtype=np.int64))
    before, after = usage.stamps.tolist(), other.stamps.tolist()
    assert (len(other), after[:12]) == (size, before[:size])
    assert not set(after[12:]) & set(before)

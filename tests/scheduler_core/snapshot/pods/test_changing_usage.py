"""Tests `ChangingUsage`, the requests of the pods on each node. A change returns a new usage, and the earlier usage
stays the same. A caller can ask in which rows two usages may differ."""

from __future__ import annotations

import random

import numpy as np
import pytest

from scheduler_core.snapshot.pods.changing_usage import ChangingUsage

LINES = 6
SIZES = (0, 1, 2, 1300)


def nothing(size: int) -> ChangingUsage:
    return ChangingUsage.of_sums(np.zeros((LINES, size), dtype=np.int64))


def plus(usage: ChangingUsage, *rows: int) -> ChangingUsage:
    return usage.plus((row, np.ones(LINES, dtype=np.int64)) for row in rows)


def changed(one: ChangingUsage, other: ChangingUsage) -> list[int] | None:
    """Returns the rows in which the two usages may differ, or None if these rows are unknown. Checks that the result
    is the same if the two usages are exchanged."""
    found, reversed_found = one.changed_since(other.version), other.changed_since(one.version)
    assert (found is None) == (reversed_found is None)
    if found is None or reversed_found is None:
        return None
    assert found[0].tolist() == reversed_found[0].tolist()
    assert np.array_equal(found[1].sums, one.usage.sums[:, found[0]])
    return list(found[0].tolist())


@pytest.mark.parametrize("size", SIZES)
def test_changes_add_up_and_do_not_change_an_earlier_usage(size: int) -> None:
    chance = random.Random(size)
    whole = np.arange(LINES * size, dtype=np.int64).reshape(LINES, size)
    usage, versions = ChangingUsage.of_sums(whole.copy()), []
    for _ in range(40 if size else 0):
        rows = [chance.randrange(size) for _ in range(chance.randrange(1, 5))]
        versions.append((usage, whole.copy()))
        usage = usage.plus((row, np.full(LINES, row + 1)) for row in rows)
        for row in rows:
            whole[:, row] += row + 1
        assert np.array_equal(usage.usage.sums, whole)
        assert np.array_equal(versions[-1][0].usage.sums, versions[-1][1])
    for version, expected in versions:
        assert np.array_equal(version.usage.sums, expected)
    assert len(usage) == size


@pytest.mark.parametrize("seed", range(8))
def test_the_requests_are_right_if_random_changes_start_from_random_earlier_requests(seed: int) -> None:
    """Each change starts from one of the earlier usages, so the usages form a tree. Every usage must have the right
    sums. The result of `changed` for two usages must contain every row in which their sums differ."""
    chance, size = random.Random(seed), 9
    known = [(nothing(size), np.zeros((LINES, size), dtype=np.int64))]
    for number in range(200):
        usage, sums = chance.choice(known[-6:] if chance.random() < 0.7 else known)
        row = chance.randrange(size)
        after = sums.copy()
        after[:, row] += number
        known.append((usage.plus([(row, np.full(LINES, number))]), after))
    for one, sums in known:
        assert np.array_equal(one.usage.sums, sums)
        other, its = chance.choice(known)
        rows = changed(one, other)
        assert rows is None or {*np.flatnonzero((sums != its).any(axis=0)).tolist()} <= {*rows}


def test_the_rows_that_changed_between_two_versions_of_the_requests_are_listed() -> None:
    first = nothing(1300)
    second = plus(first, 3)
    third = plus(second, 1299, 5, 1299)
    assert changed(third, first) == [3, 5, 1299]
    assert changed(third, second) == [5, 1299]
    assert changed(third, third) == []


def test_two_usages_differ_in_the_rows_that_changed_since_their_common_ancestor() -> None:
    base = plus(nothing(1300), 7)
    one, other = plus(base, 3), plus(plus(base, 1299), 4)
    assert changed(one, other) == [3, 4, 1299]
    assert changed(plus(one, 8), plus(other, 9)) == [3, 4, 8, 9, 1299]


def test_the_changed_rows_are_unknown_if_the_log_no_longer_has_all_changes_between_two_versions() -> None:
    assert changed(nothing(4), nothing(4)) is None
    first = usage = plus(nothing(4), 0)
    for row in range(4):
        usage = plus(usage, row)
        assert changed(usage, first) == list(range(row + 1))
    for row in range(4):  # the log has as many changes as there are nodes: a new log begins
        usage = plus(usage, row)
    assert changed(plus(usage, 2), first) is None


def test_the_changed_rows_are_unknown_after_too_many_branches_of_the_log() -> None:
    """If a usage is changed for the second time, the second change begins a new log, which is a branch of the earlier
    log. After too many branches of branches, a new log no longer refers to the earlier log."""
    first = usage = plus(nothing(1300), 0)
    reached = []
    for row in range(1, 20):
        plus(usage, 1000)  # the next change branches off
        usage = plus(usage, row)
        reached.append(changed(usage, first) is not None)
    assert reached == sorted(reached, reverse=True)
    assert (reached[0], reached[-1]) == (True, False)


@pytest.mark.parametrize("size", [4, 11, 1300])
def test_the_changed_rows_are_known_even_if_the_number_of_nodes_changed(size: int) -> None:
    before = plus(nothing(12), 0, 1)
    other = before.resized(np.resize(before.usage.sums, (LINES, size)))
    assert (len(other), changed(other, before)) == (size, [])
    later = plus(before, 5)
    found = plus(other, *range(size)).changed_since(later.version)
    assert found is not None
    assert found[0].tolist() == list(range(size))
    assert before.usage.pods.tolist() == [1, 1] + [0] * 10


def test_a_cached_usage_version_does_not_keep_the_log_of_changes_in_memory() -> None:
    """A `UsageVersion` only names the requests of one `ChangingUsage`."""
    first = plus(nothing(4), 0)
    version, last = first.version, first
    for row in (0, 1, 2, 3, 0, 1):  # the log has as many changes as there are nodes: a new log begins
        last = plus(last, row)
    assert version.log() is not None
    del first
    assert version.log() is None
    assert last.changed_since(version) is None

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
def test_adding_requests_returns_a_new_object_and_does_not_change_earlier_objects(size: int) -> None:
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
def test_every_object_in_a_random_tree_of_changes_has_the_expected_requests(seed: int) -> None:
    """Each change starts from one of the earlier `ChangingUsage` objects, so the objects form a tree. Every object must
    have the sums that the test computes separately. `changed` compares two objects. Its result must be None or contain
    every row in which the sums of the two objects differ."""
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


def test_a_usage_reports_the_rows_that_changed_since_an_earlier_usage() -> None:
    first = nothing(1300)
    second = plus(first, 3)
    third = plus(second, 1299, 5, 1299)
    assert changed(third, first) == [3, 5, 1299]
    assert changed(third, second) == [5, 1299]
    assert changed(third, third) == []


def test_a_comparison_of_two_changed_copies_lists_the_changed_rows_of_both_copies() -> None:
    """Both copies were made from the object `base`. Row 7 was changed before the copies were made, so the comparison
    does not list row 7."""
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


def test_the_changed_rows_are_unknown_if_the_chain_of_logs_between_two_objects_is_too_long() -> None:
    """A log lists the changes that lead from one `ChangingUsage` to the next. If the same object is changed twice, the
    second change begins a new log, which refers to the earlier log. So the logs form a chain. If the chain has become
    too long, a new log does not refer to the earlier log, and the earlier changes cannot be found."""
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
    """A cache keeps a `UsageVersion` as a key that identifies the requests of one `ChangingUsage`. The key has only a
    weak reference to the log of changes. When no `ChangingUsage` needs the log any more, the log is freed, and
    `changed_since` returns None for the key."""
    first = plus(nothing(4), 0)
    version, last = first.version, first
    for row in (0, 1, 2, 3, 0, 1):  # the log has as many changes as there are nodes: a new log begins
        last = plus(last, row)
    assert version.log() is not None
    del first
    assert version.log() is None
    assert last.changed_since(version) is None

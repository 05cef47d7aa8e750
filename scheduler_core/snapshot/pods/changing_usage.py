"""The requests of the pods on all nodes of a snapshot, and the nodes whose requests differ from those of another
snapshot.

Snapshots that derive from one another share one array of sums, which belongs to the newest of them. A change writes
only the sums of the changed nodes, so its cost does not depend on the number of nodes. An older snapshot computes its
sums from this array and the log of the changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from typing import Final, Self
from weakref import ref

import numpy as np

from scheduler_core.snapshot.pods.usage import Ints, Rows, Usage
from scheduler_core.values import Value

_DEEPEST: Final = 8  # branches of branches; the search for changed rows visits each of them


class _Log:
    """A log of changes of the requests. Each change concerns one node: `rows` has the row of this node in the snapshot,
    and `amounts` has the amounts that were added to the sums of this node in `Usage.sums`.

    `before` is None if this log continues no other log. Otherwise `before` is a pair `(older, length)`: this log
    continues after the first `length` changes of the log `older`.
    """

    __slots__ = ("__weakref__", "amounts", "before", "depth", "rows")

    def __init__(self, before: tuple[_Log, int] | None = None) -> None:
        self.rows: list[int] = []
        self.amounts: list[Ints] = []
        self.before = before
        self.depth: int = 0 if before is None else before[0].depth + 1

    def branch(self, length: int, nodes: int) -> _Log:
        """Returns an empty log that continues after the first `length` changes of this log. If these changes are too
        many, the new log does not refer to them, so that their memory can be freed."""
        return _Log((self, length) if self.depth < _DEEPEST and length <= nodes else None)


class UsageVersion(Value):
    """A key for the resource requests of the pods in one `ChangingUsage`. A cache stores this key beside a result.
    Later the cache passes the key to `changed_since`, which returns the nodes whose requests have changed. The key
    keeps neither the requests nor the log of their changes in memory."""

    log: ref[_Log]
    length: int


class _Sums:
    """The resource requests of the pods on each node, added up. Several `ChangingUsage` objects with the same `_Log`
    share one `_Sums`. The array `values` has the form of `Usage.sums`. The first `length` changes of the log are
    already added to `values`."""

    __slots__ = ("length", "values")

    def __init__(self, values: Ints, length: int) -> None:
        self.values = values
        self.length = length

    def add(self, row: int, amounts: Ints) -> None:
        self.values[:, row] += amounts
        self.length += 1


class ChangingUsage:
    """The requests of the pods on each node, after the first `_length` changes of a log. The object never changes;
    `plus` returns another object."""

    __slots__ = ("__dict__", "_length", "_log", "_newest")

    def __init__(self, newest: _Sums, log: _Log, length: int) -> None:
        self._newest = newest
        self._log = log
        self._length = length

    @classmethod
    def of_sums(cls, sums: Ints) -> Self:
        """Returns the usage with these sums, which the caller must not change."""
        return cls(_Sums(sums, 0), _Log(), 0)

    @property
    def usage(self) -> Usage:
        """The requests as columns."""
        return Usage(self._newest.values) if self._is_newest else self._earlier

    @property
    def _is_newest(self) -> bool:
        return self._newest.length == self._length

    @cached_property
    def _earlier(self) -> Usage:
        sums, later = self._newest.values.copy(), slice(self._length, self._newest.length)
        for row, amounts in zip(self._log.rows[later], self._log.amounts[later], strict=True):
            sums[:, row] -= amounts
        return Usage(sums)

    def plus(self, more: Iterable[tuple[int, Ints]]) -> ChangingUsage:
        """Returns the usage after an addition. Each element of `more` is a pair: a node's row, and the amounts to add
        for this node, in the order in which `Usage.sums` lists them."""
        newest, log = self._newest, self._log
        if not (0 < self._length == len(log.rows) <= len(self)) or not self._is_newest:
            newest, log = _Sums(self.usage.sums.copy(), 0), log.branch(self._length, len(self))
        for row, amounts in more:
            log.rows.append(row)
            log.amounts.append(amounts)
            newest.add(row, amounts)
        return ChangingUsage(newest, log, newest.length)

    def resized(self, sums: Ints) -> ChangingUsage:
        """Returns the usage with these sums, for a different number of nodes. For the nodes that exist before and
        after, the sums must be the same."""
        return ChangingUsage(_Sums(sums.copy(), self._length), self._log, self._length)

    @property
    def version(self) -> UsageVersion:
        """A key that identifies the requests in this object. To find the nodes whose requests differ in another
        `ChangingUsage`, give the key to the method `changed_since` of that object."""
        return UsageVersion(ref(self._log), self._length)

    def changed_since(self, other: UsageVersion) -> tuple[Rows, Usage] | None:
        """Returns the rows of the nodes whose requests may differ from those of the version `other`, and the usage of
        only these nodes. None means that every row may differ, because the log no longer has all changes since then.

        Remembers the last result, because the filter and the scores of one pod ask for the same rows.
        """
        known: tuple[UsageVersion, tuple[Rows, Usage] | None] | None = self.__dict__.get("last_changed")
        if known is None or known[0] != other:
            rows = self._rows_changed_since(other)
            known = other, None if rows is None else (rows, self.usage.of(rows))
            self.__dict__["last_changed"] = known
        return known[1]

    def _rows_changed_since(self, other: UsageVersion) -> Rows | None:
        one, length = self._log, self._length
        its, its_length = other.log(), other.length
        if its is None:
            return None
        rows: list[int] = []
        while one is not its:
            if one.depth < its.depth:
                one, length, its, its_length = its, its_length, one, length
            rows += one.rows[:length]
            if one.before is None:
                return None
            one, length = one.before
        rows += one.rows[min(length, its_length) : max(length, its_length)]
        found = sorted(set(rows))
        return np.array(found[: bisect_left(found, len(self))], dtype=np.intp)  # without the rows of removed nodes

    def __len__(self) -> int:
        return int(self._newest.values.shape[1])

"""The requests of the pods on all nodes of a snapshot, and the nodes where those of another snapshot differ.

Snapshots that derive from one another share one array of sums, which belongs to the newest. A change writes only the
sums of the changed nodes, so it costs the same for any number of nodes. An older snapshot computes its sums from the
array and the log of changes.
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
    """Changes of the requests: each adds `amounts` to the sums (`Usage.sums`) of the node in its row.

    With `before` = (older, length), this log continues after the first `length` changes of `older`.
    """

    __slots__ = ("__weakref__", "amounts", "before", "depth", "rows")

    def __init__(self, before: tuple[_Log, int] | None = None) -> None:
        self.rows: list[int] = []
        self.amounts: list[Ints] = []
        self.before = before
        self.depth: int = 0 if before is None else before[0].depth + 1

    def branch(self, length: int, nodes: int) -> _Log:
        """An empty log that continues after the first `length` changes. If they are too many, it does not refer to
        them, so that their memory can be freed."""
        return _Log((self, length) if self.depth < _DEEPEST and length <= nodes else None)


class UsageVersion(Value):
    """A cache key for the requests in one `ChangingUsage`; `changed_since` says which nodes have changed since. It
    keeps neither the requests nor the log in memory."""

    log: ref[_Log]
    length: int


class _Sums:
    """The requests per node, added up. All `ChangingUsage` of one `_Log` share it, except after `resized`. `values` has
    the form of `Usage.sums` and includes the first `length` changes of the log."""

    __slots__ = ("length", "values")

    def __init__(self, values: Ints, length: int) -> None:
        self.values = values
        self.length = length

    def add(self, row: int, amounts: Ints) -> None:
        self.values[:, row] += amounts
        self.length += 1


class ChangingUsage:
    """The requests of the pods on each node after the first `_length` changes of a log. `plus` returns another
    object."""

    __slots__ = ("__dict__", "_length", "_log", "_newest")

    def __init__(self, newest: _Sums, log: _Log, length: int) -> None:
        self._newest = newest
        self._log = log
        self._length = length

    @classmethod
    def of_sums(cls, sums: Ints) -> Self:
        """The caller must not change `sums`."""
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
        """Each of `more` is a row and the amounts to add there, in the order of `Usage.sums`."""
        newest, log = self._newest, self._log
        if not (0 < self._length == len(log.rows) <= len(self)) or not self._is_newest:
            newest, log = _Sums(self.usage.sums.copy(), 0), log.branch(self._length, len(self))
        for row, amounts in more:
            log.rows.append(row)
            log.amounts.append(amounts)
            newest.add(row, amounts)
        return ChangingUsage(newest, log, newest.length)

    def resized(self, sums: Ints) -> ChangingUsage:
        """For another number of nodes. For nodes that exist before and after, the sums must be the same."""
        return ChangingUsage(_Sums(sums.copy(), self._length), self._log, self._length)

    @cached_property
    def version(self) -> UsageVersion:
        """The key for `changed_since` of another `ChangingUsage`."""
        return UsageVersion(ref(self._log), self._length)

    def changed_since(self, other: UsageVersion) -> tuple[Rows, Usage] | None:
        """The rows whose requests may differ from `other`, and the usage of only these. None: every row may differ,
        because the log no longer has all changes since then.

        Remembers the last result: the filter and the scores of one pod ask for the same rows.
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
        return self._existing([*rows, *one.rows[min(length, its_length) : max(length, its_length)]])

    def _existing(self, rows: list[int]) -> Rows:
        """Each once and in order, without the rows of removed nodes."""
        found = sorted(set(rows))
        if found and found[-1] >= len(self):
            del found[bisect_left(found, len(self)) :]
        return np.array(found, dtype=np.intp)

    def __len__(self) -> int:
        return int(self._newest.values.shape[1])

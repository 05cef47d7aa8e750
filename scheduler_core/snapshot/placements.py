"""Placed pods and the counts made over them, as a value: a table, the changes since, and remembered counts.

A count over pods (a *tally*) is made once from the table and from then on carried along with every change. Two placements derived from one
another share table, change list and remembered counts; none of them can be seen to change. Remembering is all that happens when a
placement is asked.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.affinity_groups import AffinityGroups
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.pod_classes import PodClasses
from scheduler_core.snapshot.pod_table import Change, PodTable

Value = TypeVar("Value")

# After so many changes a new table is cheaper than carrying the list on; the exact number hardly matters.
_CHANGES_PER_TABLE: Final = 512
# Remembered counts: a few tens of kilobytes each at 5,000 nodes.
_REMEMBERED: Final = 1024


class Tally(Protocol[Value]):
    """A count over the placed pods. Equal tallies are counted once, so a tally is a frozen value and can be hashed."""

    def count(self, columns: Columns, table: PodTable) -> Value:
        """The count over a whole table."""
        ...

    def after(self, value: Value, changes: Sequence[Change], columns: Columns, table: PodTable) -> Value:
        """The count after some changes more, as a new value; the old one is still in use elsewhere."""
        ...

    def __hash__(self) -> int: ...


class Placements:
    """The pods on the nodes of a snapshot."""

    __slots__ = ("_changes", "_length", "_memo", "_memo_of_table", "table")

    def __init__(self, table: PodTable, changes: list[Change], length: int, memo: dict[Hashable, tuple[int, Any]], memo_of_table: dict[Hashable, Any]) -> None:
        self.table = table
        self._changes = changes
        self._length = length
        self._memo = memo
        self._memo_of_table = memo_of_table

    @classmethod
    def of(cls, pods: Sequence[Pod], columns: Columns) -> Placements:
        """Pods that all stand on nodes of `columns`."""
        return cls(PodTable.of(pods, columns.row_of, PodClasses(), AffinityGroups()), [], 0, {}, {})

    def moved_to(self, columns: Columns) -> Placements:
        """The same pods over changed nodes of the same names, every count to be made anew."""
        table = self.table.with_changes(self.changes)
        return Placements.of(table.pods, columns)

    @property
    def changes(self) -> Sequence[Change]:
        """What happened since the table was made."""
        return self._changes[: self._length]

    def tally(self, tally: Tally[Value], columns: Columns) -> Value:
        """The count as it stands here. The value is shared: not to be written to."""
        position, value = self._memo.get(tally) or (0, None)
        if value is None:
            value = self._memo_of_table.get(tally)
            if value is None:
                value = tally.count(columns, self.table)
                _remember(self._memo_of_table, tally, value)
        if position < self._length:
            value = tally.after(value, self._changes[position : self._length], columns, self.table)
        if position < self._length or tally not in self._memo:
            _remember(self._memo, tally, (self._length, value))
        result: Value = value
        return result

    def _with(self, change: Change, columns: Columns) -> Placements:
        if self._length >= _CHANGES_PER_TABLE:
            return self._settled(columns)._with(change, columns)
        changes = self._changes if len(self._changes) == self._length else self._changes[: self._length]
        changes.append(change)
        return Placements(self.table, changes, self._length + 1, dict(self._memo), self._memo_of_table)

    def _settled(self, columns: Columns) -> Placements:
        """The same placements on a table of their own, remembered counts brought along."""
        table = self.table.with_changes(self.changes)
        tallies: list[Any] = list(self._memo)
        values: dict[Hashable, Any] = {tally: self.tally(tally, columns) for tally in tallies}
        return Placements(table, [], 0, {}, values)

    def with_pod(self, pod: Pod, row: int, columns: Columns) -> Placements:
        return self._with(Change(1, row, pod, self.table.kinds.number_of(pod), self.table.affinities.number_of(pod.spec)), columns)

    def without_pod(self, pod: Pod, row: int, columns: Columns) -> Placements:
        return self._with(Change(-1, row, pod, self.table.kinds.number_of(pod), self.table.affinities.number_of(pod.spec)), columns)

    def find(self, key: str) -> Pod | None:
        """The placed pod with this key."""
        for change in reversed(self.changes):
            if change.pod.key == key:
                return change.pod if change.sign > 0 else None
        index = self.table.index_of.get(key)
        return None if index is None else self.table.pods[index]

    def on_node(self, row: int) -> tuple[Pod, ...]:
        """The pods on one node: those of the table first, then in the order in which they came."""
        pods = self.table.on_node(row)
        for change in self.changes:
            if change.row == row:
                if change.sign > 0:
                    pods.append(change.pod)
                else:
                    pods = [pod for pod in pods if pod.key != change.pod.key]
        return tuple(pods)

    def all_pods(self) -> Sequence[Pod]:
        """Every placed pod, in no order that means anything."""
        return self.table.with_changes(self.changes).pods if self._length else self.table.pods

    def count_per_node(self, columns: Columns) -> np.ndarray[Any, np.dtype[np.int64]]:
        """How many pods each node has."""
        counts = np.bincount(self.table.rows, minlength=len(columns)).astype(np.int64)
        for change in self.changes:
            counts[change.row] += change.sign
        return counts


def _remember(memo: dict[Hashable, Any], key: Hashable, value: object) -> None:
    if key not in memo and len(memo) >= _REMEMBERED:
        del memo[next(iter(memo))]
    memo[key] = value

"""Placed pods and the counts made over them, as a value: a table, the changes since, and remembered counts.

A count over pods (a *tally*) is made once from the table and from then on carried along with every change. Two
placements derived from one another share table, log and remembered counts; none of them can be seen to change.
When two go on from the same place, the second parts with the log and takes a copy. Remembering is all that
happens when a placement is asked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.pods.affinity_groups import AffinityGroups
from scheduler_core.snapshot.pods.change_log import Change, ChangeLog, Changes
from scheduler_core.snapshot.pods.pod_classes import PodClasses
from scheduler_core.snapshot.pods.pod_table import PodTable

Value = TypeVar("Value")

# After so many changes, or one for so many pods of the table, a new table is cheaper than carrying the log on;
# the exact numbers hardly matter.
_CHANGES_PER_TABLE: Final = 2048
_PODS_PER_CHANGE: Final = 4
# Remembered counts: a few tens of kilobytes each at 5,000 nodes, a few for each application.
_REMEMBERED: Final = 8192


class Tally(Protocol[Value]):
    """A count over the placed pods. Equal tallies are counted once, so a tally is a frozen value and can be hashed."""

    def count(self, columns: Columns, table: PodTable) -> Value:
        """The count over a whole table."""
        ...

    def after(self, value: Value, changes: Changes, columns: Columns, table: PodTable) -> Value:
        """The count after some changes more, as a new value; the old one is still in use elsewhere."""
        ...

    def __hash__(self) -> int: ...


class Placements:
    """The pods on the nodes of a snapshot: a table, and how far in the log of changes since they stand."""

    __slots__ = ("_length", "_log", "_memo", "_memo_of_table", "table")

    def __init__(
        self,
        table: PodTable,
        log: ChangeLog,
        length: int,
        memo: dict[Hashable, list[Any]],  # how far in the log, and the count there
        memo_of_table: dict[Hashable, Any],
    ) -> None:
        self.table = table
        self._log = log
        self._length = length
        self._memo = memo
        self._memo_of_table = memo_of_table

    @classmethod
    def of(cls, pods: Sequence[Pod], columns: Columns) -> Placements:
        """Pods that all stand on nodes of `columns`."""
        return cls._on(PodTable.of(pods, columns.row_of, PodClasses(), AffinityGroups()), {})

    @classmethod
    def _on(cls, table: PodTable, memo_of_table: dict[Hashable, Any]) -> Placements:
        return cls(table, ChangeLog(), 0, {}, memo_of_table)

    def moved_to(self, columns: Columns) -> Placements:
        """The same pods over changed nodes of the same names, every count to be made anew."""
        table = self.table.with_changes(self.changes)
        return Placements.of(table.pods, columns)

    @property
    def changes(self) -> Changes:
        """What happened since the table was made."""
        return Changes(self._log, 0, self._length)

    def tally(self, tally: Tally[Value], columns: Columns) -> Value:
        """The count as it stands here. The value is shared: not to be written to."""
        known = self._memo.get(tally)
        if known is not None and known[0] > self._length:  # placements derived from this one have counted on
            self._part()
            known = None
        if known is None:
            value = self._memo_of_table.get(tally)
            if value is None:
                value = tally.count(columns, self.table)
                _remember(self._memo_of_table, tally, value)
            known = [0, value]
            _remember(self._memo, tally, known)
        if known[0] < self._length:
            changes = Changes(self._log, known[0], self._length)
            known[:] = self._length, tally.after(known[1], changes, columns, self.table)
        result: Value = known[1]
        return result

    def _part(self) -> None:
        """Leaves the log to those who went on with it, for a copy that ends here."""
        self._log = self._log.up_to(self._length)
        self._memo = {tally: [*known] for tally, known in self._memo.items() if known[0] <= self._length}

    def after(self, changes: Sequence[tuple[int, int, Pod]], columns: Columns) -> Placements:
        """The placements after pods came to (1) or left (-1) a row, in this order."""
        if self._length >= max(_CHANGES_PER_TABLE, len(self.table.pods) // _PODS_PER_CHANGE):
            return self._settled(columns).after(changes, columns)
        if len(self._log) > self._length:  # somebody else has gone on from here
            self._part()
        kinds, affinities = self.table.kinds, self.table.affinities
        for sign, row, pod in changes:
            self._log.append(Change(sign, row, pod, kinds.number_of(pod), affinities.number_of(pod.spec)))
        return Placements(self.table, self._log, len(self._log), self._memo, self._memo_of_table)

    def _settled(self, columns: Columns) -> Placements:
        """The same placements on a table of their own, remembered counts brought along."""
        table = self.table.with_changes(self.changes)
        tallies: list[Any] = list(self._memo)
        return Placements._on(table, {tally: self.tally(tally, columns) for tally in tallies})

    def find(self, key: str) -> Pod | None:
        """The placed pod with this key."""
        change = self._log.last_of_pod(key, self._length)
        if change is not None:
            return change.pod if change.sign > 0 else None
        index = self.table.index_of.get(key)
        return None if index is None else self.table.pods[index]

    def on_node(self, row: int) -> tuple[Pod, ...]:
        """The pods on one node: those of the table first, then in the order in which they came."""
        pods = {pod.key: pod for pod in self.table.on_node(row)}
        for change in self._log.of_row(row, self._length):
            pods.pop(change.pod.key, None)
            if change.sign > 0:
                pods[change.pod.key] = change.pod
        return tuple(pods.values())

    def state_of(self, row: int) -> object:
        """The same object only while the same pods stand on the node: compared by identity, and kept as long as
        it is compared with."""
        return self._log.last_of_row(row, self._length) or self.table

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

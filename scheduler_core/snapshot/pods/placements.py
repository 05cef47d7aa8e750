"""The pods on the nodes of a snapshot: a table of pods, the changes since it was made, and cached counts.

A count of pods (a *tally*) is made once from the table and then updated with every change. Reading a count changes only
the cache.

A derived `Placements` shares the table. The first one derived also shares the log and the cached counts: it adds its
changes at the end of the log, where the original never reads, and if a cached count already includes them, the original
makes its own. Every further one gets a new log and copies of the counts. So no object sees the later changes of
another.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeVar

from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.nodes.changing_nodes import ChangingNodes
from scheduler_core.snapshot.pods.affinity_groups import AffinityGroups
from scheduler_core.snapshot.pods.change_log import ChangeLog, Changes, PodChange, count_alike
from scheduler_core.snapshot.pods.pod_classes import PodClasses
from scheduler_core.snapshot.pods.pod_table import PodTable
from scheduler_core.snapshot.remembered import Remembered

Value = TypeVar("Value")

# A new table is made when the log has at least `_CHANGES_PER_TABLE` changes, and one for every `_PODS_PER_CHANGE` pods
# of the table. A longer log needs more memory and stops its reader for longer when it ends (the pause that
# `make bench-running` prints); a shorter one costs a pass over all pods more often.
_CHANGES_PER_TABLE: Final = 2048
_PODS_PER_CHANGE: Final = 16
# The most cached counts. An application needs a few; with 5,000 nodes, one takes a few tens of kilobytes.
_REMEMBERED: Final = 8192


class Tally(Protocol[Value]):
    """A kind of count of the placed pods, such as the requested resources on each node. Equal tallies share one
    cached count, so a tally is a frozen, hashable value.

    `reads_every_pod`: whether `count` does, instead of finding its pods by the table's indexes. Such a count outlives
    the table."""

    reads_every_pod: ClassVar[bool]

    def count(self, columns: Columns, table: PodTable) -> Value:
        """Counts the pods of the whole table."""
        ...

    def after(self, value: Value, changes: Changes, columns: Columns, table: PodTable) -> Value:
        """The count after further changes. Other `Placements` still use `value`, so it must stay as it is."""
        ...

    def basis(self, columns: Columns) -> Hashable:
        """Identifies the node properties that this tally reads, such as the labels. If it changes, the pods are
        counted again. For a mere change of the number of nodes it may stay the same, because `over` adapts the
        count."""
        ...

    def over(self, value: Value, rows: int) -> Value:
        """The count for `rows` nodes, after nodes without pods were added or removed. For example, an array with a
        number per node gets `rows` numbers."""
        ...

    def __hash__(self) -> int: ...


@dataclass(slots=True)
class _Counted:
    """A cached count. It includes the first `length` entries of the log; `rows` is the number of nodes. `identity`:
    that of the columns for which it was asked last."""

    length: int
    basis: Hashable
    rows: int
    value: Any
    identity: object = None

    def over(self, tally: Tally[Any], rows: int) -> None:
        if rows != self.rows:
            self.rows, self.value = rows, tally.over(self.value, rows)

    def copy(self) -> _Counted:
        return _Counted(self.length, self.basis, self.rows, self.value)


_Memo = dict[Tally[Any], _Counted]
_MADE_ONCE: Final = _Counted(0, object(), 0, None)


def _replaced(changes: Sequence[tuple[int, int, Pod]]) -> Pod | None:
    """The removed pod, if the changes only exchange it for one that counts alike. Most events of placed pods do."""
    if len(changes) != 2:
        return None
    (off, row, old), (on, place, new) = changes
    return old if (off, on) == (-1, 1) and row == place and count_alike(old, new) else None


class Placements:
    """The pods of a table, updated with the first `_length` changes of a log, whose later changes belong to other
    objects."""

    __slots__ = ("_is_lent", "_length", "_log", "_memo", "_memo_of_table", "_width", "table")

    def __init__(
        self,
        table: PodTable,
        log: ChangeLog,
        length: int,
        memo: _Memo,
        memo_of_table: _Memo,
        *,
        width: int,  # the number of rows in table and log, with removed rows
        is_lent: bool = False,
    ) -> None:
        self.table = table
        self._log = log
        self._length = length
        self._memo = memo
        self._memo_of_table = memo_of_table
        self._width = width
        self._is_lent = is_lent

    @classmethod
    def of(cls, pods: Sequence[Pod], columns: Columns) -> Placements:
        """All pods must be on nodes of `columns`."""
        return cls._on(PodTable.of(pods, columns.row_of, PodClasses(), AffinityGroups()), Remembered(_REMEMBERED))

    @classmethod
    def _on(cls, table: PodTable, memo_of_table: _Memo) -> Placements:
        return cls(table, ChangeLog(), 0, Remembered(_REMEMBERED), memo_of_table, width=table.node_count)

    def lent(self) -> Placements:
        """A copy that reads the same log. Only this object may add to it; what is derived from the copy gets a new
        log."""
        return Placements(
            self.table, self._log, self._length, self._memo, self._memo_of_table, width=self._width, is_lent=True
        )

    @property
    def changes(self) -> Changes:
        """The changes since the table was made."""
        return Changes(self._log, 0, self._length)

    def tally(self, tally: Tally[Value], columns: Columns) -> Value:
        """The count for the current pods. Callers share the value, so nothing may change it."""
        known = self._memo.get(tally)
        if known is not None and known.identity is columns.identity and self._width <= known.rows:
            length = known.length
            if length < self._length:  # as nearly always: only pods have changed
                changes = Changes(self._log, length, self._length)
                known.value = tally.after(known.value, changes, columns, self.table)
                known.length = self._length
            if length <= self._length:
                count: Value = known.value
                return count
        if known is not None and known.length > self._length:  # derived placements have updated the count
            self._part()
            known = None
        if known is None or known.basis != tally.basis(columns):
            known = self._memo[tally] = self._counted(tally, columns)
        if known.length < self._length:
            known.over(tally, max(self._width, known.rows))  # the log may contain removed rows
            changes = Changes(self._log, known.length, self._length)
            known.length, known.value = self._length, tally.after(known.value, changes, columns, self.table)
        known.over(tally, len(columns))
        known.identity = columns.identity
        result: Value = known.value
        return result

    def _counted(self, tally: Tally[Any], columns: Columns) -> _Counted:
        """Counts the pods of the table, without the changes since."""
        if self._width > len(columns):  # the table may contain removed rows
            self._settle(columns)
        basis, rows = tally.basis(columns), len(columns)
        known = self._memo_of_table.get(tally)
        if known is None or known.basis != basis:
            counted = _Counted(0, basis, rows, tally.count(columns, self.table))
            # Most counts are made once and then follow the log; what is asked for again is kept.
            self._memo_of_table[tally] = _MADE_ONCE if known is None else counted
            known = counted
        known.over(tally, rows)
        return known.copy()

    def _part(self) -> None:
        """Begins a new log, because other placements have added to the shared one."""
        self._log = self._log.up_to(self._length)
        memo: _Memo = Remembered(_REMEMBERED)
        memo.update({tally: known.copy() for tally, known in self._memo.items() if known.length <= self._length})
        self._memo = memo
        self._is_lent = False

    def after(self, changes: Sequence[tuple[int, int, Pod]], nodes: ChangingNodes) -> Placements:
        """Each change is (sign, row, pod): 1 for a pod added to the node of this row, -1 for a removed one."""
        if self._length >= max(_CHANGES_PER_TABLE, len(self.table.pods) // _PODS_PER_CHANGE):
            self._settle(nodes.columns)
        if self._is_lent or len(self._log) > self._length:  # another placement continues from here
            own = self.lent()
            own._part()
            return own._after(changes, len(nodes))
        return self._after(changes, len(nodes))

    def _after(self, changes: Sequence[tuple[int, int, Pod]], rows: int) -> Placements:
        kinds, affinities = self.table.kinds, self.table.affinities
        replaced = _replaced(changes)
        for sign, row, pod in changes if replaced is None else changes[1:]:
            self._log.append(PodChange(sign, row, pod, kinds.number_of(pod), affinities.number_of(pod.spec), replaced))
        width = max(self._width, rows)
        return Placements(self.table, self._log, len(self._log), self._memo, self._memo_of_table, width=width)

    def _settle(self, columns: Columns) -> None:
        """Makes a new table that includes all changes. Forgets the counts that find their pods by the table's indexes:
        thousands of them would have to include the changes here, all at once, and most are not asked for again soon."""
        followed = [
            tally
            for tally, known in self._memo.items()
            if tally.reads_every_pod and known.length <= self._length and known.basis == tally.basis(columns)
        ]
        counted: _Memo = Remembered(_REMEMBERED)
        for tally in followed:
            value = self.tally(tally, columns)
            counted[tally] = _Counted(0, self._memo[tally].basis, len(columns), value)
        self.table = self.table.with_changes(self.changes, len(columns))
        self._log, self._length = ChangeLog(), 0
        self._memo, self._memo_of_table = counted, Remembered(_REMEMBERED)
        self._is_lent, self._width = False, len(columns)

    def find(self, key: str) -> Pod | None:
        change = self._log.last_of_pod(key, self._length)
        if change is not None:
            return change.pod if change.sign > 0 else None
        index = self.table.index_of.get(key)
        return None if index is None else self.table.pods[index]

    def on_node(self, row: int) -> tuple[Pod, ...]:
        """Pods of the table first, then those added later, in the order of their addition."""
        pods = {pod.key: pod for pod in self.table.on_node(row)}
        for change in self._log.of_row(row, self._length):
            pods.pop(change.pod.key, None)
            if change.sign > 0:
                pods[change.pod.key] = change.pod
        return tuple(pods.values())

    def state_of(self, row: int) -> object:
        """An object that stays the same, by identity (`is`), as long as the node has the same pods."""
        return self._log.last_of_row(row, self._length) or self.table

    def all_pods(self) -> Sequence[Pod]:
        """In no particular order."""
        return self.table.pods_after(self.changes) if self._length else self.table.pods

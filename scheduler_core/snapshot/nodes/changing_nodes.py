"""The nodes of a snapshot: the columns of an earlier snapshot and a list of later changes.

So a change costs the same for any number of nodes. When the columns are read again, all changes are written into new
ones at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from scheduler_core.model.node import Node
from scheduler_core.snapshot.columns import Columns, TreeChange
from scheduler_core.snapshot.nodes.node_tree import NodeTree, zone_key

# Each change copies the earlier changes, so after this many changes new columns are cheaper.
_MOST_CHANGES: Final = 64


class ChangingNodes:
    """The nodes of one snapshot. A change returns another object; `columns` is computed on first access."""

    __slots__ = ("_base", "_length", "_of_tree", "_row_of", "_rows")

    def __init__(
        self,
        base: Columns,
        length: int,
        rows: Mapping[int, Node],
        row_of: Mapping[str, int | None],
        of_tree: tuple[TreeChange, ...],
    ) -> None:
        self._base = base
        self._length = length
        self._rows = rows
        self._row_of = row_of
        self._of_tree = of_tree

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> ChangingNodes:
        """A node's position in `nodes` becomes its row."""
        return cls._unchanged(Columns(tuple(nodes)))

    @classmethod
    def _unchanged(cls, columns: Columns) -> ChangingNodes:
        return cls(columns, len(columns), {}, {}, ())

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, row: int) -> Node:
        node = self._rows.get(row)
        return self._base.nodes[row] if node is None else node

    def row_of(self, name: str) -> int | None:
        return self._row_of[name] if name in self._row_of else self._base.row_of.get(name)

    @property
    def columns(self) -> Columns:
        if self._rows or self._row_of or self._of_tree:
            self._base = self._base.patched(self._length, self._rows, self._row_of, self._of_tree)
            self._rows, self._row_of, self._of_tree = {}, {}, ()
        return self._base

    def with_replaced(self, rows: Mapping[int, Node]) -> ChangingNodes:
        """`rows` maps the row of each replaced node to the new node, which has the same name."""
        moved = {row: (self[row], node) for row, node in rows.items() if zone_key(self[row]) != zone_key(node)}
        of_tree = (partial(NodeTree.with_replaced, changes=moved),) if moved else ()
        return self._changed(self._length, rows, {}, of_tree)

    def with_added(self, nodes: Sequence[Node]) -> ChangingNodes:
        """Adds nodes at the end. None may have the name of a node of the list."""
        rows = dict(enumerate(nodes, self._length))
        row_of = {node.name: row for row, node in rows.items()}
        of_tree = (partial(NodeTree.with_added, nodes=tuple(nodes)),)  # a copy: it is read later
        return self._changed(self._length + len(nodes), rows, row_of, of_tree)

    def without(self, row: int) -> ChangingNodes:
        """The last node gets the row of the removed one. All other rows, and the scheduler's order, stay the same."""
        gone, last = self[row], self[self._length - 1]
        row_of = {last.name: row, gone.name: None}
        of_tree = (partial(NodeTree.without, row=row, node=gone),)
        return self._changed(self._length - 1, {row: last}, row_of, of_tree)

    def _changed(
        self,
        length: int,
        rows: Mapping[int, Node],
        row_of: Mapping[str, int | None],
        of_tree: tuple[TreeChange, ...],
    ) -> ChangingNodes:
        if max(len(self._rows), len(self._row_of), len(self._of_tree)) > _MOST_CHANGES:
            return self._unchanged(self.columns)._changed(length, rows, row_of, of_tree)
        together = {**self._rows, **rows}
        for left in range(length, self._length):
            together.pop(left, None)
        return ChangingNodes(self._base, length, together, {**self._row_of, **row_of}, (*self._of_tree, *of_tree))

"""Some nodes of a snapshot, in a given order: the input of pre_filter, of pre_score, and of plugins that handle all
nodes in one call.

A sequence that builds each NodeInfo on access. Plugins that handle all nodes at once use `rows` and the snapshot's
columns instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.requests import CURRENT_RULES, RequestRules
from scheduler_core.snapshot.node_info import NodeInfo

if TYPE_CHECKING:
    from scheduler_core.snapshot.snapshot import Snapshot

Rows = NDArray[np.intp]
Element = TypeVar("Element", bound=np.generic)


class NodeList(Sequence[NodeInfo]):
    """Nodes of one snapshot. `rows` are their positions there; `is_all`: all nodes, in the snapshot's order.
    `columns` has all nodes of the snapshot."""

    __slots__ = ("columns", "is_all", "rows", "rules", "snapshot")

    def __init__(self, snapshot: Snapshot, rows: Rows | None = None, rules: RequestRules = CURRENT_RULES) -> None:
        self.snapshot = snapshot
        self.columns = snapshot.columns
        self.rules = rules
        self.is_all = rows is None
        self.rows: Rows = self.columns.all_rows if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> NodeList: ...
    def __getitem__(self, index: int | slice) -> NodeInfo | NodeList:
        if isinstance(index, slice):
            return NodeList(self.snapshot, self.rows[index], self.rules)
        return self.snapshot.node_info(int(self.rows[index]), self.rules)

    def take(self, column: NDArray[Element]) -> NDArray[Element]:
        """The elements of `column` for these nodes; `column` itself if the list has all. The nodes are along the
        last axis."""
        return column if self.is_all else column.take(self.rows, axis=-1)

    @property
    def names(self) -> list[str]:
        names = self.columns.names
        return list(names) if self.is_all else [names[row] for row in self.rows]

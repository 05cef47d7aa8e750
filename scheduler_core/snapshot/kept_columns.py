"""Columns that are worked out once, and later only for the rows that have changed since.

Each row of a snapshot has a stamp. Whoever changes the node in a row, or its pods, gives the row a stamp that no
other snapshot has, so equal stamps stand for the same node with the same pods, in whatever order snapshots were
derived from one another. What depends on one row alone is therefore known wherever the stamps are the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Stamps = NDArray[np.int64]
Rows = NDArray[np.intp]
Column = NDArray[Any]

# In smaller clusters numpy's price of a call hides what it does, and keeping costs as much as it saves.
FEWEST_ROWS: Final = 500

_MOST_BYTES: Final = 32 * 2**20
_LEAST_COLUMNS: Final = 64
_BYTES_OF_A_ROW: Final = 16  # a number and its stamp

_new_stamps = count(1)


def first_stamps(rows: int) -> Stamps:
    """Stamps of a snapshot that was derived from no other."""
    return np.zeros(rows, dtype=np.int64)


def stamped(stamps: Stamps, rows: Iterable[int]) -> Stamps:
    """The stamps after a change of these rows."""
    changed, stamp = stamps.copy(), next(_new_stamps)
    for row in rows:
        changed[row] = stamp
    return changed


class KeptColumns:
    """The columns of one snapshot and of all derived from it; those that were not asked for longest are forgotten."""

    __slots__ = ("_columns", "_most")

    def __init__(self, rows: int) -> None:
        self._columns: dict[Hashable, tuple[Stamps, Column]] = {}
        self._most = max(_LEAST_COLUMNS, _MOST_BYTES // (_BYTES_OF_A_ROW * max(1, rows)))

    def column(self, key: Hashable, stamps: Stamps, work_out: Callable[[Rows | None], Column]) -> Column:
        """The column of that key as it stands at these stamps. `work_out` gives it for some rows, None for all; in
        a row it may depend on the key, the node and its pods alone. The column is shared: not to be written to."""
        known = self._columns.pop(key, None)
        if known is None:
            column = work_out(None)
            if len(self._columns) >= self._most:
                del self._columns[next(iter(self._columns))]
        else:
            column = _caught_up(known, stamps, work_out)
        self._columns[key] = (stamps, column)
        return column

    def __len__(self) -> int:
        return len(self._columns)


def _caught_up(known: tuple[Stamps, Column], stamps: Stamps, work_out: Callable[[Rows | None], Column]) -> Column:
    then, column = known
    if then is stamps:
        return column
    changed = (then != stamps).nonzero()[0]
    if not len(changed):
        return column
    column = column.copy()
    column[changed] = work_out(changed)
    return column

"""The requests of the pods on each node, in columns that share most of their memory with earlier versions.

The columns are cut into blocks of rows. A change copies only the blocks that it touches, and a move of a pod touches
one or two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

_ROWS: Final = 512  # of a block
# Each stamp is used once, for one or several rows of one count.
_STAMPS: Final = count(1)


class Usage:
    """The requests on each node. `requested` has a row per resource; the non-zero sums are for scores only. All are
    rows of `sums`. If two objects have the same stamp for a node, the pods of that node request the same in both.
    Arrays are shared and must not be written to."""

    def __init__(self, blocks: Sequence[Ints], stamps: Sequence[Ints]) -> None:
        self._blocks = blocks
        self.stamps = stamps  # as the blocks are cut
        self._last_part: tuple[Rows, Usage] | None = None

    @classmethod
    def of_sums(cls, sums: Ints) -> Usage:
        """Returns these sums with new stamps."""
        return cls._cut(sums, np.full(sums.shape[1], next(_STAMPS), dtype=np.int64))

    @classmethod
    def _cut(cls, sums: Ints, stamps: Ints) -> Usage:
        cuts = range(0, max(1, sums.shape[1]), _ROWS)
        return cls([sums[:, cut : cut + _ROWS] for cut in cuts], [stamps[cut : cut + _ROWS] for cut in cuts])

    def with_sums(self, sums: Ints) -> Usage:
        """Returns an object with these sums. They differ from the current sums only in rows that were added or removed
        at the end."""
        stamps = np.full(sums.shape[1], next(_STAMPS), dtype=np.int64)
        known = np.concatenate(self.stamps)[: len(stamps)]
        stamps[: len(known)] = known
        return self._cut(sums, stamps)

    def plus(self, more: Iterable[tuple[int, Ints]]) -> Usage:
        """Returns an object in which these amounts are added to these rows."""
        blocks, stamps, stamp = list(self._blocks), list(self.stamps), next(_STAMPS)
        for row, line in more:
            number, place = divmod(row, _ROWS)
            if blocks[number] is self._blocks[number]:
                blocks[number], stamps[number] = blocks[number].copy(), stamps[number].copy()
            blocks[number][:, place] += line
            stamps[number][place] = stamp
        return Usage(blocks, stamps)

    def of(self, rows: Rows) -> Usage:
        """Returns an object with only these rows, in this order."""
        last = self._last_part
        if last is None or last[0] is not rows:  # a cycle asks for several columns of the same rows
            self._last_part = last = rows, Usage([self._columns(rows)], ())
        return last[1]

    def _columns(self, rows: Rows) -> Ints:
        if len(self._blocks) == 1 or 2 * len(rows) > len(self) or (np.diff(rows) < 0).any():
            return self.sums.take(rows, axis=1)
        ends = np.searchsorted(rows, np.arange(1, len(self._blocks) + 1) * _ROWS).tolist()
        parts = [
            block.take(rows[start:end] - number * _ROWS, axis=1)
            for number, (block, start, end) in enumerate(zip(self._blocks, [0, *ends], ends, strict=False))
            if start < end
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts or [self._blocks[0][:, :0]], axis=1)

    def __len__(self) -> int:
        return sum(block.shape[1] for block in self._blocks)

    @cached_property
    def sums(self) -> Ints:
        """All sums: a row per amount, a column per node."""
        return self._blocks[0] if len(self._blocks) == 1 else np.concatenate(self._blocks, axis=1)

    @property
    def requested(self) -> Ints:
        return self.sums[:-3]

    @property
    def nonzero_cpu(self) -> Ints:
        line: Ints = self.sums[-3]
        return line

    @property
    def nonzero_memory(self) -> Ints:
        line: Ints = self.sums[-2]
        return line

    @property
    def pods(self) -> Ints:
        line: Ints = self.sums[-1]
        return line


def restamped(old: Sequence[Ints], new: Sequence[Ints]) -> Rows:
    """Returns the rows whose stamps differ. Both arguments belong to the same nodes."""
    found = [
        np.flatnonzero(mine != theirs) + number * _ROWS
        for number, (mine, theirs) in enumerate(zip(old, new, strict=True))
        if mine is not theirs
    ]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.intp)

"""The requests of the pods on each node, in columns. Stamps show which nodes differ between two versions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from scheduler_core.values import Value

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

# Each stamp is used once, for one or several rows of one count.
_STAMPS: Final = count(1)


class Usage(Value, eq=False):
    """The requests on each node. `sums` has a column for each node. Its rows are `requested`, with a row per resource,
    and the non-zero sums, which only scores use.

    If two objects have the same stamp for a node, the pods of that node request the same in both. Arrays are shared and
    must not be written to.
    """

    sums: Ints  # a column per node
    stamps: Ints

    @classmethod
    def of_sums(cls, sums: Ints) -> Self:
        """Returns an object with these sums and with stamps that no other object has."""
        return cls(sums, _new_stamps(sums))

    def with_sums(self, sums: Ints) -> Usage:
        """Returns an object with these sums for a different number of nodes. Nodes that both have keep their stamps, so
        their sums must be equal."""
        stamps = _new_stamps(sums)
        known = self.stamps[: len(stamps)]
        stamps[: len(known)] = known
        return Usage(sums, stamps)

    def plus(self, more: Iterable[tuple[int, Ints]]) -> Usage:
        """Returns an object with these amounts added to these nodes."""
        sums, stamps, stamp = self.sums.copy(), self.stamps.copy(), next(_STAMPS)
        for row, line in more:
            sums[:, row] += line
            stamps[row] = stamp
        return Usage(sums, stamps)

    def of(self, rows: Rows) -> Usage:
        """Returns an object with only these nodes, in this order."""
        return Usage(self.sums.take(rows, axis=1), self.stamps.take(rows))

    def __len__(self) -> int:
        return len(self.stamps)

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


def _new_stamps(sums: Ints) -> Ints:
    return np.full(sums.shape[1], next(_STAMPS), dtype=np.int64)


def restamped(old: Ints, new: Ints) -> Rows:
    """Returns the rows of the nodes whose stamps differ. Both arguments are about the same nodes."""
    rows: Rows = (old != new).nonzero()[0]
    return rows

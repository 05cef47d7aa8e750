"""The requests of the pods on each node, in columns. Each node has a stamp, a number that changes with these requests,
so that two versions can be compared quickly."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import count
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from scheduler_core.values import Value

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

# Each stamp is used once, for one or several nodes of one `Usage`.
_STAMPS: Final = count(1)

# Up to one addition for this many nodes is kept in `added`, because copying the sums of all nodes costs more.
_NODES_PER_ADDITION: Final = 500


class Usage(Value, eq=False, dict=True):
    """The requests of the pods on each node. `sums` has a column for each node. Its rows are: the requested amount of
    each resource, then two sums for scores (cpu and memory, with defaults for containers without a request), then the
    number of pods.

    `stamps` has a number for each node. If two `Usage` objects have the same stamp for a node, the pods of that node
    request the same in both. Arrays are shared and must not be written to.
    """

    base: Ints  # a column for each node, without the amounts in `added`
    stamps: Ints
    added: tuple[tuple[int, Ints], ...] = ()  # pairs of a row and the amounts to add

    @classmethod
    def of_sums(cls, sums: Ints) -> Self:
        """Returns the usage with these sums. All its stamps are new, so no other object has them."""
        return cls(sums, _new_stamps(sums))

    def with_sums(self, sums: Ints) -> Usage:
        """Returns the usage with these sums, for a different number of nodes. Nodes that exist before and after keep
        their stamps, so the sums of these nodes must be the same as before."""
        stamps = _new_stamps(sums)
        known = self.stamps[: len(stamps)]
        stamps[: len(known)] = known
        return Usage(sums, stamps)

    def plus(self, more: Iterable[tuple[int, Ints]]) -> Usage:
        """Returns the usage after amounts were added. `more` has pairs of a node's row and the amounts to add to the
        node's column of `sums`. Only the nodes of these rows get a new stamp."""
        added, stamps = (*self.added, *more), self.stamps.copy()
        stamp = next(_STAMPS)
        for row, _ in added[len(self.added) :]:
            stamps[row] = stamp
        if len(added) <= len(stamps) // _NODES_PER_ADDITION:
            return Usage(self.base, stamps, added)
        return Usage(_added_to(self.base.copy(), added), stamps)

    def of(self, rows: Rows) -> Usage:
        """Returns the usage of only the nodes in these rows, in this order."""
        places = {row: place for place, row in enumerate(rows.tolist())} if self.added else {}
        added = ((places[row], line) for row, line in self.added if row in places)
        return Usage(_added_to(self.base.take(rows, axis=1), added), self.stamps.take(rows))

    def since(self, stamps: Ints) -> tuple[Rows, Usage]:
        """Returns the rows of the nodes whose stamps differ from `stamps`, and the usage of only these nodes.

        Remembers the last result, because the filter and the scores of one pod ask for the same rows.
        """
        known: tuple[Ints, Rows, Usage] | None = self.__dict__.get("last_since")
        if known is None or known[0] is not stamps:
            rows = restamped(stamps, self.stamps)
            self.__dict__["last_since"] = known = (stamps, rows, self.of(rows))
        return known[1:]

    def __len__(self) -> int:
        return len(self.stamps)

    @cached_property
    def sums(self) -> Ints:
        """The sums over the pods of each node."""
        return _added_to(self.base.copy(), self.added) if self.added else self.base

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


def _added_to(sums: Ints, added: Iterable[tuple[int, Ints]]) -> Ints:
    """Adds amounts to columns of `sums`, in place. `added` has pairs of a column's position and the amounts to add to
    this column."""
    for column, line in added:
        sums[:, column] += line
    return sums


def _new_stamps(sums: Ints) -> Ints:
    return np.full(sums.shape[1], next(_STAMPS), dtype=np.int64)


def restamped(old: Ints, new: Ints) -> Rows:
    """Returns the rows of the nodes whose stamps differ. `old` and `new` have the stamps of the same nodes."""
    rows: Rows = (old != new).nonzero()[0]
    return rows

"""The requests of the pods on each node, in columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_core.values import Value

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]


class Usage(Value, eq=False):
    """The requests of the pods on some nodes. `sums` has a column per node. Its rows are: the requested amount of each
    resource, two sums for scores (cpu and memory, with defaults for containers without a request), the number of pods.

    Read `sums` at once and keep only copies: the array may belong to a `ChangingUsage`, whose next change writes to it.
    """

    sums: Ints

    def of(self, rows: Rows) -> Usage:
        """Only the nodes in these rows, in this order."""
        return Usage(self.sums.take(rows, axis=1))

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

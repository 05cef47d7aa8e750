"""Counts the pods that a drain of each node would have to move. Counts all pods once, and then only updates the count
when a pod moves."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.replacements import StaysBecause, moves_all, why_it_stays
from scheduler_core.snapshot.columns import Columns, resized
from scheduler_core.snapshot.pods.change_log import Changes
from scheduler_core.snapshot.pods.pod_table import PodTable
from scheduler_core.snapshot.pods.tallies import Ints
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value


class MovableTally(Value):
    """Counts the pods of each node that a drain with the rule `stays` would have to move."""

    stays: StaysBecause = moves_all

    def count(self, columns: Columns, table: PodTable) -> Ints:
        moves = np.fromiter((self._moves(pod) for pod in table.pods), dtype=bool, count=len(table.pods))
        return np.bincount(table.rows[moves], minlength=len(columns)).astype(np.int64)

    def after(self, value: Ints, changes: Changes, columns: Columns, table: PodTable) -> Ints:  # noqa: ARG002 -- the tally's signature
        counts = value.copy()
        for change in changes:
            counts[change.row] += change.sign * self._moves(change.pod)
        return counts

    def basis(self, columns: Columns) -> Hashable:  # noqa: ARG002
        return None

    def over(self, value: Ints, rows: int) -> Ints:
        return resized(value, rows)

    def _moves(self, pod: Pod) -> bool:
        return not why_it_stays(pod, self.stays)


def movable_pods(snapshot: Snapshot, stays: StaysBecause = moves_all) -> dict[str, int]:
    """Maps each node's name to the number of its pods that a drain with the rule `stays` would have to move."""
    return dict(zip(snapshot.node_names, snapshot.tally(MovableTally(stays)).tolist(), strict=True))

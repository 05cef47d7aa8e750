"""Counts the pods that a drain of each node would evict, and those of them that must be spread over the zones. All
pods are read once, and then only changed ones."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from scheduler_core.model.node import ZONE_LABEL
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.replacements import StaysBecause, moves_all, why_it_stays
from scheduler_core.snapshot.columns import Columns, resized
from scheduler_core.snapshot.pods.change_log import Changes
from scheduler_core.snapshot.pods.pod_table import PodTable
from scheduler_core.snapshot.pods.tallies import Ints
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value


class MovableTally(Value):
    """Counts, for each node, the pods that a drain would evict; with `only_spread`, only those that must be spread
    over the zones. `stays` says which pods the drain leaves."""

    stays: StaysBecause = moves_all
    only_spread: bool = False
    reads_every_pod: ClassVar[bool] = True

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
        return (not self.only_spread or _must_spread_over_zones(pod)) and not why_it_stays(pod, self.stays)


def movable_pods(snapshot: Snapshot, stays: StaysBecause = moves_all) -> dict[str, int]:
    """By node, the number of pods that a drain would evict. `stays` says which pods it leaves."""
    return _by_name(snapshot, MovableTally(stays))


def movable_in_zone(snapshot: Snapshot, stays: StaysBecause = moves_all) -> dict[str, int]:
    """The same for pods that a topology spread constraint spreads over the zones: their replacements usually stay in
    the zone."""
    return _by_name(snapshot, MovableTally(stays, only_spread=True))


def _by_name(snapshot: Snapshot, tally: MovableTally) -> dict[str, int]:
    return dict(zip(snapshot.node_names, snapshot.tally(tally).tolist(), strict=True))


def _must_spread_over_zones(pod: Pod) -> bool:
    return any(
        each.topology_key == ZONE_LABEL and each.when_unsatisfiable == "DoNotSchedule"
        for each in pod.spec.topology_spread
    )

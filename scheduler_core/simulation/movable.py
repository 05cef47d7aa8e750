"""Counts the pods that a drain of each node would evict, and how many of these pods must be spread over the zones.
First, all pods are read; after a change, only the changed pods are read."""

from __future__ import annotations

from collections.abc import Hashable

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
    """Counts, for each node, the pods that a drain would evict. The rule `stays` says which pods the drain leaves on
    the node. With `only_spread`, counts only the pods that must be spread over the zones."""

    stays: StaysBecause = moves_all
    only_spread: bool = False

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
    """Maps each node's name to the number of pods that a drain of the node would evict. The rule `stays` says which
    pods the drain leaves on the node."""
    return _by_name(snapshot, MovableTally(stays))


def movable_in_zone(snapshot: Snapshot, stays: StaysBecause = moves_all) -> dict[str, int]:
    """Maps each node's name to the number of pods that a drain of the node would evict and that a topology spread
    constraint spreads over the zones. The replacement of such a pod usually gets a node in the same zone. The rule
    `stays` says which pods the drain leaves on the node."""
    return _by_name(snapshot, MovableTally(stays, only_spread=True))


def _by_name(snapshot: Snapshot, tally: MovableTally) -> dict[str, int]:
    return dict(zip(snapshot.node_names, snapshot.tally(tally).tolist(), strict=True))


def _must_spread_over_zones(pod: Pod) -> bool:
    return any(
        each.topology_key == ZONE_LABEL and each.when_unsatisfiable == "DoNotSchedule"
        for each in pod.spec.topology_spread
    )

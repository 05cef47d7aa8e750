"""Tries again to place the displaced pods that have no node."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from datetime import datetime

from scheduler_core.model.pod import Pod
from scheduler_core.simulation.rollout_parts.cluster import SimulatedCluster
from scheduler_core.simulation.timeline import Wait
from scheduler_core.values import Value


class Unplaced(Value):
    """The evicted pod, and the replacement that waits for a node."""

    pod: Pod
    replacement: Pod
    since: datetime
    returns: bool  # only the drained node can run the pod
    why: str

    def wait(self, until: datetime | None) -> Wait:
        """The time without a node. `until` is its end, or None if the pod still has none."""
        pod = self.pod
        return Wait(pod=pod.key, node=pod.node_name, since=self.since, until=until, returns=self.returns, why=self.why)


def tried_again(
    waiting: Iterable[Unplaced], cluster: SimulatedCluster, now: datetime
) -> Iterator[tuple[Unplaced, str | None]]:
    """Tries the highest priority first and, among equals, who has waited longest. Yields each pod with its node, or
    None. If a replica does not fit, identical ones are not tried."""
    full: set[Hashable] = set()
    for each in sorted(waiting, key=lambda each: (-each.pod.priority, each.since, each.pod.key)):
        kind = _kind(each.pod)
        node = None if kind in full else cluster.node_for(each.replacement, now)
        if node is None:
            full.add(kind)
        else:
            cluster.run_on(each.pod, each.replacement, node)
        yield each, node


def _kind(pod: Pod) -> Hashable:
    owner = pod.owner
    is_alike = owner is not None and owner.kind != "StatefulSet"  # a StatefulSet's pods differ in their volume claims
    return (pod.namespace, owner.kind, owner.uid or owner.name, pod.priority) if owner and is_alike else pod.key

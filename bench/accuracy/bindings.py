"""The bindings of a recorded drain, one after another, with the cluster as a watch had it right before each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bench.accuracy.records import DrainRecord
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.replacements import replacement_of
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import replace_value
from tests.cluster.harness.measures.drains import PodEvent

_BOUND = re.compile(r'"Successfully bound pod to node" pod="([^"]+)" node="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Binding:
    """A pod, the node that it was bound to, and the cluster before."""

    before: Snapshot
    pod: Pod
    node: str


def bindings(record: DrainRecord, listed: Snapshot) -> Iterator[Binding]:
    """The bindings of the drain, and those after the uncordon, which only the scheduler's log has. A pod without a
    similar one in the list is skipped, like any pod that a watch misses."""
    watched = _Watched(listed.with_node_cordoned(record.node))
    for event in sorted(record.events, key=lambda event: event.version):
        yield from watched.follow(event)
    watched.world = watched.world.with_node_uncordoned(record.node)
    for title, node in _BOUND.findall(record.log):
        yield from watched.bound_later(title, node)


class _Watched:
    """The cluster after the events; `coming` are the pods without a node, by name."""

    def __init__(self, world: Snapshot) -> None:
        self.world = world
        self.coming = {pod.key: pod for pod in world.pending}
        self._like = {_owner(pod): pod for pod in (*world.pending, *world.placed_pods)}

    def follow(self, event: PodEvent) -> Iterator[Binding]:
        if event.kind == "evicted" and self.world.placements.find(event.title):
            self.world = self.world.with_pod_terminating(event.title)
        elif event.kind == "deleted":
            self.world = self.world.without(event.title)
            self.coming.pop(event.title, None)
        elif event.kind == "created" and event.owner in self._like:
            like, name = self._like[event.owner], event.title.partition("/")[2]
            fresh = replacement_of(like) if like.node_name else like
            self.coming[event.title] = replace_value(fresh, name=name, uid=event.uid)
        elif event.kind == "bound":
            yield from self.bound_later(event.title, event.node)

    def bound_later(self, title: str, node: str) -> Iterator[Binding]:
        pod = self.coming.pop(title, None)
        if pod is not None:
            yield Binding(self.world, pod, node)
            self.world = self.world.with_pod_placed(pod, node)


def _owner(pod: Pod) -> str:
    return f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" if pod.owner else ""

"""The bindings of a recorded drain, one after another, each with the cluster just before it, as a watch showed it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from bench.accuracy.records import DrainRecord
from careen.shadow.possible_states import CLOSE_SECONDS
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.replacements import replacement_of
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import replace_value
from tests.cluster.harness.measures.drains import PodEvent
from tests.cluster.harness.measures.varied import NAMESPACE

_BOUND = re.compile(r'"Successfully bound pod to node" pod="([^"]+)" node="([^"]+)"')
_AT = re.compile(r"^[IWE]\d{4} (\d\d):(\d\d):([\d.]+) ", re.MULTILINE)
_DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding, and the cluster before it. `pod` is None if the record has only the pod's name."""

    before: Snapshot
    pod: Pod | None
    node: str


def bindings(record: DrainRecord, listed: Snapshot) -> Iterator[Binding]:
    """The bindings during the drain, then those after the uncordon, which only the scheduler's log has.

    The records have events only for pods in the namespace of the drained workloads. Elsewhere `Binding.pod` is None,
    unless `listed` has a pod of that namespace and name without a node.
    """
    watched = _Watched(listed.with_node_cordoned(record.node))
    bound = {event.title for event in record.events if event.kind == "bound"}
    between = _between(_BOUND.findall(record.log), bound)
    events, done = sorted(record.events, key=lambda event: event.version), set[int]()
    for number, event in enumerate(events):
        if event.version in done:
            continue
        for each in (*watched.decided_before(event, events[number + 1 :]), event):
            done.add(each.version)
            if each.kind == "bound":
                for title, node in between.pop(each.title, ()):
                    yield watched.bound(title, node)
            yield from watched.follow(each)
    watched.world = watched.world.with_node_uncordoned(record.node)
    for title, node in (each for rest in between.values() for each in rest):
        yield watched.bound(title, node)


def others(record: DrainRecord) -> tuple[int, float]:
    """How many pods were bound in other namespaces than the drained workloads', and the seconds between the first
    and the last line of the scheduler's log."""
    times = [(int(h) * 60 + int(m)) * 60 + float(s) for h, m, s in _AT.findall(record.log)]
    number = sum(not title.startswith(f"{NAMESPACE}/") for title, _ in _BOUND.findall(record.log))
    return number, (times[-1] - times[0]) % _DAY if times else 0.0


def _between(logged: Sequence[tuple[str, str]], known: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """The logged bindings (pod, node) of pods that are not in `known`, by the pod in `known` that was bound next; ""
    for those after the last one."""
    found: dict[str, list[tuple[str, str]]] = {}
    waiting: list[tuple[str, str]] = []
    for title, node in logged:
        if title not in known:
            waiting.append((title, node))
        elif waiting:
            found.setdefault(title, []).extend(waiting)  # a StatefulSet's pod is bound again under its name
            waiting = []
    return {**found, "": waiting}


class _Watched:
    """The cluster after the events read so far. `coming` has the pods that wait for a node, by name."""

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
            yield self.bound(event.title, event.node)

    def decided_before(self, event: PodEvent, later: Sequence[PodEvent]) -> Sequence[PodEvent]:
        """The bindings that the watch showed soon after `event`, although the scheduler had probably decided them
        before.

        The rule of `careen shadow`: the pod was created before that of `event`, has at least its priority, and was
        shown at most `CLOSE_SECONDS` later.
        """
        pod = self.coming.get(event.title)
        if event.kind != "bound" or pod is None:
            return ()
        came = list(self.coming)
        before = {key: self.coming[key] for key in came[: came.index(event.title)]}
        return [
            each
            for each in later
            if each.kind == "bound"
            and each.at - event.at <= CLOSE_SECONDS
            and each.title in before
            and before[each.title].priority >= pod.priority
        ]

    def bound(self, title: str, node: str) -> Binding:
        pod, before = self.coming.pop(title, None), self.world
        if pod is not None:
            self.world = before.with_pod_placed(pod, node)
        return Binding(before, pod, node)


def _owner(pod: Pod) -> str:
    return f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" if pod.owner else ""

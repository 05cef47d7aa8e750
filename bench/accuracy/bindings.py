"""Reads the bindings of a recorded drain, one after another. Each binding comes with the state of the cluster just
before the binding, as a watch showed it."""

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
    """The binding of a pod to a node, and the cluster before this binding. `pod` is None if the record contains only
    the name of the pod.
    """

    before: Snapshot
    pod: Pod | None
    node: str


def bindings(record: DrainRecord, listed: Snapshot) -> Iterator[Binding]:
    """Yields the bindings during the drain, and then the bindings after the uncordon. Only the scheduler's log contains
    the later bindings.

    The records have events only for pods in the namespace of the drained workloads. For a binding in another namespace,
    `Binding.pod` is usually None. It is set only if `listed` has a pod with the namespace and name of the bound pod,
    and this listed pod has no node.
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
    """Returns how many pods were bound outside the namespace of the drained workloads, and the seconds between the
    first and the last line of the scheduler's log.
    """
    times = [(int(h) * 60 + int(m)) * 60 + float(s) for h, m, s in _AT.findall(record.log)]
    number = sum(not title.startswith(f"{NAMESPACE}/") for title, _ in _BOUND.findall(record.log))
    return number, (times[-1] - times[0]) % _DAY if times else 0.0


def _between(logged: Sequence[tuple[str, str]], known: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """Returns the logged bindings of all pods that are not in `known`, in groups. A group has the bindings just before
    the binding of a pod in `known`, and this pod is the key of the group. The bindings after the last pod in `known`
    have the key "". A binding is the tuple (pod, node)."""
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
    """The cluster after the events that were read so far. `coming` has the pods that wait for a node, by name."""

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
        """Returns the bindings that the watch showed soon after the binding `event`, although the scheduler had
        probably decided them before `event`.

        `careen shadow` uses the same rule. A later binding is in the result if its pod was created before the pod of
        `event`, its pod has at least the priority of the pod of `event`, and the watch showed the binding at most
        `CLOSE_SECONDS` after `event`.
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

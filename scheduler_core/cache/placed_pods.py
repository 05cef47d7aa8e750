"""The cached nodes and pods."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_core.cache.changes import Change, Changes
from scheduler_core.cache.other_objects import OtherObjects
from scheduler_core.cache.pending_pods import PendingPods
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.cluster_objects import parts_of
from scheduler_core.snapshot.snapshot import Snapshot, UnknownPodError
from scheduler_core.values import Value


class Assumed(Value):
    """A pod, as the API server has it without a node, and the node on which it counts."""

    pod: Pod
    node: str


class PlacedPods:
    """`world` has the nodes, the pods on them and the other objects. `waiting`: pods without a node. `orphans`: pods
    whose node is not in the cache. `assumed`: pods that count on a node before their binding is seen."""

    def __init__(self) -> None:
        self.world = Snapshot.of(())
        self.waiting = PendingPods()
        self.orphans: dict[str, Pod] = {}
        self.assumed: dict[str, Assumed] = {}
        self._listed_orphans: tuple[Pod, ...] | None = ()

    # ---- nodes ----

    def put_nodes(self, nodes: Iterable[Node]) -> Changes:
        """New nodes come, in the given order, at the end of the list that the scheduler searches."""
        new: dict[str, Node] = {}
        changes: list[Change] = []
        for node in nodes:
            old = self.node(node.name)
            if old is None:
                new[node.name] = node
                changes.append(Change(kind="Node", key=node.name, old=None, new=node))
            elif old != node:
                self.world = self.world.with_node_replaced(node)
                changes.append(Change(kind="Node", key=node.name, old=old, new=node))
        if new:
            self.world = self.world.with_nodes_added(tuple(new.values()))
            come = [pod for pod in self.orphans.values() if pod.node_name in new]
            if come:
                self.world = self.world.with_pods_moved((), come)
                self.orphans = {key: pod for key, pod in self.orphans.items() if pod.node_name not in new}
                self._listed_orphans = None
        return tuple(changes)

    def drop_node(self, name: str) -> Changes:
        """The node's pods stay until events delete them."""
        node = self.node(name)
        if node is None:
            return ()
        self.orphans.update({pod.key: pod for pod in self.world.pods_on(name)})
        self._listed_orphans = None
        self.world = self.world.without_node(name).with_orphans(())
        return (Change(kind="Node", key=name, old=node, new=None),)

    def node(self, name: str) -> Node | None:
        """None if it does not exist."""
        return self.world.node(name) if self.world.has_node(name) else None

    # ---- pods ----

    def find(self, key: str) -> Pod | None:
        """With or without a node; None if the pod is not cached."""
        return self.waiting.get(key) or self.orphans.get(key) or self.world.placements.find(key)

    def written(self, key: str) -> Pod | None:
        """The pod as the API server has it: without the node on which it is only assumed to be."""
        assumed = self.assumed.get(key)
        return self.find(key) if assumed is None else assumed.pod

    def put_pod(self, pod: Pod) -> Changes:
        """Removes a pod that has finished. A pod that `assume` has put on a node stays there until an event shows its
        binding, or another pod of its name."""
        key = pod.key
        if pod.is_finished:
            return self.drop_pod(key)
        before, held = self.assumed.get(key), self.find(key)
        old = held if before is None else before.pod
        if old == pod:
            return ()
        change = Change(kind="Pod", key=key, old=old, new=pod, assumed="" if before is None else before.node)
        if before is not None and (pod.node_name or _are_different(before.pod, pod)):
            del self.assumed[key]
        elif before is not None:
            self.assumed[key] = Assumed(pod, before.node)
            pod = pod.on_node(before.node)
        if held != pod:
            self._move(key, held, pod)
        return (change,)

    def drop_pod(self, key: str) -> Changes:
        held, assumed = self.find(key), self.assumed.pop(key, None)
        if held is None:
            return ()
        self._move(key, held, None)
        old = held if assumed is None else assumed.pod
        return (Change(kind="Pod", key=key, old=old, new=None, assumed="" if assumed is None else assumed.node),)

    def _move(self, key: str, old: Pod | None, new: Pod | None) -> None:
        is_waiting = key in self.waiting
        is_orphan = self.orphans.pop(key, None) is not None
        leaving = () if old is None or is_waiting or is_orphan else (old,)
        coming = () if new is None or not self.world.has_node(new.node_name) else (new,)
        if is_waiting and (new is None or new.node_name):
            self.waiting.remove(key)
        if leaving or coming:
            self.world = self.world.with_pods_moved(leaving, coming)
        if new is not None and not coming:
            if new.node_name:
                self.orphans[key] = new
                is_orphan = True
            else:
                self.waiting.put(new)
        if is_orphan:
            self._listed_orphans = None

    # ---- pods that a scheduler has placed and not yet bound ----

    def assume(self, key: str, node_name: str, uid: str) -> None:
        """See `ClusterCache.assume`."""
        pod = self.waiting.get(key)
        if pod is None or (uid and pod.uid != uid):
            raise UnknownPodError(f"there is no pending pod {key}{f' with uid {uid}' if uid else ''}")
        self.world.row(node_name)
        self.assumed[key] = Assumed(pod, node_name)
        self._move(key, pod, pod.on_node(node_name))

    def forget(self, key: str, uid: str) -> None:
        """See `ClusterCache.forget`."""
        assumed = self.assumed.get(key)
        if assumed is None or (uid and assumed.pod.uid != uid):
            raise UnknownPodError(f"pod {key}{f' with uid {uid}' if uid else ''} is not assumed to be on a node")
        del self.assumed[key]
        self._move(key, self.find(key), assumed.pod)

    # ---- the whole ----

    def snapshot(self, others: OtherObjects, problems: tuple[ManifestError, ...]) -> Snapshot:
        if others.changed:
            self.world = self.world.with_objects(**parts_of(others.values(), others.changed))
            others.changed.clear()
        if self._listed_orphans is None:
            self._listed_orphans = tuple(self.orphans.values())
        return self.world.with_others(
            pending=self.waiting.as_they_are(), orphans=self._listed_orphans, problems=problems
        )


def _are_different(one: Pod, other: Pod) -> bool:
    return bool(one.uid and other.uid) and one.uid != other.uid

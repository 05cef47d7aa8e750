"""The cached nodes and pods."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_core.cache.other_objects import OtherObjects
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.cluster_objects import parts_of
from scheduler_core.snapshot.snapshot import Snapshot, UnknownPodError


class PlacedPods:
    """`world` has the nodes, the pods on them and the other objects. `waiting`: pods without a node. `orphans`: pods
    whose node is not in the cache."""

    def __init__(self) -> None:
        self.world = Snapshot.of(())
        self.waiting: dict[str, Pod] = {}
        self.orphans: dict[str, Pod] = {}
        self.assumed: dict[str, str] = {}

    # ---- nodes ----

    def put_nodes(self, nodes: Iterable[Node]) -> bool:
        """Whether something changed. New nodes come, in the given order, at the end of the list that the scheduler
        searches."""
        new: dict[str, Node] = {}
        has_changed = False
        for node in nodes:
            if not self.world.has_node(node.name):
                new[node.name] = node
            elif self.world.node(node.name) != node:
                self.world, has_changed = self.world.with_node_replaced(node), True
        if new:
            self.world = self.world.with_nodes_added(tuple(new.values()))
            come = [pod for pod in self.orphans.values() if pod.node_name in new]
            self.world = self.world.with_pods_moved((), come)
            self.orphans = {key: pod for key, pod in self.orphans.items() if pod.node_name not in new}
        return bool(new) or has_changed

    def drop_node(self, name: str) -> bool:
        """Whether the node existed. Its pods stay until events delete them."""
        if not self.world.has_node(name):
            return False
        self.orphans.update({pod.key: pod for pod in self.world.pods_on(name)})
        self.world = self.world.without_node(name).with_orphans(())
        return True

    # ---- pods ----

    def find(self, key: str) -> Pod | None:
        """With or without a node; None if the pod is not cached."""
        return self.waiting.get(key) or self.orphans.get(key) or self.world.placements.find(key)

    def put_pod(self, pod: Pod) -> bool:
        """Whether something changed. Removes a pod that has finished. A pod that `assume` has put on a node stays there
        until an event shows its binding."""
        key = pod.key
        if pod.is_finished:
            return self.drop_pod(key)
        if pod.node_name:
            self.assumed.pop(key, None)
        elif key in self.assumed:
            pod = pod.on_node(self.assumed[key])
        old = self.find(key)
        if old == pod:
            return False
        self._move(key, old, pod)
        return True

    def drop_pod(self, key: str) -> bool:
        """Whether the pod existed."""
        self.assumed.pop(key, None)
        old = self.find(key)
        if old is not None:
            self._move(key, old, None)
        return old is not None

    def _move(self, key: str, old: Pod | None, new: Pod | None) -> None:
        is_elsewhere = self.waiting.pop(key, None) or self.orphans.pop(key, None)
        leaving = () if old is None or is_elsewhere else (old,)
        coming = () if new is None or not self.world.has_node(new.node_name) else (new,)
        if leaving or coming:
            self.world = self.world.with_pods_moved(leaving, coming)
        if new is not None and not coming:
            (self.orphans if new.node_name else self.waiting)[key] = new

    # ---- pods that a scheduler has placed and not yet bound ----

    def assume(self, key: str, node_name: str) -> None:
        """See `ClusterCache.assume`."""
        pod = self.waiting.get(key)
        if pod is None:
            raise UnknownPodError(f"there is no pending pod {key}")
        self.world.row(node_name)
        self.assumed[key] = node_name
        self._move(key, pod, pod.on_node(node_name))

    def forget(self, key: str) -> None:
        """See `ClusterCache.forget`."""
        if key not in self.assumed:
            raise UnknownPodError(f"pod {key} is not assumed to be on a node")
        del self.assumed[key]
        old = self.find(key)
        if old is not None:
            self._move(key, old, old.on_node(""))

    # ---- the whole ----

    def snapshot(self, others: OtherObjects, problems: tuple[ManifestError, ...]) -> Snapshot:
        if others.changed:
            self.world = self.world.with_objects(**parts_of(others.values(), others.changed))
            others.changed.clear()
        return self.world.with_others(
            pending=tuple(self.waiting.values()), orphans=tuple(self.orphans.values()), problems=problems
        )

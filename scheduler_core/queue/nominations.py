"""The pods nominated to each node: the room that preempted pods leave is reserved for them until they are placed.

Source: pkg/scheduler/backend/queue/nominator.go (v1.36).
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.model.pod import Pod
from scheduler_core.queue.queued_pod import identity


class Nominations:
    """If the scheduler has chosen another node than the one in the pod's status, its choice wins: the status may be
    older."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[Pod, ...]] = {}
        self._node_of: dict[str, str] = {}
        self._by_node: dict[str, tuple[Pod, ...]] | None = None

    def on(self, node_name: str) -> tuple[Pod, ...]:
        """In the order of their nomination; the same tuple as long as it has the same pods."""
        return self._pods.get(node_name, ())

    def node_of(self, pod: Pod) -> str | None:
        return self._node_of.get(identity(pod))

    @property
    def by_node(self) -> Mapping[str, tuple[Pod, ...]]:
        """Does not change afterwards."""
        if self._by_node is None:
            self._by_node = dict(self._pods)
        return self._by_node

    @property
    def all(self) -> tuple[tuple[Pod, str], ...]:
        return tuple((pod, node) for node, pods in self._pods.items() for pod in pods)

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """None: the nominated node in the pod's status. Empty: the pod is no longer nominated."""
        self.remove(pod)
        node = pod.nominated_node_name if node_name is None else node_name
        if node:
            self._node_of[identity(pod)] = node
            self._put(node, (*self.on(node), pod))

    def update(self, old: Pod, new: Pod) -> None:
        """Replaces a pod that has changed.

        If neither version has a nominated node in its status, the pod keeps its nomination: the patch that writes the
        scheduler's choice to the status may come after this update.
        """
        standing = (
            self._node_of.get(identity(old)) if not old.nominated_node_name and not new.nominated_node_name else None
        )
        self.remove(old)
        self.add(new, standing)

    def remove(self, pod: Pod) -> None:
        node = self._node_of.pop(identity(pod), None)
        if node is not None:
            self._put(node, tuple(each for each in self.on(node) if identity(each) != identity(pod)))

    def _put(self, node: str, pods: tuple[Pod, ...]) -> None:
        self._by_node = None
        if pods:
            self._pods[node] = pods
        else:
            del self._pods[node]

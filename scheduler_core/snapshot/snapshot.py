"""The frozen cluster. With a node cordoned or a pod placed it is another snapshot, which shares all that stayed
the same.

Reading objects into one is in loading.py; what plugins count over pods is in tallies.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from scheduler_core.model.labels import LabelSelector
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.requests import CURRENT_RULES, RequestRules
from scheduler_core.snapshot.cluster_objects import ClusterObjects
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.pods.placements import Placements, Tally
from scheduler_core.values import replace_value

Value = TypeVar("Value")

# By row: what was made of a node and its pods, beside the node and the state of its pods that it was made of.
# Shared by snapshots derived from one another.
_Infos = dict[tuple[int, RequestRules], tuple[Node, object, NodeInfo]]


# Objects that a drain changes pod by pod, and that no scheduling decision reads.
_NOT_SCHEDULED_BY = frozenset({"budgets", "jobs"})


class UnknownNodeError(KeyError):
    """The snapshot has no node of that name: the caller's list is older or newer than the snapshot."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownPodError(KeyError):
    """No such pod stands on a node of the snapshot: the caller's list is older or newer than the snapshot."""

    def __str__(self) -> str:
        return str(self.args[0])


class Snapshot:
    """Nodes, the pods on them, the pods that wait, and every other object scheduling reads.

    `pending` are pods without a node; `ghosts` stand on nodes that the snapshot does not have and count for
    nothing, as in the scheduler. `problems` are objects that could not be read and were left out."""

    __slots__ = (
        "_infos",
        "_remembered",
        "columns",
        "ghosts",
        "objects",
        "pending",
        "placements",
        "problems",
    )

    def __init__(
        self,
        *,
        columns: Columns,
        placements: Placements,
        objects: ClusterObjects,
        pending: tuple[Pod, ...] = (),
        ghosts: tuple[Pod, ...] = (),
        problems: tuple[ManifestError, ...] = (),
        remembered: dict[Hashable, Any] | None = None,
        infos: _Infos | None = None,
    ) -> None:
        self.columns = columns
        self.placements = placements
        self.objects = objects
        self.pending = pending
        self.ghosts = ghosts
        self.problems = problems
        self._remembered = {} if remembered is None else remembered
        self._infos = {} if infos is None else infos

    # ---- making one ----

    @classmethod
    def of(
        cls,
        nodes: Sequence[Node],
        pods: Iterable[Pod] = (),
        objects: ClusterObjects | None = None,
        problems: tuple[ManifestError, ...] = (),
    ) -> Snapshot:
        """A snapshot of parsed values. Finished pods are left out; the order of `nodes` is the order of everything."""
        columns = Columns(tuple(nodes))
        row_of = columns.row_of
        placed: list[Pod] = []
        pending: list[Pod] = []
        ghosts: list[Pod] = []
        for pod in pods:
            if not pod.is_finished:
                (pending if not pod.node_name else placed if pod.node_name in row_of else ghosts).append(pod)
        return cls(
            columns=columns,
            placements=Placements.of(placed, columns),
            objects=objects or ClusterObjects(),
            pending=tuple(pending),
            ghosts=tuple(ghosts),
            problems=problems,
        )

    def _changed(self, **parts: Any) -> Snapshot:
        mine = {
            "columns": self.columns,
            "placements": self.placements,
            "objects": self.objects,
            "pending": self.pending,
            "ghosts": self.ghosts,
            "problems": self.problems,
            "remembered": self._remembered,
            "infos": self._infos,
        }
        return Snapshot(**{**mine, **parts})

    # ---- what is in it ----

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.columns.nodes

    @property
    def node_names(self) -> tuple[str, ...]:
        return self.columns.names

    def row(self, node_name: str) -> int:
        """The node's place; UnknownNodeError when it is not here."""
        row = self.columns.row_of.get(node_name)
        if row is None:
            raise UnknownNodeError(f"the snapshot has no node {node_name!r}")
        return row

    def node(self, node_name: str) -> Node:
        return self.columns.nodes[self.row(node_name)]

    def node_info(self, row: int, rules: RequestRules = CURRENT_RULES) -> NodeInfo:
        """One node with its pods and sums."""
        node, pods = self.columns.nodes[row], self.placements.state_of(row)
        known = self._infos.get((row, rules))
        if known is None or known[0] is not node or known[1] is not pods:
            info = NodeInfo.of(
                node,
                self.placements.on_node(row),
                row=row,
                rules=rules,
                cluster_images=self.columns.images.states,
                cluster_size=len(self.columns),
            )
            self._infos[(row, rules)] = known = (node, pods, info)
        return known[2]

    def pods_on(self, node_name: str) -> tuple[Pod, ...]:
        """The pods on a node, terminating ones included; UnknownNodeError when it is not here."""
        return self.placements.on_node(self.row(node_name))

    def pod(self, key: str) -> Pod:
        """The pod "namespace/name", placed or not; UnknownPodError when there is none."""
        found = self.placements.find(key) or next(
            (pod for pod in (*self.pending, *self.ghosts) if pod.key == key), None
        )
        if found is None:
            raise UnknownPodError(f"the snapshot has no pod {key}")
        return found

    @property
    def placed_pods(self) -> Sequence[Pod]:
        """Every pod that stands on a node of the snapshot, in no order that means anything."""
        return self.placements.all_pods()

    def tally(self, tally: Tally[Value]) -> Value:
        """A count over the placed pods; made once and carried along by the snapshots derived from this one."""
        return self.placements.tally(tally, self.columns)

    def namespaces_selected(self, selector: LabelSelector) -> frozenset[str]:
        """The names of the namespaces whose labels the selector chooses."""
        return self.remember(
            ("namespaces", selector),
            lambda: frozenset(name for name, labels in self.objects.namespaces.items() if selector.matches(labels)),
        )

    def remember(self, key: Hashable, work_out: Callable[[], Value]) -> Value:
        """What `work_out` gives, worked out once for all snapshots with these other objects. It may depend on the key
        and on `objects` alone, without budgets and Jobs."""
        known = self._remembered.get(key)
        if known is None:
            known = self._remembered[key] = work_out()
        result: Value = known
        return result

    # ---- other snapshots ----

    def with_pod_placed(self, pod: Pod, node_name: str) -> Snapshot:
        """The cluster with the pod on that node; a pending pod of the same key is no longer pending."""
        row = self.row(node_name)
        placed = pod.on_node(node_name)
        pending = tuple(p for p in self.pending if p.key != pod.key) if self.pending else ()
        return self._changed(
            placements=self.placements.after(((1, row, placed),), self.columns),
            pending=pending,
        )

    def without_pod(self, key: str) -> Snapshot:
        """The cluster without that pod; UnknownPodError when it stands on no node here."""
        return self.without_pods((key,))

    def without_pods(self, keys: Iterable[str]) -> Snapshot:
        """The cluster without these pods; UnknownPodError when one stands on no node here."""
        return self._moved([(-1, self._placed(key)) for key in keys])

    def with_pods_exchanged(self, pairs: Iterable[tuple[str, Pod]]) -> Snapshot:
        """The cluster with each pod of those keys gone, and the other in its place on the same node, in this order;
        UnknownPodError when one stands on no node here."""
        moves: list[tuple[int, Pod]] = []
        for key, pod in pairs:
            old = self._placed(key)
            moves += ((-1, old), (1, pod.on_node(old.node_name)))
        return self._moved(moves)

    def _moved(self, moves: Sequence[tuple[int, Pod]]) -> Snapshot:
        """Pods that came to (1) or left (-1) the node that they name."""
        changes = [(sign, self.row(pod.node_name), pod) for sign, pod in moves]
        return self._changed(placements=self.placements.after(changes, self.columns))

    def _placed(self, key: str) -> Pod:
        pod = self.placements.find(key)
        if pod is None:
            raise UnknownPodError(f"pod {key} stands on no node of the snapshot")
        return pod

    def with_pod_terminating(self, key: str) -> Snapshot:
        """The cluster with that pod being deleted: topology spread no longer counts it, everything else still does."""
        pod = self._placed(key)
        return self if pod.terminating else self._moved(((-1, pod), (1, replace_value(pod, terminating=True))))

    def with_node_cordoned(self, node_name: str, *, with_taint: bool = True) -> Snapshot:
        """The cluster shortly after a cordon: the node marked, and tainted by the node-lifecycle controller
        unless told otherwise."""
        row = self.row(node_name)
        return self.with_node_replaced(self.columns.nodes[row].cordoned(with_taint=with_taint))

    def without(self, key: str) -> Snapshot:
        """The cluster without that pod, wherever it is; the same cluster when it is nowhere."""
        placed = self.placements.find(key)
        rest = self if placed is None else self.without_pod(key)
        return rest._changed(
            pending=tuple(pod for pod in self.pending if pod.key != key),
            ghosts=tuple(pod for pod in self.ghosts if pod.key != key),
        )

    def with_node_uncordoned(self, node_name: str) -> Snapshot:
        """The cluster after the cordon was lifted and its taint taken away again."""
        return self.with_node_replaced(self.node(node_name).uncordoned())

    def with_node_replaced(self, node: Node) -> Snapshot:
        """The cluster with this node in place of the one of the same name."""
        return self.with_nodes_replaced((node,))

    def with_nodes_replaced(self, nodes: Iterable[Node]) -> Snapshot:
        """The cluster with each of these nodes in place of the one of the same name."""
        columns = self.columns.with_nodes({self.row(node.name): node for node in nodes})
        counts_alike = columns.labels is self.columns.labels and columns.resources == self.columns.resources
        return self._changed(
            columns=columns,
            placements=self.placements if counts_alike else self.placements.moved_to(columns),
            infos=self._infos if columns.images is self.columns.images else {},
        )

    def with_objects(self, **parts: Any) -> Snapshot:
        """The cluster with some of its other objects replaced: keyword arguments are fields of ClusterObjects."""
        remembered = self._remembered if parts.keys() <= _NOT_SCHEDULED_BY else {}
        return self._changed(objects=replace_value(self.objects, **parts), remembered=remembered)

"""The frozen state of a cluster. Each change, such as a cordon or a placed pod, returns another snapshot that shares
all equal parts.

loading.py builds snapshots from API objects; tallies.py has the counts of pods that plugins need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, TypeVar

from scheduler_core.arguments import checked, expect, expect_flags, pairs_of, several
from scheduler_core.model.labels import LabelSelector
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.requests import CURRENT_RULES, RequestRules
from scheduler_core.sentences import html_table
from scheduler_core.snapshot.cluster_objects import ClusterObjects
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.nodes.changing_nodes import ChangingNodes
from scheduler_core.snapshot.pods.placements import Placements, Tally
from scheduler_core.snapshot.pods.utilisation import Utilisation, utilisation_of
from scheduler_core.snapshot.remembered import Remembered
from scheduler_core.values import replace_value

if TYPE_CHECKING:
    from pathlib import Path

Value = TypeVar("Value")

_FILES: Final = "scheduler_core.snapshot.from_files"  # it imports this module
# The built NodeInfo per row, with the node and the state of its pods from which it was built.
_Infos = dict[tuple[int, RequestRules], tuple[Node, object, NodeInfo]]


_REMEMBERED: Final = 8192

# Objects that a drain changes pod by pod, and that no scheduling decision reads.
_NOT_SCHEDULED_BY = frozenset({"budgets", "jobs"})


class UnknownNodeError(KeyError):
    """No node of this name: the caller's list of nodes is older or newer than the snapshot."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownPodError(KeyError):
    """There is no such pod, or it is not where the caller expects it (on a node, pending or assumed): perhaps the
    caller's list of pods is older or newer."""

    def __str__(self) -> str:
        return str(self.args[0])


class Pending(Protocol):
    """The pods without a node, made when they are read."""

    def pods(self) -> tuple[Pod, ...]: ...


class Snapshot:
    """Nodes, the pods on them, the pending pods, and the other objects that scheduling reads.

    `pending` are pods without a node. `orphans` are pods on nodes that the snapshot does not have; like the scheduler,
    the snapshot does not count them. `problems` are objects that could not be read and were left out.
    """

    __slots__ = (
        "_infos",
        "_nodes",
        "_pending",
        "_remembered",
        "objects",
        "orphans",
        "placements",
        "problems",
    )

    def __repr__(self) -> str:
        counts = f"nodes={len(self.nodes)} placed={len(self.placed_pods)} pending={len(self.pending)}"
        orphans = f" orphans={len(self.orphans)}" if self.orphans else ""
        return f"<Snapshot {counts}{orphans} problems={len(self.problems)}>"

    def _repr_html_(self) -> str:
        """For notebooks: how full each node is, then the pods without a node."""
        usage = self.utilisation()
        shares = [
            [f"{share:.0%}" for share in usage.of(name)] if name in usage.resources else [""] * len(self.nodes)
            for name in ("cpu", "memory", "pods")
        ]
        rows = [
            (node.name, *parts, "cordoned" if node.unschedulable else "", len(node.taints))
            for node, *parts in zip(self.nodes, *shares, strict=True)
        ]
        nodes = html_table(("node", "cpu", "memory", "pods", "", "taints"), rows)
        waiting = [(pod.key, pod.priority) for pod in self.pending]
        return nodes + (html_table(("pod without a node", "priority"), waiting) if waiting else "")

    def __init__(
        self,
        *,
        nodes: ChangingNodes,
        placements: Placements,
        objects: ClusterObjects,
        pending: tuple[Pod, ...] | Pending = (),
        orphans: tuple[Pod, ...] = (),
        problems: tuple[ManifestError, ...] = (),
        remembered: Remembered[Hashable, Any] | None = None,
        infos: _Infos | None = None,
    ) -> None:
        self._nodes = nodes
        self.placements = placements
        self.objects = objects
        self._pending = pending
        self.orphans = orphans
        self.problems = problems
        self._remembered = Remembered(_REMEMBERED) if remembered is None else remembered
        self._infos = {} if infos is None else infos

    # ---- making one ----

    @classmethod
    def from_dump(cls, source: str | Path | BinaryIO) -> Snapshot:
        """Reads the file that `careen snapshot` writes. Raises UnreadableDumpError if it is not complete."""
        read: Snapshot = import_module(_FILES).from_dump(source)
        return read

    @classmethod
    def from_manifests(
        cls, *sources: str | bytes | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]], strict: bool = True
    ) -> Snapshot:
        """Reads objects of any kinds: files, folders with all files below them, texts in YAML or JSON, and mappings.

        Pods that no API server has seen get their requests from their limits and their priority from their
        PriorityClass. A workload without a uid becomes its pending pods and their owner, a DaemonSet one pod for each
        node that takes it. Objects that cannot be read are left out and listed in `problems`. YAML needs PyYAML.
        Raises FileNotFoundError for a file that does not exist, and ValueError for a text that is neither YAML nor
        JSON.
        """
        expect_flags(strict=strict)
        read: Snapshot = import_module(_FILES).from_manifests(sources, strict=strict)
        return read

    @classmethod
    @checked
    def of(
        cls,
        nodes: Sequence[Node],
        pods: Iterable[Pod] = (),
        objects: ClusterObjects | None = None,
        problems: tuple[ManifestError, ...] = (),
    ) -> Snapshot:
        """Returns a snapshot of parsed values, without finished pods. The position of a node in `nodes` becomes its
        row."""
        pods = several("pods", pods, Pod)
        for each, number in Counter(node.name for node in nodes).items():
            if number > 1:
                raise ValueError(f"{number} nodes have the name {each!r}: pass one of them")
        all_nodes = ChangingNodes.of(nodes)
        row_of = all_nodes.columns.row_of
        placed: list[Pod] = []
        pending: list[Pod] = []
        orphans: list[Pod] = []
        for pod in pods:
            if not pod.is_finished:
                (pending if not pod.node_name else placed if pod.node_name in row_of else orphans).append(pod)
        return cls(
            nodes=all_nodes,
            placements=Placements.of(placed, all_nodes.columns),
            objects=objects or ClusterObjects(),
            pending=tuple(pending),
            orphans=tuple(orphans),
            problems=problems,
        )

    def _changed(self, **parts: Any) -> Snapshot:
        """By the names of `__slots__`."""
        new = object.__new__(Snapshot)
        new._nodes = self._nodes
        new.placements = self.placements
        new.objects = self.objects
        new._pending = self._pending
        new.orphans = self.orphans
        new.problems = self.problems
        new._remembered = self._remembered
        new._infos = self._infos
        for name, part in parts.items():
            setattr(new, name, part)
        return new

    # ---- content ----

    @property
    def columns(self) -> Columns:
        """The data of all nodes as columns, after a change of nodes computed on first access."""
        return self._nodes.columns

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.columns.nodes

    @property
    def node_names(self) -> tuple[str, ...]:
        return self.columns.names

    def row(self, node_name: str) -> int:
        """Raises UnknownNodeError if there is no such node."""
        if type(node_name) is not str:
            expect("node_name", node_name, str)
        row = self._nodes.row_of(node_name)
        if row is None:
            raise UnknownNodeError(f"the snapshot has no node {node_name!r}")
        return row

    def has_node(self, node_name: str) -> bool:
        expect("node_name", node_name, str)
        return self._nodes.row_of(node_name) is not None

    def node(self, node_name: str) -> Node:
        return self._nodes[self.row(node_name)]

    def node_info(self, row: int, rules: RequestRules = CURRENT_RULES) -> NodeInfo:
        """One node with its pods and the sums of their requests."""
        if type(rules) is not RequestRules:
            expect("rules", rules, RequestRules)
        try:
            node, pods = self.columns.nodes[row], self.placements.state_of(row)
        except (IndexError, TypeError) as error:
            raise type(error)(f"row is {row!r}, expected the position of a node: pass snapshot.row(name)") from None
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
        """The pods on a node, including terminating ones. Raises UnknownNodeError if there is no such node."""
        return self.placements.on_node(self.row(node_name))

    def pod(self, key: str) -> Pod:
        """The pod with the key "namespace/name", on a node or not. Raises UnknownPodError if there is no such pod."""
        expect("key", key, str)
        found = self.placements.find(key) or next(
            (pod for pod in (*self.pending, *self.orphans) if pod.key == key), None
        )
        if found is None:
            raise UnknownPodError(f"the snapshot has no pod {key}")
        return found

    @property
    def pending(self) -> tuple[Pod, ...]:
        """The pods without a node."""
        if not isinstance(self._pending, tuple):
            self._pending = self._pending.pods()
        return self._pending

    @property
    def placed_pods(self) -> Sequence[Pod]:
        """In no particular order."""
        return self.placements.all_pods()

    def utilisation(self, rules: RequestRules = CURRENT_RULES) -> Utilisation:
        """The capacity of the nodes and the requests of their pods, as arrays."""
        expect("rules", rules, RequestRules)
        return utilisation_of(self.columns, self.placements, rules)

    def tally(self, tally: Tally[Value]) -> Value:
        """A count of the placed pods, made once and updated by derived snapshots."""
        return self.placements.tally(tally, self.columns)

    def namespaces_selected(self, selector: LabelSelector) -> frozenset[str]:
        """The names of the namespaces whose labels match."""
        expect("selector", selector, LabelSelector)
        return self.remember(
            ("namespaces", selector),
            lambda: frozenset(name for name, labels in self.objects.namespaces.items() if selector.matches(labels)),
        )

    def remember(self, key: Hashable, work_out: Callable[[], Value]) -> Value:
        """The result of `work_out`, computed once for all snapshots that differ only in nodes, pods, budgets and
        Jobs. So it may depend only on the key and on objects of other kinds."""
        known = self._remembered.get(key)
        if known is None:
            known = self._remembered[key] = work_out()
        result: Value = known
        return result

    # ---- other snapshots ----

    def with_pod_placed(self, pod: Pod, node_name: str) -> Snapshot:
        """Puts the pod on this node. A pending pod with the same key is no longer pending."""
        expect("pod", pod, Pod)
        return self.with_pods_placed(((pod, node_name),))

    def with_pods_placed(self, pairs: Iterable[tuple[Pod, str]]) -> Snapshot:
        """Puts each pod of the (pod, node name) pairs on its node, after removing it from its earlier node or from
        the pending pods. Raises UnknownNodeError if a node does not exist."""
        known = pairs_of(pairs, (Pod, str), "(pod, node name)")
        coming = {pod.key: pod.on_node(node_name) for pod, node_name in known}
        keys = coming.keys()
        leaving = [old for old in map(self.placements.find, keys) if old is not None]
        placed = self._moved([*((-1, pod) for pod in leaving), *((1, pod) for pod in coming.values())])
        if self.pending:
            placed._pending = tuple(pod for pod in self.pending if pod.key not in keys)
        if self.orphans:
            placed.orphans = tuple(pod for pod in self.orphans if pod.key not in keys)
        return placed

    def without_pod(self, key: str) -> Snapshot:
        """Raises UnknownPodError if the pod is on no node of the snapshot."""
        return self.without_pods((key,))

    def without_pods(self, keys: Iterable[str]) -> Snapshot:
        """Raises UnknownPodError if a pod is on no node of the snapshot."""
        if isinstance(keys, str):
            raise TypeError(f"keys is the text {keys!r}, expected several: pass [{keys!r}]")
        return self._moved([(-1, self._placed(key)) for key in several("keys", keys, str)])

    def with_pods_exchanged(self, pairs: Iterable[tuple[str, Pod]]) -> Snapshot:
        """Each pair has the key of a pod, which goes, and its replacement on the same node. Raises UnknownPodError
        if a pod to remove is on no node of the snapshot."""
        moves: list[tuple[int, Pod]] = []
        for key, pod in pairs_of(pairs, (str, Pod), "(key, pod)"):
            old = self._placed(key)
            moves += ((-1, old), (1, pod.on_node(old.node_name)))
        return self._moved(moves)

    def with_pods_moved(self, leaving: Iterable[Pod], coming: Iterable[Pod]) -> Snapshot:
        """Without the `leaving` pods and with the `coming` ones, each on its `node_name`. Raises UnknownNodeError if
        the node of an added pod does not exist."""
        leaving, coming = several("leaving", leaving, Pod), several("coming", coming, Pod)
        return self._moved([*((-1, pod) for pod in leaving), *((1, pod) for pod in coming)])

    @checked
    def with_orphans(self, orphans: tuple[Pod, ...]) -> Snapshot:
        """Returns the snapshot with these pods in place of its `orphans`. A pod is in `orphans` if its node is missing
        from the snapshot."""
        return self._changed(orphans=orphans)

    def with_others(
        self, *, pending: Pending, orphans: tuple[Pod, ...], problems: tuple[ManifestError, ...]
    ) -> Snapshot:
        """Returns a snapshot that differs from this snapshot only in the given values: the pending pods, the pods whose
        node is missing from the snapshot (`orphans`), and the objects that cannot be read (`problems`).

        Both snapshots read one internal log, which lists pods that were added to nodes or removed from nodes. Only this
        snapshot may append to the log. For example, `without_pod` on the returned snapshot starts a new log.
        """
        return self._changed(_pending=pending, orphans=orphans, problems=problems, placements=self.placements.lent())

    def _moved(self, moves: Sequence[tuple[int, Pod]]) -> Snapshot:
        """Each move is (1, pod), which puts the pod on its node, or (-1, pod), which removes it."""
        changes = [(sign, self.row(pod.node_name), pod) for sign, pod in moves]
        return self._changed(placements=self.placements.after(changes, self._nodes))

    def _placed(self, key: str) -> Pod:
        pod = self.placements.find(key)
        if pod is None:
            raise UnknownPodError(f"pod {key} is on no node of the snapshot")
        return pod

    def with_pod_terminating(self, key: str) -> Snapshot:
        """Topology spread does not count terminating pods; all other counts include them."""
        expect("key", key, str)
        pod = self._placed(key)
        return self if pod.terminating else self._moved(((-1, pod), (1, replace_value(pod, terminating=True))))

    def with_node_cordoned(self, node_name: str, *, with_taint: bool = True) -> Snapshot:
        """Shortly after a cordon: the node is unschedulable, and by default it has the taint of the node lifecycle
        controller."""
        return self.with_node_replaced(self.node(node_name).cordoned(with_taint=with_taint))

    def without(self, key: str) -> Snapshot:
        """Without this pod, on a node or not. The same snapshot if there is no such pod."""
        expect("key", key, str)
        placed = self.placements.find(key)
        rest = self if placed is None else self.without_pod(key)
        return rest._changed(
            _pending=tuple(pod for pod in self.pending if pod.key != key),
            orphans=tuple(pod for pod in self.orphans if pod.key != key),
        )

    def with_node_uncordoned(self, node_name: str) -> Snapshot:
        """After an uncordon, which also removes the cordon's taint."""
        return self.with_node_replaced(self.node(node_name).uncordoned())

    def with_node_replaced(self, node: Node) -> Snapshot:
        """This node replaces the node of the same name."""
        return self.with_nodes_replaced((node,))

    def with_nodes_replaced(self, nodes: Iterable[Node]) -> Snapshot:
        """Each of these nodes replaces the node of the same name."""
        nodes = several("nodes", nodes, Node)
        changed = {self.row(node.name): node for node in nodes}
        keeps_images = all(self._nodes[row].images == node.images for row, node in changed.items())
        return self._changed(_nodes=self._nodes.with_replaced(changed), _infos=self._infos if keeps_images else {})

    def with_node_added(self, node: Node) -> Snapshot:
        """Returns the snapshot with one more node, as if the scheduler had seen this node last. The snapshot may
        already have pods of this node, in `orphans` (the pods whose node is missing). These pods become placed pods.
        Raises ValueError if the snapshot has a node with that name."""
        return self.with_nodes_added((node,))

    def with_nodes_added(self, nodes: Sequence[Node]) -> Snapshot:
        """Adds nodes in this order; see `with_node_added`."""
        nodes = several("nodes", nodes, Node)
        names: set[str] = set()
        for node in nodes:
            if node.name in names or self.has_node(node.name):
                raise ValueError(f"the snapshot already has a node {node.name!r}")
            names.add(node.name)
        come = [pod for pod in self.orphans if pod.node_name in names]
        orphans = tuple(pod for pod in self.orphans if pod.node_name not in names) if come else self.orphans
        larger = self._changed(_nodes=self._nodes.with_added(nodes), orphans=orphans, _infos={})
        return larger._moved([(1, pod) for pod in come]) if come else larger

    def without_node(self, node_name: str) -> Snapshot:
        """Returns the snapshot without this node. The pods of the node stay in the snapshot, but move to `orphans` (the
        pods whose node is missing). A real scheduler also still has these pods until it sees their deletion. The last
        node gets the row of the removed node. The scheduler's order of the other nodes stays the same."""
        row, last = self.row(node_name), len(self._nodes) - 1
        gone = self.placements.on_node(row)
        moves = [(-1, row, pod) for pod in gone]
        if row != last:
            for pod in self.placements.on_node(last):
                moves += ((-1, last, pod), (1, row, pod))
        return self._changed(
            _nodes=self._nodes.without(row),
            placements=self.placements.after(moves, self._nodes),
            orphans=(*self.orphans, *gone),
            _infos={},
        )

    def with_objects(self, **parts: Any) -> Snapshot:
        """Changes objects other than nodes and pods. Each keyword argument is a field of ClusterObjects."""
        remembered = self._remembered if parts.keys() <= _NOT_SCHEDULED_BY else Remembered(_REMEMBERED)
        return self._changed(objects=replace_value(self.objects, **parts), _remembered=remembered)

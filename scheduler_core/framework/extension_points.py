"""The extension points, one Protocol each, in the order in which a pod passes them; the all-nodes forms are next to the
per-node forms.

A plugin is a small frozen object with a `name`. It is a filter, a scorer and so on because it has the method that the
Protocol names; nothing is registered twice. Its inputs come from its factory or from the call: there is no handle to
everything.

Source of the points and their order: k8s.io/kube-scheduler/framework/interface.go, v1.36."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SUCCESS, Verdict
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.values import Value

if TYPE_CHECKING:
    from scheduler_core.framework.failed_search import FailedSearch

Scores = NDArray[np.int64]
MAX_NODE_SCORE = 100


class Plugin(Protocol):
    """Any object with a name; configurations and refusals use the name."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class QueueSortPlugin(Protocol):
    """Orders the active queue. Exactly one plugin serves this point."""

    @property
    def name(self) -> str: ...
    def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        """Whether `one` is to be scheduled before `other`."""
        ...


class QueuedPodInfo(Protocol):
    """The fields that queue sorting reads of an entry: the pod, and the time when it was queued in seconds."""

    @property
    def pod(self) -> Pod: ...
    @property
    def timestamp(self) -> float: ...


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    """Whether the pod may enter the active queue. A refused pod stays gated until one of this plugin's events
    occurs."""

    @property
    def name(self) -> str: ...
    def pre_enqueue(self, pod: Pod) -> Verdict: ...


class PreFilterResult(Value):
    """`node_names` None means all nodes; a set restricts the search to it. A SKIP verdict skips the plugin's filter for
    this pod."""

    verdict: Verdict = SUCCESS
    node_names: frozenset[str] | None = None


@runtime_checkable
class PreFilterPlugin(Protocol):
    """Reads the pod and the whole cluster once, writes state for the filter, may refuse every node at once."""

    @property
    def name(self) -> str: ...
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult: ...


@runtime_checkable
class PreFilterExtensions(Protocol):
    """Updates the state of pre_filter while preemption or nominated pods add and remove pods on one node.

    `node_info` already contains the change. State values are replaced, not changed."""

    @property
    def name(self) -> str: ...
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node_info: NodeInfo) -> Verdict: ...
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node_info: NodeInfo) -> Verdict: ...


@runtime_checkable
class FilterPlugin(Protocol):
    """Whether the pod may run on this node."""

    @property
    def name(self) -> str: ...
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict: ...


@runtime_checkable
class FilterAllPlugin(Protocol):
    """The all-nodes form of a filter, over the snapshot's columns. None means: use the per-node form for this pod."""

    @property
    def name(self) -> str: ...
    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals | None: ...


@runtime_checkable
class NodeRulePlugin(Protocol):
    """Its answers for all nodes (`filter_all`, `score_all`, `normalize`) depend on the nodes, on its own settings, and
    of the pod only on `node_key`: not on placed pods, other objects, or state. They are kept while the nodes stay the
    same."""

    @property
    def name(self) -> str: ...
    def node_key(self, pod: Pod) -> Hashable:
        """Equal for pods that get equal answers."""
        ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    """Runs if no node fits, in order until one plugin succeeds.

    The in-tree plugins are DefaultPreemption and DynamicResources."""

    @property
    def name(self) -> str: ...
    def post_filter(self, state: CycleState, pod: Pod, search: FailedSearch) -> PostFilterResult: ...


class Nomination(Value, kw_only=True):
    """Preemption's answer: the node, and the pods to evict there ("namespace/name", sorted).

    `clears` means: no node is nominated, and the handling of the failed cycle removes an earlier nomination.
    `is_sampled`: enough nodes were found before all were tried; the real search begins at a random one."""

    node: str = ""
    victims: tuple[str, ...] = ()
    clears: bool = False
    is_sampled: bool = False


class PostFilterResult(Value):
    """The result of PostFilter; `nomination` None keeps an earlier nomination."""

    verdict: Verdict
    nomination: Nomination | None = None


@runtime_checkable
class PreScorePlugin(Protocol):
    """Reads the nodes that passed and writes state for the score. A SKIP verdict means: 0 for every node."""

    @property
    def name(self) -> str: ...
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict: ...


@runtime_checkable
class ScorePlugin(Protocol):
    """The score of one node. Any integer if the plugin normalizes; else 0 to 100."""

    @property
    def name(self) -> str: ...
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int: ...


@runtime_checkable
class ScoreAllPlugin(Protocol):
    """The all-nodes form of a score. None means: use the per-node form for this pod.

    As in the per-node form, a node's score depends on the node, the cluster and the state of pre_score, not on the
    other nodes requested: `nodes` may contain some that did not pass."""

    @property
    def name(self) -> str: ...
    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores | None: ...


@runtime_checkable
class NormalizePlugin(Protocol):
    """Brings the scores of all nodes that passed, in the order of `nodes`, into 0 to 100. Returns a new array."""

    @property
    def name(self) -> str: ...
    def normalize(self, state: CycleState, pod: Pod, nodes: NodeList, scores: Scores) -> Scores: ...


@runtime_checkable
class ReservePlugin(Protocol):
    """Reserves something for the pod on the chosen node, and releases it if the pod is not bound there."""

    @property
    def name(self) -> str: ...
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Verdict: ...
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None: ...


@runtime_checkable
class PermitPlugin(Protocol):
    """Whether the pod may be bound now. WAIT makes it wait."""

    @property
    def name(self) -> str: ...
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Verdict: ...


@runtime_checkable
class PreBindPlugin(Protocol):
    """Work that must be done before binding, such as binding the pod's volumes."""

    @property
    def name(self) -> str: ...
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict: ...


@runtime_checkable
class BindPlugin(Protocol):
    """Binds the pod. SKIP passes it to the next bind plugin."""

    @property
    def name(self) -> str: ...
    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict: ...


@runtime_checkable
class PostBindPlugin(Protocol):
    """Called after the pod was bound."""

    @property
    def name(self) -> str: ...
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None: ...

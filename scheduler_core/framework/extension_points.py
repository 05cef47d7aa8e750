"""The extension points, one Protocol each, in the order in which a pod meets them; the all-nodes forms stand
beside theirs.

A plugin is a small frozen object with a `name`. It *is* a filter, a scorer and so on because it has the method
that the Protocol names; nothing is registered twice. What it needs comes in its factory or in the call: there
is no handle to everything.

Source of the points and their order: k8s.io/kube-scheduler/framework/interface.go, v1.36.
"""

from __future__ import annotations

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
    """Anything with a name; the name is what configurations and refusals call it."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class QueueSortPlugin(Protocol):
    """Who comes first in the active queue. Exactly one plugin serves this point."""

    @property
    def name(self) -> str: ...
    def less(self, one: QueuedPod, other: QueuedPod) -> bool:
        """Whether `one` is to be scheduled before `other`."""
        ...


class QueuedPod(Protocol):
    """What queue sorting sees of an entry: the pod and when it was put into the queue, in seconds."""

    @property
    def pod(self) -> Pod: ...
    @property
    def timestamp(self) -> float: ...


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    """May the pod enter the active queue at all? A refusal keeps it gated until this plugin's events come."""

    @property
    def name(self) -> str: ...
    def pre_enqueue(self, pod: Pod) -> Verdict: ...


class PreFilterResult(Value):
    """`node_names` None means all nodes; a set narrows the search to it. A SKIP verdict excuses the plugin from
    filtering this pod."""

    verdict: Verdict = SUCCESS
    node_names: frozenset[str] | None = None


@runtime_checkable
class PreFilterPlugin(Protocol):
    """Looks at the pod and the whole cluster once, leaves notes for the filter, may refuse every node at a stroke."""

    @property
    def name(self) -> str: ...
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult: ...


@runtime_checkable
class PreFilterExtensions(Protocol):
    """Keeps the notes of pre_filter true while preemption or nominated pods add and remove pods on one node.

    `node_info` already has the change. Notes are replaced, not changed.
    """

    @property
    def name(self) -> str: ...
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node_info: NodeInfo) -> Verdict: ...
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node_info: NodeInfo) -> Verdict: ...


@runtime_checkable
class FilterPlugin(Protocol):
    """May the pod run on this node?"""

    @property
    def name(self) -> str: ...
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict: ...


@runtime_checkable
class FilterAllPlugin(Protocol):
    """The all-nodes form of a filter, over the snapshot's columns. None declines: the per-node form is used for
    this pod."""

    @property
    def name(self) -> str: ...
    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals | None: ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    """Nothing fits: can something be done about it? Asked in order until one succeeds.

    In the tree preemption and dynamic resources do.
    """

    @property
    def name(self) -> str: ...
    def post_filter(self, state: CycleState, pod: Pod, search: FailedSearch) -> PostFilterResult: ...


class Nomination(Value, kw_only=True):
    """Preemption's answer: the node, and the pods to evict there ("namespace/name", sorted).

    `clears` means: no node is nominated, and a nomination made earlier is to be removed by the handling of the
    failed cycle. `is_sampled`: enough nodes were found before all were tried; the real search begins at a random
    one."""

    node: str = ""
    victims: tuple[str, ...] = ()
    clears: bool = False
    is_sampled: bool = False


class PostFilterResult(Value):
    """`nomination` None leaves an earlier nomination as it is."""

    verdict: Verdict
    nomination: Nomination | None = None


@runtime_checkable
class PreScorePlugin(Protocol):
    """Looks at the nodes that passed, leaves notes for the score. A SKIP verdict means: 0 for every node."""

    @property
    def name(self) -> str: ...
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict: ...


@runtime_checkable
class ScorePlugin(Protocol):
    """How good is this node? Any integer, if the plugin normalizes; else 0 to 100."""

    @property
    def name(self) -> str: ...
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int: ...


@runtime_checkable
class ScoreAllPlugin(Protocol):
    """The all-nodes form of a score. None declines: the per-node form is used for this pod.

    As in the per-node form, a node's score depends on the node, the cluster and the notes of pre_score, not on which
    other nodes are asked for: `nodes` may hold some that did not pass."""

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
    """Sets something aside for the pod on the chosen node, and gives it back when the pod does not get there
    after all."""

    @property
    def name(self) -> str: ...
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Verdict: ...
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None: ...


@runtime_checkable
class PermitPlugin(Protocol):
    """May the pod be bound now? WAIT holds it back."""

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
    """Binds the pod. SKIP hands it to the next bind plugin."""

    @property
    def name(self) -> str: ...
    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict: ...


@runtime_checkable
class PostBindPlugin(Protocol):
    """Told that the pod is bound."""

    @property
    def name(self) -> str: ...
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None: ...

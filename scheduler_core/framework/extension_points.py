"""The extension points, one Protocol each, in the order in which a pod passes them. Some have a second Protocol for
plugins that handle all nodes in one call (the all-nodes form).

A plugin is a small frozen object with a `name`. It serves an extension point by having the method of its Protocol; it
need not register. Its inputs come from its factory or from the call; it never gets a handle to the whole scheduler.

Source of the points and their order: k8s.io/kube-scheduler/framework/interface.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SUCCESS, Verdict
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.usage import Usage
from scheduler_core.values import Value

if TYPE_CHECKING:
    from scheduler_core.framework.failed_search import FailedSearch

Scores = NDArray[np.int64]
Places = NDArray[np.integer]
MAX_NODE_SCORE = 100


class Plugin(Protocol):
    """Configurations and refusals use the name."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class QueueSortPlugin(Protocol):
    """Orders the active queue. Exactly one plugin serves this point."""

    @property
    def name(self) -> str: ...
    def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        """Whether the scheduler should try `one` before `other`."""
        ...


class QueuedPodInfo(Protocol):
    """What queue sorting reads: the pod, and the time in seconds when it was queued."""

    @property
    def pod(self) -> Pod: ...
    @property
    def timestamp(self) -> float: ...


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    """Whether the pod may enter the active queue. A refused pod waits for an event for which the plugin registered."""

    @property
    def name(self) -> str: ...
    def pre_enqueue(self, pod: Pod) -> Verdict: ...


class PreFilterResult(Value):
    """The nodes to search: `node_names`, or all if None. The verdict SKIP: the plugin's filter need not run for this
    pod."""

    verdict: Verdict = SUCCESS
    node_names: frozenset[str] | None = None


@runtime_checkable
class PreFilterPlugin(Protocol):
    """Reads the pod and the whole cluster once, and writes state for the filter. May refuse every node at once."""

    @property
    def name(self) -> str: ...
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult: ...


@runtime_checkable
class SkipsBySpec(Protocol):
    """A PreFilter plugin that can tell from a pod's spec alone that it has nothing to filter."""

    @property
    def name(self) -> str: ...
    def skips(self, spec: PodSpec) -> bool:
        """Whether `pre_filter` returns SKIP for every pod with this spec in every cluster. It is then not called, so
        the plugin's other methods must not read the state that it writes.

        A subclass that overrides `pre_filter` must override `skips` too if the inherited result would be wrong.
        """
        ...


@runtime_checkable
class PreFilterExtensions(Protocol):
    """Updates the state of `pre_filter` when a pod is added to a node or removed from it. Preemption adds and removes
    pods; nominated pods are only added.

    `node_info` already contains the change. Methods write new state values instead of changing the old ones.
    """

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
    """A filter that checks all nodes in one call, with the snapshot's columns. If it returns None, `filter` is called
    for each node."""

    @property
    def name(self) -> str: ...
    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals | None: ...


@runtime_checkable
class FiltersBySpec(Protocol):
    """If `filters_by_spec`, the verdict on a node depends only on the pod's spec and node name, the plugin's settings,
    the node with its pods, and objects of other kinds. Preemption then keeps what it found on a node for later pods
    with this spec.

    A subclass with another `filter` or `pre_filter` must set `filters_by_spec` to False if that is not true of it.
    """

    filters_by_spec: bool

    @property
    def name(self) -> str: ...
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict: ...


@runtime_checkable
class NodeRulePlugin(Protocol):
    """A plugin whose results for all nodes can be cached while the nodes stay the same: `filter_all`, `score_all` and
    `normalize` may read only the nodes, the plugin's settings and the pod's `node_key`, but no placed pods, other
    objects or cycle state."""

    @property
    def name(self) -> str: ...
    def node_key(self, pod: Pod) -> Hashable:
        """Pods with equal keys get the same results."""
        ...


@runtime_checkable
class UsageRulePlugin(Protocol):
    """A score plugin whose scores can be cached while the requests of the pods on a node stay the same.

    `score_usage` may read only the nodes' allocatable resources, their usage, the plugin's settings and what
    `usage_key` contains. A plugin that normalizes cannot be one: each of its scores depends on the other nodes. The
    scheduler calls `score_usage` instead of `score`, so a subclass with other scores must override it too.
    """

    @property
    def name(self) -> str: ...
    def usage_key(self, state: CycleState) -> Hashable:
        """Pods with equal keys get the same scores. Called after PreScore; reads what PreScore wrote to `state`."""
        ...

    def score_usage(self, state: CycleState, nodes: NodeList, usage: Usage) -> Scores:
        """`usage`: the requests of the pods on each node, in the order of `nodes`."""
        ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    """Runs if no node fits, in order until one plugin succeeds. In-tree: DefaultPreemption and DynamicResources."""

    @property
    def name(self) -> str: ...
    def post_filter(self, state: CycleState, pod: Pod, search: FailedSearch) -> PostFilterResult: ...


class Nomination(Value, kw_only=True):
    """The result of preemption: the node, and the pods to evict there ("namespace/name", sorted).

    `clears`: no node is nominated, and an earlier nomination is removed when the cycle fails. `is_sampled`: not all
    nodes were tried; the real scheduler begins at a random node and may find other candidates. `unordered_budgets`:
    disruption budgets that select one pod together; the real scheduler has them in random order, which may decide.
    """

    node: str = ""
    victims: tuple[str, ...] = ()
    clears: bool = False
    is_sampled: bool = False
    unordered_budgets: tuple[str, ...] = ()

    @property
    def doubt(self) -> str:
        """That the order of overlapping budgets may decide; "" if none may."""
        if not self.unordered_budgets:
            return ""
        budgets = f"{', '.join(self.unordered_budgets[:-1])} and {self.unordered_budgets[-1]}"
        return (
            f"the disruption budgets {budgets} select the same pod, and kube-scheduler counts them in random order: it "
            "may preempt other pods or choose another node"
        )


class PostFilterResult(Value):
    """If `nomination` is None, the pod keeps an earlier nomination."""

    verdict: Verdict
    nomination: Nomination | None = None


@runtime_checkable
class PreScorePlugin(Protocol):
    """Reads the nodes that passed the filters, and writes state for the score. SKIP: the plugin adds 0 to every
    node."""

    @property
    def name(self) -> str: ...
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict: ...


@runtime_checkable
class PreparesBySpec(Protocol):
    """A PreScore plugin whose verdict and state depend only on the pod's spec, the plugin's settings and the rules of
    the nodes' requests (`NodeList.rules`), so that both are kept for all pods with this spec. It is asked anew about a
    pod whose status reports resources (`Pod.resize`).

    A subclass with another `pre_score` must set `prepares_by_spec` to False if that is not true of it.
    """

    prepares_by_spec: bool

    @property
    def name(self) -> str: ...
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict: ...


@runtime_checkable
class ScorePlugin(Protocol):
    """The score of one node: any integer if the plugin normalizes scores, otherwise 0 to 100."""

    @property
    def name(self) -> str: ...
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int: ...


@runtime_checkable
class ScoreAllPlugin(Protocol):
    """Scores all nodes in one call. If it returns None, `score` is called for each node.

    As with `score`, a node's score depends on the node, the cluster and the state of pre_score, but not on other nodes.
    `nodes` may contain nodes that did not pass the filters.
    """

    @property
    def name(self) -> str: ...
    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores | None: ...


@runtime_checkable
class TabledScorePlugin(Protocol):
    """A score plugin that may give the normalized scores of all nodes as a table, because few different ones occur.

    The scheduler calls `score_table` before `score_all` and `normalize`, so a subclass with other scores must override
    it too.
    """

    @property
    def name(self) -> str: ...
    def score_table(self, state: CycleState, pod: Pod, nodes: NodeList) -> tuple[list[int], Places] | None:
        """The scores, from 0 to 100, and for each node the position of its score among them. None if there would be
        too many: `score_all` and `normalize` are then called."""
        ...


@runtime_checkable
class NormalizePlugin(Protocol):
    """Scales the scores of all nodes that passed the filters to 0 … 100, as a new array in the order of `nodes`."""

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
    """Does the work that must precede the binding, such as binding the pod's volumes."""

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

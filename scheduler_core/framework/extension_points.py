"""Defines the extension points, one Protocol each, in the order in which a pod passes them. Some points have a second
Protocol for plugins that can handle all nodes in one call (the all-nodes form) instead of one node per call.

A plugin is a small frozen object with a `name`. It serves an extension point if it has the method of that point's
Protocol; it need not register. A plugin gets its inputs from its factory or from the call, and never a handle to the
whole scheduler.

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
MAX_NODE_SCORE = 100


class Plugin(Protocol):
    """Any object with a name. Configurations and refusals use the name."""

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
    """The fields of a queue entry that queue sorting reads: the pod, and the time in seconds when it was queued."""

    @property
    def pod(self) -> Pod: ...
    @property
    def timestamp(self) -> float: ...


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    """Decides whether the pod may enter the active queue. A refused pod waits until an event occurs for which the
    plugin registered."""

    @property
    def name(self) -> str: ...
    def pre_enqueue(self, pod: Pod) -> Verdict: ...


class PreFilterResult(Value):
    """The nodes that the search may use: the nodes in `node_names`, or all nodes if `node_names` is None. The verdict
    SKIP means that the plugin's filter need not run for this pod."""

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
        """Whether `pre_filter` returns SKIP for every pod with this spec in every cluster. `pre_filter` is then not
        called, so the plugin's other methods must not read the state that `pre_filter` writes.

        A subclass inherits this method. A subclass that overrides `pre_filter` must override `skips` too if the
        inherited result would be wrong.
        """
        ...


@runtime_checkable
class PreFilterExtensions(Protocol):
    """Updates the state that `pre_filter` wrote, when a pod is added to a node or removed from it. Preemption adds and
    removes pods; nominated pods are only added.

    `node_info` already contains the change. Methods write new state values instead of changing the old ones.
    """

    @property
    def name(self) -> str: ...
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node_info: NodeInfo) -> Verdict: ...
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node_info: NodeInfo) -> Verdict: ...


@runtime_checkable
class FilterPlugin(Protocol):
    """Decides whether the pod may run on this node."""

    @property
    def name(self) -> str: ...
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict: ...


@runtime_checkable
class FilterAllPlugin(Protocol):
    """A filter that checks all nodes in one call, with the snapshot's columns. If it returns None, `filter` is called
    for each node instead."""

    @property
    def name(self) -> str: ...
    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals | None: ...


@runtime_checkable
class NodeRulePlugin(Protocol):
    """A plugin whose results for all nodes can be cached while the nodes stay the same. `filter_all`, `score_all` and
    `normalize` may read only the nodes, the plugin's settings and the pod's `node_key`. These methods must not read
    placed pods, other objects or the cycle's state."""

    @property
    def name(self) -> str: ...
    def node_key(self, pod: Pod) -> Hashable:
        """Returns a key. Pods with equal keys get the same results."""
        ...


@runtime_checkable
class UsageRulePlugin(Protocol):
    """A score plugin whose scores can be cached while the requests of the pods on a node stay the same.

    `score_usage` may read only the nodes' allocatable resources, their usage, the plugin's settings, and what
    `usage_key` contains. A plugin that normalizes its scores cannot be a UsageRulePlugin, because each of its scores
    depends on the other nodes. For a UsageRulePlugin, the scheduler calls `score_usage` instead of `score`. So a
    subclass with other scores must override `score_usage`, not only `score`.
    """

    @property
    def name(self) -> str: ...
    def usage_key(self, state: CycleState) -> Hashable:
        """Returns a key. Pods with equal keys get the same scores. The method is called after PreScore, and reads what
        PreScore wrote to `state`."""
        ...

    def score_usage(self, state: CycleState, nodes: NodeList, usage: Usage) -> Scores:
        """Returns the scores of these nodes. `usage` has the requests of the pods on each node, in the order of
        `nodes`."""
        ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    """Runs if no node fits. The plugins run in order until one succeeds.

    The in-tree plugins are DefaultPreemption and DynamicResources.
    """

    @property
    def name(self) -> str: ...
    def post_filter(self, state: CycleState, pod: Pod, search: FailedSearch) -> PostFilterResult: ...


class Nomination(Value, kw_only=True):
    """The result of preemption: the node, and the pods to evict there ("namespace/name", sorted).

    If `clears` is true, no node is nominated, and an earlier nomination is removed when the cycle fails. If
    `is_sampled` is true, not all nodes were tried; the real scheduler may then find other candidates, because it begins
    at a random node.
    """

    node: str = ""
    victims: tuple[str, ...] = ()
    clears: bool = False
    is_sampled: bool = False


class PostFilterResult(Value):
    """The result of PostFilter. If `nomination` is None, the pod keeps an earlier nomination."""

    verdict: Verdict
    nomination: Nomination | None = None


@runtime_checkable
class PreScorePlugin(Protocol):
    """Reads the nodes that passed the filters, and writes state for the score. The verdict SKIP means that the plugin
    adds 0 to the score of every node."""

    @property
    def name(self) -> str: ...
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict: ...


@runtime_checkable
class ScorePlugin(Protocol):
    """Returns the score of one node: any integer if the plugin normalizes scores, otherwise 0 to 100."""

    @property
    def name(self) -> str: ...
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int: ...


@runtime_checkable
class ScoreAllPlugin(Protocol):
    """A plugin that scores all nodes in one call. If it returns None, `score` is called for each node instead.

    As with `score`, a node's score depends on the node, the cluster and the state of pre_score, but not on other nodes.
    `nodes` may contain nodes that did not pass the filters.
    """

    @property
    def name(self) -> str: ...
    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores | None: ...


@runtime_checkable
class NormalizePlugin(Protocol):
    """Scales the scores of all nodes that passed the filters, so that they are between 0 and 100. Returns a new array
    in the order of `nodes`."""

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
    """Decides whether the pod may be bound now. WAIT makes the pod wait."""

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
    """Binds the pod. SKIP passes the pod to the next bind plugin."""

    @property
    def name(self) -> str: ...
    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict: ...


@runtime_checkable
class PostBindPlugin(Protocol):
    """Is called after the pod was bound."""

    @property
    def name(self) -> str: ...
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None: ...

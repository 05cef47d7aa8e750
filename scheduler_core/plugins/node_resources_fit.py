"""Refuses nodes without room for the pod's requests, and scores nodes by their free resources.

framework/scoring/resource_scoring.py has the three scoring strategies.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache, partial
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import NodeResourcesFitArgs, ResourceWeight
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PreFilterResult, Scores
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.scoring.by_usage import by_usage
from scheduler_core.framework.scoring.resource_scoring import (
    ResourceShare,
    score_of_node,
    scores_of_nodes,
    strategy_of,
)
from scheduler_core.framework.verdict import SUCCESS, Verdict, unresolvable, unschedulable
from scheduler_core.model.kept_with_spec import kept_with_spec
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.model.requests import RequestRules, incoming_requests, scored_requests
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended, is_scalar
from scheduler_core.snapshot.columns import MOST_COUNTED
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.usage import Usage
from scheduler_core.values import Value

_TOO_MANY_PODS: Final = "Too many pods"
_MOST_IN_A_BYTE: Final = 5  # resources, with a bit each; the other bits are the sign and bits 0 and 1 of `filter_all`


class PodDemand(Value):
    """What a node must have room for: `("memory", 1048576)`. A refusal lists the missing resources in the same order.

    `from_devices`: extended resources that a DeviceClass provides. On nodes that do not offer them, DynamicResources
    decides.
    """

    amounts: tuple[tuple[str, int], ...]
    from_devices: frozenset[str]


class NodeResourcesFit(Value):
    """The pod's exact requests must fit into the free amounts of the node, and the pod into the number of pods that the
    node allows."""

    args: NodeResourcesFitArgs
    kube_version: KubeVersion
    name: ClassVar[str] = "NodeResourcesFit"
    filters_by_spec: ClassVar[bool] = True
    prepares_by_spec: ClassVar[bool] = True
    prepares_late: ClassVar[tuple[str, ...]] = ("score",)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:
        offered = _offered_by_devices(nodes) if self.kube_version.extended_resources_by_device_class else frozenset()
        state.write(_demand(pod.spec, nodes.rules, self.args, offered))
        return PreFilterResult()

    # ---- filter ----

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        demand = state.read(PodDemand)
        short = [_TOO_MANY_PODS] if len(node_info.pods) + 1 > node_info.allowed_pods else []
        oversized = False
        for name, amount in demand.amounts:
            allocatable = node_info.node.allocatable.get(name, 0)
            if allocatable == 0 and name in demand.from_devices:
                continue
            if amount > allocatable - node_info.requested.get(name, 0):
                short.append(f"Insufficient {name}")
                oversized |= amount > allocatable
        return self._refusal(tuple(short), oversized=oversized) if short else SUCCESS

    def _refusal(self, short: tuple[str, ...], *, oversized: bool) -> Verdict:
        for_good = oversized and self.kube_version.oversized_request_is_unresolvable
        return unresolvable(*short) if for_good else unschedulable(*short)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals | None:  # noqa: ARG002
        """A code per node, whose bits say what is missing: bit 0 too many pods, bit 1 a request above the node's
        allocatable amount, each further bit one resource.

        None if the caller must filter the nodes one by one.
        """
        demand = state.read(PodDemand)
        if demand.from_devices or len(demand.amounts) > 60:
            return None
        codes = by_usage(nodes, ("fit", demand.amounts), partial(self._codes, demand))
        return Refusals(codes, lambda code: self._decode(demand, code))

    def _codes(self, demand: PodDemand, nodes: NodeList, usage: Usage) -> NDArray[np.signedinteger[Any]]:
        columns = nodes.columns
        codes = (usage.pods >= nodes.take(columns.allowed_pods)).astype(np.int64)
        allocatable = nodes.take(columns.allocatable)
        short = allocatable - usage.requested < _least_free(demand.amounts, columns.resource_names)
        is_any_short = bool(np.logical_or.reduce(short, axis=None))
        for bit, (name, amount) in enumerate(demand.amounts, start=2):
            line = columns.resources.get(name)
            if line is None:
                codes |= (1 << bit) | 2
            elif is_any_short:
                codes |= short[line] * (1 << bit)
                codes |= (short[line] & (allocatable[line] < amount)) * 2
        # Small numbers are copied and searched faster, and pods that need many resources are rare.
        return codes.astype(np.int8) if len(demand.amounts) <= _MOST_IN_A_BYTE else codes

    def _decode(self, demand: PodDemand, code: int) -> Verdict:
        short = [_TOO_MANY_PODS] if code & 1 else []
        short.extend(f"Insufficient {name}" for bit, (name, _) in enumerate(demand.amounts, start=2) if code >> bit & 1)
        return self._refusal(tuple(short), oversized=bool(code & 2))

    # ---- score ----

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict:  # noqa: ARG002
        state.write(_shares(pod.spec, self.args.resources))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:  # noqa: ARG002
        return score_of_node(strategy_of(self.args), state.read(FitShares).shares, node_info)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores:  # noqa: ARG002
        return by_usage(nodes, (self, "score", self.usage_key(state)), partial(self.score_usage, state))

    def usage_key(self, state: CycleState) -> Hashable:
        return state.read(FitShares).shares

    def score_usage(self, state: CycleState, nodes: NodeList, usage: Usage) -> Scores:
        return scores_of_nodes(strategy_of(self.args), state.read(FitShares).shares, nodes, usage)


class FitShares(Value):
    """The resources that count in the score, each with its weight and the pod's request."""

    shares: tuple[ResourceShare, ...]


@lru_cache(maxsize=1024)
def _least_free(amounts: tuple[tuple[str, int], ...], resource_names: tuple[str, ...]) -> NDArray[np.int64]:
    """What a node must have free: one row per resource, in a single column. Negative for a resource that the pod does
    not request, so even an overused node passes."""
    wanted = dict(amounts)
    return np.array([[min(wanted.get(name, -MOST_COUNTED), MOST_COUNTED)] for name in resource_names], dtype=np.int64)


@kept_with_spec
def _demand(spec: PodSpec, rules: RequestRules, args: NodeResourcesFitArgs, offered: frozenset[str]) -> PodDemand:
    requests = incoming_requests(spec, rules)
    whole = ((CPU, requests.cpu), (MEMORY, requests.memory), (EPHEMERAL_STORAGE, requests.ephemeral_storage))
    scalars = ((name, amount) for name, amount in requests.scalars.items() if not _is_ignored(args, name))
    to_check = tuple((name, amount) for name, amount in (*whole, *scalars) if amount > 0)
    return PodDemand(to_check, frozenset(name for name in requests.scalars if name in offered))


def _is_ignored(args: NodeResourcesFitArgs, name: str) -> bool:
    """Only an extended resource is ignored, such as `example.com/gpu`: by its name (`ignored_resources`) or by the part
    before the slash (`ignored_resource_groups`)."""
    if not is_extended(name):
        return False
    return name in args.ignored_resources or name.partition("/")[0] in args.ignored_resource_groups


@kept_with_spec
def _shares(spec: PodSpec, resources: tuple[ResourceWeight, ...]) -> FitShares:
    wanted = scored_requests(spec)
    shares = (ResourceShare(r.name, r.weight, wanted.get(r.name, 0)) for r in resources)
    return FitShares(tuple(s for s in shares if s.requested or not is_scalar(s.name)))


def _offered_by_devices(nodes: NodeList) -> frozenset[str]:
    classes = nodes.snapshot.objects.device_classes.values()
    named = {c.extended_resource_name for c in classes if c.extended_resource_name}
    return frozenset(named | {f"deviceclass.resource.kubernetes.io/{c.name}" for c in classes})

"""Scores a node by how evenly its cpu, memory and other resources would be in use with the pod. Refuses nothing."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache, partial
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import BalancedAllocationArgs, ResourceWeight
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import MAX_NODE_SCORE, Scores
from scheduler_core.framework.scoring.by_usage import by_usage
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict
from scheduler_core.model.pod import Pod
from scheduler_core.model.requests import Requests, of_running_requests
from scheduler_core.model.resources import CPU, MEMORY, is_scalar
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.usage import Usage
from scheduler_core.values import Value

_HALF: Final = MAX_NODE_SCORE // 2

Floats = NDArray[np.float64]


class BalancedShares(Value):
    """The resources that count in the score, with the pod's exact request: `("memory", 1048576)`."""

    requested: tuple[tuple[str, int], ...]


class NodeResourcesBalancedAllocation(Value):
    """One minus the standard deviation of the fractions of the node's resources in use
    (plugins/noderesources/balanced_allocation.go).

    Since 1.36 the score shows how much the pod improves the balance; 75 means no change.
    """

    args: BalancedAllocationArgs
    kube_version: KubeVersion
    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    prepares_by_spec: ClassVar[bool] = True
    prepares_late: ClassVar[tuple[str, ...]] = ("score",)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict:
        # Unlike NodeResourcesFit, the real plugin counts the status of the incoming pod too, which only a pod that was
        # on a node before has.
        shares = _shares(pod, nodes.rules, self.args.resources)
        if self.kube_version.balanced_allocation_skips_best_effort and not any(each for _, each in shares.requested):
            return SKIP
        state.write(shares)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:  # noqa: ARG002
        allocatable, taken = node_info.node.allocatable, node_info.requested
        shares = [
            (amount, taken.get(name, 0), allocatable[name])
            for name, amount in state.read(BalancedShares).requested
            if allocatable.get(name)
        ]
        with_pod = _balance([(used + amount, whole) for amount, used, whole in shares])
        if not self.kube_version.balanced_allocation_compares_without_pod:
            return with_pod
        return _HALF + (_HALF + with_pod - _balance([(used, whole) for _, used, whole in shares])) // 2

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores:  # noqa: ARG002
        return by_usage(nodes, (self, self.usage_key(state)), partial(self.score_usage, state))

    def usage_key(self, state: CycleState) -> Hashable:
        return state.read(BalancedShares).requested

    def score_usage(self, state: CycleState, nodes: NodeList, usage: Usage) -> Scores:
        shares = state.read(BalancedShares)
        columns = nodes.columns
        wanted = _cpu_and_memory(shares.requested)
        if wanted is not None and columns.all_have_cpu_and_memory:
            return self._of_cpu_and_memory(usage.sums[:2], wanted, nodes.take(columns.cpu_and_memory_floats))
        lines = [(columns.resources[name], amount) for name, amount in shares.requested if name in columns.resources]
        whole = [nodes.take(columns.allocatable[line]) for line, _ in lines]
        taken = [usage.requested[line] for line, _ in lines]
        with_pod = _balances([used + amount for used, (_, amount) in zip(taken, lines, strict=True)], whole, len(nodes))
        if not self.kube_version.balanced_allocation_compares_without_pod:
            return with_pod
        scores: Scores = _HALF + (_HALF + with_pod - _balances(taken, whole, len(nodes))) // 2
        return scores

    def _of_cpu_and_memory(
        self, used: NDArray[np.int64], wanted: NDArray[np.int64], whole: NDArray[np.float64]
    ) -> Scores:
        """The usual case, faster: only cpu and memory count, and every node has both. `used` and `whole` have a row for
        cpu and a row for memory; `wanted` comes from `_cpu_and_memory`."""
        fractions = (used + wanted) / whole
        np.minimum(fractions, 1.0, out=fractions)
        deviations = fractions[:, 0] - fractions[:, 1]
        np.abs(deviations, out=deviations)
        deviations *= 0.5
        np.subtract(1, deviations, out=deviations)
        deviations *= MAX_NODE_SCORE
        # Never below 0, so truncation equals flooring.
        balances = deviations.astype(np.int64)
        scores: Scores = balances[0]
        if self.kube_version.balanced_allocation_compares_without_pod:
            scores -= balances[1]
            scores += 3 * _HALF
            scores >>= 1
        return scores


@lru_cache(maxsize=1024)
def _cpu_and_memory(requested: tuple[tuple[str, int], ...]) -> NDArray[np.int64] | None:
    """What to add to the requests on each node: with the pod, and without it (zeros). `(("cpu", 500), ("memory",
    1024))` gives `[[[500], [1024]], [[0], [0]]]`. None unless exactly cpu and memory count, in this order."""
    if [name for name, _ in requested] != [CPU, MEMORY]:
        return None
    return np.array([[[amount] for _, amount in requested], [[0], [0]]])


@of_running_requests
def _shares(requests: Requests, resources: tuple[ResourceWeight, ...]) -> BalancedShares:
    wanted = ((r.name, requests.amount(r.name)) for r in resources)
    return BalancedShares(tuple((name, amount) for name, amount in wanted if amount or not is_scalar(name)))


def _balance(shares: Sequence[tuple[int, int]]) -> int:
    fractions = [min(used / whole, 1.0) for used, whole in shares]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = _in_order(fractions) / len(fractions)
        deviation = math.sqrt(_in_order([(f - mean) * (f - mean) for f in fractions]) / len(fractions))
    return int((1 - deviation) * MAX_NODE_SCORE)


def _in_order(numbers: Sequence[float]) -> float:
    # Not sum(): since Python 3.12 it compensates rounding errors, which the scheduler does not.
    total = 0.0
    for number in numbers:
        total += number
    return total


def _balances(used: Sequence[NDArray[np.int64]], whole: Sequence[NDArray[np.int64]], count: int) -> Scores:
    """Each node's balance, from 0 to 100; 100 if the same fraction of every resource is in use. Resources that the node
    does not have are ignored."""
    if not whole:
        return np.full(count, MAX_NODE_SCORE, dtype=np.int64)
    has = [amounts > 0 for amounts in whole]
    fractions = [
        np.where(h, np.minimum(u / np.where(h, w, 1), 1.0), 0.0) for h, u, w in zip(has, used, whole, strict=True)
    ]
    kinds = np.zeros(count, dtype=np.int64)
    for h in has:
        kinds += h
    deviation = np.where(kinds == 2, _of_two(fractions, has, count), 0.0)
    if len(whole) > 2:
        deviation = np.where(kinds > 2, _of_many(fractions, has, kinds), deviation)
    scores: Scores = np.trunc((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)
    return scores


def _of_two(fractions: Sequence[Floats], has: Sequence[NDArray[np.bool_]], count: int) -> Floats:
    if len(fractions) == 2:
        halves: Floats = np.abs((fractions[0] - fractions[1]) / 2)
        return halves
    first, second = np.zeros(count), np.zeros(count)
    seen = np.zeros(count, dtype=np.int64)
    for fraction, h in zip(fractions, has, strict=True):
        first = np.where(h & (seen == 0), fraction, first)
        second = np.where(h & (seen == 1), fraction, second)
        seen += h
    return np.abs((first - second) / 2)


def _of_many(fractions: Sequence[Floats], has: Sequence[NDArray[np.bool_]], kinds: NDArray[np.int64]) -> Floats:
    divisor = np.maximum(kinds, 1)
    mean = np.zeros(len(kinds))
    for fraction in fractions:
        mean = mean + fraction
    mean = mean / divisor
    total = np.zeros(len(kinds))
    for fraction, h in zip(fractions, has, strict=True):
        total = total + np.where(h, (fraction - mean) * (fraction - mean), 0.0)
    return np.sqrt(total / divisor)

"""Scores by a node's resources: LeastAllocated, MostAllocated and RequestedToCapacityRatio.

The arithmetic follows plugins/noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio}.go, v1.36:
integers, whose quotients are truncated. Only the average of RequestedToCapacityRatio is rounded, halves away from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from scheduler_core.config.plugin_args import NodeResourcesFitArgs
from scheduler_core.framework.extension_points import MAX_NODE_SCORE, Scores
from scheduler_core.framework.scoring.shapes import FULL, scores_along
from scheduler_core.model.resources import CPU, MEMORY
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.usage import Usage
from scheduler_core.values import Value

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class ResourceShare(Value):
    """One resource on which a score depends. `requested` is the pod's request."""

    name: str
    weight: int
    requested: int


class Strategy(Value):
    """`rate(used, allocatable)`: from the amounts of one resource on several nodes, a score from 0 to 100 for each.

    `skips_zero`: a resource that scores 0 is left out of the average, and the average is rounded instead of truncated.
    """

    rate: Callable[[Ints, Ints], Ints]
    skips_zero: bool = False


def strategy_of(args: NodeResourcesFitArgs) -> Strategy:
    if args.strategy == "MostAllocated":
        return Strategy(_most_allocated)
    if args.strategy == "RequestedToCapacityRatio":
        return Strategy(partial(_along, np.array(scores_along(args.shape), dtype=np.int64)), skips_zero=True)
    return Strategy(_least_allocated)


def scores_of_nodes(strategy: Strategy, shares: tuple[ResourceShare, ...], nodes: NodeList, usage: Usage) -> Scores:
    """The weighted average over those resources in `shares` that the node has; 0 if it has none of them."""
    columns = nodes.columns
    is_exact = columns.all_have_cpu_and_memory and columns.has_exact_floats
    if strategy.rate is _least_allocated and _is_cpu_and_memory(shares) and is_exact:
        wanted, weights, divisor = _requests_and_weights(shares)
        allocatable = nodes.take(columns.cpu_and_memory_floats)
        return _least_allocated_everywhere(usage.sums[-3:-1] + wanted, allocatable, weights, divisor)
    taken: dict[str, Ints] = {CPU: usage.nonzero_cpu, MEMORY: usage.nonzero_memory}
    parts: list[tuple[int, Ints, Ints]] = []
    for share in shares:
        line = columns.resources.get(share.name)
        if line is not None:
            column = taken[share.name] if share.name in taken else usage.requested[line]
            parts.append((share.weight, column + share.requested, nodes.take(columns.allocatable[line])))
    return _average(strategy, parts, len(nodes))


def _is_cpu_and_memory(shares: tuple[ResourceShare, ...]) -> bool:
    return len(shares) == 2 and shares[0].name == CPU and shares[1].name == MEMORY


@lru_cache(maxsize=1024)
def _requests_and_weights(shares: tuple[ResourceShare, ...]) -> tuple[Ints, Ints, int]:
    """The requests (one row per resource, in a single column), the weights, and the divisor of their average."""
    weights = np.array([share.weight for share in shares])
    return np.array([[share.requested] for share in shares]), weights, max(int(weights.sum()), 1)


def _least_allocated_everywhere(used: Ints, allocatable: Floats, weights: Ints, divisor: int) -> Scores:
    """LeastAllocated if every node has every resource (it divides by each). `used` and `allocatable` have a row for
    each resource; `divisor` is the sum of the weights. Dividing floats is several times faster than integers, and equal
    if `Columns.has_exact_floats`."""
    free = allocatable - used
    np.maximum(free, 0.0, out=free)
    free *= float(MAX_NODE_SCORE)
    free /= allocatable
    rates = free.astype(np.int64)
    averages: Scores = (rates[0] + rates[1]) >> 1 if divisor == 2 else weights @ rates // divisor
    return averages


def score_of_node(strategy: Strategy, shares: tuple[ResourceShare, ...], node_info: NodeInfo) -> int:
    """The same score as `scores_of_nodes`."""
    taken = {CPU: node_info.nonzero_cpu, MEMORY: node_info.nonzero_memory}
    parts = []
    for share in shares:
        used = (taken[share.name] if share.name in taken else node_info.requested.get(share.name, 0)) + share.requested
        parts.append((share.weight, np.array([used]), np.array([node_info.node.allocatable.get(share.name, 0)])))
    return int(_average(strategy, parts, 1)[0])


def _average(strategy: Strategy, parts: list[tuple[int, Ints, Ints]], count: int) -> Scores:
    total = np.zeros(count, dtype=np.int64)
    weights = np.zeros(count, dtype=np.int64)
    for weight, used, allocatable in parts:
        has_any = allocatable > 0
        everywhere = bool(has_any.all())
        rate = strategy.rate(used, allocatable if everywhere else np.where(has_any, allocatable, 1))
        counts = has_any if not strategy.skips_zero else has_any & (rate > 0)
        if everywhere and not strategy.skips_zero:
            total += rate * weight
            weights += weight
        else:
            total += np.where(counts, rate * weight, 0)
            weights += counts * weight
    if strategy.skips_zero:
        quotient = total.astype(np.float64) / np.maximum(weights, 1)
        return np.where(weights > 0, np.trunc(quotient + np.copysign(0.5, quotient)), 0).astype(np.int64)
    averages: Scores = total // np.maximum(weights, 1)
    return averages


def _least_allocated(used: Ints, allocatable: Ints) -> Ints:
    rate: Ints = np.maximum(allocatable - used, 0) * MAX_NODE_SCORE // allocatable
    return rate


def _most_allocated(used: Ints, allocatable: Ints) -> Ints:
    rate: Ints = np.minimum(used, allocatable) * MAX_NODE_SCORE // allocatable
    return rate


def _along(scores: Ints, used: Ints, allocatable: Ints) -> Ints:
    """`scores`: the score for each percentage from 0 to 100."""
    utilization = np.clip(used * 100 // allocatable, 0, FULL)  # out of bounds where the product overflows
    found: Ints = scores[np.where(used > allocatable, FULL, utilization)]
    return found

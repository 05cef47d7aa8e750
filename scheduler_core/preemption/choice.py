"""The node for preemption; the first by name if several are equally good.

There the real scheduler chooses by the order of a Go map, which is random. Source: pickOneNodeForPreemption in
pkg/scheduler/framework/preemption/preemption.go, v1.36.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from scheduler_core.model.pod import Pod
from scheduler_core.preemption.victims import Victims

_ABOVE_EVERY_PRIORITY = 2**31  # makes each victim count, so that many victims of low priority cost more than few


def choose_node(candidates: Mapping[str, Victims]) -> str:
    """The node whose victims cost least. `candidates` must not be empty, and each must have a victim."""
    return min(candidates, key=lambda name: (*cost(candidates[name]), name))


def cost(victims: Victims) -> tuple[int, int, int, int, float]:
    """Compared entry by entry: violated budgets, the highest priority, the sum of priorities, the number of victims,
    and the earliest start time among the victims of highest priority, where later is cheaper."""
    return (
        victims.budget_violations,
        victims.pods[0].priority,
        sum(pod.priority + _ABOVE_EVERY_PRIORITY for pod in victims.pods),
        len(victims.pods),
        -_longest_running(victims.pods),
    )


def _longest_running(pods: tuple[Pod, ...]) -> float:
    highest = max(pod.priority for pod in pods)
    return min(math.inf if pod.start_time is None else pod.start_time for pod in pods if pod.priority == highest)

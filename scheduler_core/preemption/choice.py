"""Which node to sacrifice pods on; every tie is broken, last by name.

Source: pickOneNodeForPreemption in pkg/scheduler/framework/preemption/preemption.go, v1.36, where the last tie
falls to the order of a Go map."""

from __future__ import annotations

import math
from collections.abc import Mapping

from scheduler_core.model.pod import Pod
from scheduler_core.preemption.victims import Victims

_ABOVE_EVERY_PRIORITY = 2**31  # makes each victim weigh something, so that many of low priority cost more than few


def choose_node(candidates: Mapping[str, Victims]) -> str:
    """The name of the node whose victims are missed least; `candidates` is not empty and each has at least one
    victim."""
    return min(candidates, key=lambda name: (*cost(candidates[name]), name))


def cost(victims: Victims) -> tuple[int, int, int, int, float]:
    """What evicting them costs, to be compared from the first entry on: fewer violated budgets; a less
    important most important victim; a smaller sum of priorities; fewer victims; and, among the victims of
    highest priority, a later start of the one that runs longest."""
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

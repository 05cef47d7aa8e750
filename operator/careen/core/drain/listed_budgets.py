"""Applies --slow-pod-selector to the budgets of a simulation."""

from __future__ import annotations

from collections.abc import Iterable

from careen.core.facts.policy import DrainPolicy
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.pod import Pod
from scheduler_core.values import replace_value as replace

_WHY = "--slow-pod-selector selects its pods"


def with_listed(
    budgets: Iterable[DisruptionBudget], pods: Iterable[Pod], policy: DrainPolicy
) -> tuple[DisruptionBudget, ...]:
    """The budgets; those of pods that the setting selects say that they may open."""
    slow = [pod for pod in pods if policy.lists_as_slow(pod.labels)]
    return tuple(replace(budget, may_open=_WHY) if _covers(budget, slow) else budget for budget in budgets)


def _covers(budget: DisruptionBudget, pods: Iterable[Pod]) -> bool:
    return any(pod.namespace == budget.namespace and budget.selector.matches(pod.labels) for pod in pods)

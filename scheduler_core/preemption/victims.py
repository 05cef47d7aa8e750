"""The victims on one node: all pods of lower priority are removed, then each with which the preemptor still fits is put
back. Pods whose eviction would violate a disruption budget come first, and more important pods before less important
ones.

Source: SelectVictimsOnNode and filterPodsWithPDBViolation in plugins/defaultpreemption/default_preemption.go, v1.36;
MoreImportantVictim and FilterVictimsWithPDBViolation in framework/preemption/util.go, v1.37.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, Protocol

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.verdict import SUCCESS, Verdict, error, unresolvable
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.pod import Pod
from scheduler_core.preemption.eligibility import is_preemptible_by
from scheduler_core.preemption.go_order import go_sorted
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.values import Value

_ABOVE_EVERY_PRIORITY: Final = 2**31  # makes each victim count, so that many of low priority cost more than few


class Victims(Value, kw_only=True, dict=True):
    """The pods to evict, most important first, and how many of the evictions violate a disruption budget.
    `unordered_budgets`: their order, which is random in the real scheduler, may decide which pods these are."""

    pods: tuple[Pod, ...]
    budget_violations: int = 0
    unordered_budgets: frozenset[str] = frozenset()

    @cached_property
    def cost(self) -> tuple[int, int, int, int, float]:
        """By which `choose_node` compares, entry by entry: violated budgets, the highest priority, the sum of
        priorities, the number of victims, and the earliest start time among the victims of highest priority, where
        later is cheaper."""
        pods = self.pods
        highest = max(pod.priority for pod in pods)
        longest = min(
            math.inf if each.start_time is None else each.start_time for each in pods if each.priority == highest
        )
        total = sum(pod.priority + _ABOVE_EVERY_PRIORITY for pod in pods)
        return self.budget_violations, pods[0].priority, total, len(pods), -longest


class VictimRules(Value, kw_only=True):
    """What changed in 1.37; the defaults are those of 1.36 (config/kube_version.py)."""

    unstarted_age_in_order: bool = False
    stops_at_overdrawn: bool = False


_RULES: Final = VictimRules()


class NodeTrial(Protocol):
    """Filters one node again after pods were added or removed, and updates the plugins' state."""

    def filter_node(self, state: CycleState, pod: Pod, node_info: NodeInfo, *, has_passed: bool = False) -> Verdict:
        """Counts pods nominated to the node as if they ran there. `has_passed`: the node passed with other pods."""

    def counts_pods(self, state: CycleState) -> bool:
        """Whether `pod_added` and `pod_removed` have an effect."""

    def pod_added(self, state: CycleState, pod: Pod, added: Pod, node_info: NodeInfo) -> Verdict:
        """`node_info` already contains `added`."""

    def pod_removed(self, state: CycleState, pod: Pod, removed: Pod, node_info: NodeInfo) -> Verdict:
        """`node_info` no longer contains `removed`."""


def select_victims(
    trial: NodeTrial,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
    budgets: Sequence[DisruptionBudget],
    *,
    rules: VictimRules = _RULES,
) -> Victims | Verdict:
    """The victims, or why evictions on this node do not help. Changes `state`, so pass a copy.

    Not always the smallest set: a more important pod is spared first, even if several less important ones could be
    spared in its place.
    """
    candidates = [other for other in node_info.pods if is_preemptible_by(other, pod)]
    if not candidates:
        return unresolvable("No preemption victims found for incoming pod")
    emptied = _Node(trial, state, pod, node_info)
    emptied.remove_all(candidates)
    refusal = emptied.verdict()
    if not refusal.is_success:
        return refusal
    by_importance = most_important_first(candidates, rules)
    violating, others = split_by_budget(by_importance, budgets, rules)
    lost_violating = [victim for victim in violating if not emptied.spare(victim)]
    lost = [*lost_violating, *(victim for victim in others if not emptied.spare(victim))]
    if emptied.problem is not None:
        return emptied.problem
    if not lost:
        return error(f'expected at least one victim pod on node "{node_info.name}"')
    if violating and others:
        lost = most_important_first(lost, rules, seen=candidates)
    unordered = unordered_budgets(violating, budgets) if rules.stops_at_overdrawn else frozenset()
    return Victims(pods=tuple(lost), budget_violations=len(lost_violating), unordered_budgets=unordered)


def most_important_first(pods: list[Pod], rules: VictimRules = _RULES, seen: Sequence[Pod] | None = None) -> list[Pod]:
    """By priority, the highest first, then by start time, the earliest first. Equal pods get the order of Go's sort.

    `seen`: the order of the node's pods, if it is not that of `pods`.
    """
    importances = [(-pod.priority, pod.start_time) for pod in pods]
    if len(set(importances)) == len(pods):
        return sorted(pods, key=lambda pod: (-pod.priority, math.inf if pod.start_time is None else pod.start_time))
    if not rules.unstarted_age_in_order:
        return go_sorted(pods, is_more_important)
    # Since 1.37 the clock is read once for each pod, in the order of the node's pods.
    ages = {id(pod): place for place, pod in enumerate(pods if seen is None else seen)}

    def key(pod: Pod) -> tuple[int, bool, float]:
        started = pod.start_time
        return (-pod.priority, True, ages[id(pod)]) if started is None else (-pod.priority, False, started)

    return go_sorted(pods, lambda one, other: key(one) < key(other))


def is_more_important(one: Pod, other: Pod) -> bool:
    """Whether preemption spares `one` rather than `other`.

    A pod that has not started counts as starting now. If neither has started, `one` counts as the older: kube-scheduler
    reads the clock for it first (util.GetPodStartTime).
    """
    if one.priority != other.priority:
        return one.priority > other.priority
    if one.start_time is None:
        return other.start_time is None
    return other.start_time is None or one.start_time < other.start_time


def split_by_budget(
    pods: Iterable[Pod], budgets: Sequence[DisruptionBudget], rules: VictimRules = _RULES
) -> tuple[list[Pod], list[Pod]]:
    """Pods whose eviction would violate a disruption budget, and all others, if they are evicted one after another in
    the given order.

    As in the scheduler, a budget with an empty selector selects nothing, and no budget selects a pod without labels.
    The eviction API is stricter. If `rules.stops_at_overdrawn`, the order of the budgets decides whenever several
    select one pod; the real scheduler has them in the random order of a Go map.
    """
    left = [budget.disruptions_allowed for budget in budgets]
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        is_overdrawn = False
        for index, budget in enumerate(budgets):
            if _counts_against(budget, pod):
                left[index] -= 1
                is_overdrawn = is_overdrawn or left[index] < 0
                if is_overdrawn and rules.stops_at_overdrawn:
                    break
        (violating if is_overdrawn else others).append(pod)
    return violating, others


def unordered_budgets(violating: Iterable[Pod], budgets: Sequence[DisruptionBudget]) -> frozenset[str]:
    """The budgets that select one pod together and of which one is overdrawn: since 1.37 the first of them ends the
    count, so that their order decides how many evictions the others still allow."""
    several = ([each.key for each in budgets if _counts_against(each, pod)] for pod in violating)
    return frozenset(key for keys in several if len(keys) > 1 for key in keys)


def _counts_against(budget: DisruptionBudget, pod: Pod) -> bool:
    if not pod.labels or budget.namespace != pod.namespace or budget.selector.is_empty:
        return False
    return pod.name not in budget.disrupted_pods and budget.selector.matches(pod.labels)


class _Node:
    """The node on which preemption is tried. Keeps the first error of a plugin."""

    def __init__(self, trial: NodeTrial, state: CycleState, pod: Pod, node_info: NodeInfo) -> None:
        self._trial, self._state, self._pod, self._info = trial, state, pod, node_info
        self._counts_pods = trial.counts_pods(state)
        self._has_passed = False
        self.problem: Verdict | None = None

    def remove_all(self, others: Sequence[Pod]) -> None:
        if not self._counts_pods:
            self._info = self._info.without_these(others)
            return
        for other in others:
            self.remove(other)

    def remove(self, other: Pod) -> None:
        self._info = self._info.without_pod(other)
        if self._counts_pods:
            self._note(self._trial.pod_removed(self._state, self._pod, other, self._info))

    def spare(self, other: Pod) -> bool:
        """Puts the removed pod back if the preemptor then still fits. Whether it did."""
        before, self._info = self._info, self._info.with_pod(other)
        if self._counts_pods:
            self._note(self._trial.pod_added(self._state, self._pod, other, self._info))
        if self.verdict().is_success:
            return True
        if self._counts_pods:
            self.remove(other)
        else:
            self._info = before  # may differ in host ports, but not in one that the preemptor wants
        return False

    def verdict(self) -> Verdict:
        if self.problem is not None:
            return self.problem
        verdict = self._trial.filter_node(self._state, self._pod, self._info, has_passed=self._has_passed)
        self._has_passed = self._has_passed or verdict.is_success
        return verdict

    def _note(self, verdict: Verdict) -> None:
        if verdict is not SUCCESS and not verdict.is_success and self.problem is None:
            self.problem = verdict

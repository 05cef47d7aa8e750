"""Accepts or refuses the evictions of a simulated drain, pod by pod, as the eviction API does. Each accepted eviction
lowers what a budget allows, each healthy replacement raises it again.

The rules are the API server's (pkg/registry/core/pod/storage/eviction.go, v1.36). `drain.py` places the replacements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace

from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.forecast import BudgetNumbers
from scheduler_core.values import Value


class EvictionRefusal(Value, kw_only=True):
    """Why the API server would answer 429 or 500. With `is_never`, waiting cannot help: somebody must change a
    disruption budget or the pods that it covers. With `is_slow`, waiting without a drain cannot help, but the owner of
    the budget may open it during the drain."""

    sentence: str
    is_never: bool
    is_slow: bool = False
    budget: BudgetNumbers | None = None
    remedy: str = ""


MayOpen = Callable[[Pod, DisruptionBudget], str]
"""Why a budget that its numbers keep closed may open for this pod during a drain (`understood.py`); "" if it cannot."""


def opens_never(_pod: Pod, _budget: DisruptionBudget) -> str:
    """Only the numbers of a budget count."""
    return ""


class BudgetLedger:
    """How many evictions each disruption budget still allows during a simulated drain. Mutable: each drain has its
    own."""

    def __init__(self, budgets: Iterable[DisruptionBudget], may_open: MayOpen = opens_never) -> None:
        self._given = tuple(budgets)
        self.may_open = may_open
        self._by_namespace: dict[str, list[DisruptionBudget]] = {}
        self._allowed: dict[str, int] = {}
        for budget in self._given:
            self._by_namespace.setdefault(budget.namespace, []).append(budget)
            self._allowed[budget.key] = budget.disruptions_allowed

    def copy(self) -> BudgetLedger:
        other = copy(self)
        other._allowed = dict(self._allowed)
        return other

    @property
    def state(self) -> tuple[int, ...]:
        """How many evictions each budget still allows, in the constructor's order."""
        return tuple(self._allowed.values())

    def refusal(self, pod: Pod) -> EvictionRefusal | None:
        """Why the API server would refuse the eviction now; None if it would accept it."""
        budgets = self._covering(pod)
        if not budgets:
            return None
        if len(budgets) > 1:
            return _two_budgets(pod, budgets)
        budget = budgets[0]
        if self._allowed[budget.key] > 0 or _unhealthy_may_go(pod, budget):
            return None
        return _spent(budget, self.may_open(pod, budget) if is_never(budget) else "")

    def spend(self, pod: Pod) -> None:
        """Counts an accepted eviction. That of an unhealthy pod does not count if the budget's
        unhealthyPodEvictionPolicy permits it in any case."""
        for budget in self._covering(pod):
            if not _unhealthy_may_go(pod, budget):
                self._allowed[budget.key] -= 1

    def refill(self, pod: Pod) -> None:
        """Counts a healthy replacement: the budget that counted the eviction of `pod` allows one more."""
        for budget in self._covering(pod):
            if not _unhealthy_may_go(pod, budget):
                self._allowed[budget.key] += 1

    def budgets(self) -> tuple[DisruptionBudget, ...]:
        """The budgets with updated status, in the constructor's order."""
        return tuple(self._as_it_stands(budget) for budget in self._given)

    def _as_it_stands(self, budget: DisruptionBudget) -> DisruptionBudget:
        allowed = self._allowed[budget.key]
        if allowed == budget.disruptions_allowed:
            return budget
        return replace(
            budget,
            disruptions_allowed=allowed,
            current_healthy=budget.current_healthy + allowed - budget.disruptions_allowed,
        )

    def _covering(self, pod: Pod) -> list[DisruptionBudget]:
        if _needs_no_budget(pod):
            return []
        return [budget for budget in self._by_namespace.get(pod.namespace, ()) if budget.selector.matches(pod.labels)]


def _needs_no_budget(pod: Pod) -> bool:
    return pod.is_finished or pod.phase == "Pending" or pod.terminating


def _unhealthy_may_go(pod: Pod, budget: DisruptionBudget) -> bool:
    if pod.is_ready:
        return False
    if budget.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return budget.current_healthy >= budget.desired_healthy > 0


def _two_budgets(pod: Pod, budgets: list[DisruptionBudget]) -> EvictionRefusal:
    names = " and ".join(sorted(budget.key for budget in budgets))
    return EvictionRefusal(
        is_never=True,
        sentence=f"{pod.key} is covered by the disruption budgets {names}; the eviction API refuses pods with "
        "more than one budget",
    )


def _spent(budget: DisruptionBudget, may_open: str) -> EvictionRefusal:
    numbers = budget_numbers(budget)
    if budget.expected_pods == 0 and not may_open:
        return EvictionRefusal(
            budget=numbers,
            is_never=False,
            sentence=(
                f"disruption budget {budget.key} covers the pod, but its status is missing or counts no pod, and so "
                "it allows no eviction; the disruption controller writes the status"
            ),
        )
    never = is_never(budget) and not may_open
    helps = (
        f"the budget may open during the drain, because {may_open}"
        if may_open
        else "waiting cannot help: raise maxUnavailable, lower minAvailable or add a replica"
        if never
        else "the budget may allow an eviction when more of its pods are healthy"
    )
    return EvictionRefusal(
        budget=numbers,
        is_never=never,
        is_slow=bool(may_open),
        remedy=_room_for_one(budget) if never else "",
        sentence=(
            f"disruption budget {budget.key} wants {budget.desired_healthy} healthy of {budget.expected_pods} pods, "
            f"has {budget.current_healthy}, and allows no eviction now; {helps}"
        ),
    )


def _room_for_one(budget: DisruptionBudget) -> str:
    """The change of the spec that would allow one eviction, for example "a maxUnavailable of 1 in the disruption
    budget shop/cart"."""
    if budget.max_unavailable is not None or budget.expected_pods < 2:
        return f"a maxUnavailable of 1 in the disruption budget {budget.key}"
    return f"a minAvailable of {budget.expected_pods - 1} in the disruption budget {budget.key}"


def is_never(budget: DisruptionBudget) -> bool:
    """Whether the budget would allow no eviction even if every expected pod were healthy."""
    return budget.expected_pods > 0 and budget.desired_healthy >= budget.expected_pods


def budget_numbers(budget: DisruptionBudget) -> BudgetNumbers:
    return BudgetNumbers(
        namespace=budget.namespace,
        name=budget.name,
        disruptions_allowed=budget.disruptions_allowed,
        current_healthy=budget.current_healthy,
        desired_healthy=budget.desired_healthy,
        expected_pods=budget.expected_pods,
        owner=budget.owner,
        identity=budget.identity,
    )

"""Tests the eviction API's decisions in a simulated drain, as a table and as short sequences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.labels import EVERYTHING, LabelSelector, Requirement
from scheduler_core.model.manifests.from_manifest import budget_from_manifest
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.evictions import BudgetLedger, is_never

_DB = LabelSelector((Requirement("app", "In", ("db",)),))


def a_pod(name: str = "db-0", **changes: object) -> Pod:
    return replace(Pod(name=name, namespace="shop", labels={"app": "db"}, phase="Running", is_ready=True), **changes)


def a_budget(name: str = "db", **changes: object) -> DisruptionBudget:
    budget = DisruptionBudget(
        name=name,
        namespace="shop",
        selector=_DB,
        disruptions_allowed=1,
        current_healthy=3,
        desired_healthy=2,
        expected_pods=3,
    )
    return replace(budget, **changes)


_EXHAUSTED = {"disruptions_allowed": 0, "current_healthy": 2}


@pytest.mark.parametrize(
    ("pod", "budgets", "refused"),
    [
        pytest.param(a_pod(), [], False, id="a pod without a budget may be evicted"),
        pytest.param(a_pod(), [a_budget()], False, id="a pod may be evicted if its budget allows an eviction"),
        pytest.param(
            a_pod(), [a_budget(**_EXHAUSTED)], True, id="a pod may not be evicted if its budget allows no eviction now"
        ),
        pytest.param(
            a_pod(),
            [a_budget(**_EXHAUSTED, namespace="other")],
            False,
            id="a budget of another namespace blocks no eviction",
        ),
        pytest.param(
            a_pod(labels={"app": "web"}),
            [a_budget(**_EXHAUSTED)],
            False,
            id="a budget that selects other labels blocks no eviction",
        ),
        pytest.param(
            a_pod(),
            [a_budget(), a_budget("all", selector=EVERYTHING)],
            True,
            id="a pod with two budgets may not be evicted, even if each budget allows the eviction",
        ),
        pytest.param(
            a_pod(phase="Pending"), [a_budget(**_EXHAUSTED)], False, id="a pod that never started may be evicted"
        ),
        pytest.param(a_pod(phase="Succeeded"), [a_budget(**_EXHAUSTED)], False, id="a finished pod may be evicted"),
        pytest.param(
            a_pod(terminating=True), [a_budget(**_EXHAUSTED)], False, id="a pod that already terminates may be evicted"
        ),
        pytest.param(
            a_pod(is_ready=False),
            [a_budget(**_EXHAUSTED)],
            False,
            id="an unready pod may be evicted while enough other pods are healthy",
        ),
        pytest.param(
            a_pod(is_ready=False),
            [a_budget(disruptions_allowed=0, current_healthy=1)],
            True,
            id="an unready pod may not be evicted while too few pods are healthy",
        ),
        pytest.param(
            a_pod(is_ready=False),
            [a_budget(disruptions_allowed=0, current_healthy=1, unhealthy_pod_eviction_policy="AlwaysAllow")],
            False,
            id="with AlwaysAllow, an unready pod may be evicted while too few pods are healthy",
        ),
    ],
)
def test_evictions_are_refused_as_by_the_api_server(pod: Pod, budgets: list[DisruptionBudget], refused: bool) -> None:
    assert (BudgetLedger(budgets).refusal(pod) is not None) is refused


def test_a_budget_of_one_allows_the_second_eviction_after_the_first_replacement() -> None:
    ledger = BudgetLedger([a_budget()])
    first, second = a_pod("db-0"), a_pod("db-1")
    ledger.spend(first)
    refusal = ledger.refusal(second)
    assert refusal is not None
    assert not refusal.is_never
    ledger.refill(first)
    assert ledger.refusal(second) is None


def test_the_eviction_of_an_unready_pod_does_not_count_against_the_budget_while_enough_pods_are_healthy() -> None:
    ledger = BudgetLedger([a_budget()])
    unready = a_pod("db-0", is_ready=False)
    ledger.spend(unready)
    assert ledger.refusal(a_pod("db-1")) is None
    ledger.spend(a_pod("db-1"))
    ledger.refill(unready)
    assert ledger.refusal(a_pod("db-2")) is not None


@pytest.mark.parametrize(
    ("desired", "expected", "never"), [(3, 3, True), (2, 3, False), (1, 1, True), (0, 0, False), (4, 3, True)]
)
def test_a_budget_that_needs_every_pod_never_allows_an_eviction(desired: int, expected: int, never: bool) -> None:
    assert is_never(a_budget(desired_healthy=desired, expected_pods=expected)) is never


def test_the_refusal_contains_the_name_and_numbers_of_the_budget_and_a_remedy() -> None:
    never = BudgetLedger([a_budget(disruptions_allowed=0, desired_healthy=3)]).refusal(a_pod())
    not_now = BudgetLedger([a_budget(disruptions_allowed=0, current_healthy=2)]).refusal(a_pod())
    assert never is not None
    assert never.sentence == (
        "disruption budget shop/db wants 3 healthy of 3 pods, has 3, and allows no eviction now; "
        "waiting cannot help: raise maxUnavailable, lower minAvailable or add a replica"
    )
    assert never.budget is not None
    assert (never.budget.name, never.budget.expected_pods) == ("db", 3)
    assert not_now is not None
    assert not_now.sentence.endswith("the budget may allow an eviction when more of its pods are healthy")


def test_only_the_budget_that_selects_the_evicted_pod_allows_one_eviction_fewer() -> None:
    spent, untouched = a_budget(), a_budget("web", selector=LabelSelector((Requirement("app", "In", ("web",)),)))
    ledger = BudgetLedger([spent, untouched])
    ledger.spend(a_pod())
    assert ledger.budgets() == (replace(spent, disruptions_allowed=0, current_healthy=2), untouched)
    ledger.refill(a_pod())
    assert ledger.budgets() == (spent, untouched)


def test_a_budget_without_a_status_says_so() -> None:
    written = {
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "db"}}},
    }
    refusal = BudgetLedger([budget_from_manifest(written)]).refusal(a_pod())
    assert refusal is not None
    assert not refusal.is_never
    assert refusal.sentence == (
        "disruption budget shop/db covers the pod, but its status is missing or counts no pod, and so it allows no "
        "eviction; the disruption controller writes the status"
    )

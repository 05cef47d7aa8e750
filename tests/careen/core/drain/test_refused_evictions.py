"""Which refused evictions a drain may open."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.drain.refused_evictions import is_slow, slow_pod
from careen.core.facts.observation import ClosedBudgets, DryRunAnswer, Evictable, PodView
from careen.core.facts.policy import DrainPolicy
from careen.core.facts.selectors import Selector
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.labels import LabelSelector, Requirement, equality_selector
from scheduler_core.simulation.forecast import Opens, Outcome, PodForecast
from tests.careen.core.builders import a_pod

WEB = {"app": "web", "pod-template-hash": "7"}
WEBHOOK = 'admission webhook "evict.kubevirt.io" denied the request: Eviction triggered evacuation of VMI "shop/vm"'


def a_budget(**changes: Any) -> DisruptionBudget:
    given = {
        "name": "web",
        "namespace": "shop",
        "selector": equality_selector({"app": "web"}),
        "desired_healthy": 2,
        "expected_pods": 2,
        "uid": "b",
        "generation": 1,
    }
    return DisruptionBudget(**{**given, **changes})


def closed(*budgets: DisruptionBudget, template: dict[str, str] | None = None) -> DryRunAnswer:
    known = ClosedBudgets(budgets=budgets, template={"app": "web"} if template is None else template)
    return DryRunAnswer(answer=Evictable.BUDGET, detail="budget web", closed=known)


def a_web(**changes: Any) -> PodView:
    return a_pod(labels=WEB, owner_api_version="apps/v1", **changes)


@pytest.mark.parametrize(
    ("pod", "answer", "expected"),
    [
        (a_web(), closed(a_budget()), False),
        (a_web(owner_kind="StatefulSet"), closed(a_budget()), False),
        (a_pod(labels=WEB, owner_kind="Job", owner_api_version="batch/v1"), closed(a_budget()), False),
        (a_pod(labels=WEB, owner_kind="Job", owner_api_version="batch.volcano.sh/v1"), closed(a_budget()), True),
        (a_pod(labels=WEB, owner_kind="", owner_name="", owner_uid=""), closed(a_budget()), False),
        (a_web(), closed(a_budget(desired_healthy=1)), False),
        (a_web(), closed(a_budget(desired_healthy=0, expected_pods=0)), False),
        (a_web(), closed(), False),
        (a_web(), DryRunAnswer(answer=Evictable.BUDGET), False),
        (a_web(), closed(a_budget(), a_budget(name="other")), False),
        (a_pod(labels=WEB, owner_kind="Cluster"), closed(a_budget(), a_budget(name="other")), False),
        (a_web(), closed(a_budget(owner="CephCluster rook")), True),
        (a_pod(labels=WEB, owner_kind="StrimziPodSet"), closed(a_budget()), True),
        (
            a_pod(labels=WEB, owner_kind="StatefulSet", owner_api_version="apps.kruise.io/v1"),
            closed(a_budget()),
            True,
        ),
        (a_web(), closed(a_budget(selector=equality_selector({"role": "primary"}))), True),
        (
            a_web(),
            closed(a_budget(selector=LabelSelector((Requirement("role", "In", ("primary", "master")),)))),
            True,
        ),
        (a_web(), closed(a_budget(selector=LabelSelector((Requirement("app", "Exists"),)))), False),
        (a_web(), DryRunAnswer(answer=Evictable.DENIED, detail=WEBHOOK), True),
        (a_web(), DryRunAnswer(answer=Evictable.DENIED, detail="namespace is being terminated"), False),
        (a_web(), DryRunAnswer(answer=Evictable.BARRED, detail="cannot create resource"), False),
        (a_web(), DryRunAnswer(answer=Evictable.UNKNOWN, detail=WEBHOOK), False),
    ],
)
def test_a_refused_eviction_is_slow_if_a_drain_may_open_it(pod: Any, answer: DryRunAnswer, expected: bool) -> None:
    assert is_slow(pod, answer, DrainPolicy()) is expected


def test_a_setting_makes_a_plain_workload_slow() -> None:
    policy = DrainPolicy(slow_selectors=(Selector.parse("app=web"),))
    assert is_slow(a_web(), closed(a_budget()), policy)
    assert not is_slow(a_web(), closed(a_budget(), a_budget(name="other")), policy)


def a_forecast(opens: Opens | None) -> PodForecast:
    return PodForecast(
        namespace="shop", name="web-1", uid="uid-web-1", outcome=Outcome.BLOCKED, sentence="closed", opens=opens
    )


@pytest.mark.parametrize(
    ("answer", "opens", "is_slow"),
    [
        (closed(a_budget()), Opens.UNSEEN, True),
        (closed(a_budget()), None, False),
        (DryRunAnswer(answer=Evictable.ALLOWED), Opens.UNSEEN, True),
        (DryRunAnswer(answer=Evictable.BARRED), Opens.UNSEEN, False),
        (DryRunAnswer(answer=Evictable.UNKNOWN), Opens.UNSEEN, False),
        (None, Opens.UNSEEN, True),
    ],
)
def test_a_forecast_sees_more_of_the_cluster_than_a_dry_run_but_no_missing_right(
    answer: DryRunAnswer | None, opens: Opens | None, is_slow: bool
) -> None:
    assert (slow_pod(a_web(), answer, a_forecast(opens), DrainPolicy()) is not None) is is_slow


def test_a_denial_of_a_plain_workload_is_marked() -> None:
    denied = DryRunAnswer(answer=Evictable.DENIED, detail=WEBHOOK)
    plain = slow_pod(a_web(), denied, None, DrainPolicy())
    foreign = slow_pod(a_pod(owner_kind="VirtualMachineInstance"), denied, None, DrainPolicy())
    assert plain is not None
    assert foreign is not None
    assert (plain.is_plain_denial, plain.webhook, plain.revision) == (True, "evict.kubevirt.io", "7")
    assert (foreign.is_plain_denial, foreign.owner) == (False, "VirtualMachineInstance shop/web")

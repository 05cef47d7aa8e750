"""Tests evictions against disruption budgets. Each row is a case of kube-apiserver's eviction.go."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from drydock.server.api_errors import ApiError, denied
from drydock.server.evictions import evict
from drydock.server.store import Store
from drydock.server.verbs import DeleteOptions, Verbs

PODS, BUDGETS = ("", "pods"), ("policy", "poddisruptionbudgets")


def a_cluster(
    *,
    phase: str = "Running",
    ready: bool = True,
    going: bool = False,
    budgets: int = 1,
    generation: int = 0,
    **status: Any,
) -> Verbs:
    verbs = Verbs(
        Store(clock=lambda: 0.0), wall_clock=lambda: datetime(2026, 1, 1, tzinfo=UTC), chance=random.Random(1)
    )
    metadata: dict[str, Any] = {"name": "p", "namespace": "default", "uid": "u", "labels": {"app": "web"}}
    if going:
        metadata.update(deletionTimestamp="2026-01-01T00:00:30Z", deletionGracePeriodSeconds=30)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "n", "containers": []},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }
    verbs.store.put(PODS, ("default", "p"), pod, actor="seed", verb="create")
    for index in range(budgets):
        spec = {"selector": {"matchLabels": {"app": "web"}}, **status.get("spec", {})}
        found = {k: v for k, v in status.items() if k != "spec"}
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{index}", "namespace": "default", "uid": f"b{index}", "generation": generation},
            "spec": spec,
            "status": found,
        }
        verbs.store.put(BUDGETS, ("default", f"b{index}"), budget, actor="seed", verb="create")
    return verbs


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"disruptionsAllowed": 1}, id="a budget that allows a disruption"),
        pytest.param({"budgets": 0}, id="a pod without a budget"),
        pytest.param({"disruptionsAllowed": 0, "phase": "Pending"}, id="a pending pod needs no budget"),
        pytest.param({"disruptionsAllowed": 0, "phase": "Failed"}, id="a finished pod needs no budget"),
        pytest.param({"disruptionsAllowed": 0, "going": True}, id="a terminating pod needs no budget"),
        pytest.param(
            {"disruptionsAllowed": 0, "ready": False, "currentHealthy": 2, "desiredHealthy": 2},
            id="an unready pod whose budget has enough healthy pods",
        ),
        pytest.param(
            {
                "disruptionsAllowed": 0,
                "ready": False,
                "currentHealthy": 0,
                "desiredHealthy": 2,
                "spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"},
            },
            id="an unready pod under the policy AlwaysAllow",
        ),
        pytest.param({"disruptionsAllowed": 1, "budgets": 2, "phase": "Pending"}, id="a pending pod with two budgets"),
    ],
)
def test_an_eviction_that_the_budgets_allow_is_granted(options: dict[str, Any]) -> None:
    verbs = a_cluster(**options)
    evict(verbs, "default", "p", DeleteOptions(), actor="me")
    pod = verbs.store.get(PODS, ("default", "p"))
    assert pod is None or "deletionTimestamp" in pod.content["metadata"]


@pytest.mark.parametrize(
    ("options", "code", "retry_after"),
    [
        pytest.param(
            {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1},
            429,
            None,
            id="a budget that allows no disruption",
        ),
        pytest.param(
            {"disruptionsAllowed": 1, "generation": 2, "observedGeneration": 1},
            429,
            "10",
            id="a budget whose status is outdated",
        ),
        pytest.param(
            {"disruptionsAllowed": 0, "ready": False, "currentHealthy": 1, "desiredHealthy": 2},
            429,
            None,
            id="an unready pod whose budget has too few healthy pods",
        ),
        pytest.param(
            {"disruptionsAllowed": 0, "ready": False, "currentHealthy": 0, "desiredHealthy": 0},
            429,
            None,
            id="an unready pod whose budget requires no healthy pod",
        ),
        pytest.param({"disruptionsAllowed": -1}, 403, None, id="a negative number of allowed disruptions"),
        pytest.param(
            {"disruptionsAllowed": 1, "disruptedPods": {f"p{i}": "t" for i in range(2001)}},
            403,
            None,
            id="too many unconfirmed evictions",
        ),
        pytest.param({"disruptionsAllowed": 1, "budgets": 2}, 500, None, id="a running pod with two budgets"),
    ],
)
def test_a_refused_eviction_leaves_the_pod_running(options: dict[str, Any], code: int, retry_after: str | None) -> None:
    verbs = a_cluster(**options)
    version = verbs.store.version
    with pytest.raises(ApiError) as refusal:
        evict(verbs, "default", "p", DeleteOptions(), actor="me")
    assert (refusal.value.code, refusal.value.headers.get("Retry-After")) == (code, retry_after)
    assert verbs.store.version == version


def test_a_granted_eviction_uses_up_its_allowed_disruption_immediately() -> None:
    verbs = a_cluster(disruptionsAllowed=1, currentHealthy=3, desiredHealthy=2)
    evict(verbs, "default", "p", DeleteOptions(), actor="me")
    budget = verbs.store.items(BUDGETS)[0].content["status"]
    assert (budget["disruptionsAllowed"], list(budget["disruptedPods"])) == (0, ["p"])


def test_an_evicted_pod_gets_the_disruption_target_condition() -> None:
    verbs = a_cluster(disruptionsAllowed=1)
    evict(verbs, "default", "p", DeleteOptions(), actor="me")
    conditions = {c["type"]: c for c in verbs.store.items(PODS)[0].content["status"]["conditions"]}
    assert (conditions["DisruptionTarget"]["status"], conditions["DisruptionTarget"]["reason"]) == (
        "True",
        "EvictionByEvictionAPI",
    )
    assert verbs.store.journal[-1].verb == "evict"


def test_an_eviction_with_an_old_resource_version_is_a_conflict() -> None:
    verbs = a_cluster(disruptionsAllowed=1)
    with pytest.raises(ApiError) as refusal:
        evict(verbs, "default", "p", DeleteOptions(resource_version="1"), actor="me")
    assert refusal.value.code == 409


def test_a_webhook_can_refuse_an_eviction_with_its_own_code_and_no_reason() -> None:
    verbs = a_cluster(disruptionsAllowed=1)

    def refuse(_verbs: Verbs, _pod: Any, _options: DeleteOptions) -> DeleteOptions:
        raise denied("guard.example", "not now", code=429)

    verbs.eviction_webhooks.append(refuse)
    with pytest.raises(ApiError) as refused:
        evict(verbs, "default", "p", DeleteOptions(), actor="me")
    assert refused.value.status()["code"] == 429
    assert (refused.value.reason, refused.value.message) == (
        "",
        'admission webhook "guard.example" denied the request: not now',
    )
    assert verbs.store.get(PODS, ("default", "p")) is not None


def test_a_webhook_can_turn_an_eviction_into_a_dry_run() -> None:
    verbs = a_cluster(disruptionsAllowed=1)
    verbs.eviction_webhooks.append(lambda _verbs, _pod, options: replace(options, dry_run=True))
    before = verbs.store.version
    evict(verbs, "default", "p", DeleteOptions(), actor="me")
    assert verbs.store.version == before

"""Which closed budgets may open during a drain, and what a forecast says about their pods."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.simulation.forecast import Forecast, Opens, Outcome, PodForecast
from scheduler_core.snapshot.loading import load_objects

Manifest = dict[str, Any]


def a_node(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def a_pod(name: str, owner: Manifest | None, *, cpu: str = "1", **spec: Any) -> Manifest:
    meta: Manifest = {"name": name, "namespace": "shop", "uid": name, "labels": {"app": "pg", "role": "primary"}}
    if owner:
        meta["ownerReferences"] = [{"uid": "o", "controller": True, **owner}]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"nodeName": "n1", "containers": [container], **spec},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def a_budget(selector: Manifest, owners: tuple[Manifest, ...] = (), name: str = "pg") -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": "b",
            "generation": 4,
            "ownerReferences": [{"apiVersion": "x/v1", "uid": "k", **owner} for owner in owners],
        },
        "spec": {"selector": selector, "minAvailable": 1},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
    }


def a_controller(kind: str, api: str, labels: dict[str, str]) -> Manifest:
    template = {"metadata": {"labels": labels}, "spec": {}}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "pg", "namespace": "shop", "uid": "o"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


STATEFUL: Manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "pg"}
FOREIGN: Manifest = {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "name": "pg"}
APP, ROLE = {"matchLabels": {"app": "pg"}}, {"matchLabels": {"role": "primary"}}


def forecast(*objects: Manifest) -> Forecast:
    snapshot = load_objects([a_node("n1"), a_node("n2"), *objects], strict=False)
    made = simulate_drain(snapshot, ["n1"], made_at="2026-03-04T12:00:00Z")[0]
    assert Forecast.from_mapping(made.to_mapping()) == made
    return made


def only(*objects: Manifest) -> PodForecast:
    (pod,) = forecast(*objects).pods
    return pod


@pytest.mark.parametrize(
    ("owner", "selector", "owners", "template", "is_slow"),
    [
        (STATEFUL, APP, (), {"app": "pg"}, False),
        (STATEFUL, ROLE, (), {"app": "pg"}, True),
        (STATEFUL, ROLE, (), {"app": "pg", "role": "primary"}, False),
        (STATEFUL, APP, ({"kind": "Elasticsearch", "name": "es", "controller": True},), {"app": "pg"}, True),
        (STATEFUL, APP, ({"kind": "Release", "name": "helm", "controller": False},), {"app": "pg"}, False),
        ({**STATEFUL, "apiVersion": "apps.kruise.io/v1"}, APP, (), {"app": "pg"}, True),
        ({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "pg"}, APP, (), {"app": "pg"}, False),
        ({"apiVersion": "batch/v1", "kind": "Job", "name": "pg"}, APP, (), {"app": "pg"}, False),
        (FOREIGN, APP, (), None, True),
        (STATEFUL, ROLE, (), None, False),
        (None, APP, (), None, False),
    ],
)
def test_never_needs_objects_that_are_understood(
    owner: Manifest | None, selector: Manifest, owners: tuple[Manifest, ...], template: Any, is_slow: bool
) -> None:
    controller = [a_controller(owner["kind"], owner["apiVersion"], template)] if owner and template is not None else []
    if owner and "kruise" in owner["apiVersion"]:
        controller = []
    pod = only(a_pod("pg-0", owner), a_budget(selector, owners), *controller)
    assert (pod.outcome, pod.is_never, pod.opens) == (Outcome.BLOCKED, not is_slow, Opens.UNSEEN if is_slow else None)


def test_a_slow_pod_lands_after_all_others_and_carries_what_closes_it() -> None:
    plain = a_pod("web", {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}, cpu="2")
    plain["metadata"]["labels"] = {"app": "web"}
    made = forecast(a_pod("pg-0", FOREIGN, cpu="1"), plain, a_budget(APP))
    (slow,) = made.slow
    assert (slow.landing, slow.owner_uid, slow.owner) == (("n2",), "o", "Cluster shop/pg")
    assert slow.budget is not None
    assert slow.budget.identity == "b/4"
    assert made.never == ()


def test_a_slow_pod_without_room_is_pending() -> None:
    filler = a_pod("filler", FOREIGN, cpu="3")
    filler["spec"]["nodeName"], filler["metadata"]["labels"] = "n2", {}
    assert only(a_pod("pg-0", FOREIGN, cpu="2"), filler, a_budget(APP)).outcome is Outcome.PENDING


def test_a_slow_pod_that_only_this_node_can_run_is_blocked_and_not_pending() -> None:
    pinned = a_pod("osd", FOREIGN, nodeSelector={"kubernetes.io/hostname": "n1"})
    pod = only(pinned, a_budget(APP))
    assert (pod.outcome, pod.opens) == (Outcome.BLOCKED, Opens.UNSEEN)


def test_two_budgets_forbid_the_eviction_whoever_owns_the_pod() -> None:
    pod = only(a_pod("pg-0", FOREIGN), a_budget(APP), a_budget(ROLE, name="other"))
    assert (pod.is_never, pod.opens) == (True, None)


def test_labels_that_only_some_pods_of_a_lost_controller_have_are_not_its_templates() -> None:
    replica = a_pod("pg-1", STATEFUL)
    replica["metadata"]["labels"] = {"app": "pg", "role": "replica"}
    replica["spec"]["nodeName"] = "n2"
    made = forecast(a_pod("pg-0", STATEFUL), replica, a_budget(ROLE))
    assert [pod.title for pod in made.slow] == ["shop/pg-0"]


def test_a_second_pod_kept_by_the_drain_is_slow_if_an_operator_owns_the_budget() -> None:
    """Rook's operator replaces the budget of all OSDs when the first one of a node is gone."""
    pods = [a_pod(name, FOREIGN, nodeSelector={"kubernetes.io/hostname": "n1"}) for name in ("osd-0", "osd-1")]
    budget = a_budget(APP, ({"kind": "CephCluster", "name": "rook", "controller": True},))
    budget["status"] = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    first, second = forecast(*pods, budget).pods
    assert first.outcome is Outcome.RETURNS
    assert (second.outcome, second.is_never, second.opens) == (Outcome.BLOCKED, False, Opens.UNSEEN)

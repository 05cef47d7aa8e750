"""PodDisruptionBudgets: how many pods may still be evicted. Source: pkg/controller/disruption/disruption.go."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import PODS, controller_uid, is_going, write_status
from drydock.server.evictions import pod_is_ready
from drydock.server.kinds.resources import resource_named
from drydock.server.requests.selectors import label_selector_from_object
from drydock.server.store import Content
from drydock.server.verbs import Verbs, with_condition

_BUDGETS = resource_named("poddisruptionbudgets")
_SCALED = tuple(
    resource_named(plural) for plural in ("deployments", "replicasets", "statefulsets", "replicationcontrollers")
)
_ACTOR = "system:disruption-controller"
# DeletionTimeout in disruption.go: an eviction that deleted nothing within this time no longer counts.
_DELETION_TIMEOUT = timedelta(minutes=2)


def reconcile(verbs: Verbs) -> float | None:
    waiting = [
        _reconcile_one(verbs, stored.content)
        for stored in verbs.store.items(_BUDGETS.storage)
        if not is_going(stored.content)
    ]
    return _DELETION_TIMEOUT.total_seconds() if any(waiting) else None


def _reconcile_one(verbs: Verbs, budget: Content) -> bool:
    """True if a pod whose eviction was granted still exists: the budget must be checked again later."""
    matches = label_selector_from_object(budget["spec"].get("selector"))
    pods = [
        p.content
        for p in verbs.store.items(PODS.storage, budget["metadata"]["namespace"])
        if matches(p.content["metadata"].get("labels") or {})
    ]
    counted = [p for p in pods if p["status"].get("phase") not in ("Succeeded", "Failed")]
    disrupted = _still_disrupted(verbs, budget, counted)
    healthy = sum(1 for p in counted if not is_going(p) and p["metadata"]["name"] not in disrupted and pod_is_ready(p))
    expected, desired = _expected_and_desired(verbs, budget, counted)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    conditions = with_condition(
        (budget.get("status") or {}).get("conditions") or [],
        "DisruptionAllowed",
        "True" if allowed else "False",
        verbs.now(),
        reason="SufficientPods" if allowed else "InsufficientPods",
    )
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "observedGeneration": budget["metadata"]["generation"],
        "disruptedPods": disrupted,
        "conditions": conditions,
    }
    write_status(verbs, "poddisruptionbudgets", budget, status, _ACTOR)
    return bool(disrupted)


def _still_disrupted(verbs: Verbs, budget: Content, pods: list[Content]) -> dict[str, str]:
    """The pods whose eviction was granted and that are not yet marked as deleted, with the time of the grant."""
    names = {p["metadata"]["name"] for p in pods if not is_going(p)}
    granted = (budget.get("status") or {}).get("disruptedPods") or {}
    oldest = verbs.wall_clock() - _DELETION_TIMEOUT
    return {name: at for name, at in granted.items() if name in names and datetime.fromisoformat(at) > oldest}


def _expected_and_desired(verbs: Verbs, budget: Content, pods: list[Content]) -> tuple[int, int]:
    """How many pods the budget expects, and how many of them must stay healthy (getExpectedPodCount)."""
    spec = budget["spec"]
    if "maxUnavailable" in spec:
        expected = _scale(verbs, pods)
        return expected, max(0, expected - _amount(spec["maxUnavailable"], expected))
    minimum = spec.get("minAvailable", 1)
    if isinstance(minimum, int):
        return len(pods), minimum
    expected = _scale(verbs, pods)
    return expected, _amount(minimum, expected)


def _amount(value: int | str, of: int) -> int:
    return value if isinstance(value, int) else math.ceil(of * float(value.rstrip("%")) / 100)


def _scale(verbs: Verbs, pods: list[Content]) -> int:
    """The sum of `spec.replicas` of the pods' controllers; for a ReplicaSet of a Deployment, the Deployment's."""
    owners = {
        uid: content
        for r in _SCALED
        for content in (s.content for s in verbs.store.items(r.storage))
        if (uid := content["metadata"]["uid"])
    }
    wanted: dict[str, int] = {}
    for pod in pods:
        owner = owners.get(controller_uid(pod))
        if owner is not None:
            owner = owners.get(controller_uid(owner), owner)
            wanted[owner["metadata"]["uid"]] = owner["spec"].get("replicas", 1)
    return sum(wanted.values())


CONTROLLER = Controller(
    name="disruption",
    watches=("poddisruptionbudgets", "pods", "deployments", "replicasets", "statefulsets"),
    reconcile=reconcile,
)

"""Evictions: deletions of pods within their disruption budgets.

Source: kube-apiserver `pkg/registry/core/pod/storage/eviction.go`. Clients read messages and causes, so both have the
real server's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from drydock.server import api_errors
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.requests.selectors import label_selector_from_object
from drydock.server.verbs import DeleteOptions, Verbs, with_condition

_PODS = resource_named("pods")
_BUDGETS = resource_named("poddisruptionbudgets")
_REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."
# eviction.go MaxDisruptedPodSize: a budget whose controller has stopped must not grow without limit.
_MOST_DISRUPTED_PODS = 2000


def evict(verbs: Verbs, namespace: str, name: str, options: DeleteOptions, *, actor: str) -> None:
    """Deletes the pod if the webhooks and its budget allow it. Raises 429 (cause DisruptionBudget), 409, 404 or 500
    otherwise, and whatever a webhook answers."""
    pod = verbs.read(_PODS, namespace, name).content
    for webhook in verbs.eviction_webhooks:
        options = webhook(verbs, pod, options)
    _refuse_other_pod(pod, options)
    if not _needs_no_budget(pod):
        budgets = _budgets_of(verbs, pod)
        if len(budgets) > 1:
            raise api_errors.internal_error(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        if budgets and not _unhealthy_may_go(pod, budgets[0]):
            _count_disruption(verbs, budgets[0], name, dry_run=options.dry_run, actor=actor)
    if not options.dry_run:
        _mark_disruption_target(verbs, pod, actor)
    # The mark is a new version; the caller's own precondition was already checked above.
    verbs.delete(
        _PODS,
        namespace,
        name,
        replace(options, uid=pod["metadata"]["uid"], resource_version=""),
        actor=actor,
        verb="evict",
    )


def _refuse_other_pod(pod: Mapping[str, Any], options: DeleteOptions) -> None:
    metadata = pod["metadata"]
    if options.uid and options.uid != metadata["uid"]:
        raise api_errors.conflict(
            _PODS,
            metadata["name"],
            f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {metadata['uid']}",
        )
    if options.resource_version and options.resource_version != metadata["resourceVersion"]:
        raise api_errors.conflict(
            _PODS,
            metadata["name"],
            f"Precondition failed: ResourceVersion in precondition: {options.resource_version}, "
            f"ResourceVersion in object meta: {metadata['resourceVersion']}",
        )


def _needs_no_budget(pod: Mapping[str, Any]) -> bool:
    """Whether no budget counts, because the pod is finished, not yet running, or terminating (canIgnorePDB)."""
    return (
        pod.get("status", {}).get("phase") in ("Succeeded", "Failed", "Pending")
        or "deletionTimestamp" in pod["metadata"]
    )


def _budgets_of(verbs: Verbs, pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    labels = pod["metadata"].get("labels") or {}
    found = verbs.store.items(_BUDGETS.storage, pod["metadata"]["namespace"])
    return [b.content for b in found if label_selector_from_object(b.content["spec"].get("selector"))(labels)]


def _unhealthy_may_go(pod: Mapping[str, Any], budget: Mapping[str, Any]) -> bool:
    """Whether the pod is unready and may go without using up its budget: by the budget's policy, or because enough
    pods are healthy."""
    if pod_is_ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired, healthy = int(status.get("desiredHealthy", 0)), int(status.get("currentHealthy", 0))
    return 0 < desired <= healthy


def pod_is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _count_disruption(verbs: Verbs, budget: Mapping[str, Any], pod_name: str, *, dry_run: bool, actor: str) -> None:
    """Uses up one of the budget's disruptions. Raises if there is none (checkAndDecrement)."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", retry_after_seconds=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise api_errors.forbidden(_BUDGETS, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > _MOST_DISRUPTED_PODS:
        raise api_errors.forbidden(
            _BUDGETS, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
    if allowed == 0:
        raise _refused(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently",
            retry_after_seconds=None,
        )
    if dry_run:
        return
    conditions = status.get("conditions") or []
    if allowed == 1:
        conditions = with_condition(conditions, "DisruptionAllowed", "False", verbs.now(), reason="InsufficientPods")
    counted: Object = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**(status.get("disruptedPods") or {}), pod_name: verbs.now()},
        "conditions": conditions,
    }
    verbs.change(
        _BUDGETS,
        budget["metadata"]["namespace"],
        name,
        lambda old: {**old, "status": counted},
        actor=actor,
        subresource="status",
    )


def _refused(why: str, *, retry_after_seconds: int | None) -> api_errors.ApiError:
    return api_errors.too_many_requests(
        _REFUSAL, retry_after_seconds=retry_after_seconds, causes=[{"reason": "DisruptionBudget", "message": why}]
    )


def _mark_disruption_target(verbs: Verbs, pod: Mapping[str, Any], actor: str) -> None:
    metadata = pod["metadata"]
    conditions = with_condition(
        pod["status"].get("conditions") or [],
        "DisruptionTarget",
        "True",
        verbs.now(),
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    verbs.change(
        _PODS,
        metadata["namespace"],
        metadata["name"],
        lambda old: {**old, "status": {**old["status"], "conditions": conditions}},
        actor=actor,
        subresource="status",
    )

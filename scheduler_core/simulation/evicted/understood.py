"""Whether the numbers of a disruption budget alone decide about a pod: *never* is a conclusion only from objects whose
behaviour Kubernetes itself defines. An operator may open its budget when it notices the drain."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.model.disruption_budget import DisruptionBudget

_PLAIN_KINDS = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController", "Job"})
_PLAIN_GROUPS = ("apps/", "batch/")


def why_it_may_open(
    budget: DisruptionBudget, *, owner_kind: str, owner_api_version: str, template: Mapping[str, str]
) -> str:
    """Why a budget that its numbers keep closed may open during a drain, as a clause; "" if it cannot. `template` has
    the labels of the controller's pod template, for a pod without a controller its own.

    An object without `apiVersion` counts as one of Kubernetes.
    """
    if budget.may_open:
        return budget.may_open
    if owner_kind and not is_plain(owner_kind, owner_api_version):
        return f"the pod's controller is of the kind {owner_kind}"
    if budget.owner:
        return f"the budget belongs to {budget.owner}"
    if not budget.selector.matches(template):
        return "the budget selects labels that the pod template does not set"
    return ""


def is_plain(kind: str, api_version: str) -> bool:
    """Whether Kubernetes defines this kind of controller. Other APIs have a StatefulSet or a Job as well."""
    return kind in _PLAIN_KINDS and (api_version in ("", "v1") or api_version.startswith(_PLAIN_GROUPS))

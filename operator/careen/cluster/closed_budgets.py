"""Reads why budgets refuse evictions: the budgets that select a pod, and the labels of its controller's template. Asked
only after a refusal, so a drain without one costs no request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from careen.cluster import objects
from careen.cluster.evictions import list_budgets
from careen.cluster.pods import Owner, read_workloads
from careen.cluster.wire.api import ClusterApi
from careen.core.facts.observation import ClosedBudgets, PodView
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.labels import NOTHING, LabelSelector, Requirement
from scheduler_core.simulation.evicted.understood import is_plain


async def closed_budgets(api: ClusterApi, pods: Iterable[PodView]) -> dict[str, ClosedBudgets]:
    """By the pod's UID. Raises `ClusterError`."""
    found = [(pod, []) for pod in pods]  # type: list[tuple[PodView, list[DisruptionBudget]]]
    for written in await list_budgets(api):
        budget = _budget(written)
        for pod, budgets in found:
            if pod.namespace == budget.namespace and budget.selector.matches(pod.labels):
                budgets.append(budget)
    templates = await _templates(api, [pod for pod, _ in found])
    return {
        pod.uid: ClosedBudgets(budgets=tuple(budgets), template=templates.get(_owner(pod), pod.labels))
        for pod, budgets in found
    }


def _owner(pod: PodView) -> Owner:
    return Owner(pod.owner_kind, pod.namespace, pod.owner_name)


async def _templates(api: ClusterApi, pods: Iterable[PodView]) -> dict[Owner, Mapping[str, str]]:
    wanted: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in pods:
        if is_plain(pod.owner_kind, pod.owner_api_version):
            wanted[pod.owner_kind, pod.namespace].add(pod.owner_name)
    found: dict[Owner, Mapping[str, str]] = {}
    for (kind, namespace), names in sorted(wanted.items()):
        for each in await read_workloads(api, kind, namespace, names):
            template = each.spec.template
            meta = template.metadata if template is not None else None
            found[Owner(kind, namespace, each.metadata.name)] = (meta.labels or {}) if meta is not None else {}
    return found


def _budget(written: objects.DisruptionBudget) -> DisruptionBudget:
    meta, status = written.metadata, written.status
    owner = objects.controller_of(meta)
    return DisruptionBudget(
        name=meta.name,
        namespace=meta.namespace,
        selector=_selector(written.spec.selector),
        disruptions_allowed=status.disruptions_allowed,
        current_healthy=status.current_healthy,
        desired_healthy=status.desired_healthy,
        expected_pods=status.expected_pods,
        uid=meta.uid,
        generation=meta.generation,
        owner=f"{owner.kind} {owner.name}" if owner.name else "",
    )


def _selector(written: objects.WrittenSelector | None) -> LabelSelector:
    if written is None:
        return NOTHING
    equal = (Requirement(key, "In", (value,)) for key, value in sorted((written.match_labels or {}).items()))
    more = (Requirement(each.key, each.operator, each.values or ()) for each in written.match_expressions or ())
    return LabelSelector((*equal, *more))

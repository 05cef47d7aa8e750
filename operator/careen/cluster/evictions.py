"""Evicts pods (policy/v1), with a fixed set of outcomes, and reads the PodDisruptionBudgets: how many
evictions they allow, and after a refusal what closes them.

A request carries the pod's UID, so it cannot evict a new pod of the same name. With `dry_run` the server consults
budgets and webhooks but evicts nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from careen.cluster import objects
from careen.cluster.pods import Owner, read_workloads
from careen.cluster.wire.answers import is_evicted
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import (
    ClusterError,
    Conflict,
    NotFound,
    NotServed,
    Refused,
    ServerFailed,
    TooManyRequests,
)
from careen.core.actions import EvictPod
from careen.core.facts.memory import EvictAnswer
from careen.core.facts.observation import ClosedBudgets, PodView
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.labels import NOTHING, LabelSelector, Requirement
from scheduler_core.simulation.evicted.understood import is_plain
from scheduler_core.values import Value

# The server counts the pod against its budget before it deletes, and refuses for good when two budgets select it:
# pkg/registry/core/pod/storage/eviction.go.
_TWO_BUDGETS = "more than one PodDisruptionBudget"
# Priority and fairness answers 429 as well, without naming a budget.
_BUDGET = re.compile(r"disruption budget|DisruptionBudget", re.IGNORECASE)
# The words of a denial by admission, whatever status a webhook chose: apiserver
# pkg/admission/plugin/webhook/errors/statuserror.go, and plugin/policy/validating. A webhook that does not
# answer is "failed calling webhook" instead.
_DENIED = re.compile(r"denied (?:the )?request", re.IGNORECASE)
_WEBHOOK = re.compile(r"admission webhook", re.IGNORECASE)
# The authorizer's words: apiserver pkg/endpoints/handlers/responsewriters/errors.go. The eviction itself was not
# examined.
_NO_RIGHT = re.compile(r"\bcannot \w+ resource\b")

# The message of careen's own policies (manifests/admission). It concerns the agent, not the pod. An API server may see
# a new claim late, or never if its cache is stuck; neither may count as a refusal that forces a reboot.
OWN_POLICY = "careen's agent may evict only"


_BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


class Evicted(Value, kw_only=True):
    """`detail` is the server's message, `retry_after_seconds` the wait that it asks for."""

    answer: EvictAnswer
    detail: str = ""
    retry_after_seconds: float = 0.0


async def evict(api: ClusterApi, pod: EvictPod, *, dry_run: bool = False) -> Evicted:
    """A refusal and a lost response are outcomes too, so it raises no `ClusterError`."""
    path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"
    query = {"dryRun": "All"} if dry_run else {}
    try:
        said = await api.write(
            "POST", f"{path}/eviction", eviction(pod, dry_run=dry_run), query=query, wait_when_busy=False
        )
        is_evicted(said.body, f"POST {path}/eviction")
    except (NotFound, NotServed) as error:
        return await _explain_not_found(api, path, pod, error)
    except Conflict as error:
        return _explain_conflict(error)
    except Refused as error:
        return _said(_judged(error), error)
    except ClusterError as error:
        return Evicted(answer=EvictAnswer.UNCLEAR, detail=str(error))
    return Evicted(answer=EvictAnswer.ACCEPTED)


async def allowed_disruptions(api: ClusterApi) -> dict[str, int]:
    """How many evictions each budget, by namespace/name, allows now. Raises `ClusterError`."""
    found = await list_budgets(api)
    return {f"{each.metadata.namespace}/{each.metadata.name}": each.status.disruptions_allowed for each in found}


async def list_budgets(api: ClusterApi) -> list[objects.DisruptionBudget]:
    """Every budget of the cluster. Raises `ClusterError`."""
    return await api.items(_BUDGETS, objects.DisruptionBudget)


def _judged(error: Refused) -> EvictAnswer:
    """What refused: a disruption budget, admission, or something that never examined the eviction, such as the
    authorizer or a proxy."""
    if isinstance(error, TooManyRequests) and _BUDGET.search(error.message):
        return EvictAnswer.BUDGET
    if OWN_POLICY in error.message:
        return EvictAnswer.BARRED
    if _DENIED.search(error.message) or (isinstance(error, ServerFailed) and _TWO_BUDGETS in error.message):
        return EvictAnswer.DENIED
    if isinstance(error, TooManyRequests | ServerFailed):
        return EvictAnswer.UNCLEAR
    # A 403 with a reason (a proxy's page has none) comes from the authorizer, or else from admission or from
    # the eviction itself.
    is_forbidden = error.status == 403 and bool(error.reason) and not _NO_RIGHT.search(error.message)
    return EvictAnswer.DENIED if is_forbidden or _WEBHOOK.search(error.message) else EvictAnswer.BARRED


def eviction(pod: EvictPod, *, dry_run: bool) -> dict[str, Any]:
    """The Eviction object to post."""
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
    if pod.grace_seconds is not None:
        options["gracePeriodSeconds"] = pod.grace_seconds
    if dry_run:
        options["dryRun"] = ["All"]
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }


_REPLACED = "the pod is gone, and another pod now has the same name"


async def _explain_not_found(api: ClusterApi, path: str, pod: EvictPod, error: NotFound | NotServed) -> Evicted:
    """A 404 may come from a server or proxy without the eviction API. Only a 404 for the pod itself proves that it is
    gone."""
    try:
        head = await api.get(path, objects.ObjectHead)
    except NotFound:
        return Evicted(answer=EvictAnswer.GONE)
    except ClusterError as again:
        return Evicted(answer=EvictAnswer.UNCLEAR, detail=str(again))
    if head.metadata.uid != pod.uid:
        return Evicted(answer=EvictAnswer.GONE, detail=_REPLACED)
    return Evicted(
        answer=EvictAnswer.BARRED, detail=f"the pod exists, but the API server answered its eviction with: {error}"
    )


def _explain_conflict(error: Conflict) -> Evicted:
    """If the message of a 409 mentions the UID, another pod has this name now. Any other conflict is a race in the
    server."""
    if "uid" in error.message.lower():
        return Evicted(answer=EvictAnswer.GONE, detail=_REPLACED)
    return _said(EvictAnswer.UNCLEAR, error)


def _said(answer: EvictAnswer, error: Refused) -> Evicted:
    return Evicted(
        answer=answer, detail=error.message or str(error), retry_after_seconds=error.retry_after_seconds or 0.0
    )


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

"""Which pods are slow: what refuses their eviction now may allow it during the drain, so a drain may begin. That a pod
never leaves is a conclusion from objects that careen understands; see docs/decisions/0020."""

from __future__ import annotations

import re

from careen.core.facts.observation import ClosedBudgets, DryRunAnswer, Evictable, PodView
from careen.core.facts.policy import DrainPolicy
from scheduler_core.simulation.evicted.evictions import is_never
from scheduler_core.simulation.evicted.understood import is_plain, why_it_may_open
from scheduler_core.simulation.forecast import PodForecast
from scheduler_core.values import Value

# apiserver pkg/admission/plugin/webhook/errors/statuserror.go
_WEBHOOK = re.compile(r'admission webhook "([^"]{1,253})"')


class SlowPod(Value, kw_only=True):
    """A slow pod and what closes its eviction now; what is not known is empty."""

    title: str
    uid: str
    owner: str  # the controller, such as "Cluster shop/pg"; the pod itself without one
    owner_uid: str = ""
    revision: str = ""  # of the controller's template
    budget: str = ""  # the UID and the generation
    budget_owner: str = ""
    webhook: str = ""
    why: str = ""
    is_plain_denial: bool = False  # a webhook denies the pod of a plain workload


def is_slow(pod: PodView, answer: DryRunAnswer, policy: DrainPolicy) -> bool:
    """Whether what refuses the dry-run eviction may allow it during a drain."""
    match answer.answer:
        case Evictable.BUDGET:
            closed = answer.closed or ClosedBudgets()
            is_closed_by_numbers = len(closed.budgets) == 1 and is_never(closed.budgets[0])
            return is_closed_by_numbers and (policy.lists_as_slow(pod.labels) or bool(_why(pod, closed)))
        case Evictable.DENIED:
            return is_webhooks(answer.detail)
        case _:
            return False


def _why(pod: PodView, closed: ClosedBudgets) -> str:
    return why_it_may_open(
        closed.budgets[0],
        owner_kind=pod.owner_kind,
        owner_api_version=pod.owner_api_version,
        template=closed.template,
    )


def slow_pod(
    pod: PodView, answer: DryRunAnswer | None, forecast: PodForecast | None, policy: DrainPolicy
) -> SlowPod | None:
    """The pod if it is slow by its dry run or by the forecast, which sees more of the cluster; None if not."""
    by_answer = answer is not None and is_slow(pod, answer, policy)
    by_forecast = forecast is not None and forecast.opens is not None and _is_closed(answer)
    if not by_answer and not by_forecast:
        return None
    told = foreseen(forecast) if forecast is not None and by_forecast else None
    budgets = answer.closed.budgets if answer is not None and answer.closed is not None else ()
    webhook = _webhook(answer.detail) if answer is not None and answer.answer is Evictable.DENIED else ""
    budget = budgets[0].identity if budgets else told.budget if told else ""
    return SlowPod(
        title=pod.title,
        uid=pod.uid,
        owner=pod.owner_title,
        owner_uid=pod.owner_uid,
        revision=pod.labels.get("controller-revision-hash") or pod.labels.get("pod-template-hash") or "",
        budget=budget,
        budget_owner=budgets[0].owner if budgets else told.budget_owner if told else "",
        webhook=webhook,
        why=answer.detail if answer is not None and by_answer else told.why if told else "",
        is_plain_denial=bool(webhook)
        and not budget
        and (not pod.owner_kind or is_plain(pod.owner_kind, pod.owner_api_version)),
    )


def denied(pod: PodView, detail: str) -> SlowPod:
    """A pod whose real eviction a webhook denied, by the server's message."""
    found = slow_pod(pod, DryRunAnswer(answer=Evictable.DENIED, detail=detail), None, DrainPolicy())
    return found or SlowPod(title=pod.title, uid=pod.uid, owner=pod.owner_title, owner_uid=pod.owner_uid)


def _is_closed(answer: DryRunAnswer | None) -> bool:
    """Whether a forecast may still call the pod slow: its dry run was not made, was allowed, or a budget refused it."""
    return answer is None or answer.answer in {Evictable.ALLOWED, Evictable.BUDGET, Evictable.DENIED}


def foreseen(pod: PodForecast) -> SlowPod:
    """A slow pod as a forecast knows it."""
    budget = pod.budget
    return SlowPod(
        title=pod.title,
        uid=pod.uid,
        owner=pod.owner or f"Pod {pod.title}",
        owner_uid=pod.owner_uid,
        budget=budget.identity if budget else "",
        budget_owner=budget.owner if budget else "",
        why=pod.sentence,
    )


def is_webhooks(detail: str) -> bool:
    """Whether a named webhook denied the eviction, by the server's message."""
    return bool(_webhook(detail))


def _webhook(detail: str) -> str:
    found = _WEBHOOK.search(detail)
    return found[1] if found else ""

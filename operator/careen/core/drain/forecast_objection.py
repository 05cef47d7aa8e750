"""Decides whether a forecast (where each pod of a node would go if the node were drained) forbids the drain under a
policy. The gate `gates/drain_forecast.py` and the commands that show forecasts use these functions."""

from __future__ import annotations

from careen.core.facts.policy import BoundPods, Policy
from scheduler_core.sentences import first_few
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast


def objection_to(forecast: Forecast, policy: Policy) -> str:
    """Return the objections to a drain with this forecast, as a sentence: pods that can never be evicted, or more
    pending or unknown pods than the policy allows. Return an empty text if there are no objections."""
    parts: list[str] = []
    is_forced = policy.drain.force_reboot and policy.drain.force_past_budgets
    if forecast.never and not is_forced:
        parts.append(
            f"{len(forecast.never)} of {len(forecast.pods)} pods can never be evicted: {_name(forecast.never)}"
        )
    pending = forecast.with_outcome(Outcome.PENDING)
    if len(pending) > policy.forecast_pending_allowed:
        parts.append(f"{len(pending)} of {len(forecast.pods)} pods would not find room: {_name(pending)}")
    unknown = forecast.with_outcome(Outcome.UNKNOWN)
    if len(unknown) > policy.forecast_unknown_allowed:
        parts.append(f"{len(unknown)} of {len(forecast.pods)} pods cannot be predicted: {_name(unknown)}")
    return "; ".join(parts)


def bound_in(forecast: Forecast, policy: Policy) -> tuple[PodForecast, ...]:
    """Return the pods because of which the gate `bound-pods` refuses to let the node begin its drain: the owner of such
    a pod names this very node in its pod template (spec.nodeName), so the pod would come back after each eviction. If
    --pods-bound-to-node=stay is set, return no pods, because the gate then lets such pods stay. The setting --forecast
    has no effect here."""
    if policy.drain.bound_pods is not BoundPods.REFUSE:
        return ()
    return tuple(pod for pod in forecast.pods if pod.is_bound)


def objection_to_bound(forecast: Forecast, policy: Policy) -> str:
    """Return a sentence that objects to the drain because, according to the forecast, owners bind their pods to this
    very node. Return an empty text if there are no such pods."""
    bound = bound_in(forecast, policy)
    if not bound:
        return ""
    return (
        f"these pods are bound to this node and return after each eviction: {_name(bound)}; "
        "--pods-bound-to-node=stay leaves such pods on the node"
    )


def _name(pods: tuple[PodForecast, ...]) -> str:
    return first_few([f"{pod.title} ({pod.sentence})" for pod in pods])

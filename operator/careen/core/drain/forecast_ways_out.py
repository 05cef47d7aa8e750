"""The single changes of the cluster, such as one more node, that would remove a forecast's objection. The simulation
has tried each; the refusal lists them."""

from __future__ import annotations

from careen.core.facts.policy import Policy
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast

_SHOWN_PODS = 2  # a reader needs one way out; the second pod shows whether the same one helps there


def ways_out(forecast: Forecast, policy: Policy) -> str:
    """Such as `shop/web-1 would find a place with one more node like n2 (zone b), …`; "" if no single change helps."""
    pending = forecast.with_outcome(Outcome.PENDING)
    pods = (*forecast.never, *(pending if len(pending) > policy.forecast_pending_allowed else ()))
    told = [_way_out(pod) for pod in pods if pod.remedies]
    return "; ".join(told[:_SHOWN_PODS])


def _way_out(pod: PodForecast) -> str:
    remedies = " or ".join(pod.remedies)
    if pod.outcome is Outcome.BLOCKED:
        return f"{pod.title} could be evicted with {remedies}"
    return f"{pod.title} would find a place with {remedies}"

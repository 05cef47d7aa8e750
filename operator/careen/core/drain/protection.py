"""Which pods ask not to be disturbed, or would be lost, for gates, forecasts and plans."""

from __future__ import annotations

from collections.abc import Iterable

from careen.core.drain.drain_plan import to_evict
from careen.core.facts.observation import PodView
from careen.core.facts.policy import BlockingPods, DrainPolicy, Policy
from scheduler_core.model.rest import wants_rest
from scheduler_core.sentences import first_few
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast

LONGEST_SECONDS = 86400.0
"""After a day an alert fires. The pod goes on to forbid the reboot: a person decides."""

_EVERY_POD = DrainPolicy()


def disturbed(pods: Iterable[PodView]) -> tuple[tuple[PodView, str], ...]:
    """The pods that a drain and a reboot would disturb although they ask for rest, with the annotation."""
    return tuple((pod, mark) for pod in to_evict(pods, _EVERY_POD) if (mark := wants_rest(pod.annotations)))


def protected_in(forecast: Forecast, policy: Policy) -> tuple[PodForecast, ...]:
    """The pods of the forecast because of which the gate `protected-pods` refuses. Those that --drain-pod-selector
    leaves on the node are not among them: a forecast cannot tell them from a DaemonSet's."""
    if not policy.protects_pods:
        return ()
    return tuple(pod for pod in forecast.pods if pod.wants_rest and pod.outcome is not Outcome.STAYS)


def lost_in(forecast: Forecast, policy: Policy) -> tuple[tuple[PodForecast, BlockingPods], ...]:
    """The pods because of which the gate `lost-pods` refuses, each with the first entry that selects it."""
    rules = tuple(each for each in policy.blocking_pods if each.is_lost)
    found = ((pod, rule) for pod in forecast.with_outcome(Outcome.LOST) for rule in rules)
    first: dict[str, tuple[PodForecast, BlockingPods]] = {}
    for pod, rule in found:
        if not rule.namespaces or pod.namespace in rule.namespaces:
            first.setdefault(pod.uid, (pod, rule))
    return tuple(first.values())


def objection_to_loss(forecast: Forecast, policy: Policy) -> str:
    """The sentence of the gate `lost-pods`; "" without such pods."""
    lost = lost_in(forecast, policy)
    names = first_few(sorted(f"{pod.title} ({pod.sentence})" for pod, _ in lost))
    return f"these pods would be lost: {names}" if lost else ""


def objection_to_disturbance(forecast: Forecast, policy: Policy) -> str:
    """The sentence of the gate `protected-pods`; "" without such pods."""
    names = first_few(sorted(f"{pod.title} ({pod.wants_rest})" for pod in protected_in(forecast, policy)))
    return f"these pods ask not to be disturbed: {names}" if names else ""

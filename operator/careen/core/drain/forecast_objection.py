"""Whether a forecast forbids a drain, for the gate `drain_forecast` and for the commands that show forecasts."""

from __future__ import annotations

from careen.core.facts.policy import BlockingPods, BoundPods, Policy
from scheduler_core.sentences import first_few
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast


def objection_to(forecast: Forecast, policy: Policy) -> str:
    """Pods that can never be evicted, or more pending or unknown pods than the policy allows, as a sentence; "" without
    an objection. Pods that were left out to save memory do not count."""
    parts: list[str] = []
    is_forced = policy.drain.force_reboot and policy.drain.force_past_budgets
    if forecast.never and not is_forced:
        parts.append(
            f"{len(forecast.never)} of {len(forecast.pods)} pods can never be evicted: {_name(forecast.never)}"
        )
    pending = forecast.with_outcome(Outcome.PENDING)
    if len(pending) > policy.forecast_pending_allowed:
        parts.append(f"{len(pending)} of {len(forecast.pods)} pods would not find room: {_name(pending)}")
    # A tenant can have any number of pods left out, on every node.
    unknown = tuple(pod for pod in forecast.with_outcome(Outcome.UNKNOWN) if pod.uid not in forecast.left_out)
    if len(unknown) > policy.forecast_unknown_allowed:
        parts.append(f"{len(unknown)} of {len(forecast.pods)} pods cannot be predicted: {_name(unknown)}")
    return "; ".join(parts)


ROOM = "room on other nodes"


def causes_in(forecast: Forecast, policy: Policy) -> tuple[str, ...]:
    """What an objection is about: each disruption budget of pods that can never be evicted, as `budget namespace/name`,
    and `ROOM`."""
    is_forced = policy.drain.force_reboot and policy.drain.force_past_budgets
    never = () if is_forced else forecast.never
    names = {f"{pod.budget.namespace}/{pod.budget.name}" for pod in never if pod.budget}
    return (*(f"budget {name}" for name in sorted(names)), *((ROOM,) if homeless(forecast, policy) else ()))


def homeless(forecast: Forecast, policy: Policy) -> int:
    """The number of pods without room, if the policy does not permit so many."""
    pending = len(forecast.with_outcome(Outcome.PENDING))
    return pending if pending > policy.forecast_pending_allowed else 0


def bound_in(forecast: Forecast, policy: Policy) -> tuple[PodForecast, ...]:
    """The pods because of which the gate `bound-pods` refuses: their owner's pod template names this very node
    (spec.nodeName), so each eviction brings them back. None with --pods-bound-to-node=stay; --forecast has no effect
    here."""
    if policy.drain.bound_pods is not BoundPods.REFUSE:
        return ()
    return tuple(pod for pod in forecast.pods if pod.is_bound)


def objection_to_bound(forecast: Forecast, policy: Policy) -> str:
    """The sentence of the gate `bound-pods`; "" without such pods."""
    bound = bound_in(forecast, policy)
    if not bound:
        return ""
    return (
        f"these pods are bound to this node and return after each eviction: {_name(bound)}; "
        "--pods-bound-to-node=stay leaves such pods on the node"
    )


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


def _name(pods: tuple[PodForecast, ...]) -> str:
    return first_few([f"{pod.title} ({pod.sentence})" for pod in pods])

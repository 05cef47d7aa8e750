"""Refuses when pods of this node would find no room, or can never be evicted as things stand. Reads a forecast, computes none."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, Gate, When
from careen.core.observation import NotAsked, Unknown
from careen.core.phases import Evidence
from careen.core.policy import ForecastPolicy, Policy
from careen.core.reasons import Code
from careen.core.situation import Situation
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast


def needs(policy: Policy) -> frozenset[Evidence]:
    """The forecast, unless it is switched off."""
    return frozenset({Evidence.FORECAST}) if policy.forecast is not ForecastPolicy.OFF else frozenset()


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Only `refuse` refuses; `warn` leaves the forecast on the Node for people to read."""
    policy, forecast = situation.policy, situation.seen.forecast
    if policy.forecast is not ForecastPolicy.REFUSE:
        return None
    if isinstance(forecast, (Unknown, NotAsked)):
        return _no(Code.FORECAST_UNKNOWN, f"the forecast could not be made: {forecast.why if isinstance(forecast, Unknown) else 'nobody asked'}")
    return judge(forecast, policy)


def judge(forecast: Forecast, policy: Policy) -> Refusal | None:
    """The rule itself: never-evictable pods, then pending beyond what is allowed, then unknown beyond what is allowed."""
    parts: list[str] = []
    is_forced = policy.drain.force_reboot and policy.drain.force_past_budgets
    if forecast.never and not is_forced:
        parts.append(f"can never be evicted as things stand: {_name(forecast.never)}")
    pending = forecast.with_outcome(Outcome.PENDING)
    if len(pending) > policy.forecast_pending_allowed:
        parts.append(f"{len(pending)} of {len(forecast.pods)} pods would not find room: {_name(pending)}")
    unknown = forecast.with_outcome(Outcome.UNKNOWN)
    if len(unknown) > policy.forecast_unknown_allowed:
        parts.append(f"{len(unknown)} of {len(forecast.pods)} pods cannot be predicted: {_name(unknown)}")
    return _no(Code.FORECAST_REFUSES, "; ".join(parts)) if parts else None


def _name(pods: tuple[PodForecast, ...]) -> str:
    more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
    return ", ".join(f"{pod.title} ({pod.sentence})" for pod in pods[:3]) + more


def _no(code: Code, sentence: str) -> Refusal:
    return Refusal(gate=GATE.name, code=code, sentence=sentence)


GATE = Gate(name="forecast", ask=ask, when=BEFORE_THE_CORDON, cost=Cost.COSTLY, needs=needs)

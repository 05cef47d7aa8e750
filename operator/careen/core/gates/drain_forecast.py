"""This gate refuses to let the node begin its drain if pods of the node would find no room on other nodes, or cannot be
evicted. The gate reads a forecast that already exists."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.drain.forecast_objection import objection_to
from careen.core.drain.forecast_ways_out import ways_out
from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import ForecastPolicy, Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, Gate, When
from careen.core.situation import Situation


def needs(policy: Policy) -> frozenset[Evidence]:
    """Return the facts that the gate needs: the forecast, if --forecast is not off."""
    return frozenset({Evidence.FORECAST}) if policy.forecast is not ForecastPolicy.OFF else frozenset()


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal for a bad forecast with --forecast=refuse. With --forecast=warn the agent only writes the
    forecast on the Node."""
    policy, forecast = situation.policy, situation.seen.forecast
    if policy.forecast is not ForecastPolicy.REFUSE:
        return None
    if isinstance(forecast, (Unknown, NotAsked)):
        return _no(
            Code.FORECAST_UNKNOWN,
            f"the forecast could not be made: {forecast.why}",
        )
    objection = objection_to(forecast, policy)
    return _no(Code.FORECAST_REFUSES, objection, ways_out(forecast, policy)) if objection else None


def _no(code: Code, sentence: str, remedy: str = "") -> Refusal:
    return Refusal(gate=GATE.name, code=code, sentence=sentence, remedy=remedy)


GATE = Gate(
    name="forecast",
    ask=ask,
    when=BEFORE_THE_CORDON,
    cost=Cost.COSTLY,
    needs=needs,
)

"""Refuses if pods of the node would find no room on other nodes, or cannot be evicted, by a forecast that already
exists. With --forecast=warn the agent only writes the forecast on the Node."""

from __future__ import annotations

from careen.core.drain import slow_pods
from careen.core.drain.forecast_objection import causes_in, homeless, objection_to
from careen.core.drain.forecast_ways_out import ways_out
from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import ForecastPolicy
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate
from careen.core.situation import Situation


@gate(
    "forecast",
    when=BEFORE_THE_CORDON,
    cost=Cost.COSTLY,
    needs=lambda policy: {Evidence.FORECAST} if policy.forecast is not ForecastPolicy.OFF else set(),
)
def drain_forecast(situation: Situation) -> No | None:
    policy, forecast = situation.policy, situation.seen.forecast
    if policy.forecast is not ForecastPolicy.REFUSE:
        return None
    if isinstance(forecast, (Unknown, NotAsked)):
        return No(Code.FORECAST_UNKNOWN, f"the forecast could not be made: {forecast.why}")
    objection = objection_to(forecast, policy)
    if objection:
        return No(
            Code.FORECAST_REFUSES,
            objection,
            ways_out(forecast, policy),
            about=causes_in(forecast, policy),
            lacks=homeless(forecast, policy),
        )
    if policy.drain.force_reboot and policy.drain.force_past_budgets:
        return None
    sentence, remedy, ends = slow_pods.objection(situation, slow_pods.foreseen_in(forecast))
    return No(Code.FORECAST_REFUSES, sentence, remedy, ends=ends) if sentence else None

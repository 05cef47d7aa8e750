"""Refuses while the drain would lose a pod for good that an entry of --blocking-pods with `lost` selects: nothing
would create it again. The forecast says which pods these are, also with --forecast=off or warn."""

from __future__ import annotations

from careen.core.drain.forecast_objection import lost_in, objection_to_loss
from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.reasons import Code
from careen.core.gates.blocking_pods import shortest
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate
from careen.core.situation import Situation


@gate(
    "lost-pods",
    when=BEFORE_THE_CORDON,
    cost=Cost.COSTLY,
    needs=lambda policy: {Evidence.FORECAST} if any(each.is_lost for each in policy.blocking_pods) else set(),
)
def lost_pods(situation: Situation) -> No | None:
    forecast, policy = situation.seen.forecast, situation.policy
    if isinstance(forecast, (Unknown, NotAsked)):
        return No(Code.FORECAST_UNKNOWN, f"careen cannot tell which pods would be lost: {forecast.why}")
    why = objection_to_loss(forecast, policy)
    longest = shortest(rule for _, rule in lost_in(forecast, policy))
    return No(Code.LOST_POD, why, longest_seconds=longest) if why else None

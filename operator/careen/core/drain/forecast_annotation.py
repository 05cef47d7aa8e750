"""The annotation that summarises a forecast for people. After the drain, careen compares it with the nodes on which the
new pods run."""

from __future__ import annotations

import json
from typing import Any

from careen.core.facts import keys
from careen.core.observation import Observation
from careen.core.situation import known
from scheduler_core.simulation.forecast import Outcome, PodForecast

_SHOWN_PODS = 110  # a full node by the kubelet's default; 256 KiB of annotations are the limit
_SHOWN_NODES = 20  # equally good nodes shown per pod


def forecast_annotation(seen: Observation) -> dict[str, str | None]:
    """How many pods have each outcome, and on which nodes they may land; {} without a forecast."""
    forecast = known(seen.forecast)
    if forecast is None:
        return {}
    moving = forecast.with_outcome(Outcome.MOVES)[:_SHOWN_PODS]
    short: dict[str, Any] = {
        "at": forecast.made_at,
        "counts": {outcome.value: count for outcome, count in forecast.counts.items()},
        "pods": {pod.title: _shown(pod) for pod in moving},
    }
    shares = {pod.title: [round(share, 3) for share in pod.shares[:_SHOWN_NODES]] for pod in moving if pod.shares}
    if shares:
        short["shares"] = shares
    return {keys.FORECAST: json.dumps(short, separators=(",", ":"))}


def _shown(pod: PodForecast) -> list[str]:
    """The names of the nodes. An incomplete list ends with `AND_OTHERS`, so that a placement on another node does not
    count as an error of the forecast."""
    is_whole = len(pod.landing) <= _SHOWN_NODES and not pod.is_cut
    return [*pod.landing[:_SHOWN_NODES], *(() if is_whole else (keys.AND_OTHERS,))]

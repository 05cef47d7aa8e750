"""Forecasts by production code in a simulated fleet: scheduler_core computes where the pods of a drained node would
run, from the objects that the simulated API server lists. The computation runs in this process, not in a child
process."""

from __future__ import annotations

import asyncio

from careen.cluster.whole_cluster import read_cluster
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from careen.core.facts.observation import Unknown
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.snapshot.snapshot import UnknownNodeError

_CHILD_SECONDS = 1.0  # a child process starts and computes


class Real:
    """Makes the forecasts of one agent with scheduler_core. The requests that list objects for a forecast use the
    agent's connection, so faults of this connection also hit these requests."""

    def __init__(self, api: ClusterApi) -> None:
        self._api = api
        self.made = 0

    async def forecast(self, node: str) -> Forecast | Unknown:
        await asyncio.sleep(_CHILD_SECONDS)
        made_at = self._api.clock.now().isoformat(timespec="seconds").replace("+00:00", "Z")
        try:
            snapshot = await read_cluster(self._api)
            made = simulate_drain(snapshot, [node], made_at=made_at)[0]
        except (ClusterError, UnknownNodeError) as error:
            return Unknown(f"the simulation failed: {error}")
        self.made += 1
        # In production, an agent gets the forecast as JSON from a child process, so this forecast is converted as well.
        return Forecast.from_mapping(made.to_mapping())

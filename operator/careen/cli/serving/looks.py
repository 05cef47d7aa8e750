"""Looks at the cluster for `careen serve` and `careen watch`: one list of the Nodes and one GET of the lock each, and
only as often as the size of the cluster permits."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC

from careen.cli.serving.last_writes import with_last_writes
from careen.cli.support.agents_settings import Agents, agents_of
from careen.cli.support.connection import Cluster, look_at_lock
from careen.cluster.nodes import list_nodes
from careen.cluster.wire.errors import ClusterError
from careen.report.headline import asks_for_policy
from careen.report.live.rollout_document import Seen
from scheduler_core.sentences import count_of

LEAST_SECONDS = 3.0
_NODES_PER_SECOND = 250  # 5,000 nodes every 20 s: about 1.5 MB/s from the API server, while somebody looks
_LONGEST_SECONDS = 60.0
_PROCESSOR_SHARE = 0.05
_SETTINGS_SECONDS = 300.0
_RETRY_SECONDS = 30.0


class Looks:
    """Looks one after another. A failed one keeps what the last one saw, and says since when that is old."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last: Seen | None = None
        self._agents: tuple[float, Agents] | None = None  # and when to read them again

    async def look(self) -> Seen:
        """What the cluster shows now. Raises `ClusterError` if it has never answered."""
        began = time.process_time()
        try:
            # The lock first: a claim released between the two reads is then shown with a node that still has it.
            lock = await look_at_lock(self._cluster)
            nodes = await list_nodes(self._cluster.api, with_history=True)
            nodes = await with_last_writes(self._cluster.api, nodes, lock.state)
        except ClusterError as error:
            if self._last is None:
                raise
            since = f"{self._last.at.astimezone(UTC):%H:%M:%S} UTC"
            return replace(self._last, trouble=f"The cluster could not be read since {since}: {error}.")
        seconds = time.process_time() - began
        pause = seconds_between_looks(len(nodes), seconds)
        self._last = Seen(
            nodes=nodes,
            lock=lock.state,
            at=self._cluster.clock.now(),
            policy=(await self.settings()).policy if asks_for_policy(nodes) else None,
            server=self._cluster.server,
            refresh_seconds=pause,
            load=f"a look is one list of {count_of(len(nodes), 'Node')} and one GET",
        )
        return self._last

    async def settings(self) -> Agents:
        """The agents' settings, read again every few minutes."""
        now = self._cluster.clock.monotonic()
        if self._agents is None or now > self._agents[0]:
            found = await agents_of(self._cluster)
            self._agents = (now + (_SETTINGS_SECONDS if found.settings else _RETRY_SECONDS), found)
        return self._agents[1]


def seconds_between_looks(nodes: int, processor_seconds: float) -> float:
    """The pause after a look at this many Nodes, which took so much processor time here."""
    wanted = max(LEAST_SECONDS, nodes / _NODES_PER_SECOND, processor_seconds / _PROCESSOR_SHARE)
    return round(min(_LONGEST_SECONDS, wanted), 1)

"""Runs agents that are composed as in production: they go through the whole start, check their rights, and make
forecasts. Test doubles replace the parts that cannot run on virtual time: the transport, the clock, the host, and the
child process that makes a forecast. The double of this child process sends the same requests. kopf's watch of the
ConfigMap is left out, because it does not use careen's transport."""

from __future__ import annotations

import random
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from careen.agent.asleep import doorkeeper
from careen.agent.startup import start as starting
from careen.agent.startup import wiring
from careen.agent.telemetry.logs import LogContext
from careen.agent.telemetry.metrics import Metrics
from careen.cluster.pods import list_pods_on
from careen.cluster.snapshot_reader import server_version
from careen.cluster.whole_cluster import read_cluster
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from careen.core.facts.observation import Unknown
from careen.settings.live import Invocation
from careen.settings.sources import BadSettings
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.careen.chaos.fleet import sleepers
from tests.careen.chaos.fleet.agents import LOCK, START, Agents, Process

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World

SETTINGS = """\
concurrency: {concurrency}
pre-reboot-node-labels: [pool=maintenance]
post-reboot-node-labels: []
reboot-deadline: 120s
verify-timeout: 120s
settle-timeout: 120s
failure-backoff: 20s
unknown-patience: 60s
forecast: refuse
blocking-pods:
- {{name: backup, pods: app=backup, scope: cluster}}
"""


class WholeAgents(Agents):
    """Runs agent processes that perform every step of the start, as in production."""

    async def _live(self, process: Process) -> None:
        try:
            while (content := await WholeAgent(self, process).work()) is not None:
                woken = await sleepers.sleeps(self, process, content)
                doorkeeper._woken[:] = [woken] if woken is not None else []
        except BadSettings as error:
            self.trace.append(f"{self._loop.time():8.2f} {process.node}: the start is refused: {error}")
            self.crash(process)

    def metrics_of(self, node: str) -> Metrics:
        """Return the metrics of the node. All agent processes of the node share one set of metrics, so the metrics also
        count failures of earlier processes."""
        return self._metrics.setdefault(node, Metrics(node))


class WholeAgent(wiring.Agent):
    """One agent that consists of the same parts as in production, except for the test doubles of this file."""

    def __init__(self, agents: WholeAgents, process: Process) -> None:
        self._process = process
        wire, clock = agents.wire(process), agents.clock_of(process)
        with (
            patch.multiple(wiring, connect=lambda *_, **__: wire, SystemClock=lambda: clock, Metrics=agents.metrics_of),
            patch.object(wiring.logs, "set_up", lambda *, node, **_: LogContext(node)),
        ):
            super().__init__(_given(process.node))

    async def work(self) -> Mapping[str, Any] | None:
        """Until the agent sleeps: then return what it hands over."""
        await self._work()
        return None if self._rest is None else self._rest.content

    def _in_background(self, work: Coroutine[Any, Any, object]) -> None:
        task = self._process.do(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _signatures_of(self, host: Any) -> dict[str, str]:
        return await sleepers.signatures_of(host)

    def _follow_config_map(self, *_: object) -> None:
        return None

    def _senses(self, *parts: Any, **named: Any) -> Any:
        return replace(super()._senses(*parts, **named), forecaster=ListingForecaster(self._api))


class ListingForecaster:
    """A test double that sends the same requests as the child process that makes a forecast. In its forecasts, pods of
    ReplicaSets and Jobs can move to any node."""

    def __init__(self, api: ClusterApi) -> None:
        self._api = api

    async def forecast(self, node: str) -> Forecast | Unknown:
        try:
            await server_version(self._api)
            cluster = await read_cluster(self._api)
            pods = await list_pods_on(self._api, node)
        except ClusterError as error:
            return Unknown(str(error))
        nodes = tuple(sorted(each.name for each in cluster.nodes))
        moving = tuple(
            PodForecast(
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                outcome=Outcome.MOVES,
                sentence="",
                landing=nodes,
                owner=f"{pod.owner_kind} {pod.namespace}/{pod.owner_name}",
            )
            for pod in pods
            if pod.owner_kind in ("ReplicaSet", "Job")
        )
        return Forecast(node=node, made_at=START.isoformat(), pods=moving)


def _given(node: str) -> Invocation:
    return Invocation(
        flags={
            "node_id": [node],
            "ds_namespace": ["careen"],
            "ds_name": ["careen"],
            "lock_annotation": [LOCK],
            "host_lock_dir": [""],
        },
        environment={"POD_NAME": f"careen-{node}"},
    )


class _NamespaceFile:
    def read_text(self, encoding: str) -> str:
        return "careen"


@contextmanager
def on_virtual_hosts(worlds: list[World]) -> Iterator[None]:
    """Make the agents use the simulated hosts of the first simulated cluster in `worlds`, and random numbers from a
    fixed seed."""
    with (
        patch.object(wiring, "host_of", lambda settings: worlds[0].fleet.hosts[settings.node_id]),
        patch.object(wiring, "random", random.Random(0)),
        patch.object(starting, "_NAMESPACE_FILE", _NamespaceFile()),
    ):
        yield

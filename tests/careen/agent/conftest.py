"""Fixtures that run all parts of an agent in this process, with the embedded API server, a fake host and virtual
time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from careen.agent.apply import Hands
from careen.agent.need_watch import NeedWatch
from careen.agent.observe import Observer, Senses
from careen.agent.self_test import SelfTests
from careen.agent.telemetry.metrics import Metrics
from careen.cluster.lock_store import LockStore
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.client import connect
from careen.core.actions import Notify
from careen.core.facts.observation import Alert, Need, NeedAnswer, SelfTest, Unknown
from careen.host import reboot
from careen.services.prometheus import AlertSource
from drydock.server.testing import running_server
from scheduler_core.simulation.forecast import Forecast
from tests.careen.cluster.conftest import Cluster
from tests.careen.virtual_shell import Meddling, VirtualClock

KEY = "weave.works/kured-node-lock"


@dataclass
class FakeHost:
    """A host on virtual time. A test sets its fields: for example whether the host needs a reboot, and the result of a
    reboot request."""

    clock: VirtualClock
    need: Need = field(default_factory=lambda: Need(answer=NeedAnswer.NO))
    boot: str | Unknown = "boot-n1"
    answer: reboot.RebootAnswer = field(default_factory=reboot.RebootRequested)
    needs_read: int = 0
    reboots: int = 0
    self_test: SelfTest = field(default_factory=SelfTest)
    takes_seconds: float = 0.0

    async def read_need(self) -> Need:
        self.needs_read += 1
        await asyncio.sleep(0)
        return self.need

    def read_boot_id(self) -> str | Unknown:
        return self.boot

    def uptime(self) -> float:
        return 5000.0 + self.clock.seconds

    async def test_reboot(self) -> SelfTest:
        return self.self_test

    async def ask_reboot(self) -> reboot.RebootAnswer:
        self.reboots += 1
        await self.clock.sleep(self.takes_seconds)
        return self.answer


@dataclass
class FakeForecaster:
    asked: list[str] = field(default_factory=list)
    answer: Forecast | Unknown = field(default_factory=lambda: Forecast(node="n1", made_at="2026-03-04T12:00:00Z"))

    async def forecast(self, node: str) -> Forecast | Unknown:
        self.asked.append(node)
        return self.answer


@dataclass
class FakeAlerts:
    asked: int = 0
    answer: tuple[Alert, ...] | Unknown = ()

    async def active_alerts(self) -> tuple[Alert, ...] | Unknown:
        self.asked += 1
        return self.answer


@dataclass
class Shell(Cluster):
    """All parts of the agent of node n1, except the agent's loop. The host is a fake."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    alerts: FakeAlerts | None = None
    forecaster: FakeForecaster = field(default_factory=FakeForecaster)
    told: list[Notify] = field(default_factory=list)
    metrics: Metrics = field(default_factory=lambda: Metrics("n1"))
    background: list[asyncio.Task[object]] = field(default_factory=list)
    is_command: bool = False
    period: float = 3600.0

    def __post_init__(self) -> None:
        self.host = FakeHost(self.clock)
        look = self.host.read_need
        files, commands = (None, look) if self.is_command else (look, None)
        self.need = NeedWatch(files, self.clock, commands=commands, period_seconds=lambda: self.period)
        self.lock = LockStore(self.api, namespace="careen", name="careen", annotation=KEY)

    def alert_source(self) -> AlertSource | None:
        return self.alerts

    def in_background(self, work: Coroutine[Any, Any, object]) -> None:
        self.background.append(asyncio.ensure_future(work))

    @property
    def senses(self) -> Senses:
        return Senses(
            node_name="n1",
            daemonset_namespace="careen",
            daemonset_name="careen",
            api=self.api,
            host=self.host,
            need=self.need,
            lock=self.lock,
            self_tests=SelfTests(self.host, self.clock),
            forecaster=self.forecaster,
            alerts=self.alert_source,
            chance=lambda: 0.0,
        )

    @property
    def hands(self) -> Hands:
        return Hands(
            node_name="n1",
            api=self.api,
            host=self.host,
            lock=self.lock,
            chance=lambda: 0.0,
            metrics=self.metrics,
            notify=self.told.append,
            in_background=self.in_background,
        )

    def observer(self) -> Observer:
        return Observer(self.senses)

    @property
    def requests(self) -> list[str]:
        """Return the requests that were sent to the API server, in order, such as `GET /api/v1/nodes/n1`."""
        return [f"{request.method} {request.path}" for request in self.wire.asked]


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    clock = VirtualClock()
    async with running_server() as server:
        transport = connect(server.write_kubeconfig(tmp_path / "kubeconfig"), part="test")
        wire = Meddling(transport)
        made = Shell(server=server, wire=wire, api=ClusterApi(wire, clock, chance=lambda: 0.0), clock=clock)
        made.put_daemonset()
        yield made
        await asyncio.gather(*made.background)
        transport.close()

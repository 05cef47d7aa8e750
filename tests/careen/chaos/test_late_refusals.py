"""A drain makes alerts and health queries bad. Every node must reboot all the same, with at most two drains each, and
no node may be drained again and again for a refusal that does not end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from careen.core.facts.observation import Alert
from careen.core.facts.policy import AlertPolicy, HealthQuery
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.prometheus import Prometheus
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.workloads import App
from tests.careen.chaos.fleet.world import Shape, World

GATE = "careen.dev/gate.backup"
CEPH = HealthQuery(name="ceph", query="ceph_health_status", comparison="==", bound=0, fresh_seconds=120)
LATE_CEPH = HealthQuery(
    name="ceph",
    query="ceph_health_status",
    comparison="==",
    bound=0,
    fresh_seconds=120,
    late_comparison="<=",
    late_bound=1,
)
IGNORED = re.compile("^(Watchdog|InfoInhibitor)$")
DISK = Alert(name="NodeDiskFailing", labels={"instance": "10.0.0.99:9100"})


@dataclass
class Played:
    world: World
    prometheus: Prometheus
    drains: dict[str, int]

    @property
    def reboots(self) -> dict[str, int]:
        log = [each.host for each in self.world.fleet.log if each.what == "booted"]
        return {name: log.count(name) for name in self.drains}

    def is_cordoned(self, name: str) -> bool:
        return bool((self.world.server.get("nodes", name) or {}).get("spec", {}).get("unschedulable"))

    def said(self, name: str, what: str = "reason") -> str:
        node: dict[str, Any] = self.world.server.get("nodes", name) or {}
        return str((node["metadata"].get("annotations") or {}).get(f"careen.dev/{what}", ""))

    async def until(self, is_so: Callable[[], bool], longest: float = 3000.0) -> None:
        end = self.world.now + longest
        while not is_so():
            assert self.world.now < end, self.world.report(["it did not become so"])
            await asyncio.sleep(0.5)

    async def until_drained(self, name: str = "n1") -> None:
        await self.until(lambda: "is drained and waits" in self.said(name))


Story = Callable[[Played], Awaitable[None]]


def play(story: Story, shape: Shape, *queries: HealthQuery, slow: bool = False) -> Played:
    """Play a story in which all nodes need a reboot. `slow`: pods need so long that several evaluations see them
    missing."""

    async def played() -> Played:
        found: list[Prometheus] = []

        def prepare(world: World) -> None:
            found.append(Prometheus(world))
            world.agents.alerts = world.agents.metrics = found[0]
            asked = {"alerts": AlertPolicy(filter_regexp=IGNORED), "health_queries": queries}
            world.settings = {name: dict(asked) for name in shape.names}
            if queries:
                found[0].add_osds()
            if slow:
                for name, app in world.fleet.workloads.apps.items():
                    changed = {"ends_within": (20.0, 30.0), "grace_seconds": 30, "ready_within": (40.0, 50.0)}
                    world.fleet.workloads.apps[name] = App(name=name, replicas=app.replicas, **changed)

        world = World(shape, prepare=prepare)
        tale = Played(world, found[0], dict.fromkeys(shape.names, 0))
        tasks = [
            asyncio.ensure_future(each) for each in (found[0].run(), found[0].restart_osds() if queries else _no_osds())
        ]
        tasks.append(asyncio.ensure_future(_count_drains(tale)))
        await world.all_need_a_reboot()
        await story(tale)
        world.stop()
        for task in tasks:
            task.cancel()
        return tale

    return run_virtually(played())


async def _no_osds() -> None:
    return None


async def _count_drains(tale: Played) -> None:
    before: dict[str, bool] = {}
    while True:
        for name in tale.drains:
            now = tale.is_cordoned(name)
            tale.drains[name] += now and not before.get(name, False)
            before[name] = now
        await asyncio.sleep(0.25)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_every_node_reboots_after_one_drain_with_kube_prometheus_rules_and_the_documented_ceph_query(
    concurrency: int,
) -> None:
    """All alerts count, also pending ones. With two claims, the second node waits for the first one's alerts."""

    async def story(tale: Played) -> None:
        await tale.world.until_home(7200.0)

    tale = play(story, Shape(nodes=4, concurrency=concurrency), LATE_CEPH, slow=True)
    assert set(tale.reboots.values()) == {1}, tale.world.report([])
    assert max(tale.drains.values()) <= concurrency, tale.drains
    assert not (broken := tale.world.verdict()), tale.world.report(broken)


def test_a_health_query_without_a_condition_for_drained_nodes_costs_each_node_one_drain() -> None:
    async def story(tale: Played) -> None:
        await tale.world.until_home(14400.0)

    tale = play(story, Shape(nodes=3), CEPH)
    assert set(tale.reboots.values()) == {1}, tale.world.report([])
    assert max(tale.drains.values()) == 2
    told = [each.node for each in tale.world.agents.sent_events if each.reason == "HealthQueryLearned"]
    assert sorted(told) == ["n1", "n2", "n3"]
    assert not (broken := tale.world.verdict()), tale.world.report(broken)


def test_a_foreign_alert_of_five_minutes_delays_the_reboot_of_the_drained_node() -> None:
    async def story(tale: Played) -> None:
        await tale.until(lambda: tale.is_cordoned("n1"))
        tale.prometheus.more.append(DISK)
        tale.prometheus.evaluate()
        await tale.until_drained()
        await asyncio.sleep(300.0)
        assert tale.said("n1", "phase") == "Draining"
        tale.prometheus.more.clear()
        await tale.world.until_home(3600.0)

    tale = play(story, Shape(nodes=1))
    assert (tale.drains, tale.reboots) == ({"n1": 1}, {"n1": 1})


def test_a_foreign_alert_that_does_not_end_costs_one_drain() -> None:
    async def story(tale: Played) -> None:
        await tale.until(lambda: tale.is_cordoned("n1"))
        tale.prometheus.more.append(DISK)
        tale.prometheus.evaluate()
        await asyncio.sleep(4 * 3600.0)

    tale = play(story, Shape(nodes=2))
    assert tale.drains == {"n1": 1, "n2": 0}
    assert not any(tale.is_cordoned(name) for name in tale.drains)
    assert "NodeDiskFailing" in "".join(tale.said(name) for name in tale.drains)
    assert not tale.world.lock().get("locks")


def test_an_alert_that_comes_with_every_drain_lets_the_node_try_three_times() -> None:
    """No label says that the drain causes it."""

    async def story(tale: Played) -> None:
        cause = Alert(name="CephHealthWarning", labels={"cluster": "rook"})
        for _ in range(4 * 3600):
            tale.prometheus.more[:] = [cause] if tale.is_cordoned("n1") else []
            tale.prometheus.evaluate()
            await asyncio.sleep(1.0)

    tale = play(story, Shape(nodes=1))
    assert (tale.drains, tale.reboots) == ({"n1": 3}, {"n1": 0})
    assert tale.said("n1", "phase") == "Failed"
    assert "CephHealthWarning" in tale.said("n1")


@pytest.mark.parametrize("restarts", [False, True], ids=["one process", "an agent that restarts every minute"])
def test_a_hook_that_is_removed_after_twenty_minutes_delays_the_reboot(restarts: bool) -> None:
    async def story(tale: Played) -> None:
        await tale.until(lambda: tale.is_cordoned("n1"))
        people.annotate(tale.world, "n1", GATE, "dump")
        await tale.until_drained()
        for _ in range(20):
            await asyncio.sleep(60.0)
            if restarts:
                for process in list(tale.world.agents.processes):
                    tale.world.agents.crash(process)
        assert tale.said("n1", "phase") == "Draining"
        people.annotate(tale.world, "n1", GATE, None)
        await tale.world.until_home(3600.0)

    tale = play(story, Shape(nodes=1))
    assert (tale.drains, tale.reboots) == ({"n1": 1}, {"n1": 1})


def test_a_hook_that_is_never_removed_ends_the_drain_after_an_hour_despite_restarts() -> None:
    async def story(tale: Played) -> None:
        await tale.until(lambda: tale.is_cordoned("n1"))
        people.annotate(tale.world, "n1", GATE, "dump")
        await tale.until_drained()
        for minutes in range(80):
            assert minutes < 62 or not tale.is_cordoned("n1")
            assert minutes > 59 or tale.is_cordoned("n1")
            await asyncio.sleep(60.0)
            for process in list(tale.world.agents.processes):
                tale.world.agents.crash(process)

    tale = play(story, Shape(nodes=1))
    assert (tale.drains, tale.reboots) == ({"n1": 1}, {"n1": 0})
    assert not tale.world.lock().get("locks")

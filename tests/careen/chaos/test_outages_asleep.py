"""The API server does not answer for an hour while whole agents sleep. Each wakes at most once, for its next look, and
waits in its start. Nobody becomes unhealthy, and the server meets few requests when it returns."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.whole_agents import WholeAgent, WholeAgents, on_virtual_hosts
from tests.careen.chaos.fleet.world import Shape, World
from tests.careen.chaos.test_settings_asleep import CLOSED, that_begins

HOUR_SECONDS = 3600.0
NODES = 12
MOST_TRIES = 170
"""Of one agent in ten minutes of the outage: a read gives up after ten seconds, and begins again up to half a minute
later."""
BACK_SECONDS = 62.0
"""The longest pause of a sleeping agent between two tries, and a little more."""


class Outage:
    """A fleet that sleeps, and what it does from then on."""

    def __init__(self) -> None:
        self.tries: Counter[tuple[int, str]] = Counter()  # in ten minutes, by node
        self.seconds: Counter[int] = Counter()
        self.awake: dict[str, WholeAgent] = {}

    def plan(self, _number: int, node: str, _request: Request) -> None:
        now = asyncio.get_running_loop().time()
        self.tries[int(now // 600), node] += 1
        self.seconds[int(now)] += 1

    def late(self, world: World) -> list[str]:
        """Why agents are not healthy, as their probes say."""
        found = []
        for each in world.agents.processes:
            if each.is_asleep:
                why = each.looks.late if each.looks is not None else ""
            else:
                alive, doing = self.awake[each.node]._heartbeat.health()
                why = "" if alive else doing
            found += [f"{each.node}: {why}"] if why else []
        return found


@pytest.fixture
def outage() -> Iterator[Outage]:
    found, init = Outage(), WholeAgent.__init__

    def noted(agent: WholeAgent, agents: Any, process: Any) -> None:
        init(agent, agents, process)
        found.awake[process.node] = agent

    with patch.object(WholeAgent, "__init__", noted):
        yield found


def wakes(world: World, since: float) -> list[tuple[str, str]]:
    return [(node, why) for at, node, why in world.agents.changes if why and at >= since]


def sleepers_of(world: World) -> int:
    return sum(each.is_asleep for each in world.agents.processes)


def test_an_hour_without_the_api_server_wakes_each_agent_at_most_once_and_ends_without_a_storm(outage: Outage) -> None:
    worlds: list[World] = []

    async def story() -> World:
        world = World(Shape(nodes=NODES), agents=WholeAgents, prepare=that_begins(worlds, CLOSED), plan=outage.plan)
        await asyncio.sleep(60.0)
        assert sleepers_of(world) == NODES, world.report([])
        began = world.now
        world.agents.go_down(HOUR_SECONDS)
        while world.now < began + HOUR_SECONDS:
            await asyncio.sleep(20.0)
            assert outage.late(world) == []
        in_outage = wakes(world, began)
        assert {why for _, why in in_outage} == {"a look is due"}
        assert max(Counter(node for node, _ in in_outage).values()) == 1
        assert max(outage.tries.values()) <= MOST_TRIES
        returned = world.now
        outage.tries.clear()
        outage.seconds.clear()
        await asyncio.sleep(BACK_SECONDS)
        assert outage.late(world) == []
        await asyncio.sleep(60.0)
        assert sleepers_of(world) == NODES, world.report([])
        assert wakes(world, returned) == []
        assert outage.tries.total() <= 8 * NODES
        assert max(outage.seconds.values()) <= NODES
        world.stop()
        return world

    with on_virtual_hosts(worlds):
        world = run_virtually(story())
    assert not world.agents.deaths
    assert not world.agents.breaches


@pytest.mark.parametrize(("minutes", "lasts"), [(5, 14), (50, 60)])
def test_a_need_or_a_request_in_the_outage_is_met_within_a_minute_after_it(
    outage: Outage, minutes: int, lasts: int
) -> None:
    """The need wakes its agent at once; the request is seen when the server answers again, by an agent that still
    sleeps or by one whose look was due."""
    worlds: list[World] = []

    async def story() -> World:
        world = World(Shape(nodes=3), agents=WholeAgents, prepare=that_begins(worlds, CLOSED), plan=outage.plan)
        await asyncio.sleep(60.0)
        began = world.now
        world.agents.go_down(60.0 * lasts)
        await asyncio.sleep(60.0 * minutes)
        world.fleet.hosts["n1"].needs_reboot()
        people.annotate(world, "n2", people.REQUEST, "reboot")
        await asyncio.sleep(began + 60.0 * lasts - world.now)
        assert sleepers_of(world) == (2 if lasts < 15 else 0)
        await asyncio.sleep(BACK_SECONDS)
        phases = [people._annotations(world, name).get("careen.dev/phase", "Idle") for name in world.shape.names]
        assert phases == ["Waiting", "Waiting", "Idle"]
        world.stop()
        return world

    with on_virtual_hosts(worlds):
        assert not run_virtually(story()).agents.deaths

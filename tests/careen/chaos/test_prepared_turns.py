"""While the workloads of a rebooted node settle, this node still holds the claim, and the next node already makes its
forecast. In some of these roll-outs the cluster changes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from careen.core.facts import keys
from careen.core.facts.memory import Memory
from scheduler_core.simulation.forecast import Forecast
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

SLOW_FORECAST_SECONDS = 4.0


@dataclass
class Slow:
    """A forecaster that needs as long as in a large cluster, and records when each forecast began."""

    world: World
    begun: list[tuple[float, str]] = field(default_factory=list)

    async def forecast(self, node: str) -> Forecast:
        self.begun.append((self.world.now, node))
        await asyncio.sleep(SLOW_FORECAST_SECONDS)
        return Forecast(node=node, made_at="2026-03-04T12:00:00Z")


@dataclass
class Seen:
    """Records during a roll-out which nodes hold a claim at which time, and each text that an agent writes on its Node
    about a prepared claim."""

    world: World
    forecasts: Slow
    holders: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)
    said: dict[str, list[str]] = field(default_factory=dict)

    def look(self) -> None:
        holders = tuple(sorted(row["nodeID"] for row in self.world.lock().get("locks", [])))
        if not self.holders or self.holders[-1][1] != holders:
            self.holders.append((self.world.now, holders))
        for node in self.world.server.all("nodes"):
            sentence = (node["metadata"].get("annotations") or {}).get(keys.PREPARED)
            known = self.said.setdefault(node["metadata"]["name"], [])
            if sentence and known[-1:] != [sentence]:
                known.append(sentence)

    def seconds_between_claims(self) -> list[float]:
        """Return how many seconds passed between the release of each claim and the next claim."""
        found = []
        for (at, holders), (later, following) in zip(self.holders, self.holders[1:], strict=False):
            if not holders and following and at != self.holders[0][0]:
                found.append(later - at)
        return found

    def everything_said(self) -> list[str]:
        return [sentence for sentences in self.said.values() for sentence in sentences]


def memory_of(world: World, name: str) -> Memory:
    """Return the facts that the node's newest agent process keeps between its decisions."""
    process = [each for each in world.agents.processes if each.node == name][-1]
    return Memory() if process.loop is None else process.loop._reconciler.memory  # a sleeping agent prepares nothing


def prepared(world: World) -> list[str]:
    """Return the nodes whose agents have prepared their claim (for example by a forecast) and keep the result in
    memory."""
    alive = {each.node for each in world.agents.processes if not each.is_dead}
    return sorted(name for name in alive if memory_of(world, name).prepared is not None)


async def a_roll_out(
    shape: Shape, event: Callable[[World, str], Any] = lambda _world, _name: None, **settings: Any
) -> Seen:
    """Play a roll-out with these `settings`. Call `event` once, when the first node has prepared its claim."""
    world = World(shape)
    seen = Seen(world, Slow(world))
    world.agents.forecaster = lambda _api, _node: seen.forecasts
    for process in list(world.agents.processes):
        world.agents.crash(process)  # the successors forecast slowly
    if settings:
        people.change_settings(world, **settings)
    await world.all_need_a_reboot()
    has_happened, end = False, world.now + 900.0
    while world.now < end and not (world.is_home() and has_happened):
        await asyncio.sleep(0.05)
        seen.look()
        if not has_happened and (ready := prepared(world)):
            has_happened = True
            event(world, ready[0])
    assert has_happened, "no node prepared its forecast"
    await world.until_home(600.0)
    world.stop()
    return seen


def verdict(seen: Seen) -> None:
    assert not (broken := seen.world.verdict()), seen.world.report(broken)


def test_a_node_with_a_prepared_forecast_takes_its_claim_without_a_new_forecast() -> None:
    seen = run_virtually(a_roll_out(Shape(nodes=4)))
    verdict(seen)
    assert len(seen.seconds_between_claims()) == 3
    assert max(seen.seconds_between_claims()) < SLOW_FORECAST_SECONDS, seen.seconds_between_claims()
    assert sorted(seen.seconds_between_claims())[1] < SLOW_FORECAST_SECONDS / 2, seen.seconds_between_claims()
    assert all("were used" in sentence for sentence in seen.everything_said()), seen.said
    assert len(seen.forecasts.begun) <= 4 + 1, "each node makes one forecast; only the first node may make two"


def test_a_node_discards_its_prepared_forecast_if_a_disruption_budget_allows_no_eviction() -> None:
    def close(world: World, _name: str) -> None:
        world.fleet.workloads.set_budget("web", 0)
        world.at(60.0, lambda: world.fleet.workloads.set_budget("web", 2))

    seen = run_virtually(a_roll_out(Shape(nodes=4, is_town=True), close))
    verdict(seen)
    assert any("the disruption budget" in sentence for sentence in seen.everything_said()), seen.said


def test_a_node_discards_its_prepared_forecast_if_another_node_is_added() -> None:
    seen = run_virtually(a_roll_out(Shape(nodes=3), lambda world, _name: world.fleet.add_host("n9", {})))
    assert "the forecast and the dry runs were thrown away: the Node n9 is new" in seen.everything_said(), seen.said
    assert not [host.name for host in seen.world.fleet.hosts.values() if host.has_need]


def test_the_roll_out_continues_if_the_agent_with_the_prepared_forecast_dies() -> None:
    seen = run_virtually(a_roll_out(Shape(nodes=3), people.crash_agent))
    verdict(seen)
    assert len(seen.seconds_between_claims()) == 2


def test_prepared_forecasts_break_no_rule_with_a_concurrency_of_two() -> None:
    seen = run_virtually(a_roll_out(Shape(nodes=6, concurrency=2)))
    verdict(seen)
    assert max(len(holders) for _, holders in seen.holders) == 2


def test_a_node_prepares_few_forecasts_while_the_workloads_of_another_node_settle() -> None:
    seen = run_virtually(a_roll_out(Shape(nodes=2), lock_release_delay_seconds=0.0, stable_boot_seconds=200.0))
    verdict(seen)
    assert len(seen.forecasts.begun) <= 6, seen.forecasts.begun

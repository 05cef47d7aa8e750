"""What waiting nodes cost the API server, counted on the agents' wire, and how soon they notice that they may go.

A few real agents that are told of 5,000: each sleeps as one of 5,000 would, and what it asks for is multiplied."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import time
from typing import Any

import pytest

from careen.cluster.wire.transport import Request
from careen.core.facts.observation import Alert
from careen.core.facts.phases import Phase
from careen.core.facts.policy import AlertPolicy, Window
from careen.core.facts.progress import to_annotation
from careen.core.facts.selectors import Selector
from careen.core.lock import content as lock
from careen.core.lock import order
from careen.core.lock.content import LockContent
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World
from tests.careen.core.builders import a_progress, an_entry

THOUSANDS = 5000
MOST_REQUESTS_PER_SECOND = 20
REAL = 20  # agents that run: the line with its thirteen names, and some that nobody named
LATE = 1000
SETTLED_SECONDS, WATCHED_SECONDS = 1800.0, 3600.0

Obstacle = Callable[[World], None]


def nothing(world: World) -> None:
    """For whoever only waits."""


def edit(world: World, change: Callable[[LockContent], LockContent]) -> None:
    def anew(_old: dict[str, Any]) -> str | None:
        found = world.server.get("daemonsets", "careen", "careen")
        assert found is not None
        content = lock.parse((found["metadata"].get("annotations") or {}).get(people.LOCK))
        assert isinstance(content, LockContent)
        return lock.render(change(content))

    people.edit_lock(world, anew)


def pause(world: World) -> None:
    edit(world, lambda content: lock.pause(content, "the network is rebuilt", 1))


def resume(world: World) -> None:
    edit(world, lock.resume)


def hold_all(world: World) -> None:
    for name in world.shape.names:
        people.hold(world, name)


def let_all_go(world: World) -> None:
    for name in world.shape.names:
        people.let_go(world, name)


def settings(world: World, **changes: Any) -> None:
    for name in world.shape.names:
        world.settings[name] = {**world.settings.get(name, {}), **changes}


def block_by_pods(world: World) -> None:
    settings(world, blocking_pod_selectors=(Selector.parse("app=web"),))


def allow_pods(world: World) -> None:
    settings(world, blocking_pod_selectors=())


def shut_window(world: World) -> None:
    settings(world, window=Window(days=frozenset(), start=time(1), end=time(2)))


class Firing:
    async def active_alerts(self) -> tuple[Alert, ...]:
        return (Alert(name="DiskFull"),)


def fire_an_alert(world: World) -> None:
    settings(world, alerts=AlertPolicy())
    world.agents.alerts = Firing()


def spoil_the_lock(world: World) -> None:
    people.edit_lock(world, lambda _: "{")


def put_node(world: World, name: str, **metadata: Any) -> None:
    """One without an agent."""
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}, "spec": {}, "status": status}
    world.server.put(node, actor="seed")


def others_hold(world: World) -> None:
    """A claim that stays: kured's, whose holder keeps no record on its Node."""
    put_node(world, "elsewhere")
    people.edit_lock(world, lambda _: {"nodeID": "elsewhere", "created": "2026-03-04T12:00:00Z"})


def another_failed(world: World) -> None:
    record = a_progress(Phase.FAILED, claim="c9", failed="never-ready")
    put_node(world, "elsewhere", annotations={"careen.dev/progress": to_annotation(record)})
    failed = an_entry("elsewhere", "c9", uid="", failed="never-ready")
    edit(world, lambda content: lock.put_back(content, failed, 1))


def many_come_late(world: World) -> None:
    """Nodes that wait behind a blocking pod: whoever counts the waiting counts them."""
    for number in range(LATE):
        put_node(world, f"late-{number}", labels={"careen.dev/reboot": "required"})


def both(*obstacles: Obstacle) -> Obstacle:
    def stand(world: World) -> None:
        for each in obstacles:
            each(world)

    return stand


@dataclass(frozen=True)
class Cost:
    """Requests per second of one node: of each in the line, and of each other."""

    named: tuple[float, ...]
    others: tuple[float, ...]

    def of(self, nodes: int) -> float:
        """Of a fleet of so many: those in line once, everybody else like the others."""
        return sum(self.named) + (nodes - len(self.named)) * sum(self.others) / len(self.others)


async def waiting(obstacle: Obstacle, *, later: Obstacle = nothing) -> Cost:
    counted: Counter[str] = Counter()

    def plan(_number: int, node: str, _request: Request) -> Fault | None:
        counted[node] += 1
        return None

    world = World(Shape(nodes=REAL), plan=plan, seed=7)
    told_of(world, THOUSANDS)
    obstacle(world)
    await world.all_need_a_reboot()
    await asyncio.sleep(SETTLED_SECONDS / 2)
    later(world)
    await asyncio.sleep(SETTLED_SECONDS / 2)
    counted.clear()
    await asyncio.sleep(WATCHED_SECONDS)
    line = world.lock().get("next") or ()
    world.stop()
    assert not [event for event in world.fleet.log if event.what == "asked"], "somebody may go: nobody waits here"
    rates = {name: counted[name] / WATCHED_SECONDS for name in world.shape.names}
    return Cost(
        named=tuple(rate for name, rate in rates.items() if name in line),
        others=tuple(rate for name, rate in rates.items() if name not in line),
    )


def told_of(world: World, agents: int) -> None:
    """The status of the DaemonSet, where an agent reads how many there are."""
    world.server.change(
        "daemonsets",
        "careen",
        lambda old: {**old, "status": {**old["status"], "desiredNumberScheduled": agents}},
        actor="controller",
        namespace="careen",
        subresource="status",
    )


@dataclass(frozen=True)
class Story:
    first: Obstacle
    later: Obstacle = nothing
    waiting: int = THOUSANDS  # how many wait, as far as anybody can know


STORIES = {
    "paused": Story(pause),
    "paused in the middle, with a line": Story(others_hold, pause),
    "held": Story(hold_all),
    "blocked by pods": Story(block_by_pods),
    "blocked by pods while another works": Story(both(others_hold, block_by_pods)),
    "blocked by an alert": Story(fire_an_alert, many_come_late, waiting=LATE + REAL),
    "outside the window": Story(shut_window),
    "the lock cannot be understood": Story(spoil_the_lock),
    "halted by a failure": Story(another_failed),
    "in line behind a long drain": Story(others_hold),
}


@pytest.mark.parametrize("reason", STORIES)
def test_thousands_that_wait_cost_less_than_twenty_requests_a_second(reason: str) -> None:
    story = STORIES[reason]
    cost = run_virtually(waiting(story.first, later=story.later))
    assert len(cost.others) >= REAL - 13 - 1
    assert 0 < cost.of(story.waiting) < MOST_REQUESTS_PER_SECOND


async def seconds_until_a_claim(world: World, obstacle: Obstacle, end: Obstacle, *, agents: int) -> float:
    """From the moment the obstacle goes until somebody takes a claim."""
    told_of(world, agents)
    obstacle(world)
    await world.all_need_a_reboot()
    await asyncio.sleep(SETTLED_SECONDS)
    end(world)
    began = world.now
    while not (holders := {row["nodeID"] for row in world.lock().get("locks", [])} & set(world.shape.names)):
        assert world.now < began + 2 * order.LONGEST_LOOK_SECONDS, "nobody comes"
        await asyncio.sleep(0.5)
    world.stop()
    assert len(holders) == 1
    return world.now - began


def release(world: World) -> None:
    """The one that held all up is through, and the pause ends."""
    edit(world, lambda content: lock.release_by_hand(lock.resume(content), "elsewhere"))


BY_THEN = order.OTHERS_LOOK_SECONDS + order.GATHER_SECONDS + 5.0


@pytest.mark.parametrize(
    ("agents", "obstacle", "end", "seconds"),
    [
        pytest.param(100, pause, resume, BY_THEN, id="a hundred nodes, resumed"),
        pytest.param(100, hold_all, let_all_go, BY_THEN, id="a hundred nodes, let go"),
        pytest.param(100, block_by_pods, allow_pods, BY_THEN, id="a hundred nodes, no blocking pods any more"),
        pytest.param(5000, others_hold, release, BY_THEN, id="five thousand nodes, the first in line"),
        pytest.param(5000, hold_all, let_all_go, order.LONGEST_LOOK_SECONDS, id="five thousand nodes, let go"),
    ],
)
def test_when_the_obstacle_goes_somebody_starts(agents: int, obstacle: Obstacle, end: Obstacle, seconds: float) -> None:
    async def story() -> float:
        return await seconds_until_a_claim(World(Shape(nodes=4), seed=3), obstacle, end, agents=agents)

    assert run_virtually(story()) <= seconds


async def paused_with_a_line() -> float:
    """The line stands when a person pauses; the claim that it waited for goes meanwhile."""
    world = World(Shape(nodes=4), seed=3)
    others_hold(world)
    world.at(600.0, lambda: pause(world))
    return await seconds_until_a_claim(world, nothing, release, agents=THOUSANDS)


def test_in_a_paused_fleet_of_thousands_those_in_line_start_at_once_when_it_is_resumed() -> None:
    assert run_virtually(paused_with_a_line()) <= BY_THEN

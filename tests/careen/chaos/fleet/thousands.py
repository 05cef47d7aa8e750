"""Counts the requests of a fleet of 5,000 nodes, which are idle or wait for their reboot, for example because a person
paused the lock. Only a few real agents run. Their DaemonSet reports 5,000 agents, so each agent sleeps as long as in a
fleet of 5,000. The requests of all 5,000 agents are estimated from the requests of the few real agents."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import time
from typing import Any

from careen.cluster.wire.transport import Request
from careen.core.facts.observation import Alert
from careen.core.facts.phases import Phase
from careen.core.facts.policy import AlertPolicy, BlockingPods, BlockingScope
from careen.core.facts.progress import to_annotation
from careen.core.facts.selectors import Selector
from careen.core.facts.windows import Window
from careen.core.lock import changes, notation
from careen.core.lock.content import LockContent
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.fleet.world import Shape, World
from tests.careen.core.builders import a_progress, an_entry

THOUSANDS = 5000
MOST_REQUESTS_PER_SECOND = 20
REAL = 20  # agents that run: the line with its thirteen names, and some unnamed ones
LATE = 1000
CROWD = 200
SETTLED_SECONDS, WATCHED_SECONDS = 1800.0, 1800.0
IDLE_SECONDS = 4 * 3600.0  # a sleeping agent renews its watch once an hour

Obstacle = Callable[[World], None]


def nothing(world: World) -> None:
    """Do nothing. Simulations without a later event use this function."""


def edit(world: World, change: Callable[[LockContent], LockContent]) -> None:
    def anew(_old: dict[str, Any]) -> str | None:
        found = world.server.get("daemonsets", "careen", "careen")
        assert found is not None
        content = notation.parse((found["metadata"].get("annotations") or {}).get(people.LOCK))
        assert isinstance(content, LockContent)
        return notation.render(change(content))

    people.edit_lock(world, anew)


def pause(world: World) -> None:
    edit(world, lambda content: changes.pause(content, "the network is rebuilt", 1))


def resume(world: World) -> None:
    edit(world, changes.resume)


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


def block_by_pods_elsewhere(world: World) -> None:
    """Configure two settings for blocking pods: a pod with `app=web` blocks all reboots in its zone, and a pod with
    `app=web` in the namespace `shop` or `other` blocks all reboots in the cluster."""
    selector = Selector.parse("app=web")
    settings(
        world,
        blocking_pods=(
            BlockingPods(
                name="zone", selector=selector, scope=BlockingScope.GROUP, group="topology.kubernetes.io/zone"
            ),
            BlockingPods(name="all", selector=selector, namespaces=("shop", "other"), scope=BlockingScope.CLUSTER),
        ),
    )


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
    """Add a Node without an agent."""
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}, "spec": {}, "status": status}
    world.server.put(node, actor="seed")


def others_hold(world: World) -> None:
    """Add a Node `elsewhere`, and write a claim of kured for this Node into the lock. No agent removes this claim."""
    put_node(world, "elsewhere")
    people.edit_lock(world, lambda _: {"nodeID": "elsewhere", "created": "2026-03-04T12:00:00Z"})


def another_failed(world: World) -> None:
    record = a_progress(Phase.FAILED, claim="c9", failed="never-ready")
    put_node(world, "elsewhere", annotations={"careen.dev/progress": to_annotation(record)})
    failed = an_entry("elsewhere", "c9", uid="", failed="never-ready")
    edit(world, lambda content: changes.put_back(content, failed, 1))


def many_come_late(world: World) -> None:
    """Add a thousand Nodes with the label of a waiting node. No agents run on them, but agents that count the waiting
    nodes also count these Nodes."""
    for number in range(LATE):
        put_node(world, f"late-{number}", labels={"careen.dev/reboot": "required"})


def put_a_crowd(world: World) -> None:
    """Add 200 Nodes with the label of a waiting node: more waiting nodes than an agent counts. No agents run on these
    Nodes."""
    for number in range(CROWD):
        put_node(world, f"waits-{number}", labels={"careen.dev/reboot": "required"})


def both(*obstacles: Obstacle) -> Obstacle:
    def stand(world: World) -> None:
        for each in obstacles:
            each(world)

    return stand


@dataclass(frozen=True)
class Cost:
    """The measured requests per second of each real agent. `named` contains the agents of nodes that the lock lists as
    the next to reboot, and `others` contains all other agents."""

    named: tuple[float, ...]
    others: tuple[float, ...]

    def of(self, nodes: int) -> float:
        """Estimate the requests per second of a fleet of `nodes` nodes: the sum of the rates in `named`, and for each
        further node the average rate in `others`."""
        return sum(self.named) + (nodes - len(self.named)) * sum(self.others) / len(self.others)


async def waiting(obstacle: Obstacle, *, later: Obstacle = nothing) -> Cost:
    counted: Counter[str] = Counter()

    def plan(_number: int, node: str, _request: Request) -> Fault | None:
        counted[node] += 1
        return None

    world = World(Shape(nodes=REAL), plan=plan, seed=7)
    set_number_of_agents(world, THOUSANDS)
    put_a_crowd(world)
    obstacle(world)
    await world.all_need_a_reboot()
    await asyncio.sleep(SETTLED_SECONDS / 2)
    later(world)
    await asyncio.sleep(SETTLED_SECONDS / 2)
    counted.clear()
    await asyncio.sleep(WATCHED_SECONDS)
    line = world.lock().get("next") or ()
    world.stop()
    assert not [event for event in world.fleet.log if event.what == "asked"], (
        "an agent asked its host to reboot, but every node of this story must wait"
    )
    rates = {name: counted[name] / WATCHED_SECONDS for name in world.shape.names}
    return Cost(
        named=tuple(rate for name, rate in rates.items() if name in line),
        others=tuple(rate for name, rate in rates.items() if name not in line),
    )


async def idle(*, asleep: bool) -> float:
    """Return the requests per second of 5,000 idle agents, after they have fallen asleep or with `--sleep=off`."""
    counted: Counter[str] = Counter()

    def plan(_number: int, node: str, _request: Request) -> Fault | None:
        counted[node] += 1
        return None

    def prepare(world: World) -> None:
        world.agents.may_sleep = lambda _: asleep
        set_number_of_agents(world, THOUSANDS)

    world = World(Shape(nodes=REAL), plan=plan, seed=7, prepare=prepare)
    await asyncio.sleep(SETTLED_SECONDS)
    assert {each.is_asleep for each in world.agents.processes} == {asleep}
    counted.clear()
    await asyncio.sleep(IDLE_SECONDS)
    world.stop()
    return THOUSANDS * counted.total() / REAL / IDLE_SECONDS


def set_number_of_agents(world: World, agents: int) -> None:
    """Write the number of agents into the DaemonSet's status, where the agents read it."""
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
    waiting: int = THOUSANDS  # how many wait, as far as an agent can know


STORIES = {
    "paused": Story(pause),
    "paused while nodes wait in line": Story(others_hold, pause),
    "held": Story(hold_all),
    "blocked by pods": Story(block_by_pods),
    "blocked by pods while another node drains": Story(both(others_hold, block_by_pods)),
    "blocked by pods on other nodes": Story(block_by_pods_elsewhere, many_come_late, waiting=LATE + CROWD + REAL),
    "blocked by an alert": Story(fire_an_alert, many_come_late, waiting=LATE + CROWD + REAL),
    "outside the window": Story(shut_window),
    "the lock cannot be understood": Story(spoil_the_lock),
    "halted by a failure": Story(another_failed),
    "in line behind a long drain": Story(others_hold),
}

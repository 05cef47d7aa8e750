"""The eight stories: what happens to the fleet, and what a person then asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

from careen.core.facts.times import rfc3339
from scheduler_core.values import Value
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import START
from tests.careen.chaos.fleet.stories import agents_pod
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.workloads import App
from tests.careen.chaos.fleet.world import Shape, World

NODES, AT_ONCE = 200, 3
_HEALTHY_SECONDS = 100.0  # six reboots
_REAL_SECONDS = 30.0  # each forecast of 200 nodes costs a second of processor time
_REQUEST = "careen.dev/request"
_LABELS = {"app": "careen"}  # of the agents' pods


class MinutesStory(Value, kw_only=True):
    """`prepare` runs before the first agent starts, `trouble` in the middle of the roll-out, `seconds` before the
    person looks. A word `HOLDER` in a command is the first holder then."""

    name: str
    what: str
    commands: tuple[tuple[str, ...], ...]
    prepare: Callable[[World], None] = lambda _: None
    trouble: Callable[[World, str], None] = lambda _world, _holder: None
    seconds: float = 240.0
    is_real: bool = False  # forecasts by scheduler_core, because the story is about one


def play(story: MinutesStory, kinds: Collection[str]) -> tuple[list[dict[str, Any]], datetime, str]:
    """All objects of these kinds at the end, the instant of the end, and the holder that the trouble met."""
    return run_virtually(_played(story, kinds))


async def _played(story: MinutesStory, kinds: Collection[str]) -> tuple[list[dict[str, Any]], datetime, str]:
    shape = Shape(
        nodes=NODES,
        zones=3,
        control_planes=3,
        concurrency=AT_ONCE,
        replicas_per_node=3,
        has_real_forecast=story.is_real,
    )
    world = World(shape, prepare=story.prepare)
    await world.all_need_a_reboot()
    await asyncio.sleep(_REAL_SECONDS if story.is_real else _HEALTHY_SECONDS)
    holder = await _a_drain(world)
    story.trouble(world, holder)
    await asyncio.sleep(story.seconds)
    ended = START + timedelta(seconds=world.now)
    objects = [each for kind in kinds for each in world.server.all(kind)]
    at_work = {process.node for process in world.agents.processes}
    world.stop()
    return [*map(_with_settings, objects), *map(agents_pod, sorted(at_work))], ended, holder


def _with_settings(obj: dict[str, Any]) -> dict[str, Any]:
    """The DaemonSet as the manifests have it, for the commands that read the agents' settings and pods."""
    if obj["metadata"]["name"] != "careen":
        return obj
    agent = {"name": "agent", "args": ["agent", f"--concurrency={AT_ONCE}"]}
    template = {"metadata": {"labels": _LABELS}, "spec": {"containers": [agent]}}
    return {**obj, "spec": {"selector": {"matchLabels": _LABELS}, "template": template}}


async def _a_drain(world: World) -> str:
    """The first node that drains from now on; after a minute any node of the line."""
    for _ in range(600):
        for node in world.server.all("nodes"):
            if (node["metadata"].get("annotations") or {}).get("careen.dev/phase") == "Draining":
                return str(node["metadata"]["name"])
        await asyncio.sleep(0.1)
    return "n50"


def _cordons(world: World) -> None:
    for name in ("n60", "n120", "n180"):
        people.cordon(world, name)


def _closed_budget(world: World) -> None:
    """The pods are on nodes that are early in the line."""
    world.fleet.workloads.add_apps([App(name="cart", replicas=12, may_be_away=0)], list(world.shape.names[102:114]))


def _dies(world: World, holder: str) -> None:
    """For good: neither host nor agent comes back."""
    world.agents.kill(holder)
    world.fleet.hosts[holder].is_up = False
    at = rfc3339(START + timedelta(seconds=world.now))
    unready = {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": at}]}
    world.server.change(
        "nodes",
        holder,
        lambda old: {**old, "status": {**old["status"], **unready}},
        actor="node-controller",
        subresource="status",
    )


def _never_reboots(world: World, holder: str) -> None:
    world.fleet.hosts[holder].behaviour = "silent"


def _is_deleted(world: World, holder: str) -> None:
    world.agents.kill(holder)
    world.fleet.hosts[holder].is_up = False
    world.server.remove("nodes", holder, actor="person")
    world.fleet.collect_pods_of(holder)


STORIES = (
    MinutesStory(
        name="cordon",
        what="A person cordoned three nodes and forgot them",
        commands=(("status",), ("why", "n7")),
        prepare=_cordons,
    ),
    MinutesStory(
        name="budget",
        what="A disruption budget can never allow the eviction",
        commands=(("status",), ("plan", "--waiting")),
        prepare=_closed_budget,
        seconds=60.0,
        is_real=True,
    ),
    MinutesStory(
        name="pause",
        what="The lock is paused",
        commands=(("status",),),
        trouble=people.pause,
    ),
    MinutesStory(
        name="dead",
        what="The host of a holder died during its drain",
        commands=(("status",), ("why", "HOLDER")),
        trouble=_dies,
    ),
    MinutesStory(
        name="record",
        what="Somebody wrote nonsense into a record",
        commands=(("status",), ("why", "HOLDER")),
        trouble=lambda world, holder: people.annotate(world, holder, "careen.dev/progress", "nonsense"),
    ),
    MinutesStory(
        name="request",
        what="A misspelt request",
        commands=(("status",), ("why", "n3")),
        trouble=lambda world, _: people.annotate(world, "n3", _REQUEST, "rebot"),
    ),
    MinutesStory(
        name="failed",
        what="A node failed, and the others wait for it",
        commands=(("status",), ("why", "HOLDER"), ("why", "n199")),
        trouble=_never_reboots,
    ),
    MinutesStory(
        name="deleted",
        what="The Node of a holder was deleted",
        commands=(("status",), ("why", "n199")),
        trouble=_is_deleted,
        seconds=60.0,
    ),
)

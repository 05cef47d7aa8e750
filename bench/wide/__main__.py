"""Measures a large fleet on virtual time, with a real agent for each node: its memory, and its requests per second in
each part of a roll-out. Also measures what 5,000 idle and 5,000 waiting nodes cost.

    python -m bench.wide [--nodes 500] [--concurrency 25] [--wait-minutes 60]

The API server, the hosts and the pods' controllers are simulated. Exits with 1 if the roll-out breaks one of the rules
that the simulation checks.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
from collections import Counter
from dataclasses import dataclass, field

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.fleet.thousands import STORIES, idle, pause, resume, waiting
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

IDLE_SECONDS = 600.0
SPAN_SECONDS = 10.0


@dataclass
class Part:
    """One part of the roll-out: its seconds, its requests by kind, and those in each span of ten seconds."""

    name: str
    began: float
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    spans: Counter[int] = field(default_factory=Counter)

    @property
    def row(self) -> str:
        number = self.kinds.total()
        most = max(self.spans.values(), default=0) / SPAN_SECONDS
        often = ", ".join(f"{kind} {count:,}" for kind, count in self.kinds.most_common(4))
        return (
            f"| {self.name} | {self.seconds:,.0f} | {number:,} | {number / self.seconds:.1f} | {most:.1f} | {often} |"
        )


class RequestCounts:
    """The requests of all agents in the current part of the roll-out."""

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def begin(self, name: str) -> None:
        self.end()
        self.parts.append(Part(name, self._now()))

    def end(self) -> None:
        if self.parts:
            self.parts[-1].seconds = self._now() - self.parts[-1].began

    def plan(self, _number: int, _node: str, request: Request) -> Fault | None:
        part = self.parts[-1]
        part.kinds[kind_of(request)] += 1
        part.spans[int(self._now() // SPAN_SECONDS)] += 1
        return None

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def kind_of(request: Request) -> str:
    """Verb and resource of a request, such as `GET nodes` or `LIST pods`; `GET readyz` for the server's own checks."""
    words = request.path.partition("?")[0].strip("/").split("/")
    if words[0] not in ("api", "apis"):
        return f"{request.method} {words[0]}"
    words = words[words.index("v1") + 1 :]
    words = words[2:] if words[0] == "namespaces" and len(words) > 2 else words
    verb = "LIST" if request.method == "GET" and len(words) == 1 else request.method
    return f"{verb} {words[2] if len(words) > 2 else words[0]}"


async def story(shape: Shape, counted: RequestCounts, wait_seconds: float) -> World:
    counted.begin("idle")
    world = World(shape, plan=counted.plan)
    await asyncio.sleep(IDLE_SECONDS)
    pause(world)
    counted.begin("lock paused, all nodes need a reboot: the first five minutes")
    await world.all_need_a_reboot()
    await asyncio.sleep(300.0)
    counted.begin("paused")
    await asyncio.sleep(wait_seconds)
    counted.begin("roll-out after the lock is resumed")
    resume(world)
    await world.until_home(100.0 * shape.nodes)
    counted.end()
    world.stop()
    return world


def memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.wide", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--concurrency", type=int, default=25)
    parser.add_argument("--wait-minutes", type=float, default=60.0)
    parser.add_argument("--fleet-only", action="store_true", help="do not measure 5,000 idle and waiting nodes")
    given = parser.parse_args()
    before, counted = memory_mib(), RequestCounts()
    shape = Shape(nodes=given.nodes, zones=5, control_planes=3, concurrency=given.concurrency)
    world = run_virtually(story(shape, counted, given.wait_minutes * 60.0))
    print(f"{given.nodes} agents, concurrency {given.concurrency}\n")
    print(
        "| part | virtual seconds | requests | per second | per second in the busiest 10 s | most frequent requests |"
    )
    print("|---|---|---|---|---|---|")
    print(*(part.row for part in counted.parts), sep="\n")
    booted = sum(1 for event in world.fleet.log if event.what == "booted")
    used = memory_mib() - before
    print(
        f"\n{booted} reboots. Memory of all agents, the server and its whole journal: {used:.0f} MiB at most, "
        f"{used / given.nodes:.2f} MiB a node.\n",
        flush=True,
    )
    if not given.fleet_only:
        cost_of_thousands()
    broken = world.verdict(taint_seconds=75.0)
    print("\nlaws broken: " + ("none" if not broken else "; ".join(broken[:20])))
    return 1 if broken else 0


def cost_of_thousands() -> None:
    print("| 5,000 idle nodes | requests per second |\n|---|---|")
    for asleep in (True, False):
        print(f"| {'asleep' if asleep else 'awake'} | {run_virtually(idle(asleep=asleep)):.1f} |", flush=True)
    print("\n| why 5,000 nodes wait | requests per second |\n|---|---|")
    for reason, each in STORIES.items():
        cost = run_virtually(waiting(each.first, later=each.later))
        print(f"| {reason} | {cost.of(each.waiting):.1f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())

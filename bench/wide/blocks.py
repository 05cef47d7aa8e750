"""Measures for how long an agent's event loop is blocked at most, with 5,000 waiting nodes.

python -m bench.wide.blocks [--nodes 5000] [--rounds 5]

The agent reads the lists of waiting nodes and of all nodes as an API server sends them, in pages, and decides with
them. The figure is the processor time of the longest step of the loop, so that other programs on the machine do not
count. The bench prints the best of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from careen.agent.clock import SystemClock
from careen.cluster.nodes import list_nodes
from careen.cluster.wire.api import PAGE_SIZE, ClusterApi
from careen.cluster.wire.transport import Request, Response
from careen.core.decide import decide
from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, Fleet, NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Budget, BudgetKind, Order
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.times import rfc3339
from tests.careen.core.builders import UPTIME, a_marked_node, a_policy, a_progress, an_entry, an_observation, held

ZONES = ("a", "b", "c")
NEEDS_BEGAN = datetime(2026, 3, 2, tzinfo=UTC)
FILLER = {f"example.com/of-a-cloud-provider-{number}": "x" * 90 for number in range(40)}


def main() -> None:
    """A row for each part of the agent's work, with its longest step in milliseconds."""
    parser = argparse.ArgumentParser(prog="python -m bench.wide.blocks", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    server = Pages([a_waiting_node(number, random.Random(number)) for number in range(asked.nodes)])
    best: dict[str, float] = {}
    for _ in range(asked.rounds):
        for part, seconds in asyncio.run(blocks(server)).items():
            best[part] = min(best.get(part, seconds), seconds)
    print(f"{asked.nodes:,} nodes wait; each figure is the least of {asked.rounds} rounds\n")
    print("| part of the agent's work | longest uninterrupted step, ms of processor time |\n|---|---|")
    for part, seconds in best.items():
        print(f"| {part} | {1000 * seconds:.0f} |")
    print(f"| the longest of these steps | {1000 * max(best.values()):.0f} |")


class Pages:
    """A transport that answers every list request for Nodes with these pages."""

    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        starts = range(0, len(nodes), PAGE_SIZE)
        self._pages = [self._page(nodes, start) for start in starts]

    @staticmethod
    def _page(nodes: list[dict[str, Any]], start: int) -> bytes:
        following = str(start // PAGE_SIZE + 1) if start + PAGE_SIZE < len(nodes) else ""
        metadata = {"resourceVersion": "9", "continue": following}
        page = {"kind": "NodeList", "apiVersion": "v1", "metadata": metadata, "items": nodes[start : start + PAGE_SIZE]}
        return json.dumps(page).encode()

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(0)
        number = int(request.query.get("continue") or 0)
        return Response(status=200, headers={}, body=self._pages[number])


def a_waiting_node(number: int, chance: random.Random) -> dict[str, Any]:
    """About five kilobytes, the size of Nodes at cloud providers."""
    since = rfc3339(NEEDS_BEGAN + timedelta(seconds=chance.randrange(100_000)))
    record = Progress(phase=Phase.WAITING, need_since=since, tainted_at=since, taint_key="careen.dev/reboot-pending")
    annotations = {keys.PROGRESS: to_annotation(record), keys.PHASE: "Waiting", keys.MOVES: str(chance.randrange(60))}
    labels = {keys.REBOOT_LABEL: "ready", keys.ZONE: ZONES[number % 3], "kubernetes.io/hostname": f"node-{number}"}
    return {
        "metadata": {
            "name": f"node-{number:05}",
            "uid": f"uid-{number}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
            "annotations": annotations | FILLER,
        },
        "spec": {"taints": [{"key": "careen.dev/reboot-pending", "effect": "PreferNoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": "b"}},
    }


async def blocks(server: Pages) -> dict[str, float]:
    """The longest step of the event loop, in milliseconds, for each part of the agent's work: two lists of nodes
    read, and the decisions that use them."""
    api = ClusterApi(server, SystemClock(), chance=random.random)
    found: dict[str, float] = {}

    async def part(name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        with longest_step() as seconds:
            answer = await asyncio.create_task(work())  # type: ignore[arg-type]
            await asyncio.sleep(0)
        found[name] = seconds[0]
        return answer

    waiters = await part(
        "the agent reads the waiting nodes", lambda: list_nodes(api, reboot_label=("ready", "required"))
    )
    fleet = await part("the agent reads all nodes", lambda: list_nodes(api))
    for order in Order:
        await part(
            f"the agent chooses the next nodes with --order={order}", lambda order=order: deciding(waiters, order)
        )
    await part("the agent checks the budgets", lambda: asking_budgets(fleet))
    return found


async def deciding(waiters: tuple[NodeView, ...], order: Order) -> None:
    """The decision in which the agent names the next nodes and writes its claim."""
    node = a_marked_node(a_progress(Phase.CLAIMING), name="n1")
    decision = decide(an_observation(node, waiters=waiters), a_policy(order=order))
    assert decision.actions, "the agent did not write its claim into the lock"


async def asking_budgets(nodes: tuple[NodeView, ...]) -> None:
    """The last decision before the cordon, which checks the budgets."""
    node, budgets = a_marked_node(a_progress(Phase.CLAIMING), name="n1"), (Budget(kind=BudgetKind.ZONE, limit=1),)
    seen = an_observation(
        node, lock=held(an_entry()), waiters=NOT_ASKED, fleet=Fleet(nodes=(*nodes, node), read_at_uptime=UPTIME)
    )
    assert decide(seen, a_policy(budgets=budgets)).phase is Phase.DRAINING, "the agent did not begin the drain"


@contextmanager
def longest_step() -> Iterator[list[float]]:
    """One number: the longest step of the event loop so far, in processor seconds, with garbage collection."""
    run, longest = asyncio.Handle._run, [0.0]

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        longest[0] = max(longest[0], time.thread_time() - began)

    gc.collect()
    with patch.object(asyncio.Handle, "_run", timed):
        yield longest


if __name__ == "__main__":
    main()

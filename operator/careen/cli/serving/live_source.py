"""What `careen serve` sends: refreshed while somebody looks, and kept as finished documents, so that a hundred pages
cost the API server no more than one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf

from careen.cli.serving.looks import Looks
from careen.cli.serving.web_server import Document, Failure
from careen.cli.support.connection import Cluster, look_at_lock
from careen.cli.why import story_of
from careen.cluster.nodes import read_node
from careen.cluster.wire.errors import ClusterError
from careen.core.facts.observation import Gone
from careen.core.facts.phases import Phase
from careen.report.live.node_document import node_document
from careen.report.live.past_reboots import reboot_report_html, reboot_report_json
from careen.report.live.planned import Planned
from careen.report.live.rollout_document import Seen, rollout_document
from careen.report.tables import plain

_WATCHED_SECONDS = 60.0  # a hidden page asks every 15 s
_NODE_SECONDS = 5.0
_MOST_NODES_KEPT = 64
_ANSWER_SECONDS = 30.0
_PLAN_AGAIN_SECONDS = 120.0  # a simulation of 5,000 nodes takes as long

Planner = Callable[[Seen], Awaitable[Planned]]


class LiveSource:
    """Implements `PageSource` for the server's threads; `run` refreshes it in the command's loop."""

    def __init__(self, cluster: Cluster, *, planner: Planner) -> None:
        self._cluster = cluster
        self._looks = Looks(cluster)
        self._planner = planner
        self._loop = asyncio.get_running_loop()
        self._asked = asyncio.Event()
        self._asked_at = cluster.clock.monotonic()
        self._looked = threading.Event()
        self._seen: Seen | None = None
        self._planned = Planned()
        self._plan_from = 0.0  # by the monotonic clock
        self._rollout: Document | Failure = Failure(503, "careen has not read the cluster yet")
        self._nodes: dict[str, tuple[float, Document | Failure]] = {}

    # ---- in the server's threads ----

    def rollout(self) -> Document | Failure:
        """The last look. Wakes the refresh, and waits for the first look."""
        self._ask()
        self._looked.wait(_ANSWER_SECONDS)
        return self._rollout

    def node(self, name: str) -> Document | Failure:
        """Read from the cluster for each node that somebody opens, at most every five seconds."""
        done = asyncio.run_coroutine_threadsafe(self._node(name), self._loop)
        try:
            return done.result(_ANSWER_SECONDS)
        except TimeoutError:
            done.cancel()
            return Failure(503, "the API server did not answer in time")

    def report(self, days: int, *, as_page: bool) -> Document | Failure:
        """By the last look."""
        found = self.rollout()
        seen = self._seen
        if seen is None:
            return found if isinstance(found, Failure) else Failure(503, "careen has not read the cluster yet")
        if as_page:
            return Document.html(reboot_report_html(seen, self._planned, days=days))
        return Document.json(plain(reboot_report_json(seen, self._planned, days=days)))

    def _ask(self) -> None:
        self._asked_at = self._cluster.clock.monotonic()
        with suppress(RuntimeError):  # the loop has ended: the command is ending too
            self._loop.call_soon_threadsafe(self._asked.set)

    # ---- in the command's loop ----

    async def run(self) -> None:
        """Looks at the cluster until it is cancelled: at once, and then while a page asks."""
        planning: asyncio.Task[None] | None = None
        try:
            while True:
                await self._refresh()
                if (planning is None or planning.done()) and self._seen is not None and self._lacks_plan(self._seen):
                    planning = asyncio.create_task(self._plan(self._seen))
                await asyncio.sleep(self._seen.refresh_seconds if self._seen else 2.0)
                self._asked.clear()
                if self._cluster.clock.monotonic() - self._asked_at > _WATCHED_SECONDS:
                    await self._asked.wait()
        finally:
            if planning is not None:
                planning.cancel()
                with suppress(asyncio.CancelledError):
                    await planning

    async def _refresh(self) -> None:
        try:
            self._seen = await self._looks.look()
        except ClusterError as error:
            self._rollout = Failure(503, f"the cluster could not be read: {error}")
        else:
            self._draw()
        self._looked.set()

    def _draw(self) -> None:
        assert self._seen is not None, "drawn only after a look"
        self._rollout = Document.json(rollout_document(self._seen, self._planned))

    def _lacks_plan(self, seen: Seen) -> bool:
        """A failed simulation is repeated after a while: the API server may not have answered it."""
        if seen.trouble or self._cluster.clock.monotonic() < self._plan_from:
            return False
        return any(node.shown_phase not in (Phase.IDLE, Phase.MAINTENANCE) for node in seen.nodes)

    async def _plan(self, seen: Seen) -> None:
        self._planned = Planned(note="The plan is being simulated.")
        self._plan_from = inf
        self._draw()
        self._planned = await self._planner(seen)
        if self._planned.is_failed:
            self._plan_from = self._cluster.clock.monotonic() + _PLAN_AGAIN_SECONDS
        self._draw()

    async def _node(self, name: str) -> Document | Failure:
        now = self._cluster.clock.monotonic()
        kept = self._nodes.get(name)
        if kept is not None and now - kept[0] < _NODE_SECONDS:
            return kept[1]
        found = await self._read_node(name)
        self._nodes.pop(name, None)
        self._nodes[name] = (now, found)
        while len(self._nodes) > _MOST_NODES_KEPT:
            del self._nodes[next(iter(self._nodes))]
        return found

    async def _read_node(self, name: str) -> Document | Failure:
        try:
            seen = await read_node(self._cluster.api, name)
            if isinstance(seen, Gone):
                return Failure(404, "there is no such Node")
            found = await look_at_lock(self._cluster)
            story = await story_of(self._cluster, seen, found, (await self._looks.settings()).policy)
        except ClusterError as error:
            return Failure(503, f"the node could not be read: {error}")
        return Document.json(node_document(story))

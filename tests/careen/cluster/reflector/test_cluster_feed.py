"""Tests a feed that watches all kinds of objects at once on the embedded API server. The server sends bookmarks,
responses with status 410, and faults."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from careen.agent.clock import SystemClock
from careen.cluster.reflector.cluster_feed import ClusterFeed
from careen.cluster.reflector.sources import sources
from careen.cluster.reflector.streams import ClientStreams
from careen.cluster.snapshot_reader import pages
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.client import connect
from drydock.server.faults import FaultRates, seeded_faults
from drydock.server.testing import RunningServer, running_server
from scheduler_core import ClusterCache
from scheduler_core.cache.events import WatchEvent, read_event
from scheduler_core.snapshot.loading import load_pages
from scheduler_core.testing.builders import a_node, a_pod
from tests.careen.cluster.reflector.test_reflector import Silent, seen
from tests.patience import until


class Impatient(SystemClock):
    """A clock that sleeps for a hundredth of the requested time."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 100)


@contextlib.asynccontextmanager
async def following(server: RunningServer, folder: Path) -> AsyncIterator[ClusterFeed]:
    transport = connect(server.write_kubeconfig(folder / "kubeconfig", user="shadow"), part="test")
    clock = Impatient()
    feed = ClusterFeed(
        ClusterApi(transport, clock, chance=lambda: 0.5),
        ClientStreams(transport, clock.now),
        sources(),
        cache=ClusterCache(),
        audience=Silent(),
        chance=lambda: 0.5,
    )
    task = asyncio.create_task(feed.run())
    try:
        yield feed
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        transport.close()


def change(server: RunningServer, chance: random.Random) -> None:
    """Create or change a random node or pod."""
    name = f"n{chance.randrange(6)}"
    if chance.random() < 0.3:
        server.seed({**a_node(name).manifest, "apiVersion": "v1", "kind": "Node"})
        return
    manifest = {**a_pod(name).manifest, "apiVersion": "v1", "kind": "Pod"}
    manifest["spec"] = {**manifest["spec"], "nodeName": chance.choice(["", "n1", "n2", "n9"])}
    manifest["metadata"] = {**manifest["metadata"], "labels": {"turn": str(chance.randrange(10**6))}}
    server.seed(manifest)


async def agrees(server: RunningServer, feed: ClusterFeed, folder: Path) -> None:
    """Wait until the feed contains the same nodes and pods as a new list of the cluster."""
    transport = connect(server.write_kubeconfig(folder / "admin", user="admin"), part="test")
    fresh: Any = None
    try:
        api = ClusterApi(transport, Impatient(), chance=lambda: 0.5)
        fresh = seen(load_pages([page async for page in pages(api)]))
        # The first four parts of `seen`: the nodes, the pods, the keys of the pods without a node, and the keys of the
        # pods on unknown nodes.
        await until(lambda: seen(feed.cache.snapshot())[:4] == fresh[:4], lambda: f"{feed.troubles}\n{fresh[:2]}")
    finally:
        transport.close()


@pytest.mark.parametrize("seed", range(3))
async def test_the_feed_equals_a_fresh_list_despite_faults_of_the_server(tmp_path: Path, seed: int) -> None:
    rates = FaultRates(slow=0.1, slowest_seconds=0.05, lost_before=0.1, throttled=0.02, server_error=0.1)
    plan = seeded_faults(seed, suffers=lambda user: user == "shadow", rates=rates)
    chance = random.Random(seed)
    async with (
        running_server(plan=plan, bookmark_seconds=0.05, history_length=20) as server,
        following(server, tmp_path) as feed,
    ):
        await feed.complete()
        for _ in range(4):
            for _ in range(12):
                change(server, chance)
                await asyncio.sleep(0.002)
            server.api.is_down = True
            for _ in range(8):
                change(server, chance)
            await asyncio.sleep(0.02)
            server.api.is_down = False
        await agrees(server, feed, tmp_path)


async def test_the_feed_lists_all_objects_again_after_a_restore_of_the_server(tmp_path: Path) -> None:
    """Like an API server after a restore of etcd, the server has lost its history and its resource versions."""
    async with running_server(bookmark_seconds=0.05, history_length=5) as server:
        chance = random.Random(1)
        for _ in range(30):
            change(server, chance)
        async with following(server, tmp_path) as feed:
            await feed.complete()
            before = feed.lists
            server.api.is_down = True
            for _ in range(40):
                change(server, chance)
            await until(lambda: feed.troubles)
            server.api.is_down = False
            await agrees(server, feed, tmp_path)
            assert feed.lists > before


async def test_the_feed_sends_only_get_requests(tmp_path: Path) -> None:
    async with running_server(bookmark_seconds=0.05) as server, following(server, tmp_path) as feed:
        await feed.complete()
        await until(lambda: len({each.resource for each in server.api.requests if each.verb == "watch"}) >= 8)
        assert {each.verb for each in server.api.requests} <= {"list", "watch", "get", ""}
        asked: Callable[[str], int] = lambda verb: sum(each.verb == verb for each in server.api.requests)  # noqa: E731
        assert asked("list") <= len(sources()) + 4  # device classes are requested in three versions


def quiet_feed() -> ClusterFeed:
    """Watches nothing: the test calls it as reflectors do."""
    api: Any = None
    return ClusterFeed(api, api, (), cache=ClusterCache(), audience=Silent(), chance=lambda: 0.5)


def page_of(*names: str) -> bytes:
    items = [{**a_pod(name).manifest, "apiVersion": "v1", "kind": "Pod"} for name in names]
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "items": items}).encode()


async def test_while_a_page_is_awaited_other_kinds_change_and_nothing_is_deleted() -> None:
    feed, second_may_come = quiet_feed(), asyncio.Event()

    async def slow(*later: bytes) -> AsyncIterator[bytes]:
        yield page_of("new")
        await second_may_come.wait()
        for page in later:
            yield page

    async def once(page: bytes) -> AsyncIterator[bytes]:
        yield page

    await feed.listed("Pod", once(page_of("old", "gone")))
    relist = asyncio.create_task(feed.listed("Pod", slow(page_of("old"))))
    await until(lambda: feed.cache.find_pod("default/new"))
    node = {"type": "ADDED", "object": {**a_node("n1").manifest, "apiVersion": "v1", "kind": "Node"}}
    event = read_event(json.dumps(node).encode())
    assert isinstance(event, WatchEvent)
    change = asyncio.create_task(feed.changed("Node", event))
    await until(change.done)
    assert feed.cache.snapshot().node_names == ("n1",)
    assert feed.cache.find_pod("default/gone")
    second_may_come.set()
    await relist
    assert sorted(pod.name for pod in feed.cache.snapshot().pending) == ["new", "old"]


async def test_the_cache_can_be_read_between_the_slices_of_one_page() -> None:
    feed, seen_pods = quiet_feed(), set()

    async def pages() -> AsyncIterator[bytes]:
        yield page_of(*(f"p{number}" for number in range(1000)))

    relist = asyncio.create_task(feed.listed("Pod", pages()))
    while not relist.done():
        async with feed.one_at_a_time:
            seen_pods.add(len(feed.cache.snapshot().pending))
        await asyncio.sleep(0)
    assert {250, 500, 750} <= seen_pods

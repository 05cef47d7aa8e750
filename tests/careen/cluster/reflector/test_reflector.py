"""Tests that a reflector finally contains the same objects as a new list, whatever faults its lists and watches had."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.cluster.reflector.cluster_feed import ClusterFeed
from careen.cluster.reflector.reflector import Reflector, WatchedKind
from careen.cluster.wire.api import ClusterApi
from scheduler_core import ClusterCache, Snapshot
from scheduler_core.snapshot.loading import load_pages
from tests.careen.cluster.reflector.broken_server import FAULTS, NODES, PODS, SOURCES, BrokenServer, drawn_changes
from tests.careen.virtual_shell import VirtualClock
from tests.patience import until


class Silent:
    """A subscriber that ignores every call of the feed."""

    def before(self, kind: str, line: bytes) -> None: ...

    def after(self, kind: str, *, has_changed: bool) -> None: ...

    def before_list(self, kind: str) -> None: ...


class Following:
    """Runs a feed that watches a BrokenServer, on virtual time."""

    def __init__(self, server: BrokenServer, sources: Sequence[WatchedKind] = SOURCES) -> None:
        self.server = server
        self.clock = VirtualClock()
        api = ClusterApi(server, self.clock, chance=lambda: 0.5)
        self.feed = ClusterFeed(api, server, sources, cache=ClusterCache(), audience=Silent(), chance=lambda: 0.5)

    async def until(self, condition: Callable[[], Any]) -> None:
        task = asyncio.create_task(self.feed.run())
        try:
            await until(lambda: condition() or task.done(), self.told)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def until_quiet(self) -> None:
        """Run the feed until the server has made all its changes and has delivered every event."""
        kinds = {source.kind for source in SOURCES} - self.server.unserved
        await self.until(lambda: not (self.server.faults or self.server.changes) and self.server.waiting == kinds)

    def told(self) -> str:
        return f"{self.server.faults} {self.server.changes} {self.server.waiting} {self.feed.troubles}"

    def lists(self, source: WatchedKind) -> int:
        """Return how many lists of this kind the feed has started."""
        return sum(
            1
            for each in self.server.requests
            if each.path in source.paths and "watch" not in each.query and "continue" not in each.query
        )


def seen(snapshot: Snapshot) -> Any:
    """Return the content of a snapshot for a comparison that ignores the order of the objects."""
    pods = [*snapshot.placed_pods, *snapshot.pending, *snapshot.orphans]
    return (
        {node.name: node for node in snapshot.nodes},
        {pod.key: repr(pod) for pod in pods},  # specs are equal only within one reader
        {pod.key for pod in snapshot.pending},
        {pod.key for pod in snapshot.orphans},
        snapshot.objects,
        snapshot.problems,
    )


def fresh(server: BrokenServer) -> Any:
    return seen(load_pages([json.dumps(page).encode() for page in server.pages()]))


@given(
    faults=st.lists(st.sampled_from(FAULTS), max_size=25),
    list_faults=st.lists(st.sampled_from(("", "gone", "cut", "refused")), max_size=6),
    before=st.lists(st.integers(0, 10_000), max_size=12),
    during=st.lists(st.integers(0, 10_000), max_size=25),
)
def test_after_any_faults_the_feed_equals_a_fresh_list(
    faults: list[str], list_faults: list[str], before: list[int], during: list[int]
) -> None:
    async def story() -> None:
        server = BrokenServer(faults=faults, changes=drawn_changes(during), list_faults=list_faults)
        for change in drawn_changes(before):
            server.change(*change)
        following = Following(server)
        await following.until_quiet()
        assert seen(following.feed.cache.snapshot()) == fresh(server)

    asyncio.run(story())


async def test_every_page_of_a_list_shows_the_objects_at_the_time_of_the_first_page() -> None:
    """`BrokenServer` copies this behaviour of a real API server. The first page shows a and b. Then the test deletes a.
    The second page begins at the third object of the list. If the second page showed the list at its own time, the list
    would have only two objects, b and c. The page would be empty, and the client would miss c."""
    server = BrokenServer(page_size=2)
    for name in ("a", "b", "c"):
        server.change("put", "Pod", name)
    names = []
    async for page in ClusterApi(server, VirtualClock(), chance=lambda: 0.5).pages(PODS.paths[0]):
        names += [item["metadata"]["name"] for item in json.loads(page)["items"]]
        server.change("drop", "Pod", "a")
    assert names == ["a", "b", "c"]


@pytest.mark.parametrize("fault", FAULTS)
async def test_no_single_fault_loses_an_event_or_stops_the_watch(fault: str) -> None:
    changes = [("put", "Pod", "a"), ("put", "Node", "n1"), ("drop", "Pod", "b"), ("put", "Pod", "c")]
    server = BrokenServer(faults=[fault] * 3, changes=changes)
    server.change("put", "Pod", "b")
    following = Following(server)
    await following.until_quiet()
    assert seen(following.feed.cache.snapshot()) == fresh(server)


@pytest.mark.parametrize("fault", ["cut", "half a line", "end", "busy", "refused", "bookmark", "again"])
async def test_a_broken_watch_resumes_at_its_resource_version_without_a_new_list(fault: str) -> None:
    server = BrokenServer(faults=[fault] * 2, changes=drawn_changes(range(10)))
    following = Following(server)
    await following.until_quiet()
    assert following.lists(NODES) == following.lists(PODS) == 1


@pytest.mark.parametrize("fault", ["gone", "gone at once"])
async def test_the_feed_requests_a_new_list_if_the_resource_version_has_expired(fault: str) -> None:
    server = BrokenServer(faults=[fault])
    following = Following(server, [NODES])
    await following.until(lambda: server.waiting == {"Node"})
    assert following.lists(NODES) == 2


@pytest.mark.parametrize("fault", ["empty", "page of a proxy", "another kind", "error", "silence", "older"])
async def test_the_feed_lists_everything_again_after_three_failed_watches(fault: str) -> None:
    server = BrokenServer(faults=[fault] * 4)
    server.change("put", "Node", "n1")
    following = Following(server, [NODES])
    await following.until(lambda: server.waiting == {"Node"})
    assert following.lists(NODES) == 2


async def test_the_feed_sends_few_requests_and_requests_no_list_during_a_long_outage() -> None:
    server = BrokenServer(faults=["refused"] * 40)
    following = Following(server, [NODES])
    await following.until(lambda: server.waiting == {"Node"})
    assert following.lists(NODES) == 1
    pauses = following.clock.slept[:40]
    assert pauses[:4] == [0.375, 0.75, 1.5, 3.0]
    assert max(pauses) == pauses[-1] == 22.5


async def test_the_feed_waits_longer_before_each_list_if_every_watch_gets_410() -> None:
    server = BrokenServer(faults=["gone at once"] * 10)
    following = Following(server, [NODES])
    await following.until(lambda: server.waiting == {"Node"})
    assert following.clock.slept[:3] == [0.375, 0.75, 1.5]


async def test_the_feed_waits_for_the_retry_after_time_of_a_busy_server() -> None:
    server = BrokenServer(faults=["busy"])
    following = Following(server, [NODES])
    await following.until(lambda: server.waiting == {"Node"})
    assert following.clock.slept[0] == 1.375


async def test_the_feed_retries_a_kind_that_the_server_does_not_serve_yet() -> None:
    server = BrokenServer(unserved={"DeviceClass"})
    server.change("put", "DeviceClass", "gpu")
    following = Following(server)
    await following.until(lambda: following.lists(SOURCES[2]) >= 6 and not following.feed.missing)
    assert following.feed.missing == frozenset()
    assert not following.feed.cache.snapshot().objects.device_classes
    server.unserved.clear()
    await following.until_quiet()
    assert list(following.feed.cache.snapshot().objects.device_classes) == ["gpu"]
    assert following.clock.slept[0] == 300.0


async def test_objects_of_a_kind_that_is_no_longer_served_are_removed() -> None:
    server = BrokenServer()
    server.change("put", "DeviceClass", "gpu")
    following = Following(server)
    await following.until_quiet()
    server.unserved.add("DeviceClass")
    server.faults = ["gone at once"] * 3
    again = Following(server)
    again.feed = following.feed
    await again.until(lambda: not following.feed.cache.snapshot().objects.device_classes)


async def test_the_request_of_a_watch_asks_for_bookmarks_and_sets_a_random_timeout() -> None:
    server = BrokenServer()
    following = Following(server, [NODES])
    await following.until(lambda: server.waiting == {"Node"})
    (watch,) = [each for each in server.requests if "watch" in each.query]
    assert watch.query == {
        "watch": "true",
        "resourceVersion": "10",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "450",
    }
    assert watch.method == "GET"


async def test_a_server_without_watch_lists_is_listed_and_asked_only_once() -> None:
    server = BrokenServer()
    following = Following(server, [NODES])
    api = ClusterApi(server, following.clock, chance=lambda: 0.5)
    following.feed._reflectors = [Reflector(NODES, api, server, following.feed, chance=lambda: 0.5, by_watch=True)]
    for lists in (1, 2):
        server._told.clear()
        await following.until(lambda lists=lists: following.lists(NODES) == lists and "Node" in server.waiting)
    assert sum("sendInitialEvents" in each.query for each in server.requests) == 1


async def test_the_feed_reports_a_broken_connection_until_the_server_answers_again() -> None:
    server = BrokenServer(faults=["refused"], list_faults=["cut"] * 100_000)
    following = Following(server, [NODES])
    await following.until(lambda: "Node" in following.feed.troubles)
    assert str(following.feed.troubles["Node"]) == "the connection broke"
    server.list_faults.clear()
    await following.until(lambda: server.waiting == {"Node"})
    server.change("put", "Node", "n1")
    await following.until(lambda: not following.feed.troubles)

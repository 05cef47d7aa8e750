"""Lists that arrive slowly, one page after another, while pods are scheduled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from careen.cluster.wire.errors import Unclear
from careen.scheduler.feed import SchedulerFeed
from careen.scheduler.metrics import SchedulerMetrics
from careen.scheduler.pump import Pump
from scheduler_core.cycle import Scheduler
from scheduler_core.running.commands import Bind, Command
from scheduler_core.running.machine import Machine
from scheduler_core.testing.builders import a_node, a_pod
from tests.patience import until


class Sent:
    """In place of a Writer."""

    backlog = 0

    def __init__(self) -> None:
        self.binds: list[Bind] = []

    def carry_out(self, commands: tuple[Command, ...]) -> None:
        self.binds += [each for each in commands if isinstance(each, Bind)]


class Shop:
    """A feed whose lists the test gives page by page."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.machine = Machine(Scheduler())
        self.sent: Any = Sent()
        self.pump = Pump(self.machine, monotonic=loop.time, metrics=SchedulerMetrics())
        self.pump.use(self.sent)
        self.feed = SchedulerFeed(None, None, (), pump=self.pump, chance=lambda: 0.5)  # type: ignore[arg-type]

    def comes(self, manifest: Any) -> None:
        self.pump.take(json.dumps({"type": "ADDED", "object": manifest}).encode())

    @property
    def placed(self) -> list[str]:
        return [each.pod.partition("/")[2] for each in self.sent.binds]


def nodes(*names: str) -> bytes:
    return page("Node", *(a_node(name).manifest for name in names))


def pods(*names: str) -> bytes:
    return page("Pod", *(pod(name) for name in names))


def pod(name: str) -> Any:
    return {**a_pod(name).manifest, "apiVersion": "v1", "kind": "Pod"}


def page(kind: str, *items: Any) -> bytes:
    return json.dumps({"items": [{**each, "apiVersion": "v1", "kind": kind} for each in items]}).encode()


class SlowList:
    """`asked`: how many pages the feed has asked for, the end included."""

    def __init__(self) -> None:
        self.pages: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.asked = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.asked += 1
            each = await self.pages.get()
            if isinstance(each, Exception):
                raise each
            if each is None:
                return
            yield each


async def listing(shop: Shop, kind: str, *pages: bytes) -> None:
    slow = SlowList()
    for each in (*pages, None):
        slow.pages.put_nowait(each)
    await shop.feed.listed(kind, aiter(slow))


async def test_nothing_is_scheduled_before_the_last_page_of_the_first_lists() -> None:
    shop, slow = Shop(), SlowList()
    await listing(shop, "Node", nodes("n1"))
    task = asyncio.create_task(shop.feed.listed("Pod", aiter(slow)))
    slow.pages.put_nowait(pods("a"))
    await until(lambda: slow.asked == 2)
    await asyncio.sleep(0.02)
    assert shop.placed == []
    slow.pages.put_nowait(None)
    await task
    await until(lambda: shop.placed == ["a"])


@pytest.mark.parametrize("kind", ["Node", "Pod"])
async def test_pods_are_scheduled_while_a_later_list_arrives(kind: str) -> None:
    shop, slow = Shop(), SlowList()
    await listing(shop, "Node", nodes("n1"))
    await listing(shop, "Pod", pods())
    task = asyncio.create_task(shop.feed.listed(kind, aiter(slow)))
    slow.pages.put_nowait(nodes("n1") if kind == "Node" else pods())
    await until(lambda: slow.asked == 2)
    if kind == "Node":
        shop.comes(pod("meanwhile"))
    else:
        slow.pages.put_nowait(pods("meanwhile"))
    await until(lambda: shop.placed == ["meanwhile"])
    assert shop.machine.is_listing(kind)
    slow.pages.put_nowait(None)
    await task
    assert not shop.machine.is_listing(kind)


async def test_no_page_is_asked_for_before_the_one_before_the_last_was_applied() -> None:
    shop, slow = Shop(), SlowList()
    shop.pump.stop()
    task = asyncio.create_task(shop.feed.listed("Pod", aiter(slow)))
    for each in (pods("a"), pods("b"), pods("c"), None):
        slow.pages.put_nowait(each)
    await asyncio.sleep(0.02)
    assert slow.asked == 1
    task.cancel()


async def test_a_list_that_breaks_is_no_list_and_the_next_one_counts() -> None:
    shop, slow = Shop(), SlowList()
    await listing(shop, "Pod", pods("a"))
    slow.pages.put_nowait(nodes("n1"))
    slow.pages.put_nowait(Unclear("the connection broke"))
    with pytest.raises(Unclear):
        await shop.feed.listed("Node", aiter(slow))
    assert (shop.machine.is_listing("Node"), shop.placed) == (False, [])
    await listing(shop, "Node", nodes("n1"))
    await until(lambda: shop.placed == ["a"])


async def test_a_page_that_cannot_be_read_ends_the_list_with_an_error() -> None:
    shop, slow = Shop(), SlowList()
    for each in (b'{"items": [}', nodes("n1"), nodes("n2"), None):
        slow.pages.put_nowait(each)
    with pytest.raises(ValueError, match="kind Node cannot be read"):
        await shop.feed.listed("Node", aiter(slow))
    assert not shop.machine.is_listing("Node")

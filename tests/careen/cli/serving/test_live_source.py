from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pytest

from careen.cli.serving.live_source import LiveSource
from careen.cli.serving.looks import LEAST_SECONDS, seconds_between_looks
from careen.cli.serving.web_server import Document, Failure
from careen.cli.support.connection import Cluster, ask
from careen.core.facts import keys
from careen.report.live.planned import Planned
from careen.report.live.rollout_document import Seen
from drydock.server.testing import RunningServer, server_in_thread
from tests.careen.live_fleet import roll_out

T = TypeVar("T")


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with server_in_thread() as server:
        server.seed(*roll_out(30, datetime.now(UTC), blocked=5))
        yield server


def shown(server: RunningServer, folder: Path, question: Callable[[LiveSource], T]) -> T:
    """What a thread of the web server gets from a source that runs in a command's loop."""

    async def planner(_seen: Seen) -> Planned:
        return Planned(note="no plan in this test")

    async def run(cluster: Cluster) -> T:
        source = LiveSource(cluster, planner=planner)
        looking = asyncio.ensure_future(source.run())
        try:
            return await asyncio.to_thread(question, source)
        finally:
            looking.cancel()

    kubeconfig = server.write_kubeconfig(folder / "kubeconfig")
    return ask(
        run,
        kubeconfig=str(kubeconfig),
        context=None,
        namespace="careen",
        name="careen",
        annotation=keys.LOCK_ANNOTATION,
    )


def test_many_pages_cost_the_api_server_no_more_than_one(server: RunningServer, tmp_path: Path) -> None:
    def many(source: LiveSource) -> list[Document | Failure]:
        source.rollout()
        server.api.requests.clear()
        found: list[Document | Failure] = []
        threads = [threading.Thread(target=lambda: found.append(source.rollout())) for _ in range(20)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return found

    found = shown(server, tmp_path, many)
    assert [type(each) for each in found] == [Document] * 20
    assert len(server.api.requests) <= 2


def test_a_look_is_one_list_of_the_nodes_and_one_get_of_the_lock(server: RunningServer, tmp_path: Path) -> None:
    found = shown(server, tmp_path, lambda source: source.rollout())
    assert isinstance(found, Document)
    assert [(each.verb, each.resource) for each in server.api.requests] == [("get", "daemonsets"), ("list", "nodes")]


def test_nothing_is_written(server: RunningServer, tmp_path: Path) -> None:
    def all_of_it(source: LiveSource) -> None:
        source.rollout()
        source.node("node-0013")
        source.report(31, as_page=True)
        source.report(31, as_page=False)

    shown(server, tmp_path, all_of_it)
    assert {each.verb for each in server.api.requests} <= {"get", "list"}


def test_a_node_is_read_when_somebody_opens_it(server: RunningServer, tmp_path: Path) -> None:
    found = shown(server, tmp_path, lambda source: source.node("node-0013"))
    assert isinstance(found, Document)
    node = json.loads(found.body)
    assert node["name"] == "node-0013"
    assert [table["title"].split(" made ")[0] for table in node["tables"]] == ["Gates", "Forecast", "Last reboots"]
    assert node["tables"][1]["rows"] == [["shop/web-1", "node-0001, node-0004"]]


def test_a_node_is_not_read_again_within_seconds(server: RunningServer, tmp_path: Path) -> None:
    def twice(source: LiveSource) -> int:
        source.rollout()
        source.node("node-0013")
        before = len(server.api.requests)
        source.node("node-0013")
        return len(server.api.requests) - before

    assert shown(server, tmp_path, twice) == 0


def test_a_node_that_does_not_exist_is_not_found(server: RunningServer, tmp_path: Path) -> None:
    found = shown(server, tmp_path, lambda source: source.node("other"))
    assert isinstance(found, Failure)
    assert found.status == 404


def test_large_clusters_are_read_less_often() -> None:
    assert seconds_between_looks(100, 0.01) == LEAST_SECONDS
    assert seconds_between_looks(5000, 0.3) == 20.0
    assert seconds_between_looks(100, 0.5) == 10.0
    assert seconds_between_looks(10**6, 100.0) == 60.0

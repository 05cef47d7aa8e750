from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from careen.cli.serving import looks
from careen.cli.serving.live_source import LiveSource
from careen.cli.serving.looks import LEAST_SECONDS, seconds_between_looks
from careen.cli.serving.web_server import Document, Failure
from careen.cli.support.connection import Cluster, ask
from careen.core.facts import keys
from careen.report.live.planned import Planned
from careen.report.live.rollout_document import Seen
from drydock.server.faults import Fault, FaultKind
from drydock.server.requests.info import RequestInfo
from drydock.server.testing import RunningServer, server_in_thread
from tests.careen.live_fleet import roll_out
from tests.patience import wait_until

T = TypeVar("T")


class Outage:
    """While it lasts, the API server answers 403: careen does not repeat such a request for seconds."""

    lasts = False

    def plan(self, request: RequestInfo, user: str, may_be_stale: bool) -> Fault | None:
        del request, user, may_be_stale
        return Fault(kind=FaultKind.SERVER_ERROR, code=403) if self.lasts else None


@pytest.fixture
def outage() -> Outage:
    return Outage()


@pytest.fixture
def server(outage: Outage) -> Iterator[RunningServer]:
    with server_in_thread(plan=outage.plan) as server:
        server.seed(*roll_out(30, datetime.now(UTC), blocked=5))
        yield server


def no_plan() -> Planned:
    return Planned(note="no plan in this test")


def shown(
    server: RunningServer,
    folder: Path,
    question: Callable[[LiveSource], T],
    planner: Callable[[], Planned] = no_plan,
    outage: Outage | None = None,
) -> T:
    """What a thread of the web server gets from a source that runs in a command's loop."""

    async def planned(_seen: Seen) -> Planned:
        return planner()

    async def run(cluster: Cluster) -> T:
        if outage is not None:
            outage.lasts = True
        source = LiveSource(cluster, planner=planned)
        looking = asyncio.ensure_future(source.run())
        try:
            return await asyncio.to_thread(question, source)
        finally:
            looking.cancel()

    return asked(server, folder, run)


def asked(server: RunningServer, folder: Path, question: Callable[[Cluster], Awaitable[T]]) -> T:
    kubeconfig = server.write_kubeconfig(folder / "kubeconfig")
    return ask(
        question,
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


def test_a_page_of_a_cluster_that_does_not_answer_says_since_when_it_is_old_and_recovers(
    server: RunningServer, tmp_path: Path, outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "LEAST_SECONDS", 0.05)

    def document(source: LiveSource) -> dict[str, Any]:
        found = source.rollout()
        assert isinstance(found, Document)
        return json.loads(found.body)  # type: ignore[no-any-return]

    def story(source: LiveSource) -> list[dict[str, Any]]:
        before = document(source)
        outage.lasts = True
        wait_until(lambda: document(source)["trouble"])
        during = document(source)
        outage.lasts = False
        wait_until(lambda: not document(source)["trouble"])
        return [before, during, document(source)]

    before, during, after = shown(server, tmp_path, story)
    read_at = datetime.fromtimestamp(during["readAt"], UTC)
    assert during["trouble"].startswith(f"The cluster could not be read since {read_at:%H:%M:%S} UTC: ")
    assert (during["progress"], during["nodes"]) == (before["progress"], before["nodes"])
    assert (after["trouble"], after["progress"]) == ("", before["progress"])


def test_a_look_that_fails_is_repeated_no_sooner_than_any_other(
    server: RunningServer, tmp_path: Path, outage: Outage
) -> None:
    async def run(cluster: Cluster) -> tuple[Seen, Seen]:
        found = looks.Looks(cluster)
        before = await found.look()
        outage.lasts = True
        return before, await found.look()

    before, during = asked(server, tmp_path, run)
    assert during == replace(before, trouble=during.trouble)
    assert during.refresh_seconds >= LEAST_SECONDS


def test_a_page_of_a_cluster_that_has_never_answered_says_so_and_recovers(
    server: RunningServer, tmp_path: Path, outage: Outage
) -> None:
    def story(source: LiveSource) -> Document | Failure:
        found = source.rollout()
        outage.lasts = False
        wait_until(lambda: isinstance(source.rollout(), Document))
        return found

    found = shown(server, tmp_path, story, outage=outage)
    assert isinstance(found, Failure)
    assert (found.status, found.sentence[:30]) == (503, "the cluster could not be read:")


def test_a_plan_that_could_not_be_made_is_tried_again_after_a_while(
    server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "LEAST_SECONDS", 0.05)
    monkeypatch.setattr("careen.cli.serving.live_source._PLAN_AGAIN_SECONDS", 0.1)
    plans = [Planned(note="the API server did not answer", is_failed=True), Planned(note="made")]

    def story(source: LiveSource) -> None:
        def note() -> str:
            found = source.rollout()
            assert isinstance(found, Document)
            return str(json.loads(found.body)["chart"]["note"])

        wait_until(lambda: note() == "made")

    shown(server, tmp_path, story, planner=lambda: plans.pop(0))
    assert plans == []


def test_a_node_that_does_not_exist_is_not_found(server: RunningServer, tmp_path: Path) -> None:
    found = shown(server, tmp_path, lambda source: source.node("other"))
    assert isinstance(found, Failure)
    assert found.status == 404


def test_large_clusters_are_read_less_often() -> None:
    assert seconds_between_looks(100, 0.01) == LEAST_SECONDS
    assert seconds_between_looks(5000, 0.3) == 20.0
    assert seconds_between_looks(100, 0.5) == 10.0
    assert seconds_between_looks(10**6, 100.0) == 60.0

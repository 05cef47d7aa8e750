"""The agent watches the ConfigMap with kopf, and each change of the ConfigMap takes effect at once. kopf sends few
requests and never writes the ConfigMap."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from careen.agent import handlers
from careen.cluster.wire.client import ClientTransport, Credentials, connect
from careen.cluster.wire.errors import UnreadableAnswer
from careen.cluster.wire.transport import MERGE_PATCH, Method, Request
from careen.settings.live import SeenConfigMap
from drydock.server import api_server
from drydock.server.kinds.discovery import discovery_answer
from drydock.server.testing import RunningServer, server_in_thread
from tests.careen.services import nasty
from tests.patience import wait_until


def config_map(name: str = "careen", **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "careen"}, "data": data}


class Follower:
    """Runs the agent's watch of the ConfigMap in a thread until the test ends. `seen` lists each ConfigMap that the
    watch delivered."""

    def __init__(self, credentials: Callable[[], Credentials]) -> None:
        self.seen: list[SeenConfigMap | None] = []
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(credentials,), daemon=True)
        self._thread.start()

    def _run(self, credentials: Callable[[], Credentials]) -> None:
        async def follow() -> None:
            self._task = asyncio.current_task()
            await handlers._follow("careen", "careen", credentials, self.seen.append)

        try:
            self._loop.run_until_complete(follow())
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def stop(self) -> None:
        if self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def data(self) -> list[dict[str, str] | None]:
        return [None if each is None else dict(each.data) for each in self.seen]


def edit(transport: ClientTransport, method: Method = "PATCH", name: str = "careen", **data: str) -> None:
    """Change the ConfigMap as a person with kubectl does."""
    request = Request(
        method=method,
        path=f"/api/v1/namespaces/careen/configmaps/{name}",
        body=json.dumps({"data": data}).encode(),
        content_type=MERGE_PATCH,
    )
    assert asyncio.run(transport.send(request)).status == 200


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with server_in_thread() as made:
        yield made


@pytest.fixture
def transport(server: RunningServer, tmp_path: Path) -> Iterator[ClientTransport]:
    made = connect(server.write_kubeconfig(tmp_path / "kubeconfig", user="agent"), part="test")
    yield made
    made.close()


@pytest.fixture
def follower(server: RunningServer, transport: ClientTransport) -> Iterator[Follower]:
    server.seed(config_map(a="1"), config_map("other", a="9"))
    made = Follower(transport.credentials)
    wait_until(lambda: bool(made.seen))
    yield made
    made.stop()


def test_the_agent_gets_the_config_map_at_the_start_and_after_each_change(
    transport: ClientTransport, follower: Follower
) -> None:
    assert follower.data() == [{"a": "1"}]
    edit(transport, a="2")
    wait_until(lambda: follower.data()[-1] == {"a": "2"})
    edit(transport, name="other", a="8")
    edit(transport, a="3")
    wait_until(lambda: follower.data()[-1] == {"a": "3"})
    assert {"a": "8"} not in follower.data()
    assert {"a": "9"} not in follower.data()


def test_a_deleted_config_map_is_reported(transport: ClientTransport, follower: Follower) -> None:
    edit(transport, "DELETE")
    wait_until(lambda: follower.data()[-1] is None)


def test_kopf_writes_nothing_and_watches_only_the_config_map(server: RunningServer, follower: Follower) -> None:
    wait_until(lambda: any(record.verb == "watch" for record in server.api.requests))
    asked = [record for record in server.api.requests if record.user == "agent"]
    assert {(record.verb, record.resource, record.namespace) for record in asked} == {
        ("list", "configmaps", "careen"),
        ("watch", "configmaps", "careen"),
    }
    stored = server.get("configmaps", "careen", "careen")
    assert stored is not None
    assert "annotations" not in stored["metadata"]
    assert "finalizers" not in stored["metadata"]


def test_kopf_discovers_only_one_api_group(
    server: RunningServer, transport: ClientTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A complete discovery would cost each agent five requests at each start."""
    asked: list[str] = []

    def noting(path: str) -> dict[str, Any] | None:
        document = discovery_answer(path)
        asked.extend([path] if document is not None else [])
        return document

    monkeypatch.setattr(api_server, "discovery_answer", noting)
    server.seed(config_map(a="1"))
    follower = Follower(transport.credentials)
    wait_until(lambda: bool(follower.seen))
    follower.stop()
    assert asked == ["/api/v1"]


def test_the_watch_resumes_after_an_api_server_outage(
    server: RunningServer, transport: ClientTransport, follower: Follower
) -> None:
    server.api.is_down = True
    time.sleep(2)
    server.api.is_down = False
    edit(transport, a="2")
    wait_until(lambda: follower.data()[-1] == {"a": "2"})
    assert follower.error is None


def test_kopf_retries_requests_for_ever_with_delays_of_thirty_seconds_at_most() -> None:
    pauses = iter(handlers.Forever())
    assert [next(pauses) for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", "3.0"), ("1000000000", "60.0"), ("Fri, 31 Dec 2199 23:59:59 GMT", "60.0"), ("nan", None), ("soon", None)],
)
def test_a_retry_after_header_delays_kopf_by_a_minute_at_most(header: str, seconds: str | None) -> None:
    """Without this limit, one response of a server could stop kopf from reading the settings for years."""
    from kopf._cogs.clients.errors import APITooManyRequestsError

    handlers._bound_retry_after()
    refused = APITooManyRequestsError(
        {"details": {"retryAfterSeconds": 10**9}}, status=429, headers={"Retry-After": header}
    )  # type: ignore[typeddict-item]
    assert refused.headers.get("Retry-After") == seconds
    assert not refused.details


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"name": "careen"},
        {"name": "careen", "uid": "u"},
        {"name": "careen", "resourceVersion": "5"},
        {"name": "other", "uid": "u", "resourceVersion": "5"},
    ],
)
def test_a_config_map_without_name_or_uid_or_resource_version_is_ignored(metadata: dict[str, str]) -> None:
    assert not handlers._is_named({"metadata": metadata}, "careen")
    assert not handlers._is_named({}, "careen")
    assert handlers._is_named({"metadata": {"name": "careen", "uid": "u", "resourceVersion": "5"}}, "careen")


@pytest.mark.parametrize(
    ("attempt", "is_told"), [(1, False), (4, False), (5, True), (6, False), (100, True), (200, True)]
)
def test_only_the_fifth_and_each_hundredth_failed_attempt_of_kopf_is_logged(attempt: int, is_told: bool) -> None:
    record = logging.makeLogRecord(
        {"msg": f"Request attempt #{attempt} failed; will retry: GET /x", "levelno": logging.ERROR}
    )
    assert handlers.FewRetries().filter(record) is is_told
    assert record.levelno == logging.WARNING
    other = logging.makeLogRecord({"msg": "Watching failed", "levelno": logging.ERROR})
    assert handlers.FewRetries().filter(other)
    assert other.levelno == logging.ERROR


@pytest.mark.parametrize("answer", [nasty.endless_body, nasty.gzip_bomb], ids=lambda each: each.__name__)
def test_an_answer_that_is_longer_than_the_limit_ends_kopf(
    answer: Callable[[str], Iterator[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent starts kopf again, after longer and longer pauses."""
    monkeypatch.setattr(handlers, "MOST_BYTES", 2**20)
    nasty.packed()
    with nasty.serving(answer) as server:
        found = Credentials(
            server=server.url, authorization=None, ca_file=None, certificate_file=None, key_file=None, insecure=True
        )
        follower = Follower(lambda: found)
        wait_until(lambda: follower.error is not None)
        follower.stop()
    assert "the answer about the ConfigMap is longer than 1 MiB" in repr(follower.error)


@pytest.mark.parametrize(
    ("pieces", "is_read"), [((600, 300, "\n", 900, "\n", 1000), True), ((600, "x\n", 600, 401), False)]
)
async def test_the_limit_counts_for_each_line_of_a_watch(
    pieces: tuple[int | str, ...], is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "MOST_BYTES", 1000)
    sent = [each.encode() if isinstance(each, str) else b"x" * each for each in pieces]

    class Content:
        async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
            for piece in sent:
                yield piece

    async def read() -> list[bytes]:
        return [piece async for piece in handlers._Limited(Content()).iter_chunked(100)]

    if is_read:
        assert await read() == sent
    else:
        with pytest.raises(UnreadableAnswer):
            await read()


def test_kopf_requests_only_the_config_map() -> None:
    import kopf

    settings = handlers._settings(kopf, "careen")
    assert [(selector.any_name, value) for selector, value in settings.watching.field_selectors.items()] == [
        ("configmaps", "metadata.name=careen")
    ]
    assert (
        settings.scanning.disabled,
        settings.peering.standalone,
        settings.posting.enabled,
        settings.watching.server_timeout,
    ) == (True, True, False, 3600)
    assert isinstance(settings.networking.error_backoffs, handlers.Forever)


def test_the_credentials_are_passed_to_kopf() -> None:
    import kopf

    found = handlers._connection(
        kopf,
        Credentials(
            server="https://h",
            authorization="Bearer t",
            ca_file="/ca",
            certificate_file=None,
            key_file=None,
            insecure=False,
        ),
        "careen",
    )
    assert (found.server, found.scheme, found.token, found.ca_path, found.insecure, found.default_namespace) == (
        "https://h",
        "Bearer",
        "t",
        "/ca",
        None,
        "careen",
    )
    anonymous = handlers._connection(
        kopf,
        Credentials(
            server="http://h", authorization=None, ca_file=None, certificate_file=None, key_file=None, insecure=True
        ),
        "careen",
    )
    assert (anonymous.token, anonymous.insecure) == (None, True)


def test_the_agent_restarts_kopf_when_kopf_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [0]
    enough = threading.Event()

    async def die(*_: object) -> None:
        ends[0] += 1
        if ends[0] >= 3:
            enough.set()
            threading.Event().wait()  # for ever: after the test, the daemon thread would call the real function
        raise RuntimeError("the watcher died")

    monkeypatch.setattr(handlers, "_follow", die)
    monkeypatch.setattr(handlers, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(handlers, "_LONGEST_PAUSE_SECONDS", 0.01)
    handlers.follow_config_map(namespace="careen", name="careen", credentials=lambda: None, on_change=lambda _: None)  # type: ignore[arg-type,return-value]
    enough.wait()

"""Tests how careen creates, extends and ends silences in an Alertmanager. After an unexpected response, the result is
an `Unknown` with the cause."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from careen.core.facts.observation import Unknown
from careen.core.facts.times import from_rfc3339
from careen.services.silences import Silences
from careen.services.wire.asking import Access
from careen.settings.lists.silence_matchers import Matchers, matchers
from tests.patience import LONG_SECONDS

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
NODE, INSTANCE = matchers('node="$NODE"'), matchers('{instance=~"$NODE(:[0-9]+)?",severity!="critical"}')


@dataclass
class FakeAlertmanager:
    """A server that keeps silences as the Alertmanager API does. For the HTTP methods in `answers`, it sends the
    response given there."""

    url: str = ""
    silences: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str, Any, dict[str, str]]] = field(default_factory=list)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    location: str = ""
    hangs: bool = False
    over: threading.Event = field(default_factory=threading.Event)

    def put(self, **changes: Any) -> str:
        number = f"id-{len(self.silences)}"
        self.silences[number] = {
            "id": number,
            "status": {"state": "active"},
            "createdBy": "careen",
            "comment": "Node n1 is being rebooted",
            "matchers": [{"name": "node", "value": "n1", "isRegex": False, "isEqual": True}],
            "startsAt": "2026-03-04T11:55:00.000Z",
            "endsAt": "2026-03-04T12:05:00.000Z",
            "updatedAt": "2026-03-04T11:55:00.000Z",
            **changes,
        }
        return number

    @property
    def methods(self) -> list[str]:
        return [method for method, _, _, _ in self.asked]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        if method in self.answers:
            return self.answers[method]
        if method == "GET":
            return 200, json.dumps(list(self.silences.values())).encode()
        if method == "POST":
            number = body.get("id") or self.put()
            self.silences[number] |= {**body, "id": number}
            return 200, json.dumps({"silenceID": number}).encode()
        self.silences[path.rpartition("/")[2]]["status"] = {"state": "expired"}
        return 200, b""


@pytest.fixture
def server() -> Iterator[FakeAlertmanager]:
    fake = FakeAlertmanager()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            fake.asked.append((self.command, self.path, body, dict(self.headers)))
            if fake.hangs:
                fake.over.wait()
            status, content = fake.answer(self.command, self.path, body)
            self.send_response(status)
            if fake.location:
                self.send_header("Location", fake.location)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _any  # noqa: N815

        def date_time_string(self, timestamp: float | None = None) -> str:
            return "Wed, 04 Mar 2026 12:00:00 GMT"

        def log_message(self, *_: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{running.server_address[1]}"
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield fake
    fake.over.set()
    running.shutdown()
    running.server_close()


def of(
    server: FakeAlertmanager, *given: Matchers, seconds: float = LONG_SECONDS, cluster: str = "", **access: str
) -> Silences:
    return Silences(
        server.url,
        node="n1",
        cluster=cluster,
        matchers=[each.of_node("n1") for each in given or (NODE,)],
        timeout_seconds=seconds,
        access=Access(**access),
    )


async def test_each_set_of_matchers_gets_a_silence_timed_by_the_alertmanagers_clock(
    server: FakeAlertmanager,
) -> None:
    assert await of(server, NODE, INSTANCE).begin(1800, now=NOW + timedelta(hours=5)) == ""
    assert [(method, path) for method, path, _, _ in server.asked] == [
        ("GET", "/api/v2/silences"),
        ("POST", "/api/v2/silences"),
        ("POST", "/api/v2/silences"),
    ]
    first, second = (body for _, _, body, _ in server.asked[1:])
    assert first == {
        "matchers": [{"name": "node", "value": "n1", "isRegex": False, "isEqual": True}],
        "startsAt": "2026-03-04T12:00:00Z",
        "endsAt": "2026-03-04T12:30:00Z",
        "createdBy": "careen",
        "comment": "Node n1 is being rebooted",
    }
    assert second["matchers"] == [
        {"name": "instance", "value": "n1(:[0-9]+)?", "isRegex": True, "isEqual": True},
        {"name": "severity", "value": "critical", "isRegex": False, "isEqual": False},
    ]


async def test_an_existing_silence_is_extended_and_not_created_again(server: FakeAlertmanager) -> None:
    number = server.put()
    assert await of(server).begin(1800, now=NOW) == ""
    assert await of(server).begin(60, now=NOW) == "", "the silence already lasts longer"
    assert server.methods == ["GET", "POST", "GET"]
    (silence,) = server.silences.values()
    assert (silence["id"], from_rfc3339(silence["endsAt"])) == (number, NOW + timedelta(minutes=30))
    assert silence["startsAt"] == "2026-03-04T11:55:00.000Z", "another startsAt would create a second silence"


@pytest.mark.parametrize(
    "changes",
    [
        {"createdBy": "ann"},
        {"comment": "Node n10 is being rebooted"},
        {"comment": "Node n1 is being rebooted "},
        {"status": {"state": "expired"}},
    ],
)
async def test_expired_silences_and_silences_of_other_clients_are_not_changed(
    server: FakeAlertmanager, changes: dict[str, Any]
) -> None:
    server.put(**changes)
    assert await of(server).end() == ""
    assert server.methods == ["GET"]
    assert await of(server).begin(60, now=NOW) == ""
    assert len(server.silences) == 2


async def test_careen_ends_active_and_pending_silences_of_the_node(server: FakeAlertmanager) -> None:
    server.put()
    server.put(status={"state": "pending"}, matchers=[])
    assert await of(server).end() == ""
    assert [each["status"]["state"] for each in server.silences.values()] == ["expired", "expired"]


async def test_a_silence_for_a_node_of_another_cluster_is_not_changed(server: FakeAlertmanager) -> None:
    for cluster in ("east", "west"):
        assert await of(server, cluster=cluster).begin(60, now=NOW) == ""
    assert await of(server, cluster="east").end() == ""
    assert [each["status"]["state"] for each in server.silences.values()] == ["expired", "active"]


HOSTILE = [
    pytest.param(200, b"", id="an empty answer"),
    pytest.param(200, b"<html>log in</html>", id="an HTML page"),
    pytest.param(200, b"{}", id="an object instead of a list"),
    pytest.param(200, b"null", id="null instead of a list"),
    pytest.param(200, b"[null]", id="a list with null"),
    pytest.param(200, b"[{}]", id="a silence without fields"),
    pytest.param(200, b"[" * 100_000, id="deeply nested JSON"),
    pytest.param(200, b" " * (17 * 2**20), id="more silences than are plausible"),
    pytest.param(400, b'"bad matcher"', id="status 400"),
    pytest.param(404, b"", id="status 404"),
    pytest.param(500, b"", id="status 500"),
    pytest.param(204, b"", id="status 204 without content"),
]


@pytest.mark.parametrize(("status", "body"), HOSTILE)
async def test_an_answer_that_is_not_a_list_of_silences_makes_the_result_unknown(
    server: FakeAlertmanager, status: int, body: bytes
) -> None:
    server.answers["GET"] = (status, body)
    for answer in (await of(server).begin(60, now=NOW), await of(server).end()):
        assert isinstance(answer, Unknown)
        assert answer.why.startswith(f"Alertmanager at {server.url} gave no usable answer")
    assert set(server.methods) == {"GET"}, "careen writes nothing after an unusable answer"


@pytest.mark.parametrize(
    ("status", "body"), [*HOSTILE, pytest.param(200, b'{"silenceID": ""}', id="an answer without a silence id")]
)
async def test_the_result_is_unknown_if_the_creation_of_a_silence_is_uncertain(
    server: FakeAlertmanager, status: int, body: bytes
) -> None:
    server.answers["POST"] = (status, body)
    assert isinstance(await of(server).begin(60, now=NOW), Unknown)


@pytest.mark.parametrize("status", [401, 403])
async def test_the_message_says_that_the_alertmanager_refused_the_credentials(
    server: FakeAlertmanager, status: int
) -> None:
    server.answers["GET"] = (status, b"")
    assert await of(server).begin(60, now=NOW) == Unknown(
        f"Alertmanager at {server.url} refuses the credentials of careen (status {status}; the agent needs write "
        "access to create a silence)"
    )


async def test_the_token_is_sent_to_the_alertmanager_but_not_to_a_redirect(
    server: FakeAlertmanager, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    await of(server, token_file=f"{tmp_path}/token").begin(60, now=NOW)
    assert {headers["Authorization"] for _, _, _, headers in server.asked} == {"Bearer s3cret"}
    server.asked.clear()
    server.answers["GET"], server.location = (302, b"[]"), f"{server.url}/elsewhere"
    assert isinstance(await of(server).begin(60, now=NOW), Unknown)
    assert [path for _, path, _, _ in server.asked] == ["/api/v2/silences"]


async def test_a_request_to_a_hanging_alertmanager_ends_at_its_deadline(server: FakeAlertmanager) -> None:
    server.hangs = True
    assert isinstance(await of(server, seconds=0.1).begin(60, now=NOW), Unknown)


async def test_a_silence_whose_id_contains_a_path_is_not_deleted(server: FakeAlertmanager) -> None:
    server.silences["x"] = {}
    server.put(id="../../-/quit")
    del server.silences["x"]
    assert isinstance(await of(server).end(), Unknown)
    assert server.methods == ["GET"]

"""Tests that a server which has just started, or which answers with a part of the data, is unknown, and that no check
makes one unknown for ever."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from careen.core.facts.observation import Unknown
from careen.services.alertmanager import Alertmanager
from careen.services.prometheus import FIRED_BEFORE, QUERY, Prometheus
from careen.services.silences import Silences
from careen.services.wire import starts
from careen.services.wire.asking import Access, RequestHeader
from tests.patience import LONG_SECONDS

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
ZERO, EPOCH = "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z"
RUNTIME, RULES, METRICS, STATUS = "/api/v1/status/runtimeinfo", "/api/v1/rules", "/metrics", "/api/v2/status"
UP = {"metric": {"__name__": "up", "job": "db"}, "value": [NOW.timestamp(), "1"]}


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def vector(*rows: Any, **remarks: Any) -> Any:
    return {"status": "success", "data": {"resultType": "vector", "result": list(rows)}, **remarks}


def an_alert(name: str, state: str) -> Any:
    return {"metric": {"alertname": name, "alertstate": state, "node": "n1"}, "value": [1, "1"]}


def prometheus(started: str) -> Any:
    return {"status": "success", "data": {"startTime": started, "reloadConfigSuccess": True, "storageRetention": "15d"}}


def thanos(started: str) -> Any:
    return {"status": "success", "data": {"startTime": started, "CWD": "/", "goroutineCount": 30}}


def rules(*evaluated: str, kind: str = "alerting") -> Any:
    groups = [
        {
            "name": f"g{number}",
            "file": "f",
            "interval": 30,
            "lastEvaluation": at,
            "rules": [{"type": kind, "name": "a"}],
        }
        for number, at in enumerate(evaluated)
    ]
    return {"status": "success", "data": {"groups": groups}}


def alertmanager(started: str | None, cluster: Any = "ready") -> Any:
    return {"uptime": started, "cluster": cluster if cluster is None else {"status": cluster}, "versionInfo": None}


class Server:
    """Answers with what `says` has for a path, or for a query; with 404 otherwise."""

    def __init__(self) -> None:
        self.says: dict[str, Any] = {}
        self.statuses: dict[str, int] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.over, outer = threading.Event(), self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, dict(self.headers)))
                body = outer.answer(self.path)
                if body == b"hangs":
                    outer.over.wait()
                self.send_response_only(outer.statuses.get(urlsplit(self.path).path, 404 if body is None else 200))
                self.send_header("Date", format_datetime(NOW, usegmt=True))
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, path: str) -> bytes | None:
        parts = urlsplit(path)
        said = self.says.get(parts.path)
        if isinstance(said, dict) and "status" not in said and parts.path == "/api/v1/query":
            said = said.get(parse_qs(parts.query)["query"][0], vector())
        return said if said is None or isinstance(said, bytes) else json.dumps(said).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.over.set()
    found.server.shutdown()
    found.server.server_close()


async def alerts(server: Server, seconds: float = LONG_SECONDS) -> Any:
    server.says.setdefault("/api/v1/query", vector())
    return await Prometheus(server.url, timeout_seconds=seconds).active_alerts()


async def samples(server: Server) -> Any:
    server.says.setdefault("/api/v1/query", vector(UP))
    return await Prometheus(server.url, timeout_seconds=LONG_SECONDS).samples("up", fresh_seconds=60.0)


async def of_alertmanager(server: Server) -> Any:
    server.says["/api/v2/alerts"] = []
    return await Alertmanager(server.url, timeout_seconds=LONG_SECONDS).active_alerts()


def why(answer: Any) -> str:
    assert isinstance(answer, Unknown)
    return answer.why


# ---- answers that are not whole ----


@pytest.mark.parametrize("ask", [alerts, samples])
@pytest.mark.parametrize(
    ("remarks", "said"),
    [
        ({"warnings": ["store 10.0.0.7:10901: Unavailable"]}, "store 10.0.0.7:10901: Unavailable"),
        ({"warnings": ["PromQL info: x", "a", "b"]}, "may be incomplete: a and 1 more"),
        ({"isPartial": True}, "the answer is partial"),
        ({"warnings": {"a": "b"}}, "does not have the expected structure"),
    ],
)
async def test_an_answer_with_warnings_or_of_a_part_of_the_storage_is_unknown(
    server: Server, ask: Any, remarks: Any, said: str
) -> None:
    server.says["/api/v1/query"] = vector(UP, **remarks)
    if ask is alerts:
        server.says["/api/v1/query"] = vector(**remarks)
    assert said in why(await ask(server))


@pytest.mark.parametrize(
    "remarks",
    [
        {"infos": ["PromQL info: metric might not be a counter"]},
        {"warnings": ["PromQL info: metric might not be a counter"]},
        {"warnings": [], "isPartial": False},
        {"warnings": None, "isPartial": None, "stats": {"seriesFetched": "0"}},
    ],
)
async def test_remarks_about_the_query_do_not_make_the_answer_unknown(server: Server, remarks: Any) -> None:
    server.says["/api/v1/query"] = vector(**remarks)
    assert await alerts(server) == ()


# ---- servers that have just started ----


STARTED = {
    "Prometheus": {RUNTIME: prometheus(ago(20))},
    "Thanos, the querier": {RUNTIME: thanos(ago(20))},
    "Thanos, a Prometheus behind it": {RUNTIME: thanos(ago(9e5)), RULES: rules(ago(9), ZERO)},
    "Mimir": {RULES: rules(ZERO, ZERO)},
    "Mimir, times of protocol buffers": {RULES: rules(EPOCH)},
    "VictoriaMetrics": {METRICS: b"vm_app_start_timestamp 17\nvm_app_uptime_seconds 20\n"},
    "VictoriaMetrics, its vmalert": {METRICS: b"vm_app_uptime_seconds 90000\n", RULES: rules(ZERO)},
}
RUNNING = {
    "Prometheus": {RUNTIME: prometheus(ago(180)), RULES: rules(ZERO)},
    "Prometheus without rules": {RUNTIME: prometheus(ago(9e5))},
    "a clock that was set": {RUNTIME: prometheus("2099-01-01T00:00:00Z")},
    "a clock of 1970": {RUNTIME: prometheus("1970-01-01T00:00:09Z")},
    "Thanos": {RUNTIME: thanos(ago(9e5)), RULES: rules(ago(9))},
    "Thanos without rules": {RUNTIME: thanos(ago(9e5)), RULES: rules()},
    "Mimir": {RULES: rules(ago(9), ago(90000))},
    "Mimir with recording rules only": {RULES: rules(ZERO, kind="recording")},
    "VictoriaMetrics": {METRICS: b"vm_app_uptime_seconds 180\n", RULES: rules()},
    "no check at all": {},
    "other answers": {RUNTIME: [], RULES: vector(), METRICS: b"<html>"},
    "another structure": {RUNTIME: {"data": {"startTime": 5}}, RULES: {"data": {"groups": {}}}, METRICS: b"\xff"},
    "no time": {
        RUNTIME: {"data": {"startTime": "soon"}},
        RULES: {"data": {"groups": [{"rules": [{"type": "alerting"}]}]}},
    },
}


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    starts._UNEVALUATED.clear()


@pytest.mark.parametrize("kind", STARTED)
async def test_the_alerts_of_a_server_that_has_just_started_are_unknown(server: Server, kind: str) -> None:
    server.says |= STARTED[kind]
    said = why(await alerts(server))
    assert (
        " started 20s ago and does not know" in said or " has not evaluated its alert rules since its start: g" in said
    )


@pytest.mark.parametrize("kind", RUNNING)
async def test_no_check_makes_a_server_unknown_that_runs_for_long_or_has_no_check(server: Server, kind: str) -> None:
    server.says |= RUNNING[kind]
    assert await alerts(server) == ()


@pytest.mark.parametrize("status", [204, 302, 400, 401, 403, 404, 500, 502, 503])
@pytest.mark.parametrize("path", [RUNTIME, RULES, METRICS])
async def test_a_check_that_a_proxy_does_not_permit_does_not_count(server: Server, path: str, status: int) -> None:
    server.says |= {RUNTIME: thanos(ago(20)), METRICS: STARTED["VictoriaMetrics"][METRICS], RULES: rules(ZERO)}
    server.says = {path: server.says[path]}
    server.statuses[path] = status
    assert await alerts(server) == ()


async def test_a_check_that_hangs_does_not_use_up_the_time_of_the_question(server: Server) -> None:
    server.says |= {RUNTIME: b"hangs"}
    assert await alerts(server, 2.0) == ()


async def test_a_group_of_rules_that_is_never_evaluated_counts_for_five_minutes(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 1000.0
    monkeypatch.setattr(starts.time, "monotonic", lambda: at)
    found = starts.CheckAnswer(json.dumps(rules(ZERO, ago(9))).encode(), {})

    def start() -> str:
        return starts.of_prometheus(
            lambda path: found if path.startswith(RULES) else None, "http://p", with_rules=True
        ).why

    assert start() == "has not evaluated its alert rules since its start: g0"
    at += starts.LONGEST_UNEVALUATED_SECONDS - 1
    assert start()
    at += 1
    assert not start()


async def test_the_samples_of_a_server_that_has_just_started_are_unknown(server: Server) -> None:
    server.says |= STARTED["Prometheus"]
    assert "started 20s ago" in why(await samples(server))
    server.says |= {RUNTIME: prometheus(ago(180))}
    assert len(await samples(server)) == 1


async def test_an_alert_that_fired_before_the_start_counts_as_firing_while_it_is_pending_again(server: Server) -> None:
    pending = vector(an_alert("Old", "pending"), an_alert("New", "pending"))
    server.says["/api/v1/query"] = {QUERY: pending, FIRED_BEFORE: vector(an_alert("Old", "firing"))}
    server.says[RUNTIME] = prometheus(ago(600))
    assert [(each.name, each.state) for each in await alerts(server)] == [("New", "pending"), ("Old", "firing")]
    server.says[RUNTIME] = prometheus(ago(901))
    assert [(each.name, each.state) for each in await alerts(server)] == [("New", "pending"), ("Old", "pending")]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (alertmanager(ago(20)), "started 20s ago and does not know every alert yet"),
        (alertmanager(ago(9e5), "settling"), "has not joined its cluster yet"),
        (alertmanager(ago(180)), ""),
        (alertmanager(ago(180), "disabled"), ""),
        (alertmanager(None, None), ""),  # Amazon's
        (alertmanager("2099-01-01T00:00:00Z"), ""),
        ([], ""),
        (None, ""),
    ],
)
async def test_an_alertmanager_that_has_just_started_is_unknown(server: Server, status: Any, said: str) -> None:
    if status is not None:
        server.says[STATUS] = status
    answer = await of_alertmanager(server)
    assert said in why(answer) if said else answer == ()


# ---- headers ----


async def test_the_headers_of_the_settings_are_in_each_request(server: Server, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n")
    access = Access(
        headers=(RequestHeader("X-Scope-OrgID", "a"), RequestHeader("X-Api-Key", file=str(tmp_path / "key")))
    )
    server.says |= {"/api/v1/query": vector(), "/api/v2/alerts": [], "/api/v2/silences": []}
    arguments: Any = {"timeout_seconds": LONG_SECONDS, "access": access}
    assert await Prometheus(server.url, **arguments).active_alerts() == ()
    assert await Alertmanager(server.url, **arguments).active_alerts() == ()
    assert await Silences(server.url, node="n", matchers=(), **arguments).end() == ""
    assert len(server.asked) == 7
    assert {(sent.get("X-Scope-OrgID"), sent.get("X-Api-Key")) for _, sent in server.asked} == {("a", "s3cret")}


async def test_a_server_that_wants_a_tenant_is_named_with_the_setting(server: Server) -> None:
    server.says |= {"/api/v1/query": b"no org id\n", "/api/v2/alerts": b"no org id"}
    server.statuses |= {"/api/v1/query": 401, "/api/v2/alerts": 401}
    for ask, flag in ((alerts, "prometheus"), (of_alertmanager_as_it_is, "alertmanager")):
        assert f"(status 401: no org id; give the tenant with --{flag}-headers='X-Scope-OrgID: TENANT')" in why(
            await ask(server)
        )


async def of_alertmanager_as_it_is(server: Server) -> Any:
    return await Alertmanager(server.url, timeout_seconds=LONG_SECONDS).active_alerts()

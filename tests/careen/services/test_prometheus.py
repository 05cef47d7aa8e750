"""Tests how careen reads active alerts from a Prometheus. If the server fails, the result is "unknown", never
"none".
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from careen.core.facts.observation import Alert, Unknown
from careen.services.prometheus import Prometheus
from tests.patience import LONG_SECONDS, until

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Yield a function that starts a server and returns its URL. The server answers each query with `body`, and adds
    the query to `asked`.
    """
    servers: list[ThreadingHTTPServer] = []
    hanging = threading.Event()

    def start(
        body: bytes, *, status: int = 200, hangs: bool = False, location: str = "", asked: list[str] | None = None
    ) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if asked is not None:
                    asked.append(self.path)
                if hangs:
                    hanging.wait()
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}"

    yield start
    hanging.set()
    for server in servers:
        server.shutdown()
        server.server_close()


def vector(*metrics: dict[str, str]) -> bytes:
    return json.dumps(
        {
            "status": "success",
            "data": {"resultType": "vector", "result": [{"metric": metric, "value": [1, "1"]} for metric in metrics]},
        }
    ).encode()


async def ask(url: str, seconds: float = LONG_SECONDS) -> tuple[Alert, ...] | Unknown:
    return await Prometheus(url, timeout_seconds=seconds).active_alerts()


async def test_each_prometheus_alert_is_read_with_its_name_state_and_labels(serve: Serve) -> None:
    asked: list[str] = []
    url = serve(
        vector(
            {"__name__": "ALERTS", "alertname": "Watchdog", "alertstate": "firing", "severity": "none"},
            {"__name__": "ALERTS", "alertname": "Slow", "alertstate": "pending", "job": "db"},
        ),
        asked=asked,
    )
    assert await ask(url) == (
        Alert(name="Slow", state="pending", labels={"job": "db"}),
        Alert(name="Watchdog", state="firing", labels={"severity": "none"}),
    )
    assert parse_qs(urlparse(asked[0]).query)["query"] == ['ALERTS{alertstate=~"pending|firing"}']


async def test_an_empty_list_of_prometheus_alerts_is_a_valid_answer(serve: Serve) -> None:
    assert await ask(serve(vector())) == ()


async def test_requests_keep_the_path_of_a_prometheus_url(serve: Serve) -> None:
    asked: list[str] = []
    await ask(serve(vector(), asked=asked) + "/prometheus/")
    assert asked[0].startswith("/prometheus/api/v1/query?")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b'{"status":"error","errorType":"bad_data","error":"no"}', 200, id="an error with status 200"),
        pytest.param(b'{"status":"error","errorType":"bad_data","error":"no"}', 400, id="an error with status 400"),
        pytest.param(b"<html>log in</html>", 200, id="a login page"),
        pytest.param(b"", 500, id="status 500"),
        pytest.param(b"", 503, id="status 503 of a server that is not ready"),
        pytest.param(
            b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{}}]}}',
            200,
            id="alerts without a name",
        ),
        pytest.param(b"[]", 200, id="a list instead of an object"),
        pytest.param(b'{"status":"success","data":{"result":{}}}', 200, id="an empty object instead of a list"),
        pytest.param(b'{"status":"success","data":{"result":""}}', 200, id="an empty text instead of a list"),
        pytest.param(b'{"status":"success","data":{"result":null}}', 200, id="null instead of a list"),
        pytest.param(b"{}", 200, id="an object without a result"),
    ],
)
async def test_an_unusable_prometheus_answer_makes_the_alerts_unknown(serve: Serve, body: bytes, status: int) -> None:
    url = serve(body, status=status)
    alerts = await ask(url)
    assert isinstance(alerts, Unknown)
    assert url in alerts.why


async def test_the_servers_explanation_of_a_refused_query_is_shown_in_one_line(serve: Serve) -> None:
    alerts = await ask(serve(b'{"status":"error","error":"parse error:\\nunclosed left parenthesis"}', status=400))
    assert isinstance(alerts, Unknown)
    assert alerts.why.endswith("gave no usable answer: status 400: parse error: unclosed left parenthesis")


async def test_a_redirect_to_a_login_page_makes_the_alerts_unknown(serve: Serve) -> None:
    page = serve(b"<html>log in</html>")
    assert isinstance(await ask(serve(b"", status=302, location=page)), Unknown)


async def test_alerts_of_a_prometheus_that_never_answers_are_unknown_after_the_deadline(serve: Serve) -> None:
    asked: list[str] = []
    alerts = await ask(serve(b"", hangs=True, asked=asked), seconds=0.2)
    assert isinstance(alerts, Unknown)
    assert "did not answer in time" in alerts.why, (
        "the client's own deadline ends the request, so that no thread is left waiting"
    )
    await until(lambda: asked)
    assert len(asked) == 1, "the client's own retries are off"


async def test_an_unreachable_prometheus_makes_the_alerts_unknown(unused_tcp_port: int) -> None:
    alerts = await ask(f"http://127.0.0.1:{unused_tcp_port}")
    assert isinstance(alerts, Unknown)
    assert "refused the connection" in alerts.why


async def test_an_invalid_prometheus_url_makes_the_alerts_unknown() -> None:
    assert isinstance(await ask("prometheus"), Unknown)

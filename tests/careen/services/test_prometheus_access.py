"""Tests how careen reads alerts from a Prometheus that requires TLS and credentials. With wrong credentials, the result
is "unknown".
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from careen.core.facts.observation import Alert, Unknown
from careen.services.prometheus import Prometheus
from careen.services.wire.asking import Access, without_login
from tests.patience import LONG_SECONDS

CERTIFICATES = Path(__file__).parent / "certificates"
AUTHORITY = str(CERTIFICATES / "authority.pem")
ALERTS = json.dumps(
    {
        "status": "success",
        "data": {
            "resultType": "vector",
            "result": [{"metric": {"alertname": "Slow", "alertstate": "firing"}, "value": [1, "1"]}],
        },
    }
).encode()
SLOW = (Alert(name="Slow"),)


@dataclass
class Server:
    """A server that answers each request with one active alert if the request's Authorization header equals `wants`,
    and with the status `status` if not. `shown` collects the Authorization headers of all requests."""

    url: str
    wants: str = ""
    status: int = 401
    shown: list[str] = field(default_factory=list)


@contextmanager
def running_server(*, asks_for_certificate: bool = False, **how: Any) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown = self.headers.get("Authorization", "")
            if "query=" in self.path:  # not one of the checks of a start
                server.shown.append(shown)
            is_known = shown == server.wants and "query=" in self.path
            body = ALERTS if is_known else b"who are you"
            self.send_response(200 if is_known else server.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """Print nothing, because some tests make a TLS handshake fail."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    if asks_for_certificate:
        context.load_verify_locations(AUTHORITY)
        context.verify_mode = ssl.CERT_REQUIRED
    listener = Quiet(("127.0.0.1", 0), Handler)
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    server = Server(url=f"https://127.0.0.1:{listener.server_address[1]}", **how)
    threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()


async def ask(server: Server, **access: str) -> tuple[Alert, ...] | Unknown:
    return await Prometheus(
        server.url, timeout_seconds=LONG_SECONDS, access=Access(ca_file=AUTHORITY, **access)
    ).active_alerts()


async def why(server: Server, **access: str) -> str:
    answer = await ask(server, **access)
    assert isinstance(answer, Unknown)
    return answer.why.removeprefix(f"Prometheus at {server.url} ")


async def test_the_token_file_is_read_again_for_each_request(tmp_path: Path) -> None:
    token = tmp_path / "token"
    prometheus = None
    with running_server(wants="Bearer first") as server:
        prometheus = Prometheus(
            server.url, timeout_seconds=LONG_SECONDS, access=Access(ca_file=AUTHORITY, token_file=str(token))
        )
        token.write_text("first\n")
        assert await prometheus.active_alerts() == SLOW
        server.wants = "Bearer second"
        assert isinstance(await prometheus.active_alerts(), Unknown)
        token.write_text("second")
        assert await prometheus.active_alerts() == SLOW
        assert server.shown == ["Bearer first", "Bearer first", "Bearer second"]


@pytest.mark.parametrize("status", [401, 403])
async def test_a_request_with_a_rejected_token_is_not_repeated(tmp_path: Path, status: int) -> None:
    (tmp_path / "token").write_text("SECRETWORD")
    with running_server(wants="Bearer other", status=status) as server:
        assert (
            await why(server, token_file=str(tmp_path / "token"))
            == f"refuses the credentials of careen (status {status}: careen sent the token in {tmp_path}/token)"
        )
        assert len(server.shown) == 1


async def test_a_request_contains_the_basic_authentication(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open: sesame\n")
    with running_server(wants=f"Basic {base64.b64encode(b'careen:open: sesame').decode()}") as server:
        assert await ask(server, username="careen", password_file=str(tmp_path / "password")) == SLOW
        server.wants = "another"
        assert await why(server, username="careen", password_file=str(tmp_path / "password")) == (
            "refuses the credentials of careen (status 401: careen sent the user name careen with the password in "
            f"{tmp_path}/password)"
        )


async def test_the_message_about_a_401_lists_the_flags_for_credentials() -> None:
    with running_server(wants="Bearer x") as server:
        assert (
            await why(server) == "refuses the credentials of careen (status 401: careen sent no credentials; give "
            "--prometheus-token-file or --prometheus-username)"
        )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "must contain one line of printable ASCII characters"),
        (b"\n", "must contain one line of printable ASCII characters"),
        (b"SECRET\nWORD", "must contain one line of printable ASCII characters"),
        (b"SECRET\xff", "is not text"),
        ("SECRETÄ".encode(), "must contain one line of printable ASCII characters"),
    ],
)
async def test_an_empty_token_file_is_reported_without_a_request(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with running_server() as server:
        said = await why(server, token_file=str(file))
        assert said.startswith(f"was not queried: {file} {sentence}")
        assert "SECRET" not in said
        assert server.shown == []


async def test_a_server_with_an_untrusted_certificate_gets_no_request() -> None:
    with running_server() as server:
        answer = await Prometheus(server.url, timeout_seconds=LONG_SECONDS).active_alerts()
        assert isinstance(answer, Unknown)
        assert "shows a certificate that is not trusted" in answer.why
        assert server.shown == []


async def test_a_missing_ca_file_makes_the_alerts_unknown() -> None:
    with running_server() as server:
        answer = await Prometheus(
            server.url, timeout_seconds=LONG_SECONDS, access=Access(ca_file="/nowhere.pem")
        ).active_alerts()
        assert isinstance(answer, Unknown)
        assert "/nowhere.pem" in answer.why


async def test_a_client_certificate_is_sent_from_one_or_two_files(tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    with both.open("wb") as file:
        for name in ("client.pem", "client.key"):
            with (CERTIFICATES / name).open("rb") as part:
                shutil.copyfileobj(part, file)
    with running_server(asks_for_certificate=True) as server:
        assert (
            await ask(
                server, certificate_file=str(CERTIFICATES / "client.pem"), key_file=str(CERTIFICATES / "client.key")
            )
            == SLOW
        )
        assert await ask(server, certificate_file=str(both)) == SLOW
        # The server ends the handshake. The error depends on when the client reads that.
        assert re.search("ended the TLS handshake|closed the connection|gave no usable answer", await why(server))


async def test_a_password_in_the_prometheus_url_is_used_and_not_shown() -> None:
    with running_server(wants="no") as server:
        answer = await Prometheus(
            server.url.replace("//", "//name:SECRETWORD@"),
            timeout_seconds=LONG_SECONDS,
            access=Access(ca_file=AUTHORITY),
        ).active_alerts()
        assert isinstance(answer, Unknown)
        assert "SECRETWORD" not in answer.why
        assert server.shown == [f"Basic {base64.b64encode(b'name:SECRETWORD').decode()}"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://a:b@c/d", "http://c/d"),
        ("http://c/d@e", "http://c/d@e"),
        ("http://a@c:1?x=y@z", "http://c:1?x=y@z"),
        ("http://a:b@d@c", "http://c"),
        ("", ""),
    ],
)
def test_a_prometheus_url_is_shown_without_its_login(url: str, shown: str) -> None:
    assert without_login(url) == shown

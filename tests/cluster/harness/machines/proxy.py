"""An HTTP proxy on loopback between one agent and the API server, which can corrupt, delay or replace the server's
responses.

The agent uses plain HTTP to the proxy. The proxy uses TLS to the server, with the agent's own token. For each call, a
rule chooses the response that the agent gets. The rule runs in the thread of the call, so it can also delay the
response, or change the cluster before the response.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import urllib3

_LONGEST_SECONDS = 3700.0  # a watch lasts an hour
_HOP_BY_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive", "host", "accept-encoding"})


@dataclass(frozen=True)
class Call:
    """One request as the agent sent it."""

    method: str
    target: str  # path and query
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def is_watch(self) -> bool:
        return "watch" in parse_qs(urlsplit(self.target).query)

    @cached_property
    def content(self) -> dict[str, Any]:
        """Return the body, or an empty dictionary if the body is not a JSON object."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def annotations(self) -> dict[str, str | None]:
        """Return the annotations that a patch changes."""
        return (self.content.get("metadata") or {}).get("annotations") or {}

    def is_patch_of_node(self, name: str) -> bool:
        return self.method == "PATCH" and self.path == f"/api/v1/nodes/{name}"

    def is_eviction(self) -> bool:
        return self.method == "POST" and self.path.endswith("/eviction") and "dryRun" not in self.target


@dataclass(frozen=True)
class Answer:
    """The response that the agent gets. With status 0, the proxy closes the connection without a response."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


LOST = Answer(status=0)

Rule = Callable[[Call, Callable[[], Answer]], Answer | None]
"""A function with two parameters: a call, and a function that forwards this call to the server. It returns the response
for the agent, or None to forward the call unchanged."""


def as_it_is(_call: Call, _forward: Callable[[], Answer]) -> Answer | None:
    return None


class Proxy:
    """A proxy that listens from its construction until `close`. A test may replace `rule`, `watch_rule` and
    `watch_seconds` at any time: the response to a watch, or None to forward it, and how long a forwarded watch lasts.
    """

    def __init__(self, server: str, certificate_authority: Path) -> None:
        self.rule: Rule = as_it_is
        self.watch_rule: Callable[[Call], Answer | None] = lambda _call: None
        self.watch_seconds = _LONGEST_SECONDS
        self._server = server
        self._pool = urllib3.PoolManager(ca_certs=str(certificate_authority), retries=False, maxsize=16)
        self._http = _Server(self)
        threading.Thread(target=self._http.serve_forever, name="proxy", daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._pool.clear()

    def forward(self, call: Call, headers: dict[str, str]) -> Answer:
        """Forward the call to the server. Return the complete response, or LOST if there was none."""
        try:
            found = self._open(call, headers, preload=True)
        except urllib3.exceptions.HTTPError:
            return LOST
        return Answer(
            status=found.status,
            body=found.data,
            headers=tuple((k, v) for k, v in found.headers.items() if k.lower() not in _HOP_BY_HOP),
        )

    def stream(self, call: Call, headers: dict[str, str]) -> Iterator[bytes]:
        """Yield the HTTP status of the response to a watch, and then the bytes of the watch as they arrive."""
        began = time.monotonic()
        found = self._open(call, headers, preload=False)
        try:
            yield str(found.status).encode()
            while (chunk := found.read1(1 << 16)) and time.monotonic() - began < self.watch_seconds:
                yield chunk
        finally:
            found.close()

    def _open(self, call: Call, headers: dict[str, str], *, preload: bool) -> urllib3.BaseHTTPResponse:
        return self._pool.request(
            call.method,
            self._server + call.target,
            body=call.body or None,
            headers=headers,
            preload_content=preload,
            timeout=urllib3.Timeout(connect=5, read=60 if preload else self.watch_seconds),
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    protocol_version = "HTTP/1.1"

    def _meet(self) -> None:
        proxy = self.server.proxy
        call = Call(self.command, self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        headers = {key: value for key, value in self.headers.items() if key.lower() not in _HOP_BY_HOP}
        answer = proxy.watch_rule(call) if call.is_watch else None
        if call.is_watch and answer is None:
            self._pass_on(proxy.stream(call, headers))
            return
        if answer is None:
            answer = proxy.rule(call, lambda: proxy.forward(call, headers)) or proxy.forward(call, headers)
        if not answer.status:
            self.close_connection = True
            return
        self._say(answer)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _meet  # noqa: N815 - the library's names

    def _say(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for key, value in answer.headers:
            if key.lower() not in ("date", "server"):
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _pass_on(self, chunks: Iterator[bytes]) -> None:
        self.close_connection = True  # its end is the end of the connection
        try:
            self.send_response(int(next(chunks)))
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            for chunk in chunks:
                self.wfile.write(chunk)
                self.wfile.flush()
        except (OSError, urllib3.exceptions.HTTPError):
            return

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the agent was killed meanwhile
            return

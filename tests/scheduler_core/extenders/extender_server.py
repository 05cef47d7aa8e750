"""An extender over real HTTP for tests. It sends the responses of a table and records the requests."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[Any], Any] | bytes | int
"""What the server sends for a verb: a function that makes the response's JSON from the request's JSON, the raw bytes of
a body, or a status code."""


@dataclass
class ExtenderServer:
    """An HTTP server. `answers` maps a verb to its response. `requests` has the path, content type and JSON of each
    request."""

    answers: dict[str, Answer]
    delay_seconds: float = 0.0
    trickle_seconds: float = 0.0
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    url: str = ""

    def asked(self, verb: str) -> list[Any]:
        return [body for path, _, body in self.requests if path.endswith("/" + verb)]

    @contextmanager
    def running(self, tls: ssl.SSLContext | None = None) -> Iterator[ExtenderServer]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}/scheduler"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _handler(outer) -> type[BaseHTTPRequestHandler]:  # noqa: N805 -- `self` is the handler's below
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # http.server's name
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, self.headers["Content-Type"], body))
                time.sleep(outer.delay_seconds)
                answer = outer.answers[self.path.rpartition("/")[2]]
                status, payload = (
                    (answer, b"")
                    if isinstance(answer, int)
                    else (200, answer if isinstance(answer, bytes) else json.dumps(answer(body)).encode())
                )
                self.send_response(status)
                self.send_header("Content-Length", str(len(payload)))
                with suppress(OSError):  # the client may have given up
                    self.end_headers()
                    step = 1 if outer.trickle_seconds else len(payload) or 1
                    for start in range(0, len(payload), step):
                        self.wfile.write(payload[start : start + step])
                        time.sleep(outer.trickle_seconds)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

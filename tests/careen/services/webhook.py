"""A web server for tests of messages, which records the requests and sends the configured responses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Webhook:
    """Records the requests that arrive. If `hangs` is set, the server does not respond until the test is over."""

    address: str = ""
    status: int = 200
    hangs: bool = False
    got: list[tuple[str, str, str, dict[str, str]]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [body for _, _, body, _ in self.got]


@contextmanager
def running_webhook(**how: Any) -> Iterator[Webhook]:
    webhook, over = Webhook(**how), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            webhook.got.append((self.command, self.path, body, dict(self.headers)))
            if webhook.hangs:
                over.wait()
            self.send_response(webhook.status)
            self.end_headers()

        def do_PUT(self) -> None:
            self.do_POST()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    webhook.address = f"127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield webhook
    finally:
        over.set()
        server.shutdown()
        server.server_close()

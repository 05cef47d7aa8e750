"""The HTTP side of `careen serve`: GET and HEAD of a few fixed paths, in threads, each answer under strict headers.

It reads no file by a path from a request, and knows nothing of the cluster: its `PageSource` has the documents.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Protocol
from urllib.parse import unquote

from careen.agent.telemetry.http_server import listening
from careen.cli.serving.guard import HEADERS, refusal
from careen.core.plain_text import json_text
from careen.report.live.assets import ASSETS
from scheduler_core.values import Value

_HTML, _JSON = "text/html; charset=utf-8", "application/json; charset=utf-8"
_COMPRESSED_FROM: Final = 1000  # bytes
_ALLOWED: Final = "GET, HEAD"


class Document(Value, kw_only=True):
    """An answer that may be sent many times. `etag` is a checksum of its content."""

    kind: str
    body: bytes
    packed: bytes
    etag: str

    @classmethod
    def of(cls, kind: str, text: str) -> Document:
        """Compresses the text once."""
        body = text.encode()
        packed = gzip.compress(body, 5, mtime=0) if len(body) >= _COMPRESSED_FROM else b""
        return cls(kind=kind, body=body, packed=packed, etag=f'"{hashlib.sha256(body).hexdigest()[:24]}"')

    @classmethod
    def json(cls, value: Any) -> Document:
        """Short JSON; texts keep their content, escaped."""
        return cls.of(_JSON, json_text(json.dumps(value, separators=(",", ":"), ensure_ascii=False)))

    @classmethod
    def html(cls, text: str) -> Document:
        """A page."""
        return cls.of(_HTML, text)


class Failure(Value):
    """A document that does not exist (404) or that cannot be made now (503)."""

    status: int
    sentence: str


class PageSource(Protocol):
    """The documents. Threads of the server call it."""

    def rollout(self) -> Document | Failure:
        """The roll-out as JSON."""
        ...

    def node(self, name: str) -> Document | Failure:
        """One node as JSON."""
        ...

    def report(self, days: int, *, as_page: bool) -> Document | Failure:
        """The reboots of the last days as a page or as JSON."""
        ...


class WebServer:
    """Serves in threads until `close`."""

    def __init__(self, host: str, port: int, source: PageSource) -> None:
        """Raises OSError with a sentence if the server cannot listen there."""
        handler = type("Handler", (_Handler,), {"source": source})
        self._server = listening(host, port, handler)
        threading.Thread(target=self._server.serve_forever, name="web", daemon=True).start()

    @property
    def port(self) -> int:
        """The port, even if the system chose it."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()


_FILES = {path: Document.of(kind, text) for path, (kind, text) in ASSETS.items()}
_REPORT_DAYS: Final = 31
_MOST_DAYS: Final = 3660


class _Handler(BaseHTTPRequestHandler):
    source: PageSource
    protocol_version = "HTTP/1.1"
    timeout = 30  # a page asks every two seconds; a browser that was closed must not keep a thread

    def do_GET(self) -> None:
        """Answers a request of a browser on this computer."""
        if why := refusal({name: self.headers.get(name) for name in ("Host", "Origin", *_FETCH)}):
            self._fail(Failure(403, why))
            return
        found = self._found()
        if isinstance(found, Failure):
            self._fail(found)
        else:
            self._send(found)

    def do_HEAD(self) -> None:
        """The same without the body."""
        self.do_GET()

    def _found(self) -> Document | Failure:
        path, _, query = self.path.partition("?")
        if path in _FILES:
            return _FILES[path]
        match path.split("/")[1:]:
            case ["rollout.json"]:
                return self.source.rollout()
            case ["nodes", name] if name.endswith(".json"):
                return self.source.node(unquote(name.removesuffix(".json")))
            case ["report" | "report.json" as name]:
                return self._report(query, as_page=name == "report")
        return Failure(404, "there is no such page: /, /report, /rollout.json, /report.json and /nodes/NAME.json exist")

    def _report(self, query: str, *, as_page: bool) -> Document | Failure:
        text = query.removeprefix("days=") if query else str(_REPORT_DAYS)
        if not (text.isascii() and text.isdigit() and 0 < len(text) < 5 and 1 <= int(text) <= _MOST_DAYS):
            return Failure(400, f"write ?days=N with a number from 1 to {_MOST_DAYS}")
        return self.source.report(int(text), as_page=as_page)

    def _send(self, document: Document) -> None:
        if self.headers.get("If-None-Match") == document.etag:
            self._answer(304, document.kind, b"", etag=document.etag)
            return
        is_packed = bool(document.packed) and "gzip" in (self.headers.get("Accept-Encoding") or "")
        body = document.packed if is_packed else document.body
        self._answer(200, document.kind, body, etag=document.etag, is_packed=is_packed)

    def _fail(self, failure: Failure) -> None:
        body = json.dumps({"error": failure.sentence}).encode()
        self._answer(failure.status, _JSON, body)

    def _answer(self, status: int, kind: str, body: bytes, *, etag: str = "", is_packed: bool = False) -> None:
        self.send_response(status)
        more = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Vary": "Accept-Encoding",
            **({"ETag": etag} if etag else {}),
            **({"Content-Encoding": "gzip"} if is_packed else {}),
            **({"Allow": _ALLOWED} if status == 405 else {}),
        }
        for name, value in (HEADERS | more).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The base class's answers to other methods and to requests that it cannot read, under the same headers."""
        del explain
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, message = HTTPStatus.METHOD_NOT_ALLOWED, "careen serve only shows: it answers GET and HEAD"
        self.close_connection = True  # a body would follow, which nobody reads
        self.requestline = getattr(self, "requestline", "")
        self.request_version = self.protocol_version  # else an answer to nonsense has no headers, as in HTTP/0.9
        self.command = getattr(self, "command", None) or "GET"
        self._answer(code, _JSON, json.dumps({"error": message or "the request cannot be read"}).encode())

    def version_string(self) -> str:
        """Hides Python's name and release from clients."""
        return "careen"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nothing: a page asks every two seconds."""


_FETCH = ("Sec-Fetch-Site", "Sec-Fetch-Mode")

"""Serves /metrics, /healthz and /readyz on one port, in a thread of its own.

An open port does not prove a healthy agent. So the loop announces its next heartbeat, and the probes fail if it is
late.
"""

from __future__ import annotations

import errno
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from careen.core.facts.times import span
from careen.core.plain_text import one_line


class Heartbeat:
    """The loop's heartbeat and the agent's readiness. Other threads may read both."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._due = monotonic() + 60.0
        self._doing = "starting"
        self._is_ready = False
        self._held = ""

    def expect_within(self, seconds: float, doing: str) -> None:
        """Announces the next heartbeat. `doing` says what the agent does until then."""
        self._due, self._doing = self._monotonic() + seconds, doing

    def ready(self) -> None:
        """Notes that the first turn is complete."""
        self._is_ready = True

    def hold_readiness(self, why: str) -> None:
        """Not ready because of `why`: the agent works with restrictions. "" makes it ready again."""
        self._held = why

    def health(self) -> tuple[bool, str]:
        """Whether the heartbeat is on time, and what the agent is doing."""
        late = self._monotonic() - self._due
        return (
            late <= 0,
            f"{self._doing}: the agent's next heartbeat is {span(round(late))} overdue" if late > 0 else self._doing,
        )

    def readiness(self) -> tuple[bool, str]:
        """Ready after a complete turn, with a punctual heartbeat and without restrictions; if not, why."""
        alive, doing = self.health()
        return alive and self._is_ready and not self._held, self._held or doing


Page = Callable[[str], tuple[int, bytes]]
"""Gets the query of a request, and returns the status and the JSON of its answer."""
NO_PAGES: Final[Mapping[str, Page]] = {}


class HttpServer:
    """Serves the port until the process ends."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        heartbeat: Heartbeat,
        exposition: Callable[[], bytes],
        listener: socket.socket | None = None,
        pages: Mapping[str, Page] = NO_PAGES,
    ) -> None:
        """`listener` already listens, and makes host and port irrelevant. `pages`: more paths, such as `/why`.

        `host` is a name or an IPv4 or IPv6 address (`[::1]` too); empty for all addresses of the host.

        Raises OSError with a sentence if the server cannot listen there.
        """
        parts = {"heartbeat": heartbeat, "exposition": staticmethod(exposition), "pages": pages}
        handler = type("Handler", (_Handler,), parts)
        self._server = listening(host, port, handler) if listener is None else _on(listener, handler)
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    @property
    def port(self) -> int:
        """The port, even if the system chose it."""
        return int(self._server.server_address[1])

    def hand_over(self, *, seconds: float) -> int:
        """Stops accepting, waits until the open requests are answered, and returns the descriptor of the listener,
        which the kernel still lets clients connect to."""
        self._server.shutdown()
        end = time.monotonic() + seconds
        while self._server.has_open and time.monotonic() < end:
            time.sleep(0.01)
        return self._server.socket.detach()

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()


# The kubelet's two probes and a few Prometheus at once. Each connection is a thread and a descriptor of the agent.
_MOST_CONNECTIONS = 16


class BoundedServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with socketserver's five, other clients could delay a probe for seconds

    def __init__(
        self,
        family: socket.AddressFamily,
        address: tuple[Any, ...],
        handler: type[BaseHTTPRequestHandler],
        listener: socket.socket | None = None,
    ) -> None:
        self.address_family = family
        self._open: dict[socket.socket, None] = {}  # oldest first
        self._guard = threading.Lock()
        super().__init__(address, handler, bind_and_activate=listener is None)
        if listener is not None:
            self.socket.close()
            self.socket, self.server_address = listener, listener.getsockname()

    def server_bind(self) -> None:
        if self.address_family is socket.AF_INET6:
            # Only "::" means both families, and only with this off; net.ipv6.bindv6only may have set it.
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(self.server_address[0] != "::"))
        # Not HTTPServer's, which resolves the address's name: that may take long, and the name is not used.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Closes the oldest of too many connections, so that connections that stay open cannot block a probe."""
        with self._guard:
            self._open[request] = None
            oldest = next(iter(self._open)) if len(self._open) > _MOST_CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread reads the end and closes it
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    @property
    def has_open(self) -> bool:
        with self._guard:
            return bool(self._open)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # a client that disconnected is not logged


def _on(listener: socket.socket, handler: type[BaseHTTPRequestHandler]) -> BoundedServer:
    return BoundedServer(listener.family, listener.getsockname(), handler, listener)


def listening(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> BoundedServer:
    """Listens on the first address of `host` that this machine supports. An address in use is an error."""
    refused: OSError | None = None
    for family, address in _addresses(host, port):
        try:
            return BoundedServer(family, address, handler)
        except OSError as error:
            if error.errno not in _NO_SUCH_FAMILY:
                raise
            refused = refused or error
    raise refused or OSError(f"{host} has no address")


# The errors of "::" on a kernel without IPv6 or without an IPv6 address.
_NO_SUCH_FAMILY = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    if not host:
        # the kubelet's probes come from outside
        return [(socket.AF_INET6, ("::", port)), (socket.AF_INET, ("0.0.0.0", port))]  # noqa: S104
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        found = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise OSError(f"{host!r} is neither an address nor a name that resolves: {error}") from error
    # A name with addresses of both families: IPv4 first, like Go's net.Listen and therefore kured.
    return sorted(
        ((socket.AddressFamily(family), address) for family, _, _, _, address in found),
        key=lambda each: each[0] is not socket.AF_INET,
    )


class _Handler(BaseHTTPRequestHandler):
    heartbeat: Heartbeat
    exposition: Callable[[], bytes]
    pages: Mapping[str, Page]
    timeout = 10  # a client that connects and sends nothing must not keep a thread

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        match path:
            case "/metrics":
                self._answer(200, self.exposition(), "text/plain; version=0.0.4; charset=utf-8")
            case "/healthz":
                self._say(*self.heartbeat.health())
            case "/readyz":
                self._say(*self.heartbeat.readiness())
            case _ if path in self.pages:
                status, body = self.pages[path](query)
                self._answer(status, body, "application/json")
            case _:
                self._answer(404, f"{', '.join(('/metrics', '/healthz', '/readyz', *self.pages))}\n".encode())

    def version_string(self) -> str:
        """Hides Python's name and release from clients."""
        return "careen"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nothing: probes come every ten seconds."""

    def _say(self, good: bool, text: str) -> None:
        self._answer(200 if good else 503, f"{one_line(text)}\n".encode())

    def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

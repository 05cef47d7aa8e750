"""/metrics, /healthz and /readyz on one port, in a thread of its own.

Health is tied to the progress of the loop, not to the port being open: the loop says by when it will give a
sign of life again, and a probe fails when it did not."""

from __future__ import annotations

import errno
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from careen.core.facts.times import span
from careen.core.plain_text import one_line


class Heartbeat:
    """The loop's signs of life. Safe to read from another thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._due = monotonic() + 60.0
        self._doing = "starting"
        self._is_ready = False
        self._held = ""

    def expect_within(self, seconds: float, doing: str) -> None:
        """The next sign comes within `seconds`; `doing` is what will have taken so long if it does not."""
        self._due, self._doing = self._monotonic() + seconds, doing

    def ready(self) -> None:
        """A whole turn was made."""
        self._is_ready = True

    def hold_readiness(self, why: str) -> None:
        """Not ready as long as there is a reason: the agent works, but not as it is meant to.

        Empty: there is none any more.
        """
        self._held = why

    def health(self) -> tuple[bool, str]:
        """Whether the loop makes progress, and what it is doing."""
        late = self._monotonic() - self._due
        return late <= 0, f"{self._doing}: {span(round(late))} overdue" if late > 0 else self._doing

    def readiness(self) -> tuple[bool, str]:
        """Whether the agent has made a turn and goes on making them."""
        alive, doing = self.health()
        return alive and self._is_ready and not self._held, self._held or doing


class HttpServer:
    """Serves until the process ends."""

    def __init__(self, host: str, port: int, *, heartbeat: Heartbeat, exposition: Callable[[], bytes]) -> None:
        """`host` is an address of either family, `[::1]` as well, or a name; empty: all addresses of both
        families that the host has.

        Raises OSError, with a sentence, if the address cannot be had.
        """
        handler = type("Handler", (_Handler,), {"heartbeat": heartbeat, "exposition": staticmethod(exposition)})
        self._server = _listening(host, port, handler)
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    @property
    def port(self) -> int:
        """The port, also if any free one was asked for."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()


# The kubelet's two probes and a few Prometheus at once. Each connection is a thread and a descriptor of the agent.
_MOST_CONNECTIONS = 16


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # socketserver's five let strangers keep a probe waiting for seconds

    def __init__(
        self, family: socket.AddressFamily, address: tuple[Any, ...], handler: type[BaseHTTPRequestHandler]
    ) -> None:
        self.address_family = family
        self._open: dict[socket.socket, None] = {}  # oldest first
        self._guard = threading.Lock()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        if self.address_family is socket.AF_INET6:
            # Only "::" means both families, and only with this off; net.ipv6.bindv6only may have set it.
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(self.server_address[0] != "::"))
        # Not HTTPServer's: it asks the DNS for the address's name, which may take as long as the DNS likes, and
        # nobody needs it.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """The oldest makes way for the newest: whoever holds connections open keeps no probe out."""
        with self._guard:
            self._open[request] = None
            oldest = next(iter(self._open)) if len(self._open) > _MOST_CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread finds the end, and closes it
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # a client that went away is nothing to tell


def _listening(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _Server:
    """On the first of the addresses that can be had; an address in use is not passed over."""
    refused: OSError | None = None
    for family, address in _addresses(host, port):
        try:
            return _Server(family, address, handler)
        except OSError as error:
            if error.errno not in _NO_SUCH_FAMILY:
                raise
            refused = refused or error
    raise refused or OSError(f"{host} has no address")


# What a kernel without IPv6, or without an IPv6 address, says of "::".
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
    # A name with addresses of both families: IPv4 first, as Go's net.Listen and so kured do.
    return sorted(
        ((socket.AddressFamily(family), address) for family, _, _, _, address in found),
        key=lambda each: each[0] is not socket.AF_INET,
    )


class _Handler(BaseHTTPRequestHandler):
    heartbeat: Heartbeat
    exposition: Callable[[], bytes]
    timeout = 10  # a client that connects and says nothing must not keep a thread

    def do_GET(self) -> None:
        match self.path.split("?", 1)[0]:
            case "/metrics":
                self._answer(200, self.exposition(), "text/plain; version=0.0.4; charset=utf-8")
            case "/healthz":
                self._say(*self.heartbeat.health())
            case "/readyz":
                self._say(*self.heartbeat.readiness())
            case _:
                self._answer(404, b"/metrics, /healthz, /readyz\n")

    def version_string(self) -> str:
        """Not Python's, nor its release: nobody who asks has to know them."""
        return "careen"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Probes every ten seconds are nothing to log."""

    def _say(self, good: bool, text: str) -> None:
        self._answer(200 if good else 503, f"{one_line(text)}\n".encode())

    def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

"""Connections and answers of HTTP/1 with limits of time and size. The time limit of a socket holds for each read, so a
server that sends a byte now and then would never exceed it.

Of careen, the clients of other servers use it too.
"""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from http.client import HTTPResponse
from typing import Any

_PIECE = 2**16
_SEPARATORS = b",[{"
_BYTES_OF_A_VALUE = 16
"""The separators in an answer limit the memory of its decoded JSON: `[{},{},…` takes 30 times its own size."""


class TooLong(Exception):
    """The message says how long an answer may be."""


def whole(read: Callable[[int], bytes], most_bytes: int) -> bytes:
    """The body that `read` gives piece by piece, and at the end nothing. Raises `TooLong`."""
    content, most_values = bytearray(), most_bytes // _BYTES_OF_A_VALUE
    while piece := read(_PIECE):
        content += piece
        if len(content) > most_bytes:
            raise TooLong(f"the answer is longer than {most_bytes // 2**20} MiB")
    if len(content) > most_values and len(content) - len(content.translate(None, _SEPARATORS)) > most_values:
        raise TooLong(f"the answer has more than {most_values} values")
    return bytes(content)


def connected(
    host: str, port: int, *, seconds: float, ends: float, options: Iterable[tuple[int, int, int]] = ()
) -> socket.socket:
    """A socket whose time limit is `seconds`, to the first address that answers until `ends` (of `time.monotonic`).
    Python's own function tries each address for the whole time, and waits for the name without a limit.

    Raises socket.gaierror, TimeoutError, and another OSError if no address can be reached."""
    last = OSError("the name has no address")
    found = _addresses(host, port, min(seconds, ends - time.monotonic()))
    for number, (family, kind, protocol, _, address) in enumerate(found):
        left = ends - time.monotonic()
        if left <= 0:
            break
        own = socket.socket(family, kind, protocol)
        try:
            own.settimeout(min(seconds, left if number == len(found) - 1 else left / 2))
            for option in options:
                own.setsockopt(*option)
            own.connect(address)
        except OSError as error:
            own.close()
            last = error
        else:
            own.settimeout(seconds)
            return own
    raise last


_resolving: dict[tuple[str, int], Future[list[Any]]] = {}
"""The questions for addresses that have no answer yet. Nothing can end such a question, so there is one for a name."""


def _addresses(host: str, port: int, seconds: float) -> list[Any]:
    """Raises TimeoutError after `seconds`, and socket.gaierror."""

    answer = _resolving.get((host, port))
    if answer is None or answer.done():
        answer = _resolving[host, port] = Future()
        threading.Thread(target=_resolve, args=(host, port, answer), daemon=True, name=f"addresses of {host}").start()
    return answer.result(max(seconds, 0.0))


def _resolve(host: str, port: int, answer: Future[list[Any]]) -> None:
    try:
        answer.set_result(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
    except Exception as error:
        answer.set_exception(error)


class TimedResponse(HTTPResponse):
    """Reads status line, headers and body until `ends`; then a read raises TimeoutError."""

    def __init__(self, sock: socket.socket, *arguments: Any, ends: float, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        self.timed = _Reader(sock, ends)
        self.fp = io.BufferedReader(self.timed)


class _Reader(io.RawIOBase):
    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock = sock
        self._file = sock.makefile("rb", buffering=0)  # keeps the socket open until the body is read
        self._seconds = sock.gettimeout()
        self.ends = ends

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left if self._seconds is None else min(left, self._seconds))
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()

"""The transport of every request to a service: a deadline for the whole answer, a limit on its size, no redirects.

Importing this module imports requests, so only the thread that asks does so: most agents of a fleet never ask.
"""

from __future__ import annotations

import io
import socket
import threading
import time
from concurrent.futures import Future
from functools import partial, partialmethod
from http.client import HTTPResponse
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NameResolutionError, NewConnectionError
from urllib3.util.retry import Retry

from careen.core.facts.times import span

MOST_BYTES = 16 * 2**20
"""After decompression: tens of thousands of alerts."""
MOST_VALUES = 10**6
"""The separators in an answer limit the memory of its decoded JSON: `[{},{},…` takes 30 times its own size."""
_PIECE = 2**16
_SEPARATORS = (b",", b"[", b"{")


def session(seconds: float, most_seconds: float) -> requests.Session:
    """For one question: `seconds` for the connection and for each read, `most_seconds` from now for all its answers."""
    return _Session(_Adapter(seconds, most_seconds))


def bind_every_session(seconds: float) -> None:
    """In this process, also the sessions of libraries. For a process with a single purpose."""
    adapter = _Adapter(seconds, seconds)
    requests.Session.get_adapter = lambda _session, url: adapter  # type: ignore[method-assign,assignment] # noqa: ARG005
    requests.Session.get_redirect_target = _nowhere  # type: ignore[method-assign,assignment]


def _nowhere(_session: Any, resp: requests.Response) -> str | None:  # noqa: ARG001
    """A redirect would send the token, and what careen writes, to another server, and careen would believe it."""
    return None


class Unbounded(requests.RequestException):
    """Too slow or too long; the message says which."""


class _Session(requests.Session):
    def __init__(self, adapter: _Adapter) -> None:
        super().__init__()
        self._adapter = adapter

    def get_adapter(self, url: str | bytes) -> _Adapter:  # noqa: ARG002
        """The adapter with limits for every URL, even where prometheus-api-client mounted one without."""
        return self._adapter

    get_redirect_target = _nowhere


class _Adapter(HTTPAdapter):
    """Reads each answer whole, and raises `Unbounded` if it is too long or too slow. Never retries."""

    def __init__(self, seconds: float, most_seconds: float) -> None:
        super().__init__(max_retries=Retry(0, read=False))
        self._seconds = seconds
        self._most_seconds = most_seconds
        self._ends = time.monotonic() + most_seconds

    def get_connection_with_tls_context(self, *arguments: Any, **named: Any) -> Any:
        """With connections that end at the deadline."""
        pool = super().get_connection_with_tls_context(*arguments, **named)
        kind: Any = pool.ConnectionCls
        if isinstance(getattr(kind, "response_class", None), partial):
            return pool  # of an earlier request
        own = {
            "response_class": partial(_Response, ends=self._ends),
            "_new_conn": partialmethod(_connected, self._ends),
        }
        pool.ConnectionCls = type(kind.__name__, (kind,), own)
        return pool

    def send(self, request: requests.PreparedRequest, *_: Any, **named: Any) -> requests.Response:
        """Whatever timeout the caller gives."""
        seconds = min(self._seconds, self._ends - time.monotonic())  # urllib3 refuses one below zero
        try:
            answer = super().send(request, **{**named, "stream": True, "timeout": seconds})
            with answer.raw:
                answer._content = self._whole(answer)
        except Exception as error:
            if not isinstance(error, Unbounded) and time.monotonic() >= self._ends:
                raise Unbounded(f"the answer did not end within {span(self._most_seconds)}") from error
            if isinstance(error, HTTPError):  # while the body was read; libraries expect an error of requests
                raise requests.ConnectionError(error) from error
            raise
        return answer

    def _whole(self, answer: requests.Response) -> bytes:
        content, values = bytearray(), 0
        while piece := answer.raw.read1(_PIECE, decode_content=True):
            content += piece
            values += sum(map(piece.count, _SEPARATORS))
            if len(content) > MOST_BYTES:
                raise Unbounded(f"the answer is longer than {MOST_BYTES // 2**20} MiB")
            if values > MOST_VALUES:
                raise Unbounded(f"the answer has more than {MOST_VALUES} values")
        return bytes(content)


def _connected(connection: Any, ends: float) -> socket.socket:
    """urllib3's own tries every address of a name for the whole time-out, and waits for the name without one."""
    host, last = connection._dns_host, OSError("the name has no address")
    try:
        found = _addresses(host, connection.port, min(connection.timeout, ends - time.monotonic()))
        for number, (family, kind, protocol, _, address) in enumerate(found):
            left = ends - time.monotonic()
            if left <= 0:
                break
            own = socket.socket(family, kind, protocol)
            try:
                own.settimeout(min(connection.timeout, left if number == len(found) - 1 else left / 2))
                for option in connection.socket_options or ():
                    own.setsockopt(*option)
                own.connect(address)
            except OSError as error:
                own.close()
                last = error
            else:
                own.settimeout(connection.timeout)
                return own
        raise last
    except socket.gaierror as error:
        raise NameResolutionError(host, connection, error) from error
    except TimeoutError as error:
        raise ConnectTimeoutError(connection, f"{host} did not answer in time") from error
    except OSError as error:
        raise NewConnectionError(connection, f"{host} cannot be reached: {error}") from error


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


class _Response(HTTPResponse):
    """Reads status line, headers and body until the deadline: urllib3's own holds for each read."""

    def __init__(self, sock: socket.socket, *arguments: Any, ends: float, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Reader(sock, ends))


class _Reader(io.RawIOBase):
    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock = sock
        self._file = sock.makefile("rb", buffering=0)  # keeps the socket open until the body is read
        self._seconds = sock.gettimeout()
        self._ends = ends

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left if self._seconds is None else min(left, self._seconds))
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()

"""The transport of every request to a service: a deadline for the whole answer, a limit on its size, no redirects.

Importing this module imports requests, so only the thread that asks does so: most agents of a fleet never ask.
"""

from __future__ import annotations

import socket
import time
from functools import partial
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util.retry import Retry

from careen.cluster.wire.network_errors import opened, timed
from careen.core.facts.times import span
from scheduler_core.extenders.timed_http import TooLong, whole

MOST_BYTES = 16 * 2**20
"""After decompression: tens of thousands of alerts, and a million values."""


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
        if "ConnectionCls" not in vars(pool):  # that of an earlier request has it
            vars(pool)["ConnectionCls"] = timed(pool.ConnectionCls, self._opened, lambda _: self._ends)
        return pool

    def _opened(self, connection: Any) -> socket.socket:
        return opened(connection, self._ends)

    def send(self, request: requests.PreparedRequest, *_: Any, **named: Any) -> requests.Response:
        """Whatever timeout the caller gives."""
        seconds = min(self._seconds, self._ends - time.monotonic())  # urllib3 refuses one below zero
        try:
            answer = super().send(request, **{**named, "stream": True, "timeout": seconds})
            with answer.raw:
                answer._content = whole(partial(answer.raw.read1, decode_content=True), MOST_BYTES)
        except TooLong as error:
            raise Unbounded(str(error)) from error
        except Exception as error:
            if not isinstance(error, Unbounded) and time.monotonic() >= self._ends:
                raise Unbounded(f"the answer did not end within {span(self._most_seconds)}") from error
            if isinstance(error, HTTPError):  # while the body was read; libraries expect an error of requests
                raise requests.ConnectionError(error) from error
            raise
        return answer

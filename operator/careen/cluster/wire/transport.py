"""The agent's two replaceable interfaces: the transport of requests to an API server, and the clock.

The real transport is in `client.py`, the real clock in `agent/clock.py`. A simulator replaces the transport and
the clock, so that the same code runs on virtual time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Protocol

from msgspec import field

from scheduler_core.values import Value

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"


class Request(Value, kw_only=True):
    """One HTTP request to the API server. `path` starts with a slash and contains no query."""

    method: Method
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    timeout_seconds: float = 15.0


class Response(Value, kw_only=True):
    """A response with any status. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """Sends a request to the API server and returns the response. Never sends a request twice."""

    async def send(self, request: Request) -> Response:
        """Sends the request and returns the response, whatever its status.

        Raises `errors.NotSent` if the request certainly did not reach the server, and `errors.Unclear` if it may have
        reached the server. After `Unclear` the caller reads the object again before its next step.
        """
        ...


class Clock(Protocol):
    """Reads the time, and waits."""

    def now(self) -> datetime:
        """Returns the present time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Returns the seconds of a clock that never goes backwards. Only the difference between two results has a
        meaning."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Returns after `seconds`."""
        ...

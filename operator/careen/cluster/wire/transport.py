"""The agent's two replaceable interfaces, transport and clock. The real ones are in `client.py` and `agent/clock.py`; a
simulator runs the same code on virtual time."""

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
    """`path` starts with a slash and contains no query."""

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
    """Never sends a request twice."""

    async def send(self, request: Request) -> Response:
        """The response, whatever its status.

        Raises `errors.NotSent` if the request certainly did not reach the server, `errors.Unclear` if it may have.
        After `Unclear` the caller reads the object before its next step.
        """
        ...


class Clock(Protocol):
    """Reads the time, and waits."""

    def now(self) -> datetime:
        """In UTC."""
        ...

    def monotonic(self) -> float:
        """Never goes backwards. Only differences have a meaning."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        ...

"""Test doubles for careen's I/O: a virtual clock, and transports that lose or delay responses or send prepared
responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.transport import Request, Response, Transport

START = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


class VirtualClock:
    """A clock that moves forward only when a caller sleeps. The sleep returns immediately."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return 1000.0 + self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds
        await asyncio.sleep(0)


Answer = Response | Exception


def answer(status: int = 200, body: Any = None, **headers: str) -> Response:
    """Return an HTTP response. `body` is encoded as JSON, and `retry_after=…` becomes the header Retry-After."""
    raw = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
    return Response(status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}, body=raw)


def an_object(
    kind: str, name: str, *, namespace: str = "", metadata: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return an object as a server sends it, always with spec and status."""
    return {"kind": kind, "spec": {}, "status": {}, **more, "metadata": _meta(name, namespace) | (metadata or {})}


def a_list(kind: str, *items: dict[str, Any], token: str = "", version: str = "7") -> dict[str, Any]:
    """Return a page of a list as a server sends it. The items have no field `kind`."""
    whole = [{"spec": {}, "status": {}, **item, "metadata": _meta("", "") | item["metadata"]} for item in items]
    return {
        "kind": f"{kind}List",
        "metadata": {"resourceVersion": version, **({"continue": token} if token else {})},
        "items": whole,
    }


def _meta(name: str, namespace: str) -> dict[str, Any]:
    return {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "5",
        **({"namespace": namespace} if namespace else {}),
    }


def status(code: int, reason: str = "", message: str = "", **headers: str) -> Response:
    """Return a response that contains a metav1.Status."""
    return answer(
        code, {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}, **headers
    )


class Scripted:
    """A transport that returns the given responses one after another, and records the requests."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        assert self.answers, f"unexpected request: {request.method} {request.path}"
        given = self.answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.body) if request.body else None for request in self.asked]


class Meddling:
    """A transport with two hooks. If `before(request)` returns an error, the transport raises the error and does not
    send the request. If `after(request)` returns an error, the transport raises the error and drops the response."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.before: Callable[[Request], Exception | None] = lambda _: None
        self.after: Callable[[Request], Exception | None] = lambda _: None
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        if error := self.before(request):
            raise error
        response = await self.inner.send(request)
        if error := self.after(request):
            raise error
        return response


def api_on(transport: Transport, clock: VirtualClock | None = None, **more: Any) -> ClusterApi:
    """Return a ClusterApi that uses `transport`, adds no random delays, and waits on a virtual clock."""
    return ClusterApi(transport, clock or VirtualClock(), chance=lambda: 0.0, **more)


def methods(asked: Sequence[Request]) -> list[str]:
    """Return the method and path of each recorded request in order, such as `GET /api/v1/nodes/n1`."""
    return [f"{request.method} {request.path}" for request in asked]

"""Lanes of connections for short requests, on the scheduler's own event loop.

`careen.cluster.wire.client` starts a thread for each request. That is right for an agent, but it costs a millisecond of
processor time, and a scheduler sends two requests for each pod.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

import httptools

from careen.cluster.wire.client import MOST_BYTES
from careen.cluster.wire.transport import Method
from careen.scheduler.wire.server import Server
from scheduler_core.values import Value

DEADLINE_SECONDS: Final = 15.0
"""For a complete answer, with the wait for a free connection. The machine takes an answer for lost after 30 s."""
_FIRST_PAUSE_SECONDS: Final = 0.25
_LONGEST_PAUSE_SECONDS: Final = 5.0


class HttpCall(Value, kw_only=True):
    """One request without its headers."""

    method: Method
    path: str
    body: bytes | None = None
    content_type: str = "application/json"


class HttpAnswer(Value, kw_only=True):
    """`status`: 0 without an answer; then `was_sent` says whether the request may have reached the server."""

    status: int
    body: bytes = b""
    retry_after: str = ""
    was_sent: bool = True
    is_too_long: bool = False


Done = Callable[[HttpAnswer], None]


class Lane:
    """A few connections that stay open. Requests wait for a free one in the order of their calls, and none is sent
    twice. A lane for each kind of request keeps a backlog of one kind from delaying the others."""

    def __init__(self, server: Server, *, connections: int, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._server = server
        self._size = connections
        self._deadline = deadline_seconds
        self._free: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._waiting: deque[_Pending] = deque()
        self._unanswered: dict[_Pending, None] = {}  # the earliest deadline first
        self._timer: asyncio.TimerHandle | None = None
        self._opening = 0
        self._failures = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def backlog(self) -> int:
        """Requests that wait for a free connection."""
        return len(self._waiting)

    @property
    def unanswered(self) -> int:
        return len(self._waiting) + len(self._open) - len(self._free)

    @property
    def is_idle(self) -> bool:
        return not self.unanswered

    def send(self, call: HttpCall, done: Done) -> None:
        """Calls `done` once, from the loop."""
        loop = asyncio.get_running_loop()
        pending = _Pending(call, done, self._unanswered, loop.time() + self._deadline)
        self._unanswered[pending] = None
        if self._timer is None:
            self._timer = loop.call_at(pending.deadline, self._give_up)
        if self._free and not self._waiting:
            self._free.pop().send(pending)
        else:
            self._waiting.append(pending)
            self._go_on()

    def _give_up(self) -> None:
        """One timer for all requests: nearly all have their answer long before it."""
        self._timer, loop = None, asyncio.get_running_loop()
        first = next(iter(self._unanswered), None)
        if first is None:
            return
        self._timer = loop.call_at(first.deadline, self._give_up)  # at once, for the next one, if this one is late
        if first.deadline <= loop.time():
            first.give_up()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        for connection in tuple(self._open):
            connection.close()

    def _go_on(self) -> None:
        while self._waiting and self._waiting[0].is_over:
            self._waiting.popleft()
        while self._waiting and self._free:
            pending = self._waiting.popleft()
            if not pending.is_over:
                self._free.pop().send(pending)
        if self._waiting and len(self._open) + self._opening < self._size:
            self._opening += 1
            task = asyncio.get_running_loop().create_task(self._connect())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self) -> None:
        connection = _Connection(self, self._server)
        try:
            await self._server.open(connection)
        except OSError:  # TimeoutError is one
            await asyncio.sleep(min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(self._failures, 10)))
            self._failures += 1
        else:
            self._failures = 0
            self._open.add(connection)
            self._free.append(connection)
        finally:
            self._opening -= 1
        self._go_on()

    def freed(self, connection: _Connection) -> None:
        """For the connection: its answer is complete."""
        if connection in self._open:
            self._free.append(connection)
            if self._waiting:
                self._go_on()

    def lost(self, connection: _Connection) -> None:
        """For the connection: it is closed."""
        self._open.discard(connection)
        if connection in self._free:
            self._free.remove(connection)
        self._go_on()


class _Pending:
    """A request until its answer."""

    __slots__ = ("call", "connection", "deadline", "done", "is_over", "unanswered")

    def __init__(self, call: HttpCall, done: Done, unanswered: dict[_Pending, None], deadline: float) -> None:
        self.call = call
        self.done = done
        self.deadline = deadline
        self.unanswered = unanswered
        self.connection: _Connection | None = None
        self.is_over = False

    def answer(self, answer: HttpAnswer) -> None:
        if self.is_over:
            return
        self.is_over = True
        del self.unanswered[self]
        self.done(answer)

    def give_up(self) -> None:
        """The deadline. The connection may still bring the late answer, so it is closed."""
        connection = self.connection
        self.answer(HttpAnswer(status=0, was_sent=connection is not None))
        if connection is not None:
            connection.close()


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self, lane: Lane, server: Server) -> None:
        self._lane = lane
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._pending: _Pending | None = None
        self._body: list[bytes] = []
        self._received = 0
        self._retry_after = ""

    def send(self, pending: _Pending) -> None:
        assert self._transport is not None
        self._pending, pending.connection = pending, self
        self._body, self._retry_after, self._received = [], "", 0
        call = pending.call
        if call.body is None:
            data = self._server.head(call.method, call.path)
        else:
            more = f"Content-Type: {call.content_type}\r\nContent-Length: {len(call.body)}\r\n".encode()
            data = self._server.head(call.method, call.path, more) + call.body
        self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ---- asyncio ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own

    def data_received(self, data: bytes) -> None:
        if self._pending is None:  # nothing was asked
            self.close()
            return
        self._received += len(data)
        if self._received > MOST_BYTES:
            self._pending.answer(HttpAnswer(status=0, is_too_long=True))
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class's name
        pending, self._pending = self._pending, None
        self._lane.lost(self)
        if pending is not None:
            pending.answer(HttpAnswer(status=0))

    # ---- httptools ----

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        pending, self._pending = self._pending, None
        assert pending is not None
        # Before the connection is free: the next request on it forgets this answer.
        answer = HttpAnswer(
            status=self._parser.get_status_code(), body=b"".join(self._body), retry_after=self._retry_after
        )
        if answer.status == 401:
            self._server.refused()
        if self._parser.should_keep_alive():
            self._lane.freed(self)
        else:
            self.close()
        pending.answer(answer)

"""Reads a watch as its bytes arrive, with a connection and a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import closing, suppress
from datetime import datetime
from typing import Protocol

from careen.cluster.wire.client import ClientTransport, OpenAnswer
from careen.cluster.wire.errors import ClusterError, raise_unless_ok
from careen.cluster.wire.transport import Request, Response

_CHUNK = 64 * 1024
_MOST_BYTES = 4 * 2**20  # chunks of each watch; if the reader is slower, the server has to wait
_LONGEST_REFUSAL = 64 * 1024


class Streams(Protocol):
    """Opens watches, whose responses have no fixed end."""

    def chunks(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Yields the body as it arrives, until the server ends it. Raises a `ClusterError` if the server refuses, the
        connection breaks, or no byte arrives within `timeout_seconds`."""
        ...


class ClientStreams:
    """`Streams` with the connections of a `ClientTransport`."""

    def __init__(self, transport: ClientTransport, now: Callable[[], datetime]) -> None:
        self._transport = transport
        self._now = now

    async def chunks(self, request: Request) -> AsyncGenerator[bytes, None]:
        """See `Streams.chunks`."""
        thread = _Reading(self._transport, request, self._now)
        thread.start()
        try:
            while (chunk := await thread.next()) is not None:
                yield chunk
        finally:
            thread.give_up()


class _Reading(threading.Thread):
    """Reads one watch, and pauses while too many bytes wait for the caller."""

    def __init__(self, transport: ClientTransport, request: Request, now: Callable[[], datetime]) -> None:
        super().__init__(name=f"watch {request.path}", daemon=True)
        self._transport = transport
        self._request = request
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._read: deque[bytes | ClusterError | None] = deque()
        self._room = threading.Condition()
        self._is_ready = asyncio.Event()
        self._is_given_up = False
        self._answer: OpenAnswer | None = None

    async def next(self) -> bytes | None:
        """None at the end. Raises the error that ended the response."""
        while True:
            with self._room:
                if self._read:
                    found = self._read.popleft()
                    self._room.notify()
                    break
                self._is_ready.clear()
            await self._is_ready.wait()
        if isinstance(found, ClusterError):
            raise found
        return found

    def give_up(self) -> None:
        """Ends the thread, even while it waits for the server or the caller."""
        self._is_given_up = True
        if self._answer is not None:
            self._answer.give_up()
        with self._room:
            self._read.clear()
            self._room.notify()

    @property
    def _held(self) -> int:
        return sum(len(each) for each in self._read if isinstance(each, bytes))

    def run(self) -> None:
        """In the thread."""
        end: ClusterError | None = None
        try:
            self._read_all()
        except ClusterError as error:
            end = error
        self._hand_over(end)

    def _read_all(self) -> None:
        self._answer = answer = self._transport.open(self._request)
        with closing(answer):
            if not 200 <= answer.status < 300:
                body = answer.read(_LONGEST_REFUSAL)
                response = Response(status=answer.status, headers=answer.headers, body=body)
                raise_unless_ok(self._request, response, now=self._now())
            while not self._is_given_up and (chunk := answer.read(_CHUNK)):
                self._hand_over(chunk)

    def _hand_over(self, what: bytes | ClusterError | None) -> None:
        """Waits for room in the queue, except after `give_up`."""
        with self._room:
            while not self._is_given_up and self._held > _MOST_BYTES:
                self._room.wait(_LOOK_SECONDS)
            self._read.append(what)
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._is_ready.set)


_LOOK_SECONDS = 1.0  # how soon a waiting thread notices `give_up`

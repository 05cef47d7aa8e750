"""Lists and watches on the scheduler's own event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from datetime import datetime
from typing import Final, cast
from urllib.parse import urlencode

import httptools

from careen.cluster.wire.client import MOST_BYTES
from careen.cluster.wire.errors import AnswerTooLong, NotSent, Unclear, raise_unless_ok
from careen.cluster.wire.transport import Request, Response
from careen.scheduler.wire.lanes import HttpAnswer, HttpCall, Lane
from careen.scheduler.wire.server import Server

_MOST_UNREAD: Final = 64  # chunks of a watch; then the server has to wait
_LONGEST_REFUSAL: Final = 64 * 1024


class LoopTransport:
    """The `Transport` and the `Streams` of `careen.cluster`, for lists and watches on the scheduler's loop."""

    def __init__(self, server: Server, now: Callable[[], datetime]) -> None:
        self._server = server
        self._now = now
        self._lane = Lane(server, connections=4)

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        what = f"{request.method} {request.path}"
        answered: asyncio.Future[HttpAnswer] = asyncio.get_running_loop().create_future()

        def done(answer: HttpAnswer) -> None:
            if not answered.done():
                answered.set_result(answer)

        self._lane.send(
            HttpCall(method=request.method, path=_path(request), body=request.body, content_type=request.content_type),
            done,
        )
        answer = await answered
        if answer.is_too_long:
            raise AnswerTooLong(f"{what}: the answer is longer than {MOST_BYTES // 2**20} MiB")
        if not answer.status:
            why = f"{what}: the API server did not answer in time, or the connection broke"
            raise Unclear(why) if answer.was_sent else NotSent(why)
        return Response(status=answer.status, headers={"retry-after": answer.retry_after}, body=answer.body)

    async def chunks(self, request: Request) -> AsyncGenerator[bytes, None]:
        """See `Streams.chunks`."""
        what, seconds = f"{request.method} {request.path}", request.timeout_seconds
        stream = _Stream(self._server.head(request.method, _path(request)), seconds)
        try:
            try:
                await self._server.open(stream)
            except OSError as error:
                raise NotSent(f"{what}: {error or 'no connection in time'}") from error
            while (chunk := await stream.next()) is not None:
                if not 200 <= stream.status < 300:
                    if stream.status == 401:
                        self._server.refused()
                    response = Response(status=stream.status, headers={}, body=chunk[:_LONGEST_REFUSAL])
                    raise_unless_ok(request, response, now=self._now())
                yield chunk
            if stream.is_silent:
                raise Unclear(f"{what}: the API server sent nothing for {seconds:.0f} s")
            if not stream.is_complete:
                raise Unclear(f"{what}: the connection broke")
        finally:
            stream.close()

    def close(self) -> None:
        self._lane.close()


class _Stream(asyncio.Protocol):
    """The body of one answer as it arrives. Ends when no byte has come for `patience` seconds."""

    def __init__(self, request: bytes, patience: float) -> None:
        self._request = request
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._look = self._loop.call_later(patience, self._look_for_silence)
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._chunks: deque[bytes] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._is_over = self._is_paused = False
        self.is_complete = self.is_silent = False
        self.status = 0

    async def next(self) -> bytes | None:
        """None at the end."""
        while not self._chunks:
            if self._is_over:
                return None
            self._reader = self._loop.create_future()
            await self._reader
        chunk = self._chunks.popleft()
        if self._is_paused and len(self._chunks) < _MOST_UNREAD // 2 and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return chunk

    def close(self) -> None:
        self._look.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _look_for_silence(self) -> None:
        """One timer for all chunks. Chunks that the reader has not taken were heard."""
        if self._chunks:
            self._heard_at = self._loop.time()
        left = self._heard_at + self._patience - self._loop.time()
        if left > 0:
            self._look = self._loop.call_later(left, self._look_for_silence)
        else:
            self.is_silent = self._is_over = True
            self._wake_reader()
            self.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()
        if len(self._chunks) > _MOST_UNREAD and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class's name
        self._is_over = True
        self._wake_reader()

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)
        self._wake_reader()

    def on_message_complete(self) -> None:
        self.is_complete = self._is_over = True
        self._wake_reader()
        self.close()


def _path(request: Request) -> str:
    return f"{request.path}?{urlencode(request.query)}" if request.query else request.path

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
        what = f"{request.method} {request.path}"
        stream = _Stream(self._server.head(request.method, _path(request)))
        try:
            await self._server.open(stream)
        except OSError as error:
            raise NotSent(f"{what}: {error or 'no connection in time'}") from error
        try:
            async for chunk in _until_silence(stream, request.timeout_seconds, what):
                if stream.status and not 200 <= stream.status < 300:
                    if stream.status == 401:
                        self._server.refused()
                    response = Response(status=stream.status, headers={}, body=chunk[:_LONGEST_REFUSAL])
                    raise_unless_ok(request, response, now=self._now())
                yield chunk
        finally:
            stream.close()

    def close(self) -> None:
        self._lane.close()


async def _until_silence(stream: _Stream, seconds: float, what: str) -> AsyncGenerator[bytes, None]:
    while True:
        try:
            async with asyncio.timeout(seconds):
                chunk = await stream.next()
        except TimeoutError as error:
            raise Unclear(f"{what}: the API server sent nothing for {seconds:.0f} s") from error
        if chunk is None:
            if stream.is_broken:
                raise Unclear(f"{what}: the connection broke")
            return
        yield chunk


class _Stream(asyncio.Protocol):
    """The body of one answer as it arrives."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._chunks: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._is_complete = self._is_over = self._is_paused = False
        self.status = 0

    @property
    def is_broken(self) -> bool:
        return not self._is_complete

    async def next(self) -> bytes | None:
        """None at the end."""
        while not self._chunks:
            if self._is_over:
                return None
            self._news.clear()
            await self._news.wait()
        chunk = self._chunks.popleft()
        if self._is_paused and len(self._chunks) < _MOST_UNREAD // 2 and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return chunk

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()
        if len(self._chunks) > _MOST_UNREAD and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class's name
        self._is_over = True
        self._news.set()

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)
        self._news.set()

    def on_message_complete(self) -> None:
        self._is_complete = self._is_over = True
        self._news.set()
        self.close()


def _path(request: Request) -> str:
    return f"{request.path}?{urlencode(request.query)}" if request.query else request.path

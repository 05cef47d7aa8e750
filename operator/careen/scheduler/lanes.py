"""HTTP/1.1 on the scheduler's own event loop: lanes of connections for short requests, and watches.

`careen.cluster.wire.client` starts a thread for each request. That is right for an agent, but it costs a millisecond of
processor time, and a scheduler sends two requests for each pod.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Callable
from datetime import datetime
from typing import Final, cast
from urllib.parse import urlencode, urlsplit

import httptools
from kubernetes.client.configuration import Configuration

from careen.cluster.wire.errors import NotSent, Unclear, raise_unless_ok
from careen.cluster.wire.transport import Method, Request, Response
from scheduler_core.values import Value

CONNECT_SECONDS: Final = 5.0
DEADLINE_SECONDS: Final = 15.0
"""For a complete answer, with the wait for a free connection. The machine takes an answer for lost after 30 s."""
_FIRST_PAUSE_SECONDS: Final = 0.25
_LONGEST_PAUSE_SECONDS: Final = 5.0
_HEADERS_SECONDS: Final = 30.0  # a mounted token is renewed once an hour, long before it ends
_MOST_UNREAD: Final = 64  # chunks of a watch; then the server has to wait
_LONGEST_REFUSAL: Final = 64 * 1024


class Call(Value, kw_only=True):
    """One request without its headers."""

    method: Method
    path: str
    body: bytes | None = None
    content_type: str = "application/json"


class Answer(Value, kw_only=True):
    """`status`: 0 without an answer; then `was_sent` says whether the request may have reached the server."""

    status: int
    body: bytes = b""
    retry_after: str = ""
    was_sent: bool = True


Done = Callable[[Answer], None]


class Server:
    """Where the API server is, and how this process proves who it is. Reads the files of a rotated token again."""

    def __init__(self, load: Callable[[], Configuration], *, agent: str, monotonic: Callable[[], float]) -> None:
        """Raises ValueError, with a sentence, for a connection that this client cannot make."""
        configuration = load()
        if configuration.proxy:
            raise ValueError("the scheduler does not connect through a proxy; remove proxy-url from the kubeconfig")
        parts = urlsplit(configuration.host)
        self._load = load
        self._agent = agent
        self._monotonic = monotonic
        self._configuration = configuration
        self._headers, self._headers_at = b"", 0.0
        self.is_encrypted = parts.scheme != "http"
        self.host = parts.hostname or "localhost"
        self.port = parts.port or (443 if self.is_encrypted else 80)
        self.prefix = parts.path.rstrip("/")
        self._authority = parts.netloc.rpartition("@")[2]
        self.tls = _tls(configuration) if self.is_encrypted else None

    def reload(self) -> None:
        """After a 401: the credentials may have been rotated. New connections use them. Raises the error of `load`."""
        self._configuration = self._load()
        self.tls = _tls(self._configuration) if self.is_encrypted else None
        self._headers = b""

    def head(self, method: str, path: str, more: bytes = b"") -> bytes:
        """The request up to the empty line, which is included."""
        if not self._headers or self._monotonic() - self._headers_at > _HEADERS_SECONDS:
            self._headers, self._headers_at = self._common(), self._monotonic()
        return b"".join((f"{method} {self.prefix}{path} HTTP/1.1\r\n".encode(), self._headers, more, b"\r\n"))

    def _common(self) -> bytes:
        token = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        lines = [f"Host: {self._authority}", f"User-Agent: {self._agent}", "Accept: application/json"]
        if token:
            lines.append(f"Authorization: {token.strip()}")
        return "".join(f"{line}\r\n" for line in lines).encode()

    async def open(self, protocol: asyncio.Protocol) -> None:
        """Connects. Raises OSError or TimeoutError."""
        name = self._configuration.tls_server_name if self.is_encrypted else None
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().create_connection(
                lambda: protocol, self.host, self.port, ssl=self.tls, server_hostname=name or None
            )


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if not configuration.verify_ssl:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


# ---- lanes ----


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
        self._opening = 0
        self._failures = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.sent = 0

    @property
    def backlog(self) -> int:
        """Requests that wait for a free connection."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        return not self._waiting and len(self._free) == len(self._open)

    def send(self, call: Call, done: Done) -> None:
        """Calls `done` once, from the loop."""
        pending = _Pending(call, done)
        pending.timer = asyncio.get_running_loop().call_later(self._deadline, pending.give_up)
        self._waiting.append(pending)
        self._go_on()

    def close(self) -> None:
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
                self.sent += 1
                self._free.pop().send(pending, self._server)
        if self._waiting and len(self._open) + self._opening < self._size:
            self._opening += 1
            task = asyncio.get_running_loop().create_task(self._connect())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self) -> None:
        connection = _Connection(self)
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
            self._go_on()

    def lost(self, connection: _Connection) -> None:
        """For the connection: it is closed."""
        self._open.discard(connection)
        if connection in self._free:
            self._free.remove(connection)
        self._go_on()


class _Pending:
    """A request until its answer."""

    __slots__ = ("call", "connection", "done", "is_over", "timer")

    def __init__(self, call: Call, done: Done) -> None:
        self.call = call
        self.done = done
        self.connection: _Connection | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.is_over = False

    def answer(self, answer: Answer) -> None:
        if self.is_over:
            return
        self.is_over = True
        if self.timer is not None:
            self.timer.cancel()
        self.done(answer)

    def give_up(self) -> None:
        """The deadline. The connection may still bring the late answer, so it is closed."""
        connection = self.connection
        self.answer(Answer(status=0, was_sent=connection is not None))
        if connection is not None:
            connection.close()


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._pending: _Pending | None = None
        self._body: list[bytes] = []
        self._retry_after = ""

    def send(self, pending: _Pending, server: Server) -> None:
        assert self._transport is not None
        self._pending, pending.connection = pending, self
        self._parser, self._body, self._retry_after = httptools.HttpResponseParser(self), [], ""
        call = pending.call
        if call.body is None:
            data = server.head(call.method, call.path)
        else:
            more = f"Content-Type: {call.content_type}\r\nContent-Length: {len(call.body)}\r\n".encode()
            data = server.head(call.method, call.path, more) + call.body
        self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ---- asyncio ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own

    def data_received(self, data: bytes) -> None:
        if self._parser is None or self._pending is None:  # nothing was asked
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
            pending.answer(Answer(status=0))

    # ---- httptools ----

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        pending, parser = self._pending, self._parser
        self._pending = self._parser = None
        assert pending is not None
        assert parser is not None
        if parser.should_keep_alive():
            self._lane.freed(self)
        else:
            self.close()
        pending.answer(
            Answer(status=parser.get_status_code(), body=b"".join(self._body), retry_after=self._retry_after)
        )


# ---- reading ----


class LoopTransport:
    """The `Transport` and the `Streams` of `careen.cluster`, for lists and watches on the scheduler's loop."""

    def __init__(self, server: Server, now: Callable[[], datetime]) -> None:
        self._server = server
        self._now = now
        self._lane = Lane(server, connections=4)

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        what = f"{request.method} {request.path}"
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def done(answer: Answer) -> None:
            if not answered.done():
                answered.set_result(answer)

        self._lane.send(
            Call(method=request.method, path=_path(request), body=request.body, content_type=request.content_type), done
        )
        answer = await answered
        if not answer.status:
            why = f"{what}: the API server did not answer in time, or the connection broke"
            raise Unclear(why) if answer.was_sent else NotSent(why)
        if answer.status == 401:
            self._server.reload()
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
                        self._server.reload()
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

"""A watch on the scheduler's own loop, with a server that answers as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from careen.cluster.wire.errors import Forbidden, NotSent, Unclear
from careen.cluster.wire.transport import Request
from careen.scheduler.wire.streams import LoopTransport

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
Behave = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Here:
    """In place of a Server."""

    def __init__(self, port: int) -> None:
        self._port = port

    def head(self, method: str, path: str, more: bytes = b"") -> bytes:
        return f"{method} {path} HTTP/1.1\r\nHost: x\r\n".encode() + more + b"\r\n"

    async def open(self, protocol: asyncio.Protocol) -> None:
        await asyncio.get_running_loop().create_connection(lambda: protocol, "127.0.0.1", self._port)


@asynccontextmanager
async def served(behave: Behave) -> AsyncIterator[LoopTransport]:
    talks: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.append(asyncio.current_task())
        try:
            await reader.readuntil(b"\r\n\r\n")
            await behave(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    here: Any = Here(server.sockets[0].getsockname()[1])
    try:
        yield LoopTransport(here, lambda: datetime(2026, 3, 4, tzinfo=UTC))
    finally:
        server.close()
        await asyncio.wait([each for each in talks if each is not None])
        await asyncio.sleep(0.01)  # connections are closed by the loop


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def watch(patience: float = 30.0) -> Request:
    return Request(method="GET", path="/api/v1/pods", timeout_seconds=patience)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + chunk(b"first\n"))
    await reader.read()


async def test_a_watch_is_given_up_when_the_server_sends_nothing_for_too_long() -> None:
    async with served(silent) as transport:
        stream = transport.chunks(watch(patience=0.05))
        assert await anext(stream) == b"first\n"
        with pytest.raises(Unclear, match="sent nothing"):
            await anext(stream)


async def test_a_watch_is_not_given_up_while_its_reader_is_slow() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + chunk(b"first\n") + chunk(b"second\n"))
        await is_read.wait()
        writer.write(chunk(b"third\n"))
        await reader.read()

    is_read = asyncio.Event()
    async with served(behave) as transport:
        stream = transport.chunks(watch(patience=0.5))
        assert await anext(stream) == b"first\n"
        await asyncio.sleep(1.2)
        assert await anext(stream) == b"second\n"
        is_read.set()
        assert await anext(stream) == b"third\n"
        await stream.aclose()


async def test_bytes_that_keep_coming_keep_a_watch() -> None:
    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for number in range(8):
            writer.write(chunk(b"%d\n" % number))
            await asyncio.sleep(0.05)
        writer.write(chunk(b""))
        await writer.drain()

    async with served(behave) as transport:
        heard = [each async for each in transport.chunks(watch(patience=0.3))]
    assert b"".join(heard) == b"0\n1\n2\n3\n4\n5\n6\n7\n"


async def test_a_watch_whose_connection_breaks_has_no_end() -> None:
    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + chunk(b"first\n"))
        await writer.drain()

    async with served(behave) as transport:
        stream = transport.chunks(watch())
        assert await anext(stream) == b"first\n"
        with pytest.raises(Unclear, match="the connection broke"):
            await anext(stream)


async def test_a_refused_watch_raises_the_error_of_its_status() -> None:
    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = b'{"kind":"Status","message":"not you"}'
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()

    async with served(behave) as transport:
        with pytest.raises(Forbidden, match="not you"):
            await anext(transport.chunks(watch()))


async def test_a_watch_without_a_connection_was_not_sent() -> None:
    here: Any = Here(1)
    with pytest.raises(NotSent):
        await anext(LoopTransport(here, lambda: datetime(2026, 3, 4, tzinfo=UTC)).chunks(watch()))

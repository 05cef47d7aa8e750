"""Tests the bytes of a watch over real connections: how they arrive, and each way in which the stream can end."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from careen.cluster.reflector.streams import ClientStreams
from careen.cluster.wire.client import ClientTransport, load_configuration
from careen.cluster.wire.errors import Expired, Forbidden, NotSent, Unclear
from careen.cluster.wire.transport import Request
from tests.careen.cluster.wire.test_client import RawServer, kubeconfig
from tests.patience import LONG_SECONDS, until

WATCH = Request(method="GET", path="/api/v1/pods", query={"watch": "true"}, timeout_seconds=LONG_SECONDS)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Desk:
    """Opens watch streams to a test server. The function `behave` determines what the server does with each
    connection."""

    def __init__(self, folder: Path, behave: Callable[[socket.socket], None]) -> None:
        self.server = RawServer(behave)
        file = kubeconfig(folder, self.server.url)
        self.transport = ClientTransport(lambda: load_configuration(file), agent="careen-test")
        self.streams = ClientStreams(self.transport, lambda: datetime(2026, 3, 4, tzinfo=UTC))

    async def all(self, request: Request = WATCH) -> list[bytes]:
        return [each async for each in self.streams.chunks(request)]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[[Callable[[socket.socket], None]], Desk]]:
    made: list[Desk] = []

    def make(behave: Callable[[socket.socket], None]) -> Desk:
        made.append(Desk(tmp_path, behave))
        return made[-1]

    yield make
    for each in made:
        each.server.close()
        each.transport.close()


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("watch ")]


async def test_a_watch_stream_delivers_bytes_before_its_buffer_is_full(desk: Callable[..., Desk]) -> None:
    let_go = threading.Event()

    def behave(connection: socket.socket) -> None:
        connection.sendall(HEAD + chunk(b"first\n"))
        let_go.wait(LONG_SECONDS)
        connection.sendall(chunk(b"second\n") + chunk(b""))

    stream = desk(behave).streams.chunks(WATCH)
    assert await anext(stream) == b"first\n"
    let_go.set()
    assert [each async for each in stream] == [b"second\n"]


async def test_a_watch_with_a_broken_connection_raises_an_error(desk: Callable[..., Desk]) -> None:
    def behave(connection: socket.socket) -> None:
        connection.sendall(HEAD + chunk(b"first\n"))
        connection.shutdown(socket.SHUT_RDWR)

    stream = desk(behave).streams.chunks(WATCH)
    assert await anext(stream) == b"first\n"
    with pytest.raises(Unclear, match=r"closed the connection|incomplete answer"):
        await anext(stream)


async def test_a_watch_ends_if_the_server_is_silent_for_longer_than_allowed(desk: Callable[..., Desk]) -> None:
    hear = desk(lambda connection: connection.sendall(HEAD)).all
    with pytest.raises(Unclear, match="did not answer in time"):
        await hear(Request(method="GET", path="/api/v1/pods", timeout_seconds=0.2))


@pytest.mark.parametrize(("code", "error"), [(403, Forbidden), (410, Expired)])
async def test_a_refused_watch_raises_the_error_for_its_http_status(
    desk: Callable[..., Desk], code: int, error: type[Exception]
) -> None:
    body = b'{"kind":"Status","message":"not you"}'
    head = b"HTTP/1.1 %d No\r\nContent-Length: %d\r\n\r\n" % (code, len(body))
    with pytest.raises(error, match="not you"):
        await desk(lambda connection: connection.sendall(head + body)).all()


async def test_a_watch_of_an_unreachable_server_raises_a_not_sent_error(
    desk: Callable[..., Desk], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    somebody = desk(lambda _: None)
    somebody.transport = ClientTransport(
        lambda: load_configuration(kubeconfig(tmp_path, f"http://127.0.0.1:{port}")), agent="careen-test"
    )
    with pytest.raises(NotSent):
        await ClientStreams(somebody.transport, lambda: datetime(2026, 3, 4, tzinfo=UTC)).chunks(WATCH).__anext__()


async def test_the_thread_of_a_watch_ends_when_its_reader_stops(desk: Callable[..., Desk]) -> None:
    stream = desk(lambda connection: connection.sendall(HEAD + chunk(b"first\n"))).streams.chunks(WATCH)
    await anext(stream)
    assert len(threads()) == 1
    await stream.aclose()
    await until(lambda: not threads())


async def test_the_thread_of_a_watch_waits_for_a_slow_reader(
    desk: Callable[..., Desk],
) -> None:
    """The server sends more bytes than the queue holds. If the thread did not wait, the bytes would accumulate in
    memory."""
    sent = threading.Event()

    def behave(connection: socket.socket) -> None:
        connection.sendall(HEAD)
        for _ in range(400):
            connection.sendall(chunk(b"x" * 65_536))
        sent.set()

    stream = desk(behave).streams.chunks(WATCH)
    await anext(stream)
    await asyncio.sleep(0.1)
    assert not sent.is_set()
    await stream.aclose()
    await until(lambda: not threads())


async def test_a_watch_body_compressed_by_a_proxy_is_decompressed(desk: Callable[..., Desk]) -> None:
    head = HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    compressed = chunk(gzip.compress(b"a line\n")) + chunk(b"")
    assert b"".join(await desk(lambda connection: connection.sendall(head + compressed)).all()) == b"a line\n"

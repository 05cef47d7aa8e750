"""A server of nasty answers: slow, endless, packed, cut off, misleading."""

from __future__ import annotations

import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache

OK = b"HTTP/1.1 200 OK\r\n"
JSON = OK + b"Content-Type: application/json\r\n"


@dataclass
class NastyServer:
    """Counts the connections."""

    url: str = ""
    opened: int = 0
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(answer: Callable[[str], Iterator[bytes]], elsewhere: str = "") -> Iterator[NastyServer]:
    """`answer` yields what each connection sends; an empty piece waits a moment. `elsewhere` is its argument."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = NastyServer(url=f"http://127.0.0.1:{listener.getsockname()[1]}")

    def talk(connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the client has closed the connection
            connection.recv(65536)
            for piece in answer(elsewhere):
                if server.over.is_set():
                    return
                connection.sendall(piece)
                if len(piece) < 2:
                    server.over.wait(0.02)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            server.opened += 1
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def with_length(body: bytes, head: bytes = JSON) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def nothing(_: str) -> Iterator[bytes]:
    while True:
        yield b""


def dripping_status(_: str) -> Iterator[bytes]:
    while True:
        yield b"H"


def dripping_headers(_: str) -> Iterator[bytes]:
    yield OK
    while True:
        yield b"x"


def dripping_body(_: str) -> Iterator[bytes]:
    yield JSON + b"Content-Length: 1000000\r\n\r\n"
    while True:
        yield b" "


def dripping_chunks(_: str) -> Iterator[bytes]:
    yield JSON + b"Transfer-Encoding: chunked\r\n\r\n"
    while True:
        yield b"1\r\n \r\n"
        yield b""


def endless_trailers(_: str) -> Iterator[bytes]:
    yield JSON + b"Transfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n"
    while True:
        yield b"x: y\r\n"


def endless_preliminaries(_: str) -> Iterator[bytes]:
    while True:
        yield b"HTTP/1.1 100 Continue\r\n\r\n"


def endless_headers(_: str) -> Iterator[bytes]:
    yield OK
    while True:
        yield b"x: y\r\n" * 1000


def a_long_header(_: str) -> Iterator[bytes]:
    yield OK + b"x: "
    while True:
        yield b"y" * 2**20


def endless_body(_: str) -> Iterator[bytes]:
    yield JSON + b"\r\n"
    while True:
        yield b" " * 2**20


@cache
def packed() -> bytes:
    packer = zlib.compressobj(level=1, wbits=31)
    return b"".join([*(packer.compress(b" " * 2**20) for _ in range(600)), packer.flush()])


def gzip_bomb(_: str) -> Iterator[bytes]:
    yield with_length(packed(), JSON + b"Content-Encoding: gzip\r\n")


def nested_gzip_bomb(_: str) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=31)
    yield with_length(packer.compress(packed()) + packer.flush(), JSON + b"Content-Encoding: gzip, gzip\r\n")


def many_values(_: str) -> Iterator[bytes]:
    yield with_length(b"[" + b'{"":0},' * 2_000_000 + b"0]")


def redirect(elsewhere: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 302 Found\r\nLocation: %s/\r\nContent-Length: 0\r\n\r\n" % elsewhere.encode()


def redirect_to_a_file(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 307 Temporary Redirect\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"


def half_an_answer(_: str) -> Iterator[bytes]:
    yield JSON + b"Content-Length: 1000\r\n\r\n[]"


def half_a_chunk(_: str) -> Iterator[bytes]:
    yield JSON + b"Transfer-Encoding: chunked\r\n\r\n1000\r\n[]"


def no_last_chunk(_: str) -> Iterator[bytes]:
    yield JSON + b"Transfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n"


def no_gzip(_: str) -> Iterator[bytes]:
    yield with_length(b"[]", JSON + b"Content-Encoding: gzip\r\n")


def no_http(_: str) -> Iterator[bytes]:
    yield b"SSH-2.0-OpenSSH_9.2p1\r\n"


def a_login_page(_: str) -> Iterator[bytes]:
    yield with_length(b"<html>log in</html>", OK + b"Content-Type: text/html\r\n")


def an_error_with_status_200(_: str) -> Iterator[bytes]:
    yield with_length(b'{"status":"error","errorType":"execution","error":"no"}')


def deep_json(_: str) -> Iterator[bytes]:
    yield with_length(b"[" * 500_000)


SLOW = (
    nothing,
    dripping_status,
    dripping_headers,
    dripping_body,
    dripping_chunks,
    endless_trailers,
    endless_preliminaries,
)
"""Only the deadline ends them."""
ENDLESS = (endless_headers, a_long_header, endless_body, gzip_bomb, nested_gzip_bomb, many_values)
"""A limit ends them, without the deadline."""
BROKEN = (redirect, redirect_to_a_file, half_an_answer, half_a_chunk, no_last_chunk, no_gzip, no_http)
WRONG = (a_login_page, an_error_with_status_200, deep_json)
"""Complete answers with status 200 that are not what was asked for."""


@contextmanager
def full_listener() -> Iterator[tuple[str, int]]:
    """An address that answers no SYN: its queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        yield listener.getsockname()
        for each in waiting:
            each.close()

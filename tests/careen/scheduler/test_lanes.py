"""Requests on a few connections, with a server that answers as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from careen.cluster.wire.client import RELOAD_SECONDS
from careen.cluster.wire.errors import AnswerTooLong
from careen.cluster.wire.transport import Request
from careen.scheduler.wire import lanes
from careen.scheduler.wire.lanes import HttpAnswer, HttpCall, Lane
from careen.scheduler.wire.server import Server
from careen.scheduler.wire.streams import LoopTransport
from tests.patience import until


class Here:
    """In place of a Server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.refusals = 0

    def refused(self) -> None:
        self.refusals += 1

    def head(self, method: str, path: str, more: bytes = b"") -> bytes:
        return f"{method} {path} HTTP/1.1\r\nHost: x\r\n".encode() + more + b"\r\n"

    async def open(self, protocol: asyncio.Protocol) -> None:
        await asyncio.get_running_loop().create_connection(lambda: protocol, "127.0.0.1", self.port)


@asynccontextmanager
async def served(answer: Callable[[str], bytes | None], status: bytes = b"200 OK") -> AsyncIterator[Any]:
    """`answer` of a path; None: the server says nothing."""

    open_: list[asyncio.Transport] = []

    class Talk(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            open_.append(transport)

        def data_received(self, data: bytes) -> None:
            body = answer(data.split()[1].decode())
            if body is not None:
                self.transport.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))

    server = await asyncio.get_running_loop().create_server(Talk, "127.0.0.1", 0)
    try:
        yield Here(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for each in open_:
            each.abort()
        await asyncio.sleep(0)


def ask(lane: Lane, paths: list[str]) -> dict[str, HttpAnswer]:
    answers: dict[str, HttpAnswer] = {}
    for path in paths:
        lane.send(HttpCall(method="GET", path=path), lambda answer, path=path: answers.update({path: answer}))  # type: ignore[misc]
    return answers


async def test_each_request_gets_the_body_of_its_own_answer_even_if_others_wait_for_the_connection() -> None:
    async with served(lambda path: path.encode()) as here:
        lane = Lane(here, connections=1)
        paths = [f"/{number}" for number in range(5)]
        answers = ask(lane, paths)
        await until(lambda: len(answers) == 5)
        lane.close()
    assert {path: answer.body.decode() for path, answer in answers.items()} == {path: path for path in paths}


async def test_an_answer_that_is_longer_than_the_limit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request has the limit for itself, although they use one connection."""
    monkeypatch.setattr(lanes, "MOST_BYTES", 1000)
    async with served(lambda path: b"x" * int(path[1:])) as here:
        lane = Lane(here, connections=1)
        answers = ask(lane, ["/900", "/901", "/1100", "/902"])
        await until(lambda: len(answers) == 4)
        lane.close()
    assert {path: (len(each.body), each.is_too_long) for path, each in answers.items()} == {
        "/900": (900, False),
        "/901": (901, False),
        "/1100": (0, True),
        "/902": (902, False),
    }


async def test_a_list_learns_that_a_page_was_too_long_so_that_it_asks_for_a_shorter_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "MOST_BYTES", 1000)
    async with served(lambda path: b"x" * int(path[1:])) as here:
        transport = LoopTransport(here, lambda: datetime(2026, 3, 4, tzinfo=UTC))
        assert len((await transport.send(Request(method="GET", path="/900"))).body) == 900
        with pytest.raises(AnswerTooLong, match="GET /1100: the answer is longer than"):
            await transport.send(Request(method="GET", path="/1100"))
        transport.close()


async def test_requests_after_their_deadline_leave_nothing_in_the_lane() -> None:
    async with served(lambda _: None) as here:
        lane = Lane(here, connections=2, deadline_seconds=0.05)
        answers = ask(lane, [f"/{number}" for number in range(20)])
        await until(lambda: len(answers) == 20)
        assert {answer.status for answer in answers.values()} == {0}
        await until(lambda: lane.is_idle and not lane.backlog, lambda: f"{lane.backlog} requests are left")
        lane.close()


async def test_a_request_that_found_no_connection_was_not_sent() -> None:
    lane = Lane(Here(1), connections=1, deadline_seconds=0.05)  # type: ignore[arg-type]
    answers = ask(lane, ["/a"])
    await until(lambda: len(answers) == 1)
    assert answers["/a"].was_sent is False
    lane.close()


async def test_an_answer_401_to_any_request_asks_for_fresh_credentials() -> None:
    async with served(lambda path: path.encode(), status=b"401 Unauthorized") as here:
        lane = Lane(here, connections=1)
        answers = ask(lane, ["/a"])
        await until(lambda: len(answers) == 1)
        lane.close()
    assert here.refusals == 1


class RotatedAccess:
    host, proxy, tls_server_name = "http://127.0.0.1:1", None, None

    def __init__(self) -> None:
        self.reads = 1

    def authorization(self) -> str:
        return f"Bearer {self.reads}"

    def reload(self) -> None:
        self.reads += 1


def test_credentials_are_read_again_after_a_refusal_but_not_for_each_of_many() -> None:
    now, access = [0.0], RotatedAccess()
    server = Server(access, agent="test", monotonic=lambda: now[0])  # type: ignore[arg-type]
    for now[0] in (RELOAD_SECONDS, RELOAD_SECONDS + 1.0, RELOAD_SECONDS + 2.0):
        server.refused()
    assert access.reads == 2
    assert b"Authorization: Bearer 2\r\n" in server.head("GET", "/")

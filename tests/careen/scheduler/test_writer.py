"""What the writer sends at once, and what waits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from careen.scheduler import writer as writer_module
from careen.scheduler.pod_events import PodEvents
from careen.scheduler.wire.limit import RateLimit
from careen.scheduler.writer import Writer
from scheduler_core.running.commands import Bind, Count, PostPodEvent
from tests.patience import until

NOW = datetime(2026, 3, 4, tzinfo=UTC)
BOUND = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'


class Wire(asyncio.Transport):
    """A connection to a server that answers when the test says so."""

    def __init__(self, desk: Desk, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._desk, self._protocol = desk, protocol

    def write(self, data: Any) -> None:
        self._desk.requests.append((self, bytes(data).split()[1].decode()))

    def abort(self) -> None:
        self._protocol.connection_lost(None)

    def answer(self, body: bytes, status: bytes = b"201 Created") -> None:
        head = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
        self._protocol.data_received(head + body)


class Desk:
    """A writer, and the server's side of its connections. Nothing waits for the writer's timer: call `catch_up`."""

    authority = "x"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writer_module, "LATER_SECONDS", 1000.0)
        self.requests: list[tuple[Wire, str]] = []
        self.counted: list[str] = []
        self.noted: list[str] = []
        self.answers = 0
        server: Any = self
        self.writer = Writer(
            server,
            limit=RateLimit(qps=0, burst=1, monotonic=lambda: 0.0),
            events=PodEvents("me"),
            monotonic=lambda: 0.0,
            now=lambda: NOW,
            answered=lambda _command, _outcome: self._answered(),
            noted=lambda note: self.noted.append(f"{note.text} {note.pod} {note.why}"),
            counted=lambda count: self.counted.append(count.metric),
            requested=lambda method, _host, status: self.counted.append(f"{method} {status}"),
            asked=lambda _command: None,
        )

    def _answered(self) -> None:
        self.answers += 1

    def head(self, method: str, path: str, more: bytes = b"") -> bytes:
        return f"{method} {path} HTTP/1.1\r\n".encode() + more + b"\r\n"

    async def open(self, protocol: asyncio.Protocol) -> None:
        protocol.connection_made(Wire(self, protocol))

    def sent(self, what: str) -> int:
        return sum(path.endswith(what) for _, path in self.requests)

    def answer_all(self, what: str, body: bytes = BOUND, status: bytes = b"201 Created") -> None:
        for wire, path in [each for each in self.requests if each[1].endswith(what)]:
            self.requests.remove((wire, path))
            wire.answer(body, status)

    async def events_answered(self, pods: str, body: bytes, status: bytes) -> None:
        """`pods`: a letter for each, new each time, since the second Event of a pod is a patch of the first."""
        self.writer.carry_out([an_event(each) for each in pods])
        self.writer.catch_up()
        await until(lambda: self.sent("/events") == len(pods))
        self.answer_all("/events", body, status)

    async def bind(self, count: int) -> None:
        self.writer.carry_out([Bind(number=i, pod=f"shop/p{i}", uid=f"u{i}", node="n") for i in range(count)])
        await until(lambda: self.sent("/binding") == count)

    def post(self, count: int) -> None:
        self.writer.carry_out([an_event(f"p{number}") for number in range(count)])


def an_event(pod: str) -> PostPodEvent:
    return PostPodEvent(
        pod=f"shop/{pod}",
        uid=pod,
        profile="default-scheduler",
        is_warning=False,
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned shop/{pod} to n",
    )


async def test_events_wait_for_others_and_bindings_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    desk.post(3)
    desk.writer.carry_out([Count(metric="a")])
    await desk.bind(1)
    desk.answer_all("/binding")
    assert (desk.answers, desk.sent("/events"), desk.counted) == (1, 0, ["a", "POST 201"])
    desk.writer.catch_up()
    await until(lambda: desk.sent("/events") == 3)
    desk.writer.close()


async def test_while_many_bindings_have_no_answer_few_events_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    await desk.bind(9)
    desk.post(25)
    desk.writer.catch_up()
    await until(lambda: desk.sent("/events") == 10)
    desk.answer_all("/events")
    await asyncio.sleep(0)
    assert desk.sent("/events") == 0
    desk.answer_all("/binding")
    desk.writer.catch_up()
    await until(lambda: desk.sent("/events") == 15)
    desk.writer.close()


async def test_events_beyond_those_that_may_wait_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MOST_EVENTS", 2)
    desk = Desk(monkeypatch)
    desk.post(5)
    assert desk.writer.dropped_events == 3
    desk.writer.close()


async def test_the_end_waits_for_answers_and_sends_the_last_events(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    await desk.bind(1)
    ended = asyncio.create_task(desk.writer.end())
    await asyncio.sleep(0.03)
    assert not ended.done()
    desk.post(2)
    desk.answer_all("/binding")
    await until(lambda: desk.sent("/events") == 2)
    assert not ended.done()
    desk.answer_all("/events")
    await ended
    desk.writer.close()


async def test_events_that_are_forbidden_are_told_once_until_one_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    forbidden = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no right","code":403}'
    ends = forbidden.replace(b"no right", b"NamespaceTerminating")
    await desk.events_answered("ab", ends, b"403 Forbidden")
    await desk.events_answered("c", b"", b"500 Internal Server Error")
    assert desk.noted == []
    await desk.events_answered("def", forbidden, b"403 Forbidden")
    await desk.events_answered("g", b"", b"500 Internal Server Error")
    await desk.events_answered("h", forbidden, b"403 Forbidden")
    assert desk.noted == ["Could not write an Event shop/d no right"]
    await desk.events_answered("i", b"{}", b"201 Created")
    await desk.events_answered("j", forbidden, b"403 Forbidden")
    assert desk.noted[1:] == ["Could not write an Event shop/j no right"]

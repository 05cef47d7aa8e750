"""Tests the order and the pauses of writes."""

from __future__ import annotations

from scheduler_core.running.commands import Bind, Write, WriteStatus
from scheduler_core.running.writes import Writes


def sent(writes: Writes, now: float) -> list[int]:
    return [each.number for each in writes.to_send(now, _as_it_is)]


def _as_it_is(write: Write) -> Write:
    return write


def bind(number: int, pod: str) -> Bind:
    return Bind(number=number, pod=pod, uid=pod, node="n1")


def status(number: int, pod: str) -> WriteStatus:
    return WriteStatus(number=number, pod=pod, uid=pod)


def test_a_binding_goes_before_the_status_that_was_asked_for_earlier() -> None:
    writes = Writes()
    writes.ask(status(1, "a"))
    writes.ask(bind(2, "a"))
    assert (sent(writes, 0), sent(writes, 0)) == ([2], [])
    writes.answered(2)
    assert sent(writes, 0) == [1]


def test_a_pause_stops_one_kind_of_writes_of_one_pod() -> None:
    writes = Writes()
    writes.pause(status(1, "a"), 30)
    writes.ask(status(2, "a"))
    writes.ask(status(3, "b"))
    writes.ask(bind(4, "a"))
    assert sent(writes, 0) == [4, 3]
    writes.answered(4)
    assert (sent(writes, 29), sent(writes, 30)) == ([], [2])


def test_only_writes_of_the_withdrawn_kind_are_withdrawn() -> None:
    writes = Writes()
    writes.ask(status(1, "a"))
    writes.ask(bind(2, "a"))
    writes.withdraw("a", Bind)
    assert sent(writes, 0) == [1]

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


def test_a_later_and_shorter_pause_does_not_end_an_earlier_one() -> None:
    writes = Writes()
    writes.close(Bind, 30)
    writes.close(Bind, 10)
    writes.ask(bind(1, "a"))
    assert (sent(writes, 29), sent(writes, 30)) == ([], [1])


def test_only_writes_of_the_withdrawn_kind_are_withdrawn() -> None:
    writes = Writes()
    writes.ask(status(1, "a"))
    writes.ask(bind(2, "a"))
    writes.withdraw("a", Bind)
    assert sent(writes, 0) == [1]

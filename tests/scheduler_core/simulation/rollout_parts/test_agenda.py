"""Tests the agenda of a simulated roll-out, which calls functions in the order of their times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from scheduler_core.simulation.rollout_parts.agenda import Agenda

T0 = datetime(2026, 3, 4, 22, 0, tzinfo=UTC)


def test_the_agenda_calls_due_functions_in_the_order_of_their_times() -> None:
    agenda, done = Agenda(T0), list[str]()
    for seconds, name in ((20, "c"), (10, "a"), (10, "b"), (21, "later")):
        agenda.after(seconds, lambda name=name: done.append(name))  # type: ignore[misc]
    agenda.advance(T0 + timedelta(seconds=20))
    assert (done, agenda.next, agenda.now) == (
        ["a", "b", "c"],
        T0 + timedelta(seconds=21),
        T0 + timedelta(seconds=20),
    )


def test_a_due_function_may_add_another_function_for_the_same_time() -> None:
    agenda, done = Agenda(T0), list[str]()
    agenda.after(5, lambda: agenda.after(0, lambda: done.append("second")))
    agenda.advance(T0 + timedelta(seconds=5))
    assert (done, agenda.next) == (["second"], None)

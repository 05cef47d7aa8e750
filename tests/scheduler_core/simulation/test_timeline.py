"""Tests the figures of a simulated roll-out: nodes down at the same time, moves of pods, and waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_core.simulation.timeline import Move, Span, Step, Timeline, Visit, Wait

T0 = datetime(2026, 3, 4, 22, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def a_visit(node: str, start: float, end: float, *, undone: str = "") -> Visit:
    middle = (start + end) / 2
    spans = (
        Span(step=Step.DRAINING, start=at(start), end=at(middle)),
        Span(step=Step.REBOOTING, start=at(middle), end=at(end)),
    )
    return Visit(node=node, spans=spans, moves=0, undone=undone)


@pytest.mark.parametrize(
    ("visits", "most"),
    [
        pytest.param([], 0, id="no node goes down"),
        pytest.param(
            [a_visit("a", 0, 10), a_visit("b", 10, 20)], 1, id="one node goes down at the moment when another returns"
        ),
        pytest.param(
            [a_visit("a", 0, 10), a_visit("b", 9, 20), a_visit("c", 9, 30)],
            3,
            id="three nodes are down at the same time",
        ),
    ],
)
def test_a_timeline_gives_the_highest_number_of_nodes_down_at_the_same_time(visits: list[Visit], most: int) -> None:
    assert Timeline(begins=T0, ends=at(30), nodes=("a", "b", "c"), visits=tuple(visits)).most_at_once() == most


def test_nodes_outside_a_given_list_are_not_counted_as_down() -> None:
    timeline = Timeline(
        begins=T0,
        ends=at(30),
        nodes=("a", "b", "c"),
        visits=(a_visit("a", 0, 10), a_visit("b", 0, 10), a_visit("c", 0, 10)),
    )
    assert timeline.most_at_once(["a", "c"]) == 2


def test_each_move_of_a_pod_after_its_first_move_is_a_double_move() -> None:
    moves = tuple(Move(pod=pod, source="a", target="b", at=T0) for pod in ("x", "y", "x", "x"))
    timeline = Timeline(begins=T0, ends=T0, nodes=(), moves=moves)
    assert (timeline.double_moves, timeline.moves_by_pod) == (2, {"x": 3, "y": 1})


def test_pods_that_wait_for_the_reboot_of_their_node_are_not_pending() -> None:
    wait = Wait(pod="x", node="a", since=at(10), until=at(40), returns=False, why="")
    endless = Wait(pod="y", node="a", since=at(50), until=None, returns=False, why="")
    returning = Wait(pod="z", node="a", since=at(0), until=at(99), returns=True, why="")
    timeline = Timeline(begins=T0, ends=at(100), nodes=(), waits=(wait, endless, returning))
    assert (timeline.pending, timeline.pending_seconds) == ((wait, endless), 30 + 50)


def test_an_undone_drain_does_not_count_as_a_reboot() -> None:
    undone, done = a_visit("a", 0, 10, undone="the window closed"), a_visit("a", 20, 30)
    timeline = Timeline(begins=T0, ends=at(30), nodes=("a",), visits=(undone, done))
    assert (timeline.reboots, timeline.undone) == ((done,), (undone,))

"""Builds plans for the tests of reports."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from careen.core.facts.policy import Order
from careen.plan.ranges import Ranges
from careen.report.plan.values import Plan
from scheduler_core.simulation.timeline import (
    Closing,
    Hindrance,
    Left,
    Move,
    Obstacle,
    Span,
    Step,
    Timeline,
    Visit,
    Wait,
)

T0 = datetime(2026, 3, 4, 22, 0, tzinfo=UTC)
DAY = 86_400


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def a_visit(node: str, start: float, *, moves: int = 0, undone: str = "") -> Visit:
    """Return the part of a plan in which one node holds a claim: a minute of draining, three minutes of downtime and
    half a minute of settling. With `undone`, the drain is undone and this part ends after the drain."""
    lengths = [(Step.DRAINING, 60)] if undone else [(Step.DRAINING, 60), (Step.REBOOTING, 180), (Step.SETTLING, 30)]
    spans, begins = [], start
    for step, seconds in lengths:
        spans.append(Span(step=step, start=at(begins), end=at(begins + seconds)))
        begins += seconds
    return Visit(node=node, spans=tuple(spans), moves=moves, undone=undone)


def a_plan(**changes: Any) -> Plan:
    """Return a plan of two nodes, one after the other, without problems. Keyword arguments replace fields of the plan
    or of its timeline.
    """
    visits = changes.pop("visits", (a_visit("n1", 0), a_visit("n2", 275)))
    of_plan = {
        name: changes.pop(name)
        for name in ("line", "concurrency", "zone", "notes", "others", "ranges")
        if name in changes
    }
    given = {
        "nodes": ("n1", "n2"),
        "begins": T0,
        "ends": max((visit.end for visit in visits), default=T0),
        "visits": visits,
        **changes,
    }
    return Plan(
        timeline=Timeline(**given), **{"line": Order.OLDEST, "agents_line": Order.OLDEST, "concurrency": 1, **of_plan}
    )


def a_bad_plan() -> Plan:
    """Return a plan that contains one example of every problem that a plan can report."""
    held = Obstacle(rule="hold", subject="held by a person", sentence="held: auditors")
    visits = (a_visit("n1", 0, moves=2), a_visit("n2", 275, undone="the window is 22:00–22:05"), a_visit("n2", DAY))
    return a_plan(
        nodes=("n1", "n2", "n3", "n4"),
        visits=visits,
        concurrency=2,
        line=Order.FEWEST_MOVES,
        notes=("durations are assumed",),
        moves=(
            Move(pod="shop/a", source="n1", target="n2", at=at(0), choices=2),
            Move(pod="shop/a", source="n2", target="n1", at=at(275)),
            Move(pod="shop/b", source="n4", target="n1", at=at(0), is_preempted=True),
        ),
        waits=(
            Wait(
                pod="shop/c",
                node="n1",
                since=at(0),
                until=at(240),
                returns=False,
                why="0/4 nodes are available: 4 Insufficient cpu.",
            ),
            Wait(pod="shop/d", node="n1", since=at(0), until=at(240), returns=True, why="only n1 can hold shop/d"),
            Wait(
                pod="shop/e",
                node="n2",
                since=at(DAY),
                until=None,
                returns=False,
                why="0/4 nodes are available: 4 Insufficient memory.",
            ),
        ),
        lost=("shop/bare",),
        unknown=("shop/odd",),
        closings=(Closing(at=at(300), left=3), Closing(at=at(DAY + 300), left=2)),
        hindrances=(Hindrance(rule="budgets", subject="the budget zone=a allows 1", seconds=275, nodes=("n2",)),),
        left=(Left(node="n3", obstacle=held), Left(node="n4", obstacle=held)),
        others={Order.OLDEST: replace(a_plan().timeline)},
    )


def some_ranges(**changes: Any) -> Ranges:
    given: dict[str, Any] = {
        "seeds": 5,
        "moves": (38, 44),
        "double_moves": (2, 2),
        "ends": (at(545), at(965)),
        "pending_seconds": (0.0, 0.0),
        "not_clean": 0,
    }
    return Ranges(**{**given, **changes})

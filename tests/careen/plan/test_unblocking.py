"""Tests which changes a plan tries, and what counts as bought."""

from __future__ import annotations

from datetime import time

from careen.core.facts.windows import Cron, NamedWindow, Window
from careen.plan.unblocking import (
    LONGER_WINDOWS,
    Bought,
    ChangeKind,
    PlanChange,
    barriers,
    changes_for,
    lengthened,
    merged,
    next_changes,
)
from scheduler_core.simulation.timeline import Closing, Left, Obstacle, Timeline
from scheduler_core.values import replace_value
from tests.careen.core.builders import a_policy
from tests.careen.report.planned import T0

A, B = (PlanChange(kind=ChangeKind.BUDGET, subject=f"shop/{name}") for name in "ab")


def held(*subjects: str) -> Timeline:
    left = tuple(
        Left(node=f"n{place}", obstacle=Obstacle(rule="forecast", subject=subject, sentence="no"))
        for place, subject in enumerate(subjects)
    )
    return Timeline(begins=T0, ends=T0, nodes=tuple(each.node for each in left), left=left)


ONLY_A = "the disruption budget shop/a"
BOTH = "the disruption budgets shop/a, shop/b"


def test_a_node_with_two_causes_counts_only_where_both_are_answered() -> None:
    timeline = held(ONLY_A, ONLY_A, BOTH)
    assert [(each.nodes, each.changes) for each in barriers(timeline)] == [(("n0", "n1"), (A,)), (("n2",), (A, B))]
    assert next_changes(timeline, ()) == (A,)  # two nodes for one change, not three for two
    assert next_changes(timeline, {(A,)}) == (A, B)
    assert next_changes(held(ONLY_A, BOTH, BOTH, BOTH), ()) == (A, B)  # four nodes for two changes


def test_nothing_is_tried_that_no_change_answers() -> None:
    assert next_changes(held("held by a person"), ()) == ()


def test_a_cordon_and_missing_room_have_their_changes() -> None:
    down = Obstacle(rule="budgets", subject="n9 is cordoned by somebody, not by careen", sentence="")
    assert changes_for(down, "n1") == (PlanChange(kind=ChangeKind.UNCORDON, subject="n9"),)
    room = Obstacle(rule="forecast", subject="no room for ReplicaSet shop/web", sentence="")
    assert changes_for(room, "n1") == (PlanChange(kind=ChangeKind.NODE, subject="n1"),)


def test_a_change_that_only_uncovers_another_cause_joins_the_next() -> None:
    found = merged(
        [Bought(changes=(A,), nodes=0, seconds=-5), Bought(changes=(B,), nodes=3, seconds=-10)],
    )
    assert found == (Bought(changes=(A, B), nodes=3, seconds=-15),)
    assert merged([Bought(changes=(A,), nodes=0, seconds=0)]) == ()


def test_longer_windows_are_tried_for_the_nodes_that_miss_the_first_window_for_no_other_cause() -> None:
    late = replace_value(held(ONLY_A), closings=(Closing(at=T0, left=3),))
    assert next_changes(late, ()) == (LONGER_WINDOWS,)  # two nodes; the budget holds the third
    assert next_changes(late, {(LONGER_WINDOWS,)}) == (A,)
    only_held = replace_value(held(ONLY_A), closings=(Closing(at=T0, left=1),))
    assert next_changes(only_held, {(A,)}) == ()


def test_every_window_becomes_longer() -> None:
    policy = a_policy(
        window=Window(start=time(22), end=time(4)),
        windows=(
            NamedWindow(name="a", opens=Cron(expression="0 2 * * *", seconds=3600.0)),
            NamedWindow(name="b", opens=Window(start=time(1), end=time(23, 45))),
        ),
    )
    made = lengthened(policy)
    assert made.window.end == time(4, 30)
    assert [getattr(each.opens, "seconds", None) or each.opens.end for each in made.windows] == [  # type: ignore[union-attr]
        5400.0,
        time(23, 59, 59),
    ]

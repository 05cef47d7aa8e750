"""How long an agent pauses before it reads the lock again, by its place in the line and by how many nodes wait."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.facts.policy import Budget, BudgetKind, Order
from careen.core.lock import order, pauses
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.line import Line
from careen.core.steps.shared import counting
from tests.careen.core.builders import NOW, a_policy, an_entry, held

LINE = LockContent(line=Line(names=tuple(f"n{number}" for number in range(1, 14)), waiting=5000))


@pytest.mark.parametrize(
    ("name", "concurrency", "seconds"),
    [
        ("n1", 1, 3.0),
        ("n2", 1, 5.0),
        ("n3", 1, 10.0),
        ("n4", 1, 10.0),
        ("n5", 1, 15.0),
        ("n6", 1, 20.0),
        ("n7", 1, 25.0),
        ("n13", 1, 25.0),
        ("n4", 4, 3.0),
        ("n5", 4, 5.0),
        ("n6", 4, 10.0),
        ("n13", 4, 10.0),
        ("n5", 2, 10.0),
        ("n9", 2, 15.0),
        ("n10", 2, 20.0),
    ],
)
def test_nodes_near_the_front_of_the_line_read_the_lock_more_often(name: str, concurrency: int, seconds: float) -> None:
    assert pauses.look_again_seconds(name, LINE, a_policy(concurrency=concurrency), 0.5) == seconds


@pytest.mark.parametrize(("waiting", "seconds"), [(0, 30.0), (180, 30.0), (6000, 1000.0)])
def test_agents_of_nodes_that_are_not_named_read_the_lock_rarely(waiting: int, seconds: float) -> None:
    assert (
        pauses.look_again_seconds("other", LockContent(line=Line(names=("n1",), waiting=waiting)), a_policy(), 0.5)
        == seconds
    )


FIRST = LockContent(line=Line(names=("n1", "n2"), waiting=2))


def claimed(seconds_ago: float, **changes: Any) -> Entry:
    created = (NOW - timedelta(seconds=seconds_ago)).isoformat()
    return an_entry("n9", **{"created": created, **changes})


def due(in_seconds: float) -> Entry:
    return claimed(100, due=(NOW + timedelta(seconds=in_seconds)).isoformat())


@pytest.mark.parametrize(
    ("holders", "seconds"),
    [
        pytest.param((claimed(0),), 3.0, id="the claim is new"),
        pytest.param((claimed(5.5),), 2.5, id="the claim is 5.5 seconds old"),
        pytest.param((claimed(9.6),), 0.5, id="the claim is 9.6 seconds old"),
        pytest.param((claimed(11),), 0.75, id="the claim is 11 seconds old"),
        pytest.param((claimed(12),), 1.0, id="the claim is 12 seconds old"),
        pytest.param((claimed(18),), 1.5, id="the claim is 18 seconds old"),
        pytest.param((claimed(60),), 3.0, id="the claim is a minute old"),
        pytest.param((claimed(-60),), 3.0, id="the creation time of the claim is in the future"),
        pytest.param((claimed(0, created="soon"),), 3.0, id="the time of the claim is invalid"),
        pytest.param((due(10),), 3.0, id="the release is due in ten seconds"),
        pytest.param((due(1),), 1.0, id="the release is due in a second"),
        pytest.param((due(0),), 0.5, id="the release is due now"),
        pytest.param((due(-24),), 2.0, id="the release was due 24 seconds ago"),
        pytest.param((claimed(60), claimed(12)), 1.0, id="one claim is a minute old, one is 12 seconds old"),
    ],
)
def test_the_first_node_in_line_reads_the_lock_often_when_a_release_is_expected(
    holders: tuple[Entry, ...], seconds: float
) -> None:
    content = held(*holders, line=Line(names=FIRST.line.names))
    assert pauses.look_again_seconds("n1", content, a_policy(), 0.5, now=NOW) == pytest.approx(seconds)
    assert pauses.look_again_seconds("n2", content, a_policy(), 0.5, now=NOW) == 5.0
    assert pauses.look_again_seconds("n1", content, a_policy(), 0.5) == 3.0, (
        "without a clock the claim's age is unknown"
    )


def test_the_first_node_in_line_reads_the_lock_every_two_seconds_on_average() -> None:
    at, looks = 0.0, 0
    while at < 60:
        content = held(claimed(at), line=Line(names=FIRST.line.names))
        at, looks = at + pauses.look_again_seconds("n1", content, a_policy(), 0.5, now=NOW), looks + 1
    assert 28 <= looks <= 32


def test_the_first_node_in_line_sees_an_early_release_within_three_seconds() -> None:
    for tenths in range(150):
        content = held(claimed(tenths / 10), line=Line(names=FIRST.line.names))
        assert pauses.look_again_seconds("n1", content, a_policy(), 0.5, now=NOW) <= pauses.NEXT_LOOK_SECONDS


RECENT, OLD = "2026-03-04T11:58:30Z", "2026-03-04T11:57:30Z"


@pytest.mark.parametrize(
    ("content", "agents", "number"),
    [
        pytest.param(
            LockContent(line=Line(names=("n1",), at=RECENT, waiting=20)),
            5000,
            20,
            id="the number of waiting nodes in the lock is recent",
        ),
        pytest.param(
            LockContent(line=Line(names=("n1",), at=OLD, waiting=20)),
            5000,
            5000,
            id="the number of waiting nodes in the lock is old",
        ),
        pytest.param(
            LockContent(line=Line(names=("n1",), at="2026-03-04T13:00:00Z", waiting=20)),
            5000,
            5000,
            id="according to the lock, the waiting nodes were counted an hour in the future",
        ),
        pytest.param(
            LockContent(line=Line(names=("n1",), at="soon", waiting=20)),
            5000,
            5000,
            id="the lock contains no readable time at which the waiting nodes were counted",
        ),
        pytest.param(
            LockContent(is_paused=True, line=Line(at=RECENT, waiting=20)),
            5000,
            5000,
            id="the lock is paused",
        ),
        pytest.param(LockContent(), 5000, 5000, id="the lock lacks the number of waiting nodes"),
        pytest.param(
            LockContent(line=Line(names=("n1",), at=OLD, waiting=20)), None, 20, id="the number of agents is unknown"
        ),
        pytest.param(
            LockContent(line=Line(names=("n1",), at=OLD, waiting=60)),
            20,
            60,
            id="the number of waiting nodes in the lock is old and exceeds the number of agents",
        ),
        pytest.param(None, 5000, 5000, id="the lock cannot be read"),
        pytest.param(None, None, 0, id="neither the lock nor the number of agents is known"),
    ],
)
def test_without_a_recent_count_of_waiting_nodes_all_nodes_are_assumed_to_wait(
    content: LockContent | None, agents: int | None, number: int
) -> None:
    assert pauses.how_many_wait(content, agents, NOW) == number


@given(st.integers(1, 20), st.integers(0, 40))
def test_the_agent_of_a_node_that_the_lock_names_sleeps_less_than_thirty_seconds(concurrency: int, place: int) -> None:
    """Agents of other waiting nodes sleep longer: with 5,000 waiting nodes, up to a quarter of an hour."""
    line = LockContent(line=Line(names=tuple(f"n{number}" for number in range(41)), waiting=5000))
    assert 3.0 <= pauses.look_again_seconds(f"n{place}", line, a_policy(concurrency=concurrency), 0.0) < 30.0


@pytest.mark.parametrize(
    "changes",
    [{"order": Order.FEWEST_MOVES}, {"order": Order.ZONE}, {"budgets": (Budget(kind=BudgetKind.ZONE, limit=1),)}],
)
def test_no_node_in_line_sleeps_long_if_a_release_may_change_the_order(changes: dict[str, Any]) -> None:
    assert pauses.look_again_seconds("n13", LINE, a_policy(**changes), 0.0) == 10.0
    assert pauses.look_again_seconds("n2", LINE, a_policy(**changes), 0.0) == 5.0


def test_the_limit_recorded_in_a_claim_decides_how_often_a_named_node_reads_the_lock() -> None:
    assert (
        pauses.look_again_seconds(
            "n3", held(an_entry("n9", limit=1), line=Line(names=LINE.line.names)), a_policy(concurrency=4), 0.0
        )
        == 10.0
    )


def test_agents_of_five_thousand_waiting_nodes_send_under_twenty_requests_a_second() -> None:
    """Each round of an agent's loop sends two requests: one for the lock and one for the agent's own Node."""
    waiting = 5000
    names = tuple(f"n{number}" for number in range(1 + order.SPARE_NAMES))
    content = LockContent(line=Line(names=names, waiting=waiting))
    looks = sum(1 / pauses.look_again_seconds(name, content, a_policy(), 0.0) for name in names)
    looks += (waiting - len(names)) / pauses.look_again_seconds("other", content, a_policy(), 0.0)
    assert 2 * looks < 20


def test_five_thousand_agents_that_count_pods_send_under_twenty_requests_a_second() -> None:
    waiting, named = 5000, 1 + order.SPARE_NAMES
    names, policy = tuple(f"n{number}" for number in range(named)), a_policy(order=Order.FEWEST_MOVES)
    content = LockContent(line=Line(names=names, waiting=waiting))
    looks = sum(1 / pauses.look_again_seconds(name, content, policy, 0.5) for name in names)
    looks += (waiting - named) / pauses.look_again_seconds("other", content, policy, 0.5)
    assert 2 * looks + named / counting.NAMED_SECONDS + (waiting - named) / counting.OTHERS_SECONDS < 20

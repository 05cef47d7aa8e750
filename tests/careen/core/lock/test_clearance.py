"""Which nodes may take a claim now, and how long the first claim of a roll-out waits (`careen.core.lock.pauses`)."""

from __future__ import annotations

import pytest

from careen.core.facts.memory import Memory
from careen.core.facts.policy import Order
from careen.core.lock import clearance, pauses
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from tests.careen.core.builders import a_policy, an_entry, held


@pytest.mark.parametrize(
    ("agents", "seconds"),
    [
        pytest.param(None, pauses.GATHER_SECONDS, id="the number of agents is unknown"),
        pytest.param(1, 0.0, id="no other agent exists"),
        pytest.param(2, pauses.GATHER_SECONDS, id="two agents exist"),
        pytest.param(501, pauses.GATHER_SECONDS + 60.0, id="501 agents, which spread their taints over a minute"),
    ],
)
def test_the_number_of_agents_decides_how_long_the_first_claim_of_a_roll_out_waits(
    agents: int | None, seconds: float
) -> None:
    """During the wait, the agents of other nodes can count the pods of their nodes and set the label
    `careen.dev/reboot=ready` on their Nodes. Only a node with this label can be chosen for the first claim, and the
    choice depends on the counts."""
    assert pauses.gather_seconds(agents) == seconds


BY_ZONE = a_policy(order=Order.ZONE, concurrency=3)
NAMED = LockContent(line=Line(names=("n1", "n2", "n3"), at="t"))


def start(
    name: str, content: LockContent, waited: float = 0.0, concurrency: int = 1, memory: Memory | None = None
) -> clearance.Clearance:
    first = clearance.start_of(name, content, a_policy(concurrency=concurrency), memory or Memory(), 1000.0)
    return clearance.start_of(name, content, a_policy(concurrency=concurrency), first.memory, 1000.0 + waited)


@pytest.mark.parametrize(
    ("name", "waited", "concurrency", "expected"),
    [
        ("n1", 0, 1, True),
        ("n2", 0, 1, False),
        ("n2", 0, 2, True),
        ("n2", 59, 1, False),
        ("n2", 60, 1, True),
        ("n3", 60, 1, False),
        ("n3", 120, 1, True),
        ("n9", 120, 1, False),
        ("n9", 180, 1, True),
    ],
)
def test_a_named_node_that_does_not_claim_within_a_minute_is_passed_over(
    name: str, waited: float, concurrency: int, expected: bool
) -> None:
    assert start(name, NAMED, waited, concurrency).is_allowed is expected


def test_no_node_may_add_a_claim_to_a_full_or_paused_lock() -> None:
    assert not start("n1", held(an_entry("n9"), line=Line(names=("n1",))), 500).is_allowed
    assert not start("n1", LockContent(is_paused=True, line=Line(names=("n1",))), 500).is_allowed
    watching = start("n2", NAMED, 59).memory
    stopped = clearance.start_of(
        "n2", held(an_entry("n9"), line=Line(names=NAMED.line.names)), a_policy(), watching, 1059.0
    ).memory
    assert not start("n2", NAMED, 0, memory=stopped).is_allowed


def test_a_release_restarts_the_minute_after_which_a_named_node_is_passed_over() -> None:
    """n2 may take a claim after n1, the first node in line, has not taken a claim for a minute. After 59 seconds, a
    release writes a new line. One second later, n2 still may not take a claim."""
    watching = start("n2", NAMED, 59).memory
    again = clearance.start_of(
        "n2", LockContent(line=Line(names=NAMED.line.names, at="later")), a_policy(), watching, 1060.0
    )
    assert not again.is_allowed


@pytest.mark.parametrize(
    ("name", "waited", "content", "expected"),
    [
        pytest.param(
            "n2",
            0,
            LockContent(line=Line(names=("n1", "n2", "n3"), at="t", abreast=2)),
            True,
            id="the second node of the first zone may claim",
        ),
        pytest.param(
            "n3",
            0,
            LockContent(line=Line(names=("n1", "n2", "n3"), at="t", abreast=2)),
            False,
            id="a node of the next zone waits",
        ),
        pytest.param(
            "n3",
            60,
            LockContent(line=Line(names=("n1", "n2", "n3"), at="t", abreast=2)),
            True,
            id="after a minute without a claim, a node of the next zone may claim",
        ),
        pytest.param(
            "n1",
            0,
            held(an_entry("n0", limit=3), line=Line(names=("n1", "n2"), at="t", abreast=1)),
            True,
            id="a node may claim while another node of its zone holds a claim",
        ),
        pytest.param(
            "n2",
            600,
            held(an_entry("n0", limit=3), line=Line(names=("n1", "n2"), at="t", abreast=1)),
            False,
            id="no node of the next zone may claim while a node holds a claim",
        ),
        pytest.param(
            "n1",
            600,
            held(an_entry("n0", limit=3), line=Line(names=("n1", "n2"), at="t", abreast=0)),
            False,
            id="no node of the holder's zone waits",
        ),
        pytest.param(
            "n2",
            0,
            held(an_entry("n0", limit=3), line=Line(names=("n1", "n2"), at="t")),
            True,
            id="the lock was written under another value of --order, so the line has no limit for a zone",
        ),
    ],
)
def test_a_node_of_the_next_zone_waits_for_the_zone_in_progress_if_the_order_is_zone(
    name: str, waited: float, content: LockContent, expected: bool
) -> None:
    first = clearance.start_of(name, content, BY_ZONE, Memory(), 1000.0)
    assert clearance.start_of(name, content, BY_ZONE, first.memory, 1000.0 + waited).is_allowed is expected


def test_the_agent_lists_the_waiting_nodes_if_no_node_is_named() -> None:
    assert start("n1", LockContent()).asks_waiters


def test_a_node_that_takes_a_claim_out_of_order_marks_the_earlier_nodes_as_passed_over() -> None:
    assert start("n3", NAMED, 120).passed == ("n1", "n2")
    assert start("n1", NAMED, 0).passed == ()
    assert start("n2", NAMED, 120).passed == ("n1",), "n3 comes after n2 in the line, so n3 is not passed over"

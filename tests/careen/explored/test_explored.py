"""Explores every order of the steps of two agents within small bounds, and random ways of four: no step breaks a rule,
every node returns to idle, and planted bugs are found. `make explore` explores three agents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.careen.explored.fleet import Bounds, Kind, SmallFleet
from tests.careen.explored.planted import PLANTED, Planted, planted
from tests.careen.explored.search import Explored, explore, wander

SIGNS = {
    Kind.LOST: "lost: lock: take a claim",
    Kind.ANSWER_LOST: "answer lost: Node: Draining: drain-started",
    Kind.LATE: "a delayed write takes effect: lock: take a claim",
    Kind.CRASH: "the process dies",
    Kind.STALE: "takes a turn (stale lock)",
    Kind.FROZEN: "frozen for 60 s",
    Kind.PAUSED: "Node: Waiting: paused",
    Kind.DELETED: "Node: Verifying: entry-adopted",
    Kind.SCRAPPED: "lock: free the claim of n1",
}
"""For each kind of fault, a step that the search reaches only if the fault has its effect."""


@pytest.mark.parametrize("kind", list(Kind), ids=lambda kind: kind.name.lower())
def test_for_each_kind_of_fault_the_exploration_reaches_a_state_that_shows_its_effect(kind: Kind) -> None:
    bounds = Bounds(agents=2, faults=1, kinds=(kind,), delays=0)
    found = explore(SmallFleet(bounds))
    assert not found.broken, found.text()
    assert SIGNS[kind] in found.seen


@pytest.mark.parametrize(
    ("kind", "sign"), [(Kind.CRASH, "the process dies asleep"), (Kind.DELETED, "wakes, because its Node has gone")]
)
def test_agents_sleep_and_are_woken_or_die_asleep(kind: Kind, sign: str) -> None:
    found = explore(SmallFleet(Bounds(agents=2, faults=1, kinds=(kind,), delays=0)))
    assert not found.wrong, found.text()
    assert {"takes a turn and sleeps", sign} <= found.seen


@pytest.mark.parametrize("bug", PLANTED.values(), ids=PLANTED.keys())
def test_the_exploration_finds_a_planted_bug_and_prints_the_few_steps_to_the_bug(bug: Planted) -> None:
    fleet = SmallFleet(bug.bounds)
    with planted(bug, fleet):
        found = explore(fleet)
    print(found.text())
    assert found.broken.startswith(bug.breaks)
    assert len(found.story) < 100


@pytest.mark.parametrize("bug", PLANTED.values(), ids=PLANTED.keys())
def test_the_exploration_finds_no_broken_rule_without_the_planted_bug(bug: Planted) -> None:
    found = explore(SmallFleet(bug.bounds))
    assert not found.broken, found.text()


@pytest.mark.parametrize("concurrency", [1, 2])
def test_no_random_way_of_four_agents_breaks_a_rule(concurrency: int) -> None:
    bounds = Bounds(agents=4, concurrency=concurrency, faults=1)
    broken = [found.text() for seed in range(15) if (found := wander(SmallFleet(bounds), seed)).wrong]
    assert not broken, broken[0]


FOUND_AT_RANDOM = (
    "an agent writes a claim without a resourceVersion",
    "a node removes the first claim instead of its own",
    "an agent removes the claim of a missing Node at once",
)


@pytest.mark.parametrize("name", FOUND_AT_RANDOM)
def test_random_ways_find_a_planted_bug(name: str) -> None:
    bug = PLANTED[name]
    fleet = SmallFleet(replace(bug.bounds, agents=3, delays=None))
    with planted(bug, fleet):
        assert any(wander(fleet, seed).broken.startswith(bug.breaks) for seed in range(60))


def test_an_exploration_in_which_the_nodes_never_become_idle_again_is_an_error() -> None:
    found = Explored(states=9, steps=9, decisions=9, ends=0, seen=frozenset())
    assert found.wrong == "no state has every node idle again"
    assert not replace(found, ends=1).wrong
    assert replace(found, ends=1, broken="claim: taken").wrong == "claim: taken"

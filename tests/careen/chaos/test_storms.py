"""Storms: a seed determines which faults, acts of people, network failures and changes of careen's release disturb a
simulated fleet. No rule breaks, and every node returns to idle when the storm ends. `make test` plays a few seeds, and
the storms that failed in the past. `make storms SEEDS=…` plays any number of seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from careen.core.lock import content
from tests.careen.chaos.storm import report
from tests.careen.chaos.storm.draw import ACTS, WEATHER, story_of
from tests.careen.chaos.storm.play import Outcome, Tally, play
from tests.careen.chaos.storm.shrink import shrink
from tests.careen.chaos.storm.story import Event, Story, from_line, to_line, with_events

KEPT = tuple(
    from_line(line) for line in (Path(__file__).parent / "storm" / "kept.jsonl").read_text("utf-8").splitlines()
)
SEEDS = 2 * len(WEATHER)


def text_of(outcome: Outcome) -> str:
    return report.failure(outcome, outcome)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_storm_of_random_faults_breaks_a_rule(seed: int) -> None:
    outcome = play(story_of(seed))
    assert not outcome.broken, text_of(outcome)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("story", KEPT, ids=lambda story: story.was_wrong.replace("[", "(").replace("]", ")"))
def test_storms_that_revealed_earlier_defects_break_no_rule(story: Story) -> None:
    outcome = play(story)
    assert not outcome.broken, text_of(outcome)


def test_each_storm_in_kept_jsonl_has_a_description_of_a_different_defect() -> None:
    assert all(story.was_wrong for story in KEPT)
    assert len({story.was_wrong for story in KEPT}) == len(KEPT)


@pytest.mark.parametrize("seed", range(0, 200, 7))
def test_a_drawn_storm_is_the_same_after_writing_and_parsing(seed: int) -> None:
    story = story_of(seed)
    assert 5 <= story.nodes <= 8
    assert from_line(to_line(story)) == story == story_of(seed)


def test_the_same_storm_runs_identically_each_time() -> None:
    """If two runs of a storm differed, a storm that fails could be neither shortened nor kept for later tests."""
    once, again = (play(with_a_broken_law(story_of(9))) for _ in range(2))
    assert once.trace == again.trace != ()
    assert once.tally == again.tally


def with_a_broken_law(story: Story) -> Story:
    """Return the storm with an additional event for a node that does not exist. The simulation raises an error at this
    event. The error is treated as a broken rule, so the trace of the storm is kept."""
    return with_events(story, [*story.events, Event(at=399.0, node="n99", what="need")])


def test_each_kind_of_storm_uses_the_real_forecast_in_one_of_ten_storms() -> None:
    stories = [story_of(seed) for seed in range(10 * len(WEATHER))]
    assert sum(story.has_real_forecast for story in stories) == len(WEATHER)
    assert {story.weather for story in stories if story.has_real_forecast} == set(WEATHER)


def test_a_run_of_hundreds_of_storms_lists_the_events_that_never_happened() -> None:
    dropped = "an agent of an older release drops newer fields of the lock"
    assert {"TWICE", "DEAF", "roll_out", "the real forecast", dropped} <= set(report.never(Tally()))
    assert not [name for name in ACTS if name in report.never(play_of(ACTS))]


def play_of(acts: object) -> Tally:
    tally = Tally()
    tally.acts.update(acts)  # type: ignore[call-overload]
    return tally


def test_a_storm_that_breaks_a_rule_shrinks_to_few_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test plants a defect: the agents ignore the limit of nodes that may be down at once. Of the storm's dozens of
    events, only these remain: a few hosts begin to need a reboot, and at most one other event happens."""
    monkeypatch.setattr(content, "limit", lambda _content, _concurrency: 9)
    first = play(story_of(0))
    assert (first.laws, first.story.concurrency) == ({"claims"}, 2)
    assert len(first.story.events) > 40
    short = shrink(first)
    assert "claims" in short.laws
    left = [event.what for event in short.story.events]
    assert left.count("need") in (3, 4), short.story.text()
    assert len(left) <= 5, short.story.text()
    assert short.story.text() in report.failure(first, short)

"""Shortens a storm (a list of events in a simulated fleet) that breaks a rule: removes events as long as the storm
still breaks the same rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.careen.chaos.storm.play import Outcome, play
from tests.careen.chaos.storm.story import Event, Story, with_events

MOST_PLAYS = 200
"""The most times that a search plays a story. Playing a story takes about a second, so a search lasts some minutes.
This is enough to make the story readable."""


def shrink(outcome: Outcome, *, most_plays: int = MOST_PLAYS, replay: Callable[[Story], Outcome] = play) -> Outcome:
    """Return the outcome of the shortest storm found that still breaks the rule. If any single event of this storm were
    removed, the rule would hold. After `most_plays` storms the search stops early, and the storm may contain
    unnecessary events."""
    best, plays = outcome, 0

    def still_breaks(events: Sequence[Event]) -> bool:
        nonlocal best, plays
        if plays >= most_plays:
            return False
        plays += 1
        again = replay(with_events(outcome.story, events))
        if not again.laws & outcome.laws:
            return False
        best = again
        return True

    _minimise(list(outcome.story.events), still_breaks)
    return best


def _minimise(events: list[Event], still_breaks: Callable[[Sequence[Event]], bool]) -> list[Event]:
    """Remove halves of the events, then quarters, and finally single events, as long as the rule still breaks. This is
    Zeller's ddmin algorithm without its tests of subsets."""
    size = max(1, len(events) // 2)
    while events:
        begin, is_shorter = 0, False
        while begin < len(events):
            shorter = [*events[:begin], *events[begin + size :]]
            if still_breaks(shorter):
                events, is_shorter = shorter, True
            else:
                begin += size
        if size == 1 and not is_shorter:
            break
        size = size if is_shorter and size == 1 else max(1, size // 2)
    return events

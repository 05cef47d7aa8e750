"""Writes the results of storms (random faults and events in a simulated fleet) as text: totals, kinds of events that
never happened, and for each failure the few events that cause it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from careen.core.facts.phases import MOVES
from drydock.zoo import IN_STORMS
from tests.careen.chaos.fleet.agents import CutOff, Fault
from tests.careen.chaos.fleet.sleepers import Instant
from tests.careen.chaos.storm.draw import ACTS
from tests.careen.chaos.storm.play import Outcome, Tally
from tests.careen.chaos.storm.story import to_line

_LAST_LINES = 120
WAKES = (
    "/run/reboot-required has changed",
    "/run/reboot-required cannot be checked",
    "the Node has changed",
    "the Node was deleted",
    "the ConfigMap has changed",
    "a look is due",
)


def totals(tally: Tally) -> str:
    """Return the totals of a run as text, and the phase changes of the phase table that never occurred."""
    moves = {f"{before} → {after}" for before, after in MOVES}
    reached = [move for move in tally.moves if move in moves]
    unreached = ", ".join(sorted(moves - set(reached)))
    lines = [
        (
            f"{tally.storms} storms, {tally.virtual_seconds / 3600:.1f} virtual hours, {tally.requests} requests, "
            f"{tally.reboots} boots, {tally.real_forecasts} real forecasts"
        ),
        f"faults: {_by_number(tally.faults)}",
        f"acts: {_by_number(tally.acts)}",
        f"storms with citizens of the zoo: {_by_number(tally.citizens)}",
        f"reads and writes in which the older release dropped newer fields of the lock: {tally.lost_by_older}",
        f"wakes: {_by_number(tally.wakes)}",
        f"deaths at a change of form: {_by_number(tally.deaths)}",
        f"phase changes: {_by_number(tally.moves)}",
        f"phase changes of the phase table that occurred: {len(reached)} of {len(moves)}"
        + (f"; phase changes that never occurred: {unreached}" if unreached else ""),
    ]
    return "\n".join(lines)


def never(tally: Tally) -> Iterator[str]:
    """Yield the name of each kind of fault or event that occurred in no storm. A run of hundreds of storms should
    contain every kind."""
    yield from (fault.name for fault in Fault if not tally.faults[fault.name])
    yield from (way.name for way in CutOff if not tally.faults[way.name])
    yield from (name for name in ACTS if not tally.acts[name])
    yield from (name for name in IN_STORMS if not tally.citizens[name])
    yield from (f"wakes: {why}" for why in WAKES if not tally.wakes[why])
    yield from (f"dies {instant.value}" for instant in Instant if not tally.deaths[instant.name])
    if not tally.real_forecasts:
        yield "the real forecast"
    if not tally.lost_by_older:
        yield "an agent of an older release drops newer fields of the lock"


def failure(first: Outcome, short: Outcome) -> str:
    """Describe a failed storm: the broken rules, the events that suffice to break them, the line that adds the
    shortened storm to `kept.jsonl`, and the end of the trace."""
    return "\n".join(
        [
            f"The storm of seed {first.story.seed} ({first.story.weather}) broke these rules:",
            *(f"  {each}" for each in first.broken),
            f"{len(short.story.events)} of its {len(first.story.events)} events suffice to break these rules:",
            *(f"  {each}" for each in short.broken),
            short.story.text(),
            "Add this line to tests/careen/chaos/storm/kept.jsonl, and describe the defect in its field was_wrong:",
            to_line(short.story),
            *(line[:300] for line in short.trace[-_LAST_LINES:]),
        ]
    )


def _by_number(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counted.most_common()) or "none"

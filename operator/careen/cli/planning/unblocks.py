"""Simulates the roll-out with one set of changes after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, Self

from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Order
from careen.core.facts.reasons import Code
from careen.plan.unblocking import (
    LONGER_WINDOWS,
    MOST_STEPS,
    Bought,
    ChangeKind,
    PlanChange,
    barriers,
    merged,
    next_changes,
)
from careen.rollout.older_records import refusals_of
from careen.rollout.refusals import subjects_of
from scheduler_core.sentences import count_of
from scheduler_core.simulation.timeline import Timeline


class Changeable(Protocol):
    """A roll-out that can be simulated again with changes."""

    def simulate(self, order: Order, seed: int = 0, at_once: int = 0, purpose: str = "") -> Timeline:
        """The timeline; the progress bar names the purpose."""

    def with_changes(self, changes: Sequence[PlanChange]) -> Self:
        """The same roll-out after these changes."""


def unblocks_of(rollout: Changeable, timeline: Timeline, order: Order, views: Iterable[NodeView]) -> tuple[Bought, ...]:
    """What a few changes buy, each on top of those before it. A change after which nothing is different is left out.

    A plan assumes that no alert is active; so an alert that the agents of `views` found keeps all of its reboots."""
    found: list[Bought] = []
    tried: set[tuple[PlanChange, ...]] = set()
    alerts = tuple(PlanChange(kind=ChangeKind.ALERT, subject=name) for name in _alerts(views))
    first = (Bought(changes=alerts, nodes=len(timeline.reboots), seconds=0),) if alerts and timeline.reboots else ()
    for _ in range(MOST_STEPS - len(first) if timeline.left or timeline.closings else 0):
        if not (changes := next_changes(timeline, tried)):
            break
        tried.add(changes)
        other = rollout.with_changes(changes)
        after = other.simulate(order, purpose=f", after change {len(tried)} ({count_of(len(changes), 'object')})")
        nodes = len(after.reboots) - len(timeline.reboots)
        seconds = round((timeline.ends - after.ends).total_seconds())
        is_sooner = changes == (LONGER_WINDOWS,) and seconds > 0
        if nodes < 0 or (nodes == 0 and not is_sooner and barriers(after) == barriers(timeline)):
            continue
        found.append(Bought(changes=changes, nodes=nodes, seconds=seconds))
        rollout, timeline = other, after
    return (*first, *merged(found))


def _alerts(views: Iterable[NodeView]) -> list[str]:
    """The alerts that refuse waiting nodes, as their agents last wrote."""
    found = {
        subject.removeprefix("alert ")
        for view in views
        if view.shown_phase == Phase.WAITING
        for refusal in refusals_of(view)
        if refusal.code is Code.ALERT
        for subject in subjects_of(refusal, view.name)
    }
    return sorted(found)

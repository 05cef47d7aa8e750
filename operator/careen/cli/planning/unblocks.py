"""Simulates the roll-out with one set of changes after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from careen.core.facts.policy import Order
from careen.plan.unblocking import MOST_STEPS, Bought, PlanChange, barriers, merged, next_changes
from scheduler_core.sentences import count_of
from scheduler_core.simulation.timeline import Timeline


class Changeable(Protocol):
    """A roll-out that can be simulated again with changes."""

    def simulate(self, order: Order, seed: int = 0, at_once: int = 0, purpose: str = "") -> Timeline:
        """The timeline; the progress bar names the purpose."""

    def with_changes(self, changes: Sequence[PlanChange]) -> Self:
        """The same roll-out after these changes."""


def unblocks_of(rollout: Changeable, timeline: Timeline, order: Order) -> tuple[Bought, ...]:
    """What a few changes buy, each on top of those before it. A change after which nothing is different is left out."""
    found: list[Bought] = []
    tried: set[tuple[PlanChange, ...]] = set()
    for _ in range(MOST_STEPS if timeline.left else 0):
        if not (changes := next_changes(timeline, tried)):
            break
        tried.add(changes)
        other = rollout.with_changes(changes)
        after = other.simulate(order, purpose=f", after change {len(tried)} ({count_of(len(changes), 'object')})")
        nodes = len(after.reboots) - len(timeline.reboots)
        if nodes < 0 or (nodes == 0 and barriers(after) == barriers(timeline)):
            continue
        seconds = round((timeline.ends - after.ends).total_seconds())
        found.append(Bought(changes=changes, nodes=nodes, seconds=seconds))
        rollout, timeline = other, after
    return merged(found)

"""The two drivers of a small fleet: `explore` visits every state within the bounds, breadth-first, so that it finds the
shortest way to a broken rule; `wander` takes one random way, also within bounds that are too wide to explore."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

from tests.careen.explored.fleet import BrokenRule, SmallFleet
from tests.careen.explored.state import State


@dataclass(frozen=True, kw_only=True)
class Explored:
    """`broken` names the broken rule, "" if every rule holds; `story` are the steps that lead to it."""

    states: int
    steps: int
    decisions: int
    ends: int
    """States in which every node is idle again."""
    seen: frozenset[str]
    """The steps, without the names of the nodes."""
    broken: str = ""
    story: tuple[str, ...] = ()

    @property
    def wrong(self) -> str:
        """The broken rule with its steps, or that no node came home; "" if neither."""
        if self.broken:
            return self.text()
        return "" if self.ends else "no state has every node idle again"

    def text(self) -> str:
        return "\n".join([self.broken, *self.story])


def explore(fleet: SmallFleet) -> Explored:
    """Stops at the first state that breaks a rule."""
    first = fleet.first()
    came_from: dict[State, tuple[State, str] | None] = {first: None}
    waiting, steps, ends, seen = deque([first]), 0, 0, set[str]()
    while waiting:
        state = waiting.popleft()
        try:
            if fleet.is_home(state):
                ends += 1
                fleet.check_home(state)
                continue
            for what, after in fleet.steps(state):
                steps += 1
                seen.add(what.partition(": ")[2])
                if after not in came_from:
                    came_from[after] = (state, what)
                    waiting.append(after)
        except BrokenRule as rule:
            return Explored(
                states=len(came_from),
                steps=steps,
                decisions=fleet.decisions,
                ends=ends,
                seen=frozenset(seen),
                broken=str(rule),
                story=_story(came_from, state),
            )
    return Explored(states=len(came_from), steps=steps, decisions=fleet.decisions, ends=ends, seen=frozenset(seen))


_LONGEST_WAY = 100_000
_FAULTS = 0.05
"""How often a step that could be a fault is one."""


def wander(fleet: SmallFleet, seed: int) -> Explored:
    chance = random.Random(seed)
    state, story, seen = fleet.first(), [], set[str]()
    try:
        while not fleet.is_home(state):
            assert len(story) < _LONGEST_WAY, f"seed {seed} never comes home"
            steps = list(fleet.steps(state))
            calm = [step for step in steps if step.after.left == state.left]
            what, after = chance.choice(steps if chance.random() < _FAULTS else calm or steps)
            story.append(f"{state.now:5} s  {what}")
            seen.add(what.partition(": ")[2])
            state = after
        fleet.check_home(state)
    except BrokenRule as rule:
        return _walked(fleet, story, seen, broken=f"{rule} (seed {seed})")
    return _walked(fleet, story, seen)


def _walked(fleet: SmallFleet, story: list[str], seen: set[str], *, broken: str = "") -> Explored:
    return Explored(
        states=len(story) + 1,
        steps=len(story),
        decisions=fleet.decisions,
        ends=not broken,
        seen=frozenset(seen),
        broken=broken,
        story=tuple(story),
    )


def _story(came_from: dict[State, tuple[State, str] | None], last: State) -> tuple[str, ...]:
    lines: list[str] = []
    before = came_from[last]
    while before is not None:
        lines.append(f"{before[0].now:5} s  {before[1]}")
        before = came_from[before[0]]
    return tuple(reversed(lines))

"""Visits every reachable state of a small simulated fleet. The search is breadth-first, so that it finds the shortest
sequence of steps to a broken rule."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tests.careen.explored.fleet import BrokenRule, SmallFleet
from tests.careen.explored.state import State


@dataclass(frozen=True, kw_only=True)
class Explored:
    """The result of the search. `broken` names the broken rule, and is empty if every rule holds in every state."""

    states: int
    steps: int
    decisions: int
    ends: int
    """The number of states in which every node is idle again."""
    seen: frozenset[str]
    """Descriptions of the steps that the search took, without the names of the nodes."""
    broken: str = ""
    story: tuple[str, ...] = ()

    @property
    def wrong(self) -> str:
        """Return the error of the search. If a step broke a rule, the text contains the rule and the steps that lead to
        it. If the search reached no state in which every node is idle again, the text says so. Without an error, return
        an empty text."""
        if self.broken:
            return self.text()
        return "" if self.ends else "no state has every node idle again"

    def text(self) -> str:
        return "\n".join([self.broken, *self.story])


def explore(fleet: SmallFleet) -> Explored:
    """Visit every state that the fleet can reach. Stops at the first state that breaks a rule."""
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


def _story(came_from: dict[State, tuple[State, str] | None], last: State) -> tuple[str, ...]:
    lines: list[str] = []
    before = came_from[last]
    while before is not None:
        lines.append(f"{before[0].now:5} s  {before[1]}")
        before = came_from[before[0]]
    return tuple(reversed(lines))

"""The result of a simulated roll-out: which nodes were down when, which pods moved how often, which pods waited, and
the obstacles.

Only values, without numpy, because the code that prints them does not compute them: `rollout.py` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from scheduler_core.values import Value


class Step(StrEnum):
    """The steps of a node under its claim, in this order."""

    HELD_BACK = "held back"  # claimed, not yet cordoned: the pause before the drain
    DRAINING = "draining"
    REBOOTING = "rebooting"  # until the node is given back
    SETTLING = "settling"  # back in service; its claim is still held


class Span(Value, kw_only=True):
    """One step of one node, with its beginning and its end."""

    step: Step
    start: datetime
    end: datetime


class Visit(Value, kw_only=True):
    """One claim of one node, from taking it to releasing it. `undone` is the reason why the drain was undone; empty if
    the node rebooted."""

    node: str
    spans: tuple[Span, ...]
    moves: int
    undone: str = ""

    @property
    def start(self) -> datetime:
        return self.spans[0].start

    @property
    def end(self) -> datetime:
        return self.spans[-1].end


class Move(Value, kw_only=True):
    """One pod that found another node. `pod` is its name at the beginning, `choices` the number of equally good nodes.

    `is_open`: the scheduler checks fewer nodes than fit, so it may take another one.
    """

    pod: str
    source: str
    target: str
    at: datetime
    choices: int = 1
    is_open: bool = False
    is_preempted: bool = False  # it did not stand on a drained node; a displaced pod took its place


class Wait(Value, kw_only=True):
    """A displaced pod without a node. `until` None: it still had none at the end. `returns`: only the drained node can
    hold it."""

    pod: str
    node: str
    since: datetime
    until: datetime | None
    returns: bool
    why: str

    def seconds(self, end: datetime) -> float:
        """The duration of the wait, counted to `end` if it is not over."""
        return ((self.until or end) - self.since).total_seconds()


class Obstacle(Value, kw_only=True):
    """Why a node may not start now: the rule, a short description that several nodes share, and the whole sentence."""

    rule: str
    subject: str
    sentence: str


class Hindrance(Value, kw_only=True):
    """An obstacle that left a free place unused, with its seconds and the affected nodes."""

    rule: str
    subject: str
    seconds: float
    nodes: tuple[str, ...]


class Closing(Value, kw_only=True):
    """The end of a window, and the number of nodes that had not rebooted by then."""

    at: datetime
    left: int


class Left(Value, kw_only=True):
    """A node that did not start, and why."""

    node: str
    obstacle: Obstacle


class Timeline(Value, kw_only=True):
    """A whole roll-out. `nodes` are all nodes that were to reboot; `ends` is the last release, or the beginning if no
    node started."""

    begins: datetime
    ends: datetime
    nodes: tuple[str, ...]
    visits: tuple[Visit, ...] = ()
    moves: tuple[Move, ...] = ()
    waits: tuple[Wait, ...] = ()
    lost: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    hindrances: tuple[Hindrance, ...] = ()
    closings: tuple[Closing, ...] = ()
    left: tuple[Left, ...] = ()
    is_open: bool = False  # something was left to chance: another seed may give another roll-out

    @property
    def reboots(self) -> tuple[Visit, ...]:
        """The visits that ended with a reboot, in the order of their beginning."""
        return tuple(visit for visit in self.visits if not visit.undone)

    @property
    def undone(self) -> tuple[Visit, ...]:
        """The visits whose drain was undone."""
        return tuple(visit for visit in self.visits if visit.undone)

    @property
    def is_clean(self) -> bool:
        """Whether every node rebooted, in one window, and no pod was left without room."""
        return not (self.left or self.pending or self.undone or self.unknown or self.closings)

    @property
    def moves_by_pod(self) -> Counter[str]:
        """How often each pod moved."""
        return Counter(move.pod for move in self.moves)

    @property
    def double_moves(self) -> int:
        """Moves beyond the first of each pod."""
        return len(self.moves) - len(self.moves_by_pod)

    @property
    def pending(self) -> tuple[Wait, ...]:
        """The waits of pods without room, except those that wait until the reboot is over."""
        return tuple(wait for wait in self.waits if not wait.returns)

    @property
    def pending_seconds(self) -> float:
        """The sum of the waits in `pending`."""
        return sum(wait.seconds(self.ends) for wait in self.pending)

    def most_at_once(self, members: Iterable[str] | None = None) -> int:
        """The largest number of these nodes (default: all) that were under a claim at the same time."""
        chosen = set(self.nodes if members is None else members)
        edges = sorted(
            edge for visit in self.visits if visit.node in chosen for edge in ((visit.start, 1), (visit.end, -1))
        )
        down = most = 0
        for _, change in edges:  # at one instant -1 sorts before +1: a claim given back is free for the next
            down += change
            most = max(most, down)
        return most

"""The result of a simulated roll-out: when each node was down, how often each pod moved, which pods waited for a node,
and why nodes had to wait.

`rollout.py` computes it. Only values and no numpy, so that a program that only prints a roll-out need not load numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from scheduler_core.arguments import checked
from scheduler_core.sentences import html_table
from scheduler_core.values import Value


class Step(StrEnum):
    """The steps of a holder, in order."""

    HELD_BACK = "held back"  # the node has a claim and is not yet cordoned: the pause before the drain
    DRAINING = "draining"
    REBOOTING = "rebooting"  # until the node is back in service
    SETTLING = "settling"  # the node is back in service and still holds its claim


class Span(Value, kw_only=True):
    """One step of one node."""

    step: Step
    start: datetime
    end: datetime


class Visit(Value, kw_only=True):
    """The time in which a node held its claim. `undone` is why the drain was undone; "" if the node rebooted."""

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
    """A pod's move to another node. `pod` is its original name, `choices` the number of equally good nodes.

    With `is_open`, the pod may also get a node other than `target`, because the scheduler checks only a part of the
    nodes that fit.
    """

    pod: str
    source: str
    target: str
    at: datetime
    choices: int = 1
    is_open: bool = False
    is_preempted: bool = False  # a displaced pod preempted the pod, which was not on a drained node


class Wait(Value, kw_only=True):
    """A displaced pod's wait for a node. `until` is None if it had none at the end. With `returns`, only the drained
    node can run the pod."""

    pod: str
    node: str
    since: datetime
    until: datetime | None
    returns: bool
    why: str

    def seconds(self, end: datetime) -> float:
        """If the pod never got a node, the wait lasts until `end`."""
        return ((self.until or end) - self.since).total_seconds()


class Obstacle(Value, kw_only=True):
    """Why a node may not go on now: the rule's name, a short subject that may be the same for several nodes, and the
    whole sentence.

    `barred` has the keys of pods that can never be evicted, if these alone forbid the drain. `remedy` is what a person
    can do, with NODE for the node's name; empty if the rule does not say."""

    rule: str
    subject: str
    sentence: str
    barred: tuple[str, ...] = ()
    remedy: str = ""


class Hindrance(Value, kw_only=True):
    """Why these nodes had to wait. `seconds` is how long the lock could have held one more claim and this kept a
    waiting node from taking it."""

    rule: str
    subject: str
    seconds: float
    nodes: tuple[str, ...]


class Closing(Value, kw_only=True):
    """The end of a window, and how many nodes had not rebooted by then."""

    at: datetime
    left: int


class Left(Value, kw_only=True):
    """A node that had not rebooted at the end, and why."""

    node: str
    obstacle: Obstacle


class Timeline(Value, kw_only=True):
    """A whole simulated roll-out. `nodes` had to reboot. `ends` is when the last claim was released; `begins` if
    none was."""

    begins: datetime
    ends: datetime
    nodes: tuple[str, ...]
    visits: tuple[Visit, ...] = ()
    moves: tuple[Move, ...] = ()
    waits: tuple[Wait, ...] = ()
    lost: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()  # the drains wait until their budgets open
    hindrances: tuple[Hindrance, ...] = ()
    closings: tuple[Closing, ...] = ()
    left: tuple[Left, ...] = ()
    is_open: bool = False  # a random choice decided something: another seed may give another result

    def __repr__(self) -> str:
        counts = f"reboots={len(self.reboots)} moves={len(self.moves)} left={len(self.left)}"
        return f"<Timeline nodes={len(self.nodes)} {counts} ends={self.ends:%Y-%m-%dT%H:%M:%S}>"

    def _repr_html_(self) -> str:
        """For notebooks: the visits in their order, then the nodes that are left with their reasons."""
        rows = [(each.node, f"{each.start:%d %b %H:%M:%S}", f"{each.end:%d %b %H:%M:%S}") for each in self.visits]
        rows += [(each.node, "left", each.obstacle.sentence) for each in self.left]
        return html_table(("node", "from", "until, or why not"), rows)

    @property
    def reboots(self) -> tuple[Visit, ...]:
        """The visits that ended with a reboot, in the order in which they began."""
        return tuple(visit for visit in self.visits if not visit.undone)

    @property
    def undone(self) -> tuple[Visit, ...]:
        """The visits whose drain was undone."""
        return tuple(visit for visit in self.visits if visit.undone)

    @property
    def is_clean(self) -> bool:
        """Whether every node rebooted in the first window, no drain was undone, no outcome is unknown, and each
        displaced pod got a node at once. A pod that only the drained node can run may wait for the reboot."""
        return not (self.left or self.pending or self.undone or self.unknown or self.closings)

    @property
    def moves_by_pod(self) -> Counter[str]:
        return Counter(move.pod for move in self.moves)

    @property
    def double_moves(self) -> int:
        """How many moves were the second or a later one of the same pod."""
        return len(self.moves) - len(self.moves_by_pod)

    @property
    def pending(self) -> tuple[Wait, ...]:
        """The waits of pods that found no room, without those that only the drained node can run."""
        return tuple(wait for wait in self.waits if not wait.returns)

    @property
    def pending_seconds(self) -> float:
        """Seconds of the waits in `pending`, added up."""
        return sum(wait.seconds(self.ends) for wait in self.pending)

    @checked
    def most_at_once(self, members: Iterable[str] | None = None) -> int:
        """The most of these nodes (default: all) that held a claim at once."""
        chosen = set(self.nodes if members is None else members)
        edges = sorted(
            edge for visit in self.visits if visit.node in chosen for edge in ((visit.start, 1), (visit.end, -1))
        )
        down = most = 0
        for _, change in edges:  # at one instant -1 sorts before +1: a released claim is free for the next node
            down += change
            most = max(most, down)
        return most

"""The result of a simulated roll-out: when each node was down, how often each pod moved, which pods waited for a node,
and why nodes had to wait for their reboot.

`rollout.py` computes this result. The module `timeline.py` contains only values and does not import numpy. So a program
that only prints a roll-out can import `timeline.py` without loading numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from scheduler_core.values import Value


class Step(StrEnum):
    """The steps of a node that holds a claim on the reboot lock, in order."""

    HELD_BACK = "held back"  # the node has a claim and is not yet cordoned: the pause before the drain
    DRAINING = "draining"
    REBOOTING = "rebooting"  # until the node is back in service
    SETTLING = "settling"  # the node is back in service and still holds its claim


class Span(Value, kw_only=True):
    """One step of one node, with its start and its end."""

    step: Step
    start: datetime
    end: datetime


class Visit(Value, kw_only=True):
    """The time in which one node held its claim on the reboot lock. `undone` is the reason why the drain was undone; it
    is empty if the node rebooted."""

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
    """One move of a pod to another node. `pod` is the pod's original name, and `choices` is the number of equally good
    nodes.

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
    """The time in which a displaced pod waited for a node. `until` is None if the pod had no node at the end of the
    roll-out. With `returns`, no node except the drained node can run the pod."""

    pod: str
    node: str
    since: datetime
    until: datetime | None
    returns: bool
    why: str

    def seconds(self, end: datetime) -> float:
        """Returns the duration of the wait in seconds. If the pod never got a node, the wait lasts until `end`."""
        return ((self.until or end) - self.since).total_seconds()


class Obstacle(Value, kw_only=True):
    """Why a node may not begin its drain or its reboot now: the name of the rule, a short subject that may be the same
    for several nodes, and the whole sentence."""

    rule: str
    subject: str
    sentence: str


class Hindrance(Value, kw_only=True):
    """A reason why some nodes had to wait, and the names of these nodes. `seconds` is the total time in which the
    reboot lock could have held one more claim, but this reason kept a waiting node from taking a claim."""

    rule: str
    subject: str
    seconds: float
    nodes: tuple[str, ...]


class Closing(Value, kw_only=True):
    """The end of a maintenance window, and the number of nodes that had not rebooted by this time."""

    at: datetime
    left: int


class Left(Value, kw_only=True):
    """A node that had not rebooted when the simulation ended, and the reason."""

    node: str
    obstacle: Obstacle


class Timeline(Value, kw_only=True):
    """A whole simulated roll-out. `nodes` are all nodes that had to reboot. `ends` is when the last claim on the reboot
    lock was released, or `begins` if no claim was released."""

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
    is_open: bool = False  # a random choice decided something: another seed may give another result

    @property
    def reboots(self) -> tuple[Visit, ...]:
        """The visits (periods in which a node held a claim on the reboot lock) that ended with a reboot, in the order
        in which they began."""
        return tuple(visit for visit in self.visits if not visit.undone)

    @property
    def undone(self) -> tuple[Visit, ...]:
        """The visits (periods in which a node held a claim on the reboot lock) whose drain was undone."""
        return tuple(visit for visit in self.visits if visit.undone)

    @property
    def is_clean(self) -> bool:
        """Whether every node rebooted in the first maintenance window, no drain was undone, no pod's outcome is
        unknown, and each displaced pod got a node at once. A pod that only the drained node can run may wait for the
        reboot."""
        return not (self.left or self.pending or self.undone or self.unknown or self.closings)

    @property
    def moves_by_pod(self) -> Counter[str]:
        """How often each pod moved."""
        return Counter(move.pod for move in self.moves)

    @property
    def double_moves(self) -> int:
        """How many moves were the second or a later move of the same pod."""
        return len(self.moves) - len(self.moves_by_pod)

    @property
    def pending(self) -> tuple[Wait, ...]:
        """The waits of pods that found no room on any node. Leaves out pods that only the drained node can run."""
        return tuple(wait for wait in self.waits if not wait.returns)

    @property
    def pending_seconds(self) -> float:
        """The total duration in seconds of the waits in `pending`."""
        return sum(wait.seconds(self.ends) for wait in self.pending)

    def most_at_once(self, members: Iterable[str] | None = None) -> int:
        """Returns the largest number of these nodes (default: all nodes) that held a claim on the reboot lock at the
        same time."""
        chosen = set(self.nodes if members is None else members)
        edges = sorted(
            edge for visit in self.visits if visit.node in chosen for edge in ((visit.start, 1), (visit.end, -1))
        )
        down = most = 0
        for _, change in edges:  # at one instant -1 sorts before +1: a released claim is free for the next node
            down += change
            most = max(most, down)
        return most

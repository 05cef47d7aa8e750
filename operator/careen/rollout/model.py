"""The values of the model. `reading.py` makes them, `as_json.py` is their JSON form."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from careen.core.facts.phases import Phase
from scheduler_core.values import Value


class State(StrEnum):
    """What a node means for the roll-out. Finer than `done or not`, coarser than its phase."""

    IDLE = "idle"  # no need, and no reboot in this roll-out
    DONE = "done"  # back from its reboot in this roll-out
    QUEUED = "queued"  # waits for a free claim, and nothing else
    HELD_BACK = "held-back"  # gates refuse
    WORKING = "working"
    KEPT_DOWN = "kept-down"  # down for maintenance, on the way there or back
    STUCK = "stuck"  # holds a claim and shows no progress: its Node is gone, not Ready, or overdue
    FAILED = "failed"


class Expected(Value, kw_only=True):
    """When a reboot under way should end. `basis` says whose reboots were measured."""

    started: datetime
    seconds: int
    basis: str

    @property
    def end(self) -> datetime:
        """When its claim should be released."""
        return self.started + timedelta(seconds=self.seconds)


class NodeState(Value, kw_only=True):
    """One node of the roll-out. Unknown instants are None, unknown texts empty."""

    name: str
    state: State
    phase: str
    is_for_maintenance: bool = False  # on the way to a person's work, at it, or back from it: no reboot by careen
    doing: str = ""  # `rebooting`, `draining for maintenance`; empty for nodes without a claim
    zone: str = ""
    place: str = ""  # `holder`, `next`, or the reboot label of a waiting node
    since: datetime | None = None  # of the phase
    need_since: datetime | None = None
    reason: str = ""
    is_ready: bool = True
    ready_since: datetime | None = None  # since when it is not Ready
    agent_wrote: datetime | None = None  # the last write of the node's own agent, if it was read
    trouble: str = ""  # why a node in `STUCK` or `FAILED` is there, as a sentence
    expected: Expected | None = None
    causes: tuple[str, ...] = ()  # keys into `RolloutView.causes`

    @property
    def shown_phase(self) -> str:
        """The phase for people."""
        return told_phase(self.phase, is_for_maintenance=self.is_for_maintenance)


def told_phase(phase: str, *, is_for_maintenance: bool) -> str:
    """The phase for people: one on the way to maintenance or back says so, because it leads to no reboot."""
    return f"{phase} (maintenance)" if is_for_maintenance and phase != Phase.MAINTENANCE else phase


class Cause(Value, kw_only=True):
    """One thing that keeps nodes from rebooting: this budget, this cordon, this window, this alert.

    `key` is stable as long as the cause stands: the gate, the code and the subject.
    """

    key: str
    code: str
    gate: str
    subject: str  # `budget shop/web`, `alert DiskFull`, `node n7`; empty if the code says it all
    sentence: str  # of the node that has been refused for longest
    nodes: tuple[str, ...]  # all that it holds
    alone: tuple[str, ...] = ()  # those that nothing else holds
    since: datetime | None = None  # the earliest refusal
    seen: datetime | None = None  # the last time that an agent provably found it
    ends: datetime | None = None  # when it ends by itself
    remedy: str = ""  # for this case; a remedy that cannot help is left out
    is_of_cluster: bool = False
    is_passing: bool = False  # it ends as other nodes finish, without a person


class Standstill(Value, kw_only=True):
    """Why nothing happens, although nodes need a reboot. `since` is None if unknown."""

    code: str
    why: str
    since: datetime | None = None
    ways_out: tuple[str, ...] = ()


class Counts(Value, kw_only=True):
    """How far the roll-out is. `finish` is None if it cannot be estimated: unknown durations, or nodes that do not
    move by themselves."""

    done: int = 0
    working: int = 0
    queued: int = 0
    held_back: int = 0
    kept_down: int = 0
    stuck: int = 0
    failed: int = 0
    idle: int = 0
    usual_seconds: int | None = None  # a reboot's usual time from cordon to release
    finish: datetime | None = None  # of the nodes that work or are queued

    @property
    def open(self) -> int:
        """The nodes that still need their reboot."""
        return self.working + self.queued + self.held_back + self.stuck + self.failed


class RolloutView(Value, kw_only=True):
    """The roll-out at the instant `at`. `causes` come with most nodes first. `obstacles` are empty while something is
    at work or will change by itself soon."""

    at: datetime
    nodes: tuple[NodeState, ...]
    causes: tuple[Cause, ...]
    counts: Counts
    obstacles: tuple[Standstill, ...] = ()
    max_owners: int = 1

    def node(self, name: str) -> NodeState | None:
        """The node of this name."""
        return next((each for each in self.nodes if each.name == name), None)

    def cause(self, key: str) -> Cause | None:
        """The cause with this key."""
        return next((each for each in self.causes if each.key == key), None)

    def in_state(self, *states: State) -> tuple[NodeState, ...]:
        """In the order of `nodes`."""
        return tuple(each for each in self.nodes if each.state in states)

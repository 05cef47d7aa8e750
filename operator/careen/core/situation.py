"""The situation: what a step decides from. `read` and `need` end a step that lacks a fact, and `remember` changes the
agent's memory. If the Node or careen's record on it cannot be read, there is no situation in that turn."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NoReturn, TypedDict, TypeVar, Unpack, overload

from careen.core.facts import keys
from careen.core.facts.memory import (
    Claiming,
    Costly,
    Crowd,
    Drain,
    HolderCheck,
    LineWatch,
    Memory,
    Patience,
    Prepared,
    RebootMemory,
    StrangerMemory,
)
from careen.core.facts.observation import Asked, AttachedVolume, Holders, NodeView, NotAsked, PodView, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Mark, OwnerHealth, Progress, is_same_boot, phase_of
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.lock.content import Entry, Garbage, LockContent
from careen.core.lock.groups import groups
from careen.core.lock.reading import LockReading
from careen.core.node import cordons
from careen.core.observation import Observation
from scheduler_core.values import Value, replace_value

T = TypeVar("T")


def known(fact: Asked[T]) -> T | None:
    """The fact; None if it is `Unknown` or was not read in this turn."""
    return None if isinstance(fact, Unknown | NotAsked) else fact


class NotRead(Exception):
    """A step lacks facts. `decide` requests them, and the step begins again once the agent has read them."""

    def __init__(self, kinds: frozenset[Evidence]) -> None:
        super().__init__(", ".join(sorted(kinds)))
        self.kinds = kinds


class Notes(TypedDict, total=False):
    """The fields of `Memory` that a decision may change."""

    is_reconciled: bool
    lock_due: float | None
    moves_counted_at: float | None
    reboot: RebootMemory | None
    need_seen_at: float | None
    prepared: Prepared | None
    stranger: StrangerMemory | None
    line: LineWatch
    costly: Costly
    claiming: Claiming
    drain: Drain
    holder_check: HolderCheck
    crowd: Crowd
    patience: Patience


class Notebook:
    """The agent's memory during one decision, shared by all copies of the situation."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory


class Situation(Value, kw_only=True):
    """The input of a step and of a gate. Only the notebook changes while a step runs, and it lasts for one decision."""

    seen: Observation
    policy: Policy
    node: NodeView
    progress: Progress
    notebook: Notebook

    def need(self, *kinds: Evidence) -> None:
        """End the step with one request for those of these facts that the agent has not tried to read in this turn."""
        if lacking := frozenset(kind for kind in kinds if self.seen.lacks(kind)):
            raise NotRead(lacking)

    def read_again(self, *kinds: Evidence) -> NoReturn:
        """End the step with a request for these facts, even those that the agent read in this turn."""
        raise NotRead(frozenset(kinds))

    @overload
    def read(self, kind: Literal[Evidence.HOLDERS]) -> Holders | None: ...
    @overload
    def read(self, kind: Literal[Evidence.WAITERS]) -> tuple[NodeView, ...] | None: ...
    @overload
    def read(self, kind: Literal[Evidence.CROWD]) -> int | None: ...
    @overload
    def read(self, kind: Literal[Evidence.PODS]) -> tuple[PodView, ...] | None: ...
    @overload
    def read(self, kind: Literal[Evidence.OWNERS]) -> tuple[OwnerHealth, ...] | None: ...
    @overload
    def read(self, kind: Literal[Evidence.VOLUMES]) -> tuple[AttachedVolume, ...] | None: ...
    @overload
    def read(self, kind: Literal[Evidence.FOREIGN]) -> tuple[str, ...] | None: ...
    def read(self, kind: Evidence) -> object:
        """The fact; None if it could not be read. Ends the step with a request for a fact that was not asked for."""
        self.need(kind)
        return known(getattr(self.seen, kind.value))

    @property
    def memory(self) -> Memory:
        """What the agent's process remembers, with what this decision has changed so far."""
        return self.notebook.memory

    def remember(self, **notes: Unpack[Notes]) -> None:
        """Change the agent's memory. The decision of this turn carries the change."""
        self.notebook.memory = replace_value(self.memory, **notes)

    @property
    def phase(self) -> Phase:
        """The node's phase by careen's record; Idle without a record."""
        return phase_of(self.progress)

    @property
    def boot(self) -> str:
        """The boot id of the host; "" if it could not be read."""
        return known(self.seen.boot_id) or ""

    @property
    def lock(self) -> LockContent | Garbage | Unknown | NotAsked:
        """The content of the lock in this turn, or why it is not known."""
        reading = self.seen.lock
        return reading.content if isinstance(reading, LockReading) else reading

    @property
    def content(self) -> LockContent | None:
        """The content of the lock; None if it was not read or cannot be understood."""
        content = self.lock
        return content if isinstance(content, LockContent) else None

    @property
    def reading(self) -> LockReading:
        """The lock with the resourceVersion of its DaemonSet. Only for callers that know that the lock was read."""
        assert isinstance(self.seen.lock, LockReading)
        return self.seen.lock

    @property
    def own_entry(self) -> Entry | None:
        """The entry of this node's claim; None if the lock does not have it, was not read or cannot be understood."""
        content = self.content
        return content.entry(self.node.name, self.progress.claim) if content and self.progress.claim else None

    @property
    def other_holders(self) -> tuple[str, ...]:
        """The names of the other holders, sorted; () while the content of the lock is not known."""
        content = self.content
        return tuple(sorted(name for name in content.holders if name != self.node.name)) if content else ()

    @property
    def older_holders(self) -> tuple[str, ...]:
        """The names of the nodes whose claims in the lock are older than this node's; () while this is not known."""
        content, entry = self.content, self.own_entry
        if content is None or entry is None:
            return ()
        others = (each for each in content.entries if each.node != entry.node)
        return tuple(each.node for each in others if (each.created, each.node) < (entry.created, entry.node))

    @property
    def cordoned_at(self) -> datetime | None:
        """When the drain began, by the API server's clock (by the host's if their difference was unknown then); None
        before a drain."""
        return from_rfc3339(self.progress.drain_started_at)

    @property
    def server_now(self) -> datetime:
        """The present instant by the API server's clock; by the host's clock if their difference is unknown."""
        return self.seen.now - timedelta(seconds=known(self.seen.clock_skew_seconds) or 0.0)

    def mark(self) -> Mark:
        """The present instant on the host's own clock."""
        return Mark(boot=self.boot, uptime=self.seen.uptime)

    def elapsed(self, mark: Mark | None) -> float | None:
        """The seconds since `mark`; None without a mark or if it is from another boot."""
        is_ours = mark is not None and is_same_boot(mark.boot, self.boot)
        return self.seen.uptime - mark.uptime if mark is not None and is_ours else None

    def new_entry(self, claim: str) -> Entry:
        """The entry to add to the lock when this node takes the claim with the id `claim`."""
        progress = self.progress
        return Entry(
            node=self.node.name,
            id=claim,
            uid=self.node.uid,
            groups=tuple(sorted(groups(self.node, self.policy))),
            boot=progress.boot_left or self.boot,
            cordoned=progress.prior_unschedulable if progress.drain_started else cordons.is_foreign(self.node),
            created=rfc3339(self.seen.now),
            zone=self.node.zone,
            failed=progress.failed if self.phase is Phase.FAILED else "",
        )

    @property
    def wants_retry(self) -> bool:
        """Whether a person asked for another try after a failure (`careen retry`)."""
        return keys.RETRY in self.node.annotations

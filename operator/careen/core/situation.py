"""Defines the situation, which is the input of the steps. A step is a function that decides for a node in its phase. A
situation contains the facts that the agent read in one round of its loop. If the Node or careen's record on it cannot
be read, there is no situation in that round. In a situation, careen's record and the lock are already parsed."""

from __future__ import annotations

from datetime import datetime, timedelta

from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import NodeView, NotAsked, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Mark, Progress, is_same_boot, phase_of
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.lock.content import Entry, Garbage, LockContent
from careen.core.lock.groups import groups
from careen.core.lock.reading import LockReading
from careen.core.node import cordons
from careen.core.observation import Observation
from scheduler_core.values import Value, replace_value


class Situation(Value, kw_only=True):
    """What a step gets as its input. A step is a function that makes the decision for a node in its phase. `memory` is
    what the agent's process remembers before the step. The step puts a changed copy of the memory into its decision."""

    seen: Observation
    policy: Policy
    node: NodeView
    progress: Progress
    memory: Memory

    @property
    def phase(self) -> Phase:
        """The node's phase according to careen's record on the Node; Idle without a record."""
        return phase_of(self.progress)

    @property
    def boot(self) -> str:
        """The boot id of the host; empty if it could not be read."""
        return "" if isinstance(self.seen.boot_id, Unknown) else self.seen.boot_id

    @property
    def lock(self) -> LockContent | Garbage | Unknown | NotAsked:
        """The content of the lock as the agent read it in this round of its loop, or why the content is not known."""
        reading = self.seen.lock
        return reading.content if isinstance(reading, LockReading) else reading

    @property
    def reading(self) -> LockReading:
        """The result of the read of the lock, with the resourceVersion of the DaemonSet. The caller must have checked
        that `lock` is a LockContent."""
        assert isinstance(self.seen.lock, LockReading)
        return self.seen.lock

    @property
    def own_entry(self) -> Entry | None:
        """The entry of this node's claim in the lock. None if the lock has no such entry, was not read or cannot be
        understood."""
        content = self.lock
        if not isinstance(content, LockContent) or not self.progress.claim:
            return None
        return content.entry(self.node.name, self.progress.claim)

    @property
    def cordoned_at(self) -> datetime | None:
        """When the drain began; None before a drain. The instant is by the API server's clock. If the agent did not
        know at that time how far the host's clock differs from the API server's clock, the instant is by the host's
        clock."""
        return from_rfc3339(self.progress.drain_started_at)

    @property
    def server_now(self) -> datetime:
        """The present instant by the API server's clock, or by the host's clock if the agent does not know how far the
        two clocks differ."""
        skew = self.seen.clock_skew_seconds
        return self.seen.now - timedelta(seconds=0.0 if isinstance(skew, Unknown) else skew)

    def with_memory(self, memory: Memory) -> Situation:
        """Return the same situation, but with this memory of the agent's process."""
        return replace_value(self, memory=memory)

    def mark(self) -> Mark:
        """Return the present instant on the host's own clock."""
        return Mark(boot=self.boot, uptime=self.seen.uptime)

    def elapsed(self, mark: Mark | None) -> float | None:
        """Return the seconds since `mark`, an instant on the host's own clock. Return None if `mark` is None or belongs
        to another boot of the host."""
        is_ours = mark is not None and is_same_boot(mark.boot, self.boot)
        return self.seen.uptime - mark.uptime if mark is not None and is_ours else None

    def new_entry(self, claim: str) -> Entry:
        """Return the entry to add to the lock when this node takes the claim with the id `claim`."""
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
        """Whether a person asked the agent to try the reboot again after a failure (`careen retry`)."""
        return keys.RETRY in self.node.annotations

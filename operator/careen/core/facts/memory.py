"""The memory of one agent process, from turn to turn. It is lost with the process, so careen must stay correct without
it; facts that must survive a restart or the reboot are in `progress.py`.

A decision carries the next memory. The agent stores it *before* it applies the first action, then adds the results of
the actions with the functions below. `reported` is stored only after the Event or message was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import field

from careen.core.facts.phases import Phase
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.values import Value, replace_value
from scheduler_core.values import replace_value as replace

EVICTION_FIRST_BACKOFF_SECONDS = 1.5
EVICTION_GROWTH = 2.0
BUDGET_FIRST_BACKOFF_SECONDS = 1.0  # a replica elsewhere often becomes ready within a few seconds
BUDGET_GROWTH = 1.15  # the agent notices a freed budget late by at most about 15 % of the time that it was blocked
EVICTION_LAST_BACKOFF_SECONDS = 60.0  # kured's drain retries without a pause, about twice a second, for ever


class EvictAnswer(StrEnum):
    """The API server's answer to an eviction request."""

    ACCEPTED = "accepted"  # the pod terminates, or is already gone
    GONE = "gone"  # 404, or 409 because another pod has the name now: there is nothing to evict
    BUDGET = "budget"  # 429 from a disruption budget
    DENIED = "denied"  # admission denied it, by a webhook or a policy; a webhook may answer differently later
    # 401, 403 for a missing right, or another 4xx. Neither admission nor a budget has judged the eviction.
    BARRED = "barred"
    # Not sent, a busy server, timeout, connection lost, 5xx. A repeat is safe because it carries the pod's UID.
    UNCLEAR = "unclear"


JUDGED = frozenset({EvictAnswer.ACCEPTED, EvictAnswer.BUDGET, EvictAnswer.DENIED})
"""The answers which prove that the API server decided. Only these count towards --force-reboot: a request without an
answer may never have reached the server."""

ENDS_EVICTION = frozenset({EvictAnswer.ACCEPTED, EvictAnswer.GONE})
"""The pod terminates or is gone."""


class RebootOutcome(StrEnum):
    """What became of this process's last attempt to reboot the host, as far as the process knows."""

    NOT_ASKED = "not-asked"  # this process announced it and certainly has not asked the host
    ACCEPTED = "accepted"  # the command exited with 0, or the signal was delivered
    FAILED = "failed"  # the command exited with another code or did not start: the host certainly stays up
    UNCLEAR = "unclear"  # the command started and did not end in time: the host may go down


class EvictionMemory(Value, kw_only=True):
    """The eviction requests for one pod, and the last answer. The next request is due at the uptime `not_before`."""

    attempts: int
    not_before: float
    answer: EvictAnswer
    detail: str = ""
    unjudged: int = 0  # how many attempts got an answer that is not in JUDGED
    judged_before: EvictAnswer | None = None  # the last answer in JUDGED before the last attempt

    @property
    def judgements(self) -> int:
        """How many requests the API server provably accepted or refused."""
        return self.attempts - self.unjudged

    @property
    def judgement(self) -> EvictAnswer | None:
        """The last answer in JUDGED; None if every answer left that open."""
        return self.answer if self.answer in JUDGED else self.judged_before


class NewPodsMemory(Value, kw_only=True):
    """The evictions of one owner's pods that were created after the cordon. The next is due at the uptime
    `not_before`."""

    rounds: int
    not_before: float
    judgements: int = 0  # in how many rounds the server judged an eviction


class RebootMemory(Value, kw_only=True):
    """This process's last announced attempt to reboot the host; `by` is the random id of the announcement. The record
    may have a later announcement by another process of this agent."""

    claim: str
    announcement: int
    outcome: RebootOutcome
    detail: str = ""
    by: str = ""
    at: float = 0.0  # the uptime of the announcement

    @property
    def may_be_under_way(self) -> bool:
        """Whether this process asked the host and has no proof that the host refused."""
        return self.outcome in {RebootOutcome.ACCEPTED, RebootOutcome.UNCLEAR}


class StrangerMemory(Value, kw_only=True):
    """An announcement in the record by another process of this agent, which will ask the host. `since` is the uptime
    when this process first saw it."""

    by: str
    announcement: int
    since: float


class ClaimMemory(Value, kw_only=True):
    """The claim in the record when the agent last read it, and whether the record then announced a reboot."""

    claim: str
    is_announced: bool


class Prepared(Value, kw_only=True):
    """The preparation of this node's drain: a forecast, the dry-run evictions, and the facts on which both depend. It
    is made while another node still holds its claim, and valid for a few seconds while those facts stay; see
    `preparing.py`."""

    at: float  # the host's uptime when the agent listed the nodes for the preparation
    times: int  # how often in a row, for the same holders
    found: tuple[str, ...]  # the other nodes that held claims
    holders: tuple[str, ...]  # those of them that keep their claims
    nodes: Mapping[str, str]  # by name: a digest of the facts that decide whether pods may move there
    disruptions: Mapping[str, int]  # by namespace/name: evictions that the budgets of the pods' namespaces allowed
    forecast: Forecast | None  # None: the policy wants none
    rehearsed: frozenset[str]  # UIDs of the pods to evict; a dry run allowed each
    refused: str = ""  # why the preparation was never valid: a refusal, or an unknown fact


class SlowWatch(Value, kw_only=True):
    """What this process saw of a drain with slow pods; see `drain/slow_pods.py`. Controllers are digests."""

    states: frozenset[tuple[str, bool]]  # the UIDs of the pods that were left, and whether each was terminating
    moved_at: float  # the uptime when the last pod left
    closed: frozenset[str] = frozenset()  # controllers whose evictions were still refused
    opened: Mapping[str, tuple[str, float]] = field(default_factory=dict)  # how, and how long after the cordon
    had_plain: bool = False  # other pods were here in this drain
    would_be: str = ""  # how a controller would have opened if it did so until the next turn


class Drain(Value, kw_only=True):
    """The eviction requests of this drain, and their answers."""

    evictions: Mapping[str, EvictionMemory] = field(default_factory=dict)  # by pod UID
    new_pods: Mapping[str, NewPodsMemory] = field(default_factory=dict)  # by owner UID: pods created after the cordon
    first: frozenset[str] = frozenset()  # the UIDs of the pods that this process saw first
    slow: SlowWatch | None = None


class LineWatch(Value, kw_only=True):
    """What this process saw of the line: since when a slot is free, and which nodes ahead have not started since."""

    key: str = ""  # the instant and the names of the line that this process watches, and the holders
    since: float = 0.0  # the uptime since which the lock has had a free slot while `key` did not change
    passed: tuple[str, ...] = ()  # the nodes named before us that did not start


class Costly(Value, kw_only=True):
    """The last refusal of a costly gate. Only the agent of the next node in line asks these gates."""

    not_before: float = 0.0  # the uptime of the next allowed question to costly gates
    refusals: int = 0  # how often in a row
    gate: str = ""  # which gate refused
    holders: tuple[str, ...] = ()  # at work since then; when one releases its claim, the node asks again at once


class Claiming(Value, kw_only=True):
    """The forecast and the holders from the moment when this node took its claim, and the other nodes that are taking
    claims now."""

    forecast: Forecast | None = None  # the forecast behind the claim; the node asks for another when it is old
    at: float = 0.0  # when the node took the claim
    holders: tuple[str, ...] = ()  # the holders at that time
    # Other nodes in the phase Claiming that have no claim in this lock. By node/resourceVersion: the uptime at which
    # this process first saw the node in this state.
    claimers: Mapping[str, float] = field(default_factory=dict)


class HolderCheck(Value, kw_only=True):
    """What this process knows about the holders, and when it checks them again."""

    at: float = 0.0  # the uptime of the next check of the holders
    suspected: Mapping[str, float] = field(default_factory=dict)  # by claim: first seen without its Node
    overdue: tuple[tuple[str, str], ...] = ()  # overdue holders and since when (RFC 3339), by the lock
    # The uptime of the next check whether the lock has a claim of this node that is missing in the record on the Node.
    holders_not_before: float = 0.0


class Crowd(Value, kw_only=True):
    """This node's own count of the waiting nodes. The lock has such a number too, written with each claim that is taken
    or released; an agent counts itself only if that number is more than a few (`crowd.py`)."""

    count: int | None = None
    until: float = 0.0  # the count is valid until then


class Patience(Value, kw_only=True):
    """The gates that lack a fact, and since when; see `patience.py`."""

    since: float | None = None
    gates: frozenset[str] = frozenset()  # the gates that lacked a fact
    claim: str = ""  # the claim under which this process has ended a turn


class Loss(Value, kw_only=True):
    """A mark of careen that did not stick: the answer to the write lacked it, or another client soon took it back."""

    times: int  # how often in a row
    at: float  # the uptime of the last time
    not_before: float  # the uptime before which the agent does not write it again
    wanted: str | None  # what the agent wrote; None: it removed the mark
    found: str | None  # what the object has instead; None: nothing
    is_reverted: bool  # the answer had it, and another client took it back
    stops: bool  # decisions rest on the mark: `marks.is_relied_on`
    by: tuple[str, ...] = ()  # field managers of what the object has instead; empty: unknown


class WrittenMark(Value, kw_only=True):
    """A mark as the answer to this process's last write showed it."""

    value: str | None
    at: float
    stops: bool


class Losses(Value, kw_only=True):
    """Which marks stick; by the mark's title, such as `label careen.dev/reboot`."""

    marks: Mapping[str, Loss] = field(default_factory=dict)
    written: Mapping[str, WrittenMark] = field(default_factory=dict)
    told: Mapping[str, float] = field(default_factory=dict)  # the uptime of the Event about the mark


class SeenVersions(Value, kw_only=True):
    """The highest resourceVersions that this process has seen, and since when a read was behind them (`rollback.py`).
    0: none was a number."""

    node: int = 0
    lock: int = 0  # of the DaemonSet
    behind_since: float | None = None  # the uptime
    is_lock_behind: bool = False
    pause_not_before: float = 0.0  # the uptime before which the agent does not try again to pause the lock


class Reported(Value, kw_only=True):
    """What the agent last told people: by an Event, and on the Node."""

    code: str = ""  # the reason code of the last Event: there is one Event for each change of code
    at: float = 0.0  # when the agent last wrote the reason on the Node


class Memory(Value, kw_only=True):
    """The memory of one agent process. Instants are in seconds of host uptime."""

    node_uid: str = ""  # another UID begins a new memory
    is_reconciled: bool = False  # this process has compared lock and Node since its start
    lock_due: float | None = None  # when the agent of an idle node reads the lock again: a claim may have appeared late
    agents: int | None = None  # how many nodes should run an agent, by the DaemonSet's last known status
    moves_counted_at: float | None = None  # when the agent last counted the pods that a drain would evict
    reboot: RebootMemory | None = None
    held: ClaimMemory | None = None  # outlives the Node's UID: see recovering.py
    need_seen_at: float | None = None  # since when an idle node has seen its need, while its taint waits
    prepared: Prepared | None = None  # the preparation of the next node in line
    stranger: StrangerMemory | None = None  # another process's announcement of this node's reboot
    line: LineWatch = LineWatch()
    costly: Costly = Costly()
    claiming: Claiming = Claiming()
    drain: Drain = Drain()
    holder_check: HolderCheck = HolderCheck()
    crowd: Crowd = Crowd()
    patience: Patience = Patience()
    losses: Losses = Losses()
    versions: SeenVersions = SeenVersions()
    reported: Reported = Reported()


LIVES: Mapping[str, frozenset[Phase]] = {
    "need_seen_at": frozenset({Phase.IDLE}),
    "line": frozenset({Phase.WAITING, Phase.CLAIMING}),
    "costly": frozenset({Phase.WAITING, Phase.CLAIMING}),
    "prepared": frozenset({Phase.WAITING, Phase.CLAIMING}),
    "claiming": frozenset({Phase.CLAIMING}),
    "drain": frozenset({Phase.DRAINING, Phase.REBOOTING}),
    "stranger": frozenset({Phase.REBOOTING}),
}
"""The phases in which each field of the memory is valid. A field that is not listed is valid in every phase."""

_EMPTY = Memory()


def in_phase(memory: Memory, phase: Phase) -> Memory:
    """The memory without the fields that only other phases use."""
    left = {name: getattr(_EMPTY, name) for name, phases in LIVES.items() if phase not in phases}
    return replace_value(memory, **left)


def before_report(decided: Memory, before: Memory) -> Memory:
    """The memory to store before a decision is applied: nothing of it is reported yet. Nothing at all is reported of a
    new Node (another UID)."""
    if decided.node_uid != before.node_uid:
        return replace(decided, reported=Reported())
    return replace(decided, reported=before.reported)


def after_report(memory: Memory, decided: Memory, *, is_node_patched: bool) -> Memory:
    """The memory once the decision's reports were sent, or if it has none. The time of the report counts only if the
    Node's patch succeeded."""
    return replace(
        memory, reported=Reported(code=decided.reported.code, at=(decided if is_node_patched else memory).reported.at)
    )


def after_eviction(
    memory: Memory,
    *,
    pod_uid: str,
    answer: EvictAnswer,
    uptime: float,
    jitter: float,
    detail: str = "",
    retry_after_seconds: float = 0.0,
    new_pod_owner: str = "",
) -> Memory:
    """The memory after one eviction request. The pause before the pod's next one grows exponentially, more slowly after
    the refusal of a budget, and is never shorter than Retry-After.

    `jitter` in [0, 1) makes the pause up to a quarter shorter or longer: agents whose evictions one budget refused must
    not all retry at once. `new_pod_owner` is the field of `EvictPod`.
    """
    before, is_judged = memory.drain.evictions.get(pod_uid), answer in JUDGED
    attempts = (before.attempts if before else 0) + 1
    pause = max(_pause_after(answer, attempts, jitter), retry_after_seconds)
    seen = EvictionMemory(
        attempts=attempts,
        not_before=uptime + pause,
        answer=answer,
        detail=detail,
        unjudged=(before.unjudged if before else 0) + (not is_judged),
        judged_before=before.judgement if before else None,
    )
    new_pods = _with_decided_round(memory.drain.new_pods, new_pod_owner) if is_judged else memory.drain.new_pods
    evictions = {**memory.drain.evictions, pod_uid: seen}
    return replace(memory, drain=replace(memory.drain, evictions=evictions, new_pods=new_pods))


def _with_decided_round(new_pods: Mapping[str, NewPodsMemory], owner: str) -> Mapping[str, NewPodsMemory]:
    """One more decided round for this owner: one in which the API server accepted or refused an eviction, however
    many."""
    seen = new_pods.get(owner)
    if seen is None:
        return new_pods
    return {**new_pods, owner: replace(seen, judgements=min(seen.rounds, seen.judgements + 1))}


def after_evicting_new_pods(memory: Memory, owners: Iterable[str], *, uptime: float, jitter: float) -> Memory:
    """The memory after an eviction round of pods that were created after the cordon. The pause before the owner's next
    round grows exponentially."""
    seen = dict(memory.drain.new_pods)
    for owner in owners:
        rounds = (seen[owner].rounds if owner in seen else 0) + 1
        judgements = seen[owner].judgements if owner in seen else 0
        seen[owner] = NewPodsMemory(rounds=rounds, not_before=uptime + _pause(rounds, jitter), judgements=judgements)
    return replace(memory, drain=replace(memory.drain, new_pods=seen))


def _pause_after(answer: EvictAnswer, attempts: int, jitter: float) -> float:
    if answer is EvictAnswer.BUDGET:
        return _pause(attempts, jitter, first=BUDGET_FIRST_BACKOFF_SECONDS, growth=BUDGET_GROWTH)
    return _pause(attempts, jitter)


def _pause(
    attempts: int, jitter: float, *, first: float = EVICTION_FIRST_BACKOFF_SECONDS, growth: float = EVICTION_GROWTH
) -> float:
    pause = first * growth ** min(attempts - 1, 32)
    return min(pause, EVICTION_LAST_BACKOFF_SECONDS) * (0.75 + 0.5 * jitter)


def before_reboot_asked(memory: Memory) -> Memory:
    """The memory to store just before the agent asks the host: the host may already have been asked."""
    return after_reboot_asked(memory, RebootOutcome.UNCLEAR, "the request to reboot has no result yet")


def after_reboot_asked(memory: Memory, outcome: RebootOutcome, detail: str = "") -> Memory:
    """The memory with the result of the reboot command."""
    assert memory.reboot is not None, "the agent must record the reboot on the Node before it asks the host"
    return replace(memory, reboot=replace(memory.reboot, outcome=outcome, detail=detail))

"""What one agent process remembers from turn to turn; lost with the process, and nothing may depend on its survival.

A decision carries the next memory. The shell stores it *before* it applies the first action, but for what was
said: that is remembered when it was. Then it folds in what the actions answered with the functions below. What
has to survive a restart or the reboot is in `progress.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum

from msgspec import field

from careen.core.facts.phases import Phase
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.values import Value, replace_value

EVICTION_FIRST_BACKOFF_SECONDS = 1.5
EVICTION_GROWTH = 2.0
BUDGET_FIRST_BACKOFF_SECONDS = 1.0  # a replica elsewhere often becomes ready within a few seconds
BUDGET_GROWTH = 1.25  # so a budget that is free again is noticed after a quarter of the time that it took, or less
EVICTION_LAST_BACKOFF_SECONDS = 60.0  # kured's drain asked without a pause, about twice a second, for ever


class EvictAnswer(StrEnum):
    """What an eviction request came to."""

    ACCEPTED = "accepted"  # the pod terminates, or is gone already
    GONE = "gone"  # 404, or 409 because another pod bears the name now: nothing of ours to evict
    BUDGET = "budget"  # 429 from a disruption budget
    DENIED = "denied"  # admission says no, a webhook or a policy; webhooks change their mind
    BARRED = "barred"  # 401, 403 of a missing right, another 4xx: turned away before anybody judged the eviction
    # not sent, a busy server, time out, connection lost, 5xx: asking again is safe, it carries the pod's UID
    UNCLEAR = "unclear"


JUDGED = frozenset({EvictAnswer.ACCEPTED, EvictAnswer.BUDGET, EvictAnswer.DENIED})
"""Answers of a server that surely received the eviction and decided about it. Only these count towards
--force-reboot: a node whose evictions do not get through has not been drained, whoever's fault it is, and an
answer that was lost proves nothing."""


class RebootOutcome(StrEnum):
    """What became of the reboot that was announced last, as far as this process knows."""

    NOT_ASKED = "not-asked"  # announced by this process, and surely not asked of the host
    ACCEPTED = "accepted"  # the command exited 0, or the signal was delivered
    FAILED = "failed"  # the command exited otherwise, or could not be started: the host surely stays up
    UNCLEAR = "unclear"  # it was started and did not answer in time: the host may go down


class EvictionMemory(Value, kw_only=True):
    """How often this pod's eviction was asked, and from which uptime on it may be asked again."""

    attempts: int
    not_before: float
    answer: EvictAnswer
    detail: str = ""
    unjudged: int = 0  # how many of the attempts nobody judged, or perhaps nobody did
    judged_before: EvictAnswer | None = None  # the last judgement, if the last attempt was not judged

    @property
    def judgements(self) -> int:
        """How many of the attempts were judged."""
        return self.attempts - self.unjudged

    @property
    def judgement(self) -> EvictAnswer | None:
        """The last one."""
        return self.answer if self.answer in JUDGED else self.judged_before


class ComerMemory(Value, kw_only=True):
    """How often pods of one owner that came in spite of the cordon were evicted, and from which uptime on the
    next ones may be."""

    rounds: int
    not_before: float
    judgements: int = 0  # in how many rounds an eviction was judged


class RebootMemory(Value, kw_only=True):
    """The outcome of this process's last announcement: `by` names it in the record, where another process may
    have put its own."""

    claim: str
    announcement: int
    outcome: RebootOutcome
    detail: str = ""
    by: str = ""

    @property
    def may_be_under_way(self) -> bool:
        """Whether this process asked the host, and the host did not surely decline."""
        return self.outcome in {RebootOutcome.ACCEPTED, RebootOutcome.UNCLEAR}


class StrangerMemory(Value, kw_only=True):
    """An announcement that this process did not make, and since which uptime it has seen it stand there unchanged."""

    by: str
    announcement: int
    since: float


class ClaimMemory(Value, kw_only=True):
    """The claim that the own record held when it was read last, and whether a reboot had been announced under
    it, by whatever process."""

    claim: str
    is_announced: bool


class Prepared(Value, kw_only=True):
    """What a node made for its turn while the holder's workloads settled, and what it rests on. It counts as long as
    that is unchanged, and for a few seconds; see `preparing.py`."""

    at: float  # uptime when the first of it was asked
    times: int  # how often in a row, for the same holders
    found: tuple[str, ...]  # who held claims besides this node
    holders: tuple[str, ...]  # who of them keeps its claim
    nodes: Mapping[str, str]  # by name: a digest of what decides where pods may land
    disruptions: Mapping[str, int]  # by namespace/name: evictions that the budgets of the pods' namespaces allowed
    forecast: Forecast | None  # None: none was wanted
    rehearsed: frozenset[str]  # UIDs of the pods to evict; a dry run allowed each
    refused: str = ""  # why it does not count from the beginning: something was refused, or not known


class Drain(Value, kw_only=True):
    """What the eviction requests of this drain came to."""

    evictions: Mapping[str, EvictionMemory] = field(default_factory=dict)  # by pod UID
    comers: Mapping[str, ComerMemory] = field(default_factory=dict)  # by owner UID: pods created after the cordon


class LineWatch(Value, kw_only=True):
    """This process's watch over the line of waiting nodes."""

    key: str = ""  # the hand-over (names and writing instant) being watched
    since: float = 0.0  # since when a slot is free under that hand-over
    passed: tuple[str, ...] = ()  # who was named before us and did not come


class Costly(Value, kw_only=True):
    """The last refusal of a costly gate."""

    not_before: float = 0.0  # costly gates are not asked again before
    refusals: int = 0  # how often in a row
    gate: str = ""  # which gate refused
    holders: tuple[str, ...] = ()  # who held claims then: with others holding, the gates are asked again at once


class Claiming(Value, kw_only=True):
    """What the own claim was taken on."""

    forecast: Forecast | None = None  # the one that let the node take its claim; asked again when it is old
    at: float = 0.0  # when that was
    holders: tuple[str, ...] = ()  # who held claims then
    claimers: Mapping[str, float] = field(default_factory=dict)  # by node/resourceVersion: first seen beside us


class Behind(Value, kw_only=True):
    """What this process saw when it looked behind the claims of the lock."""

    at: float = 0.0  # the claims' holders are not looked at again before
    ghosts: Mapping[str, float] = field(default_factory=dict)  # by claim id: first seen without its Node
    overdue: tuple[tuple[str, str], ...] = ()  # holders that take too long and since when (RFC 3339), by the lock
    holders_not_before: float = 0.0  # an own entry without a record is not looked at again before


class Crowd(Value, kw_only=True):
    """How many nodes may wait, as this one counted itself where nobody else does."""

    count: int | None = None
    until: float = 0.0  # the count holds until then


class Patience(Value, kw_only=True):
    """What must be known and is not; see `patience.py`."""

    since: float | None = None
    gates: frozenset[str] = frozenset()  # the gates that did not know enough
    claim: str = ""  # the claim under which this process has ended a turn


class Told(Value, kw_only=True):
    """What people were told last."""

    code: str = ""  # the reason code of the last Event: one per change of mind
    at: float = 0.0  # when the reason on the Node was last written


class Memory(Value, kw_only=True):
    """See the module; instants are host uptime in seconds."""

    node_uid: str = ""  # another UID begins a new memory
    is_reconciled: bool = False  # lock and Node were compared since the start
    lock_due: float | None = None  # when an idle node compares them once more: a claim's write may land late
    agents: int | None = None  # how many nodes should run an agent, as the lock's object last said
    moves_counted_at: float | None = None  # when the own pods were counted last
    reboot: RebootMemory | None = None
    held: ClaimMemory | None = None  # outlives the Node's UID: see recovering.py
    need_seen_at: float | None = None  # since when an idle node has seen its need, while its taint waits
    prepared: Prepared | None = None  # for the next turn in the line
    stranger: StrangerMemory | None = None  # another process's announcement of this node's reboot
    line: LineWatch = LineWatch()
    costly: Costly = Costly()
    claiming: Claiming = Claiming()
    drain: Drain = Drain()
    behind: Behind = Behind()
    crowd: Crowd = Crowd()
    patience: Patience = Patience()
    told: Told = Told()


LIVES: Mapping[str, frozenset[Phase]] = {
    "need_seen_at": frozenset({Phase.IDLE}),
    "line": frozenset({Phase.WAITING, Phase.CLAIMING}),
    "costly": frozenset({Phase.WAITING, Phase.CLAIMING}),
    "prepared": frozenset({Phase.WAITING, Phase.CLAIMING}),
    "claiming": frozenset({Phase.CLAIMING}),
    "drain": frozenset({Phase.DRAINING, Phase.REBOOTING}),
    "stranger": frozenset({Phase.REBOOTING}),
}
"""The phases in which a part of the memory means anything. What is not listed outlives every phase."""

_EMPTY = Memory()


def in_phase(memory: Memory, phase: Phase) -> Memory:
    """The memory of a node that stands in this phase: what belonged to others only is dropped."""
    left = {name: getattr(_EMPTY, name) for name, phases in LIVES.items() if phase not in phases}
    return replace_value(memory, **left)


def not_yet_said(decided: Memory, before: Memory) -> Memory:
    """The memory of a decision of which nothing is carried out yet: what is said is what was said before, of
    the same Node."""
    if decided.node_uid != before.node_uid:
        return replace(decided, told=Told())
    return replace(decided, told=before.told)


def having_said(memory: Memory, decided: Memory, *, is_node_told: bool) -> Memory:
    """The memory once the decision's Event was posted, or it had none; `is_node_told`: its patch landed as well."""
    return replace(memory, told=Told(code=decided.told.code, at=(decided if is_node_told else memory).told.at))


def after_eviction(
    memory: Memory,
    *,
    pod_uid: str,
    answer: EvictAnswer,
    uptime: float,
    jitter: float,
    detail: str = "",
    retry_after_seconds: float = 0.0,
    comer_of: str = "",
) -> Memory:
    """Memory after one eviction request: the pod's next attempt waits exponentially longer, never less than
    Retry-After; where a budget refused, in smaller steps.

    `jitter` in [0, 1) spreads agents that were refused by the same budget over half the pause. `comer_of`: see
    `EvictPod`."""
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
    comers = _judged_comer(memory.drain.comers, comer_of) if is_judged else memory.drain.comers
    return replace(memory, drain=Drain(evictions={**memory.drain.evictions, pod_uid: seen}, comers=comers))


def _judged_comer(comers: Mapping[str, ComerMemory], owner: str) -> Mapping[str, ComerMemory]:
    """One more judged round of this owner; several pods of one round count once."""
    seen = comers.get(owner)
    if seen is None:
        return comers
    return {**comers, owner: replace(seen, judgements=min(seen.rounds, seen.judgements + 1))}


def after_evicting_comers(memory: Memory, owners: Iterable[str], *, uptime: float, jitter: float) -> Memory:
    """Memory after pods that came in spite of the cordon were evicted: each round of the same owner waits
    exponentially longer."""
    seen = dict(memory.drain.comers)
    for owner in owners:
        rounds = (seen[owner].rounds if owner in seen else 0) + 1
        judgements = seen[owner].judgements if owner in seen else 0
        seen[owner] = ComerMemory(rounds=rounds, not_before=uptime + _pause(rounds, jitter), judgements=judgements)
    return replace(memory, drain=replace(memory.drain, comers=seen))


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
    """Memory just before the host is asked: from here on the process cannot say that it did not ask."""
    return after_reboot_asked(memory, RebootOutcome.UNCLEAR, "the host was asked and has not answered yet")


def after_reboot_asked(memory: Memory, outcome: RebootOutcome, detail: str = "") -> Memory:
    """Memory with the host's answer."""
    assert memory.reboot is not None, "a reboot is asked only after it was announced"
    return replace(memory, reboot=replace(memory.reboot, outcome=outcome, detail=detail))

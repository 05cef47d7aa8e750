"""The drain of a node with slow pods: which they are, how long the other pods wait for them, when the drain is undone,
and what the node remembers of it. The set is recorded with the cordon, so a new process of the agent has it too."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from careen.core.drain import drain_memory
from careen.core.drain.drain_memory import DrainMemory, KnownOwner, UnderWay, digest
from careen.core.drain.drain_plan import DrainPlan, to_evict
from careen.core.drain.refused_evictions import SlowPod, denied, foreseen, is_webhooks, slow_pod
from careen.core.facts.memory import EvictAnswer, SlowWatch
from careen.core.facts.observation import PodView
from careen.core.facts.policy import ForecastPolicy
from careen.core.facts.times import rfc3339
from careen.core.situation import Situation, known
from scheduler_core.sentences import first_few
from scheduler_core.simulation.evicted.understood import is_plain
from scheduler_core.simulation.forecast import Forecast, Opens
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

# The API server and an operator need seconds to notice a cordon. A budget that opens later usually opens only once the
# other pods have left.
PLAIN_PODS_WAIT_SECONDS = 60.0
IDLE_LIMIT_SECONDS = 1800.0  # since the last pod left: the live migration of a large VM takes as long
LIMIT_SECONDS = 7200.0
# Of two nodes that wait for each other, the younger claim. An operator that recovers its data takes minutes.
GIVES_WAY_SECONDS = 600.0
_LOOK_SECONDS = 2.0


class SlowDrain(Value, kw_only=True):
    """The slow pods that are left in a drain, and those that wait for them."""

    under_way: UnderWay | None = None
    left: tuple[PodView, ...] = ()
    plain: tuple[PodView, ...] = ()
    idle_seconds: float = 0.0  # since the last pod left

    @property
    def is_slow(self) -> bool:
        """Whether a slow pod is left."""
        return bool(self.left)


# Before the cordon -------------------------------------------------------------------------------------------------


def found(situation: Situation) -> tuple[SlowPod, ...]:
    """The slow pods by this turn's dry runs and forecast."""
    answers, forecast = known(situation.seen.evictability) or {}, known(situation.seen.forecast)
    told = {pod.uid: pod for pod in forecast.slow} if forecast else {}
    pods = to_evict(known(situation.seen.pods) or (), situation.policy.drain)
    each = (slow_pod(pod, answers.get(pod.uid), told.get(pod.uid), situation.policy.drain) for pod in pods)
    return tuple(pod for pod in each if pod is not None)


def foreseen_in(forecast: Forecast) -> tuple[SlowPod, ...]:
    """The slow pods by a forecast."""
    return tuple(foreseen(pod) for pod in forecast.slow)


def objection(situation: Situation, pods: Iterable[SlowPod]) -> tuple[str, str, datetime | None]:
    """Why no drain may begin yet, because earlier ones were undone for these slow pods, the remedy, and when the next
    try is; "" if one may."""
    pods, memory = tuple(pods), drain_memory.of(situation.node)
    at = memory.next_try(pods, situation.server_now)
    if at is None:
        return "", "", None
    undone = [pod for pod in pods if memory.of(pod).undone] or list(pods)
    return _refusal(memory, undone, at), _remedy(situation, undone), at


def _refusal(memory: DrainMemory, pods: list[SlowPod], at: datetime) -> str:
    most = max((memory.of(pod).undone for pod in pods), default=0) or len(memory.undone)
    drains = "an earlier drain was" if most == 1 else f"{most} drains were"
    are = "never (seen): " if most >= drain_memory.MOST_UNDONE or any(pod.is_plain_denial for pod in pods) else ""
    return (
        f"{are}{drains} undone because these pods did not leave: {first_few([_named(pod) for pod in pods])}; "
        f"the next try is at {rfc3339(at)}"
    )


def _named(pod: SlowPod) -> str:
    return f"{pod.title} ({pod.why})" if pod.why else pod.title


def _remedy(situation: Situation, pods: list[SlowPod]) -> str:
    operators = [f"the operator of {pod.budget_owner or pod.owner}" for pod in pods if not pod.is_plain_denial]
    look = f"look at {first_few(sorted(set(operators)))} and its setting for drains" if operators else ""
    webhooks = first_few(sorted({pod.webhook for pod in pods if pod.is_plain_denial and pod.webhook}))
    change = f"change the webhook {webhooks}" if webhooks else ""
    return "; ".join(each for each in (look, change, f"`careen retry {situation.node.name}` tries at once") if each)


def at_cordon(situation: Situation) -> dict[str, str | None]:
    """The change of the annotations with which a drain begins: its slow pods. {} without any, now and before."""
    pods, memory = found(situation), drain_memory.of(situation.node)
    if not pods:
        return drain_memory.patch(situation.node, replace(memory, under_way=None)) if memory.under_way else {}
    now = situation.server_now
    rows = {pod.owner: _row(memory.of(pod), pod, now) for pod in pods[: drain_memory.MOST_KEYS]}
    owners = {pod.owner for pod in pods}
    under_way = UnderWay(
        claim=situation.progress.claim,
        owners=frozenset(digest(owner) for owner in rows),
        plain_after_seconds=_plain_after(rows.values()),
        is_cut=len(owners) > len(rows),
    )
    return drain_memory.patch(situation.node, replace(memory, known={**memory.known, **rows}, under_way=under_way))


def _row(before: KnownOwner, pod: SlowPod, now: datetime) -> KnownOwner:
    return replace(
        before,
        owner_uid=pod.owner_uid,
        revision=pod.revision,
        budget=pod.budget or before.budget,
        webhook=pod.webhook or before.webhook,
        at=before.at if before.undone else now,
    )


def _plain_after(rows: Iterable[KnownOwner]) -> float | None:
    """How long the other pods wait. After an undone drain they are not evicted in vain once more, unless this node has
    seen that it must be empty first."""
    rows = tuple(rows)
    if any(row.undone and row.opens is not Opens.EMPTIED for row in rows):
        return None
    return 0.0 if any(row.opens is Opens.EMPTIED for row in rows) else PLAIN_PODS_WAIT_SECONDS


def said(situation: Situation) -> str:
    """A clause about the slow pods, for the sentence of the cordon; "" without any."""
    pods = found(situation)
    if not pods:
        return ""
    names = first_few([pod.title for pod in pods])
    return f"; what refuses the eviction of these pods now may allow it during the drain: {names}"


# During the drain --------------------------------------------------------------------------------------------------


def look(situation: Situation, plan: DrainPlan) -> SlowDrain:
    """The slow pods among those that are left. The memory notes what has left since the last turn."""
    memory = drain_memory.of(situation.node)
    recorded = memory.under_way if memory.under_way and memory.under_way.claim == situation.progress.claim else None
    here = (*plan.now, *plan.later)
    left = tuple(pod for pod in here if _is_slow(situation, recorded, pod))
    plain = tuple(pod for pod in here if pod not in left)
    watch = _watched(situation, plan, recorded, left, plain)
    situation.remember(drain=replace(situation.memory.drain, slow=watch))
    return SlowDrain(under_way=recorded, left=left, plain=plain, idle_seconds=situation.seen.uptime - watch.moved_at)


def _is_slow(situation: Situation, recorded: UnderWay | None, pod: PodView) -> bool:
    if recorded is not None and (recorded.is_cut or digest(pod.owner_title) in recorded.owners):
        return True
    asked = situation.memory.drain.evictions.get(pod.uid)
    if asked is None:
        return False
    if asked.answer is EvictAnswer.BUDGET and situation.policy.forecast is ForecastPolicy.OFF:
        # Only a forecast knows before the cordon that a budget lets one pod of several go.
        return bool(pod.owner_kind) and not is_plain(pod.owner_kind, pod.owner_api_version)
    return asked.answer is EvictAnswer.DENIED and is_webhooks(asked.detail)


def _watched(
    situation: Situation,
    plan: DrainPlan,
    recorded: UnderWay | None,
    left: tuple[PodView, ...],
    plain: tuple[PodView, ...],
) -> SlowWatch:
    before, uptime = situation.memory.drain.slow, situation.seen.uptime
    states = frozenset((pod.uid, pod.is_terminating) for pod in plan.left)
    has_moved = before is None or not before.states <= states
    closed = frozenset(
        digest(pod.owner_title) for pod in left if recorded and digest(pod.owner_title) in recorded.owners
    )
    opened = dict(before.opened) if before else {}
    if before is not None:
        seconds = situation.elapsed(situation.progress.drain_started) or 0.0
        opened |= dict.fromkeys(before.closed - closed, (before.would_be, seconds))
    others_here = bool(plain) or any(
        digest(pod.owner_title) not in (recorded.owners if recorded else ()) for pod in plan.ending
    )
    had_plain = others_here or (before is not None and before.had_plain)
    return SlowWatch(
        states=states,
        moved_at=uptime if has_moved or before is None else before.moved_at,
        closed=closed,
        opened={owner: each for owner, each in opened.items() if owner not in closed},
        had_plain=had_plain,
        would_be=(Opens.EMPTIED if had_plain and not others_here else Opens.CORDON).value,
    )


def held_back(plan: DrainPlan, slow: SlowDrain, elapsed: float) -> DrainPlan:
    """The plan in which plain pods wait for the slow ones, as long as the record says."""
    if slow.under_way is None or not slow.left:
        return plan
    wait = slow.under_way.plain_after_seconds
    if wait is not None and elapsed >= wait:
        return plan
    first = {pod.uid for pod in slow.left}
    now = tuple(pod for pod in plan.now if pod.uid in first)
    waiting = tuple(pod for pod in plan.now if pod.uid not in first)
    pause = plan.look_again_seconds if now else min(plan.look_again_seconds or _LOOK_SECONDS, _LOOK_SECONDS)
    return replace(plan, now=now, later=(*plan.later, *waiting), look_again_seconds=pause)


def is_out_of_time(slow: SlowDrain, elapsed: float) -> bool:
    """Whether slow pods have not left in time, without --drain-timeout."""
    return slow.is_slow and (slow.idle_seconds > IDLE_LIMIT_SECONDS or elapsed > LIMIT_SECONDS)


def is_refused_for_long(situation: Situation, plan: DrainPlan, slow: SlowDrain) -> bool:
    """Whether no pod has left for a while, none is about to, and a budget or a webhook refuses an eviction."""
    asked = situation.memory.drain.evictions
    answers = {asked[pod.uid].answer for pod in (*plan.now, *plan.later) if pod.uid in asked}
    is_refused = bool(answers & {EvictAnswer.BUDGET, EvictAnswer.DENIED})
    return is_refused and not plan.ending and slow.idle_seconds > GIVES_WAY_SECONDS


# After the drain ---------------------------------------------------------------------------------------------------


def after_success(situation: Situation) -> dict[str, str | None]:
    """The change of the annotations when the node is drained: how each controller's budget or webhook opened."""
    memory, watch = drain_memory.of(situation.node), situation.memory.drain.slow
    if memory.under_way is None:
        return {}
    opened = dict(watch.opened) if watch else {}
    is_ours = memory.under_way.claim == situation.progress.claim
    rows = {
        owner: _opened(row, opened[digest(owner)], situation.server_now) if is_ours and digest(owner) in opened else row
        for owner, row in memory.known.items()
    }
    return drain_memory.patch(situation.node, replace(memory, known=rows, under_way=None))


def _opened(row: KnownOwner, how: tuple[str, float], now: datetime) -> KnownOwner:
    # A webhook learns of the drain only by a real request.
    return replace(row, opens=Opens.ATTEMPT if row.webhook else Opens(how[0]), seconds=how[1], undone=0, at=now)


def after_undo(situation: Situation, slow: SlowDrain) -> DrainMemory:
    """The memory when the drain is undone because slow pods are left."""
    memory, now = drain_memory.of(situation.node), situation.server_now
    left = {pod.owner_title: pod for pod in slow.left}
    rows = {owner: _undone(situation, memory.known.get(owner, KnownOwner()), pod, now) for owner, pod in left.items()}
    known = {**memory.known, **dict(list(rows.items())[: drain_memory.MOST_KEYS])}
    return replace(memory, known=known, under_way=None)


def _undone(situation: Situation, row: KnownOwner, pod: PodView, now: datetime) -> KnownOwner:
    """A pod that became slow only during the drain has no row yet."""
    asked = situation.memory.drain.evictions.get(pod.uid)
    if not row.owner_uid:
        seen = denied(pod, asked.detail if asked else "")
        row = replace(row, owner_uid=seen.owner_uid, revision=seen.revision, webhook=seen.webhook)
    return replace(row, undone=row.undone + 1, at=now)

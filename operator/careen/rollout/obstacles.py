"""Why no node begins its reboot, and what would change that: only if nodes wait, nothing is at work, and nothing will
change by itself soon."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from careen.core.decision import Refusal
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339
from careen.core.gates import COSTLY
from careen.core.gates.halt import halt_remedy, halted_because
from careen.core.lock.content import Garbage, LockContent
from careen.rollout.model import NodeState, Standstill, State
from careen.rollout.openings import opening_clause
from careen.rollout.refusals import PASSING, Surroundings
from careen.rollout.remedies import as_sentence, for_holders, general
from careen.rollout.troubles import not_ready
from scheduler_core.sentences import count_of
from scheduler_core.sentences import first_few as listed

_SHOWN_HOLDERS = 3
_SHOWN_CODES = 3  # the rest is in the table, and in `careen why`
SOON = timedelta(minutes=2)
"""What ends within this time by itself is no obstacle; and a node that nothing refuses may take as long to begin."""
A_MOMENT = timedelta(seconds=45)
"""Longer than the first two pauses of an agent whose costly gate refuses."""


def obstacle(
    statuses: Sequence[NodeState],
    refusals: Mapping[str, tuple[Refusal, ...]],
    ends: Mapping[str, datetime | None],
    present: Surroundings,
) -> Standstill | None:
    """None if no node waits, if a node is at work, or if something will change soon. `refusals` are those that still
    hold, by node; `ends` when all refusals of a node end by themselves. With the agents' policy it says when a
    window opens."""
    nodes, lock, now = tuple(present.views.values()), present.lock, present.now
    waiting = [node for node in nodes if node.shown_phase == Phase.WAITING]
    if not waiting or any(each.state is State.WORKING for each in statuses):
        return None
    is_begun = any(each.state is State.DONE for each in statuses)
    is_free = not (isinstance(lock, LockContent) and lock.entries)
    return _by_the_lock(waiting, nodes, statuses, lock, now) or (
        None
        if any(end is not None and end - now <= SOON for end in ends.values())
        else _by_their_refusals(waiting, refusals, present, is_free=is_free, is_begun=is_begun)
    )


# ---- what stops all nodes ----


def _by_the_lock(
    waiting: Sequence[NodeView],
    nodes: Sequence[NodeView],
    statuses: Sequence[NodeState],
    lock: LockContent | Garbage | Unknown,
    now: datetime,
) -> Standstill | None:
    holding = lock.holders if isinstance(lock, LockContent) else ()
    names = [node.name for node in waiting if node.name not in holding] or [node.name for node in waiting]
    waiters = f"{len(names)} nodes" if len(names) > 1 else names[0]
    if isinstance(lock, Garbage):
        return Standstill(
            why=f"No reboot will start: the lock cannot be understood ({lock.why})",
            code=Code.LOCK_GARBAGE.value,
            ways_out=(Code.LOCK_GARBAGE.remedy,),
        )
    if not isinstance(lock, LockContent):
        return None
    # A pause ends, and a failure is often the consequence of another holder's: its pods are missing elsewhere.
    dead = {each.name: each.trouble for each in statuses if each.state is State.STUCK}
    dead |= {node.name: told for node in nodes if node.name in holding and (told := not_ready(node, now))}
    besides = f"; besides, {listed(list(dead.values()), separator='; ')}" if dead else ""
    for_dead = for_holders([node for node in nodes if node.name in dead])
    if lock.is_paused:
        reason = f" ({lock.pause_reason})" if lock.pause_reason else ""
        return Standstill(
            why=f"No reboot will start: a person paused the lock{reason}, so {waiters} must wait until the pause ends"
            f"{besides}",
            code=Code.PAUSED.value,
            ways_out=(Code.PAUSED.remedy, *for_dead),
        )
    if halted := halted_because(lock):
        failed = {entry.node for entry in lock.failed}
        since = _earliest(_phase_since(node) for node in nodes if node.name in failed)
        return Standstill(
            why=f"No reboot will start: {halted}{besides}",
            code=Code.HALTED.value,
            since=since,
            ways_out=(*for_dead, as_sentence(halt_remedy(lock))),
        )
    return _waiting_for_holders(waiters, nodes, statuses, lock)


def _waiting_for_holders(
    waiters: str, nodes: Sequence[NodeView], statuses: Sequence[NodeState], lock: LockContent
) -> Standstill | None:
    """Only if all claims are taken."""
    if not lock.holders or len(lock.holders) < max(lock.max_owners, 1):
        return None
    holders = [node for node in nodes if node.name in lock.holders]
    of_node = {each.name: each for each in statuses if each.name in lock.holders}
    gone = [name for name in lock.nodes if name not in of_node]
    unread = ["the name of a holder cannot be read (`careen lock show`)"] if lock.nodes != lock.holders else []
    troubles = {each.name: each.trouble for each in of_node.values() if each.state is State.STUCK}
    phases = [troubles.get(node.name) or _at(node, of_node[node.name]) for node in holders]
    stuck = [node for node in holders if node.name in troubles]
    kept = [name for name, each in of_node.items() if each.state is State.KEPT_DOWN]
    ways = (
        *(f"`careen why {node.name}` shows the progress of {node.name}." for node in holders[:1]),
        *for_holders(stuck),
        *(f"Only if the host of {name} is down or idle: `careen lock release {name}`." for name in gone[:1]),
        *(f"`careen maintenance {name} --end` ends the maintenance of {name}." for name in kept[:1]),
    )
    if not (stuck or gone):
        ways = (*ways, Code.LIMIT_REACHED.remedy)
    what = "; ".join([*unread, *(f"there is no Node {name}" for name in gone), *phases][:_SHOWN_HOLDERS])
    return Standstill(
        why=f"No further reboot will start: {waiters} must wait for a free claim; {_claims_of(lock.holders)}: {what}",
        code=(Code.HOLDER_OVERDUE if stuck or gone else Code.LIMIT_REACHED).value,
        since=_earliest(node.ready_since or _phase_since(node) for node in stuck or holders),
        ways_out=ways,
    )


def _claims_of(holders: Sequence[str]) -> str:
    return f"{listed(holders)} holds the only claim" if len(holders) == 1 else f"{listed(holders)} hold all claims"


def _at(node: NodeView, state: NodeState) -> str:
    stands = state.doing if state.state is State.KEPT_DOWN else node.shown_phase
    return f"{node.name} is {stands}{_said(node)}"


def _said(node: NodeView) -> str:
    reason = node.annotations.get(keys.REASON, "").rstrip(".")
    return f" ({reason})" if reason else ""


# ---- what stops single nodes ----


def _by_their_refusals(
    waiting: Sequence[NodeView],
    known: Mapping[str, tuple[Refusal, ...]],
    present: Surroundings,
    *,
    is_free: bool,
    is_begun: bool,
) -> Standstill | None:
    """If gates refuse all waiting nodes; or if there is no holder, a costly gate refuses a node, and the others have
    not begun for a while: only the agents of the first nodes in line ask costly gates, and all others wait for them."""
    now, policy = present.now, present.policy
    refused = {node.name: known[node.name] for node in waiting if known.get(node.name)}
    left = sorted({node.name for node in waiting} - refused.keys())
    if not refused or _is_passing(refused.values()) or _is_new(refused.values(), now):
        return None
    if left and not (
        is_free and any(_holds_up_others(each, now) for refusals in refused.values() for each in refusals)
    ):
        return None
    by_code = _by_code(refused)
    since = max(
        (each for each in (_earliest(one.since for one in refusals) for refusals in refused.values()) if each),
        default=None,
    )
    reasons = [_reason(code, by_code[code], waiting, now, policy) for code in list(by_code)[:_SHOWN_CODES]]
    left_out = len(by_code) - _SHOWN_CODES
    more = f"; and {count_of(left_out, 'more reason')}" if left_out > 0 else ""
    ways = [way for code in list(by_code)[:_SHOWN_CODES] for way in _ways_out(by_code[code])]
    more_of = " further" if is_begun else ""
    verdict = f"No{more_of} reboot has started so far" if left else f"No{more_of} reboot will start"
    unchecked = f"; the gates have not checked {listed(left)} yet" if left else ""
    return Standstill(
        why=f"{verdict}: {'; '.join(reasons)}{more}{unchecked}",
        code=next(iter(by_code)).value,
        since=since,
        ways_out=tuple(dict.fromkeys(ways)),
    )


def _holds_up_others(refusal: Refusal, now: datetime) -> bool:
    """A refusal of the whole cluster holds the line at once. Any other only moves its node back in line."""
    return refusal.gate in COSTLY and _lasts(refusal, SOON, now)


def _is_passing(refused: Iterable[Collection[Refusal]]) -> bool:
    return any(all(each.code in PASSING for each in refusals) for refusals in refused)


def _is_new(refused: Iterable[Collection[Refusal]], now: datetime) -> bool:
    """Whether only costly gates refuse a node, and only for a moment: after a reboot a taint or a replica that is not
    ready yet refuses the next node for seconds."""
    return any(
        all(each.gate in COSTLY and not _lasts(each, A_MOMENT, now) for each in refusals) for refusals in refused
    )


def _lasts(refusal: Refusal, longer: timedelta, now: datetime) -> bool:
    """Whether nothing ends the refusal soon, or it has lasted longer than this."""
    return refusal.is_of_cluster or refusal.since is None or now - refusal.since > longer


def _by_code(refused: dict[str, tuple[Refusal, ...]]) -> dict[Code, dict[str, Refusal]]:
    """By reason code, the one with the most nodes first."""
    found: dict[Code, dict[str, Refusal]] = {}
    for name, refusals in refused.items():
        for each in refusals:
            found.setdefault(each.code, {}).setdefault(name, each)
    return dict(sorted(found.items(), key=lambda row: (-len(row[1]), row[0])))


def _reason(
    code: Code, refusals: dict[str, Refusal], nodes: Sequence[NodeView], now: datetime, policy: Policy | None
) -> str:
    name, example = _example(refusals)
    waiting = len(nodes)
    which_nodes = (
        f"all {waiting} waiting nodes"
        if len(refusals) == waiting > 1
        else f"{len(refusals)} of {waiting} waiting nodes, namely {listed(sorted(refusals))}"
        if waiting > 1
        else name
    )
    sentence = example.sentence.rstrip(".")
    is_shared = len({each.sentence for each in refusals.values()}) == 1
    if code is Code.OUTSIDE_WINDOW:
        opening = _opening([node for node in nodes if node.name in refusals], now, policy)
        windows = sentence if is_shared else "each node is outside its own maintenance windows"
        return f"{windows}; {opening} ({which_nodes})"
    if is_shared:
        return f"{sentence} (the gate `{example.gate}` refuses {which_nodes})"
    return f"the gate `{example.gate}` refuses {which_nodes}; for example, {name}: {sentence}"


def _opening(refused: Sequence[NodeView], now: datetime, policy: Policy | None) -> str:
    if policy is None:
        return "the settings could not be read, so it is unknown when a window opens"
    return opening_clause(policy, refused, now)


def _ways_out(refusals: dict[str, Refusal]) -> list[str]:
    """First a remedy that a simulation has proven for one of the nodes, then the general one."""
    name, example = _example(refusals)
    proven = [f"{name}: {example.remedy}."] if example.remedy else []
    remedy = general(example).replace("NODE", name if len(refusals) == 1 else "NODE")
    return [*proven, remedy]


def _example(refusals: dict[str, Refusal]) -> tuple[str, Refusal]:
    """Prefers a node whose refusal has a proven remedy, then the one that has been refused for longest."""
    return min(
        refusals.items(),
        key=lambda row: (not row[1].remedy, row[1].since.timestamp() if row[1].since else float("inf"), row[0]),
    )


def _phase_since(node: NodeView) -> datetime | None:
    return from_rfc3339(node.annotations.get(keys.SINCE, ""))


def _earliest(instants: Iterable[datetime | None]) -> datetime | None:
    return min((each for each in instants if each), default=None)

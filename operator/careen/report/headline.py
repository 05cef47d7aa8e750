"""The headline above the table of nodes: why none begins its reboot. Only if nodes wait and none can begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from careen.core.decision import Refusal, stored_refusals
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.gates import GATES
from careen.core.gates.halt import halted_because
from careen.core.gates.hold import held_because, hold
from careen.core.gates.question import Cost, No
from careen.core.lock.content import Garbage, LockContent
from careen.report.fleet_report import phase_of
from careen.report.lock_report import LockState
from careen.report.openings import opening_clause
from careen.report.tables import age, count_of, listed, paragraph
from scheduler_core.values import Value

_ASKED_LAST = frozenset(gate.name for gate in GATES if gate.cost is Cost.COSTLY)
_SHOWN_CODES = 3  # the rest is in the table, and in `careen why`


class Headline(Value, kw_only=True):
    """Why no node begins its reboot, and what would change that. `since` is None if unknown."""

    why: str
    code: str
    since: datetime | None = None
    ways_out: tuple[str, ...] = ()


def headline(
    nodes: Sequence[NodeView], lock: LockState, now: datetime, policy: Policy | None = None
) -> Headline | None:
    """None if no node waits, or if one may begin. With the agents' `policy` it says when a window opens."""
    waiting = [node for node in nodes if phase_of(node) == Phase.WAITING]
    if not waiting:
        return None
    is_free = not (isinstance(lock, LockContent) and lock.entries)
    return _by_the_lock(waiting, nodes, lock) or _by_their_refusals(waiting, now, policy, is_free=is_free)


def asks_for_policy(nodes: Iterable[NodeView]) -> bool:
    """To say when a window opens."""
    return any(refusal.code is Code.OUTSIDE_WINDOW for node in nodes for refusal in stored_refusals(node))


def headline_text(found: Headline, now: datetime, *, width: int | None = None) -> str:
    """For a terminal, with the remedies."""
    since = f" The cause has lasted for {age(found.since, now)}." if found.since else ""
    lines = [paragraph(f"{found.why}.{since}", width=width)]
    if found.ways_out:
        lines += ["What you can do:", *(paragraph(each, indent="  ", width=width) for each in found.ways_out)]
    return "\n".join(lines)


def headline_json(found: Headline | None) -> dict[str, Any] | None:
    """The headline as JSON."""
    if found is None:
        return None
    return {
        "code": found.code,
        "why": found.why,
        "since": rfc3339(found.since) if found.since else None,
        "waysOut": list(found.ways_out),
    }


# ---- what stops all nodes ----


def _by_the_lock(waiting: Sequence[NodeView], nodes: Sequence[NodeView], lock: LockState) -> Headline | None:
    waiters = f"{len(waiting)} nodes" if len(waiting) > 1 else waiting[0].name
    if isinstance(lock, Garbage):
        return Headline(
            why=f"No reboot will start: the lock cannot be understood ({lock.why})",
            code=Code.LOCK_GARBAGE.value,
            ways_out=(_remedy(Code.LOCK_GARBAGE),),
        )
    if not isinstance(lock, LockContent):
        return None
    if lock.is_paused:
        reason = f" ({lock.pause_reason})" if lock.pause_reason else ""
        return Headline(
            why=f"No reboot will start: a person paused the lock{reason}, so {waiters} must wait until the pause ends",
            code=Code.PAUSED.value,
            ways_out=(_remedy(Code.PAUSED),),
        )
    if halted := halted_because(lock):
        failed = {entry.node for entry in lock.failed}
        since = _earliest(_phase_since(node) for node in nodes if node.name in failed)
        return Headline(why=f"No reboot will start: {halted}", code=Code.HALTED.value, since=since)
    return _waiting_for_holders(waiters, nodes, lock)


def _waiting_for_holders(waiters: str, nodes: Sequence[NodeView], lock: LockContent) -> Headline | None:
    """Only if all claims are taken. None if a claim's Node does not exist, because the report about the lock describes
    that."""
    holders = [node for node in nodes if node.name in lock.holders]
    if not holders or len(lock.holders) < max(lock.max_owners, 1) or len(holders) < len(lock.holders):
        return None
    first = holders[0].name
    phases = "; ".join(f"{node.name} is {phase_of(node)}{_said(node)}" for node in holders[:3])
    ways = (f"`careen why {first}` shows the progress of {first}.", _remedy(Code.LIMIT_REACHED))
    return Headline(
        why=f"No further reboot will start: {waiters} must wait for a free claim; {_claims_of(holders)}: {phases}",
        code=Code.LIMIT_REACHED.value,
        since=_earliest(_phase_since(node) for node in holders),
        ways_out=ways,
    )


def _claims_of(holders: Sequence[NodeView]) -> str:
    names = listed([node.name for node in holders])
    return f"{names} holds the only claim" if len(holders) == 1 else f"{names} hold all claims"


def _said(node: NodeView) -> str:
    reason = node.annotations.get(keys.REASON, "").rstrip(".")
    return f" ({reason})" if reason else ""


# ---- what stops single nodes ----


def _by_their_refusals(
    waiting: Sequence[NodeView], now: datetime, policy: Policy | None, *, is_free: bool
) -> Headline | None:
    """If gates refuse all waiting nodes; or if there is no holder and a costly gate refuses a node: only the agents of
    the first nodes in line ask costly gates, and all others wait for them."""
    everybody = {node.name: _refusals_now(node, now) for node in waiting}
    refused = {name: refusals for name, refusals in everybody.items() if refusals}
    left = sorted(everybody.keys() - refused.keys())
    if left and not (is_free and any(each.gate in _ASKED_LAST for refusals in refused.values() for each in refusals)):
        return None
    by_code = _by_code(refused)
    since = max(
        (each for each in (_earliest(one.since for one in refusals) for refusals in refused.values()) if each),
        default=None,
    )
    reasons = [_reason(code, by_code[code], waiting, now, policy) for code in list(by_code)[:_SHOWN_CODES]]
    left_out = len(by_code) - _SHOWN_CODES
    more = f"; and {count_of(left_out, 'more reason')}" if left_out > 0 else ""
    ways = [way for code in list(by_code)[:_SHOWN_CODES] for way in _ways_out(code, by_code[code])]
    verdict = "No reboot has started so far" if left else "No reboot will start"
    unchecked = f"; the gates have not checked {listed(left)} yet" if left else ""
    return Headline(
        why=f"{verdict}: {'; '.join(reasons)}{more}{unchecked}",
        code=next(iter(by_code)).value,
        since=since,
        ways_out=tuple(dict.fromkeys(ways)),
    )


def _refusals_now(node: NodeView, now: datetime) -> tuple[Refusal, ...]:
    """The refusals on the Node, and one for a hold that the agent has not seen yet."""
    stored = stored_refusals(node)
    held = held_because(node, now)
    if held and Code.HELD not in {each.code for each in stored}:
        return (*stored, hold.refusal(No(Code.HELD, held)))
    return stored


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


def _ways_out(code: Code, refusals: dict[str, Refusal]) -> list[str]:
    """First a remedy that a simulation has proven for one of the nodes, then the general one."""
    name, example = _example(refusals)
    proven = [f"{name}: {example.remedy}."] if example.remedy else []
    return [*proven, _remedy(code, name if len(refusals) == 1 else "NODE")]


def _example(refusals: dict[str, Refusal]) -> tuple[str, Refusal]:
    """Prefers a node whose refusal has a proven remedy, then the one that has been refused for longest."""
    return min(
        refusals.items(),
        key=lambda row: (not row[1].remedy, row[1].since.timestamp() if row[1].since else float("inf"), row[0]),
    )


def _remedy(code: Code, node: str = "NODE") -> str:
    return code.remedy.replace("NODE", node)


def _phase_since(node: NodeView) -> datetime | None:
    return from_rfc3339(node.annotations.get(keys.SINCE, ""))


def _earliest(instants: Iterable[datetime | None]) -> datetime | None:
    return min((each for each in instants if each), default=None)

"""The lock in words: holders, pause, and who is next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from careen.core.facts.observation import NodeView, Unknown
from careen.core.facts.reasons import Code
from careen.core.facts.times import age, from_rfc3339
from careen.core.gates.halt import halted, halted_because
from careen.core.lock import overdue
from careen.core.lock.content import Entry, Garbage, LockContent
from careen.report.tables import listed, paragraph, table
from careen.rollout.durations import is_for_maintenance
from careen.rollout.model import told_phase
from scheduler_core.sentences import count_of
from scheduler_core.values import Value

LockState = LockContent | Garbage | Unknown
"""Garbage if it cannot be parsed, Unknown if it was not read."""


def lock_sentence(state: LockState, now: datetime, *, told: str = "") -> str:
    """`1 of 2 claims held by n3 (4m12s); next: n4, n5, chosen from 7 waiting nodes`. `told`: the code of the obstacle
    that the report names before; a halt is then one word."""
    if isinstance(state, Unknown):
        return f"the lock could not be read: {state.why}"
    if isinstance(state, Garbage):
        return (
            f"the lock cannot be understood ({state.why}), so no reboot may start; `careen lock show` prints the lock"
        )
    parts = [_held(state, now)]
    if state.is_paused:
        reason = f" ({state.pause_reason})" if state.pause_reason else ""
        parts.insert(0, f"PAUSED: a person paused the lock{reason}")
    if late := overdue.sentences(overdue.holders_overdue(state)):
        parts.insert(0, f"OVERDUE: {late}")
    if halted := halted_because(state):
        parts.insert(0, "HALTED" if told == Code.HALTED else f"HALTED: {halted}")
    waiting = count_of(state.line.waiting, "waiting node") if state.line.waiting else ""
    if state.line.names:
        parts.append(f"next: {listed(state.line.names)}{f', chosen from {waiting}' if waiting else ''}")
    elif waiting:
        parts.append(f"next: none of {waiting} is named in the lock yet")
    return "; ".join(parts)


def _held(content: LockContent, now: datetime) -> str:
    if not content.entries:
        return "no node holds a claim"
    since = {entry.node: from_rfc3339(entry.created) for entry in content.entries}
    holders = [f"{node} ({age(since[node], now)})" for node in content.holders]
    return f"{len(content.holders)} of {max(content.max_owners, 1)} claims held by {listed(holders)}"


class StrayClaim(Value, kw_only=True):
    """A claim whose Node no longer exists, or was replaced by another of the same name."""

    node: str
    is_another: bool

    @property
    def sentence(self) -> str:
        """What is wrong, and how the claim is removed."""
        what = (
            f"the Node {self.node} that took the claim was replaced by another Node of the same name"
            if self.is_another
            else f"there is no Node {self.node}"
        )
        return (
            f"a claim is held by {self.node}, but {what}. careen frees the claim when this state has lasted longer "
            f"than the reboot deadline. `careen lock release {self.node}` frees the claim immediately: run it only if "
            "you know that the host is down or idle."
        )


def stray_claims(state: LockState, nodes: Iterable[NodeView]) -> tuple[StrayClaim, ...]:
    """The claims that may be stale. `nodes` must contain the holders' Nodes."""
    if not isinstance(state, LockContent):
        return ()
    uids = {node.name: node.uid for node in nodes}
    found = (
        StrayClaim(node=entry.node, is_another=entry.node in uids)
        for entry in state.entries
        if not entry.is_nameless and (entry.node not in uids or (entry.uid and entry.uid != uids[entry.node]))
    )
    return tuple(dict.fromkeys(found))


def stray_json(strays: Iterable[StrayClaim]) -> list[dict[str, Any]]:
    """`why`: another Node has the claim's node name now, or no Node has it."""
    return [
        {"node": each.node, "why": "another-node" if each.is_another else "no-such-node", "sentence": each.sentence}
        for each in strays
    ]


def lock_text(
    state: LockState, nodes: Mapping[str, NodeView], now: datetime, *, where: str, width: int | None = None
) -> str:
    """For a terminal. `nodes` are the holders' Nodes that exist; `where` is the object with the lock's annotation."""
    lines = [paragraph(f"Lock on {where}: {lock_sentence(state, now)}")]
    if isinstance(state, LockContent) and (no := halted(state)):
        lines.append(paragraph(f"What you can do: {no.remedy}.", width=width))
    if isinstance(state, LockContent) and state.entries:
        rows = [_row(entry, nodes.get(entry.node), now) for entry in state.entries]
        lines += ["", table(["HOLDER", "SINCE", "PHASE", "CLAIM", "GROUPS"], rows, width=width)]
    if strays := stray_claims(state, nodes.values()):
        lines += ["", *(paragraph(each.sentence, width=width) for each in strays)]
    return "\n".join(lines)


def _row(entry: Entry, node: NodeView | None, now: datetime) -> list[str]:
    return [
        entry.node,
        age(from_rfc3339(entry.created), now),
        _phase(entry, node, now),
        entry.id or "kured's",
        ", ".join(entry.groups),
    ]


def _phase(entry: Entry, node: NodeView | None, now: datetime) -> str:
    if entry.unread:
        return "the claim is unreadable, but treated as held"
    if node is None:
        return "there is no such Node"
    if entry.uid and entry.uid != node.uid:
        return "another Node has this name"
    return told_phase(node.shown_phase, is_for_maintenance=is_for_maintenance(node, now))


def lock_json(state: LockState, raw: str | None = None) -> dict[str, Any]:
    """`state` is held, free, paused, garbage or unknown; `raw` is the annotation's text."""
    if not isinstance(state, LockContent):
        is_garbage = isinstance(state, Garbage)
        return {**dict.fromkeys(_KEYS), "state": "garbage" if is_garbage else "unknown", "why": state.why, "raw": raw}
    return {
        "state": "paused" if state.is_paused else "held" if state.entries else "free",
        "why": None,
        "pauseReason": state.pause_reason,
        "haltedBecause": halted_because(state),
        "maxOwners": state.max_owners or None,  # 0: an older lock does not say
        "holders": [
            {
                "node": entry.node,
                "claim": entry.id,
                "uid": entry.uid,
                "since": entry.created,
                "groups": list(entry.groups),
                "bootLeft": entry.boot,
                "failed": entry.failed,
                "overdue": _overdue_json(entry),
            }
            for entry in state.entries
        ],
        "next": list(state.line.names),
        "nextAt": state.line.at,
        "waiting": state.line.waiting,
        "releasedAt": state.released_at,
        "raw": raw,
    }


_KEYS = (
    "state",
    "why",
    "pauseReason",
    "haltedBecause",
    "maxOwners",
    "holders",
    "next",
    "nextAt",
    "waiting",
    "releasedAt",
    "raw",
)


def _overdue_json(entry: Entry) -> dict[str, str] | None:
    return {"phase": entry.overdue.phase, "since": entry.overdue.since} if entry.overdue else None

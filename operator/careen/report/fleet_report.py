"""All nodes as a table below a sentence about the lock: phase, since when, place in line, reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from careen.core.decision import stored_refusals
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import UnreadableProgress
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import object_of
from careen.core.lock.content import LockContent
from careen.core.node import cordons
from careen.report.history_report import expected_ends, expected_json, expected_text
from careen.report.lock_report import LockState, lock_json, lock_sentence, stray_claims, stray_json
from careen.report.tables import age, count_of, listed, paragraph, table

# Nodes that need a person first, then nodes at work, then waiting nodes, then idle ones.
_ORDER = (
    Phase.FAILED,
    Phase.REBOOTING,
    Phase.VERIFYING,
    Phase.DRAINING,
    Phase.MAINTENANCE,
    Phase.CLAIMING,
    Phase.SETTLING,
    Phase.WAITING,
    Phase.IDLE,
)


def fleet_text(
    nodes: Sequence[NodeView],
    lock: LockState,
    now: datetime,
    *,
    only_busy: bool = False,
    is_wide: bool = False,
    width: int | None = None,
) -> str:
    """What `careen status` says about all nodes: the lock, stray claims, warnings, the table, the expected ends of
    reboots under way, and the number of nodes in each phase."""
    shown = [node for node in in_order(nodes, lock) if not only_busy or phase_of(node) != Phase.IDLE]
    lines = [paragraph(f"Lock: {lock_sentence(lock, now)}.", width=width)]
    lines += [paragraph(f"Stray claim: {each.sentence}", width=width) for each in stray_claims(lock, nodes)]
    lines += [paragraph(each, width=width) for each in _warnings(nodes)]
    if shown:
        with_cordons = any(node.unschedulable for node in shown)
        rows = [
            [
                node.name,
                phase_of(node),
                age(_since(node), now),
                place_of(node, lock),
                *([cordon_of(node)] if with_cordons else []),
                *(_wide(node, now) if is_wide else []),
                reason_of(node),
            ]
            for node in shown
        ]
        lines += [
            "",
            table(
                [
                    *("NODE", "PHASE", "SINCE", "LINE"),
                    *(["CORDON"] if with_cordons else []),
                    *(_WIDE if is_wide else []),
                    "REASON",
                ],
                rows,
                width=width,
            ),
        ]
    lines += ["", *under_way] if (under_way := expected_text(nodes, now, width=width)) else []
    counts = Counter(phase_of(node) for node in nodes)
    counted = ", ".join(f"{counts[name]} {name}" for name in dict.fromkeys([*_ORDER, *sorted(counts)]) if counts[name])
    lines += ["", paragraph(f"{count_of(len(nodes), 'node')}{f': {counted}' if counted else ''}.", width=width)]
    return "\n".join(lines)


_WIDE = ["READY", "ZONE", "LABEL", "MOVES", "LAST REBOOT", "HOLD"]


def _wide(node: NodeView, now: datetime) -> list[str]:
    """The cells of `_WIDE`. MOVES is the number of pods that a drain would evict, by the agent's last count."""
    last = object_of(node.annotations.get(keys.LAST_REBOOT)).get("at")
    at = from_rfc3339(last) if isinstance(last, str) else None
    return [
        "yes" if node.ready else "no",
        node.zone,
        node.labels.get(keys.REBOOT_LABEL, ""),
        node.annotations.get(keys.MOVES, ""),
        f"{age(at, now)} ago" if at else "",
        node.annotations.get(keys.HOLD, ""),
    ]


def names_text(nodes: Sequence[NodeView], lock: LockState, *, only_busy: bool = False) -> str:
    """A line `node/NAME` for each node, in the order of the table."""
    return "\n".join(
        paragraph(f"node/{node.name}")
        for node in in_order(nodes, lock)
        if not only_busy or phase_of(node) != Phase.IDLE
    )


def fleet_json(
    nodes: Sequence[NodeView], lock: LockState, *, raw_lock: str | None = None, only_busy: bool = False
) -> dict[str, Any]:
    """The nodes and the lock as JSON."""
    shown = [node for node in in_order(nodes, lock) if not only_busy or phase_of(node) != Phase.IDLE]
    ends = expected_ends(nodes)
    return {
        "lock": lock_json(lock, raw_lock),
        "strayClaims": stray_json(stray_claims(lock, nodes)),
        "nodes": [{**node_json(node, lock), "expected": expected_json(ends.get(node.name))} for node in shown],
    }


def node_json(node: NodeView, lock: LockState) -> dict[str, Any]:
    """One node as JSON, from its annotations."""
    return {
        "name": node.name,
        "phase": phase_of(node),
        "since": node.annotations.get(keys.SINCE),
        "reason": node.annotations.get(keys.REASON, ""),
        "label": node.labels.get(keys.REBOOT_LABEL, ""),
        "turn": place_of(node, lock),
        "refusals": [
            {
                "gate": each.gate,
                "code": each.code.value,
                "sentence": each.sentence,
                "since": each.since,
                "remedy": each.remedy or None,
            }
            for each in stored_refusals(node)
        ],
        "hold": node.annotations.get(keys.HOLD),
        "warning": node.annotations.get(keys.WARNING),
        "unschedulable": node.unschedulable,
        "cordon": cordon_of(node) or None,
        "ready": node.ready,
    }


def in_order(nodes: Sequence[NodeView], lock: LockState) -> list[NodeView]:
    """By phase, the most urgent first; within a phase the line, then the others by name."""
    named = lock.line.names if isinstance(lock, LockContent) else ()

    def key(node: NodeView) -> tuple[int, int, str]:
        phase = phase_of(node)
        urgency = next((place for place, each in enumerate(_ORDER) if each == phase), 0)
        return urgency, named.index(node.name) if node.name in named else len(named), node.name

    return sorted(nodes, key=key)


def phase_of(node: NodeView) -> str:
    """Idle if the Node shows none."""
    return node.annotations.get(keys.PHASE, Phase.IDLE.value)


def place_of(node: NodeView, lock: LockState) -> str:
    """`holder`, or `next` for a node that the lock names. For any other waiting node its label: `required` while a
    cheap gate other than `halt` refuses, otherwise `ready`. The agent asks the cheap gates in each turn. "" if the node
    does not wait."""
    if isinstance(lock, LockContent) and node.name in lock.holders:
        return "holder"
    if isinstance(lock, LockContent) and node.name in lock.line.names:
        return "next"
    label = node.labels.get(keys.REBOOT_LABEL, "")
    return label if label in ("ready", "required") else ""


def cordon_of(node: NodeView) -> str:
    """`careen`, or another client's name; "" if the node is not cordoned."""
    if not node.unschedulable:
        return ""
    return cordons.foreign_author(node) if cordons.is_foreign(node) else "careen"


def reason_of(node: NodeView) -> str:
    """The reason on the Node, and other facts that explain its state."""
    parts = [unreadable(node), node.annotations.get(keys.REASON, "")]
    if keys.HOLD in node.annotations and phase_of(node) == Phase.IDLE:
        hold = node.annotations[keys.HOLD].strip()
        parts.append(f"held: {hold}" if hold else "held without a reason")
    return "; ".join(part for part in parts if part)


def unreadable(node: NodeView) -> str:
    """Why the record is unreadable, for this report and for the node's agent; "" if it is readable."""
    record = node.written
    return record.why if isinstance(record, UnreadableProgress) else ""


def _warnings(nodes: Sequence[NodeView]) -> list[str]:
    """Warnings of the self-tests, each once with the names of its nodes, because most nodes have the same."""
    saying: dict[str, list[str]] = {}
    for node in nodes:
        if warning := node.annotations.get(keys.WARNING):
            saying.setdefault(warning, []).append(node.name)
    return [f"Warning ({listed(sorted(names))}): {warning}." for warning, names in saying.items()]


def _since(node: NodeView) -> datetime | None:
    return from_rfc3339(node.annotations.get(keys.SINCE, ""))

"""All nodes as a table below a sentence about the lock: phase, since when, place in line, reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import UnreadableProgress
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.facts.times import age, from_rfc3339
from careen.core.facts.untrusted import object_of
from careen.core.gates.halt import halt
from careen.core.lock.content import LockContent
from careen.core.node import cordons
from careen.report.headline import progress_sentence
from careen.report.history_report import expected_json, expected_text
from careen.report.lock_report import LockState, lock_json, lock_sentence, stray_claims, stray_json
from careen.report.tables import height_of, listed, paragraph, table
from careen.rollout.model import Cause, NodeState, RolloutView, State
from careen.rollout.older_records import refusals_of
from careen.rollout.reading import rollout
from careen.rollout.refusals import Surroundings, disproof
from scheduler_core.sentences import count_of

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
_URGENCY: Mapping[str, int] = {phase: place for place, phase in enumerate(_ORDER)}


SCREEN = 40
"""So many lines a screen has; `careen status --all` prints the rest."""
_SHOWN_CAUSES = 5


def fleet_text(
    nodes: Sequence[NodeView],
    lock: LockState,
    now: datetime,
    *,
    only_busy: bool = False,
    is_wide: bool = False,
    width: int | None = None,
    model: RolloutView | None = None,
    lines: int | None = None,
    selector: Selector | None = None,
) -> str:
    """What `careen status` says about all nodes: progress, the lock, stray claims, warnings, what holds several nodes,
    the table, the expected ends of reboots under way, and the number of nodes in each phase. With `lines`, the table
    ends where that many lines are full. With `selector`, table and numbers are of the nodes that match."""
    model = model or rollout(nodes, lock, now)
    chosen = _chosen(nodes, selector)
    shown = [node for node in in_order(chosen, lock) if not only_busy or node.shown_phase != Phase.IDLE]
    far = progress_sentence(model)
    before = [paragraph(f"Roll-out: {far}.", width=width)] if far else []
    told = model.obstacles[0].code if model.obstacles else ""
    before.append(paragraph(f"Lock: {lock_sentence(lock, now, told=told)}.", width=width))
    strays = stray_claims(lock, nodes)
    before += [paragraph(f"Stray claim: {each.sentence}", width=width) for each in strays]
    before += [paragraph(each, width=width) for each in _warnings(nodes)]
    ends = {each.name: each.expected for each in model.nodes if each.expected and each.state is not State.STUCK}
    under_way = expected_text(ends, now, width=width)
    after = ["", *(under_way if lines is None else under_way[:3])] if under_way else []
    states = {each.name: each for each in model.nodes}
    counts = Counter(_phase(node, states) for node in chosen)
    counted = ", ".join(f"{counts[name]} {name}" for name in dict.fromkeys([*_ORDER, *sorted(counts)]) if counts[name])
    total = count_of(len(nodes), "node") if selector is None else f"{len(chosen)} of {count_of(len(nodes), 'node')}"
    after += ["", paragraph(f"{total}{f': {counted}' if counted else ''}.", width=width)]
    if lines is not None and len(shown) > lines - height_of([*before, *after]) - 2:
        before += _causes_text(model, width)
    room = None if lines is None else max(1, lines - height_of([*before, *after]) - 2)
    return "\n".join([*before, *_table(shown, nodes, lock, model, is_wide=is_wide, width=width, room=room), *after])


def _chosen(nodes: Sequence[NodeView], selector: Selector | None) -> Sequence[NodeView]:
    return nodes if selector is None else [node for node in nodes if selector.matches(node.labels)]


def _phase(node: NodeView, states: Mapping[str, NodeState]) -> str:
    state = states.get(node.name)
    return node.shown_phase if state is None else state.shown_phase


def _table(
    shown: Sequence[NodeView],
    nodes: Sequence[NodeView],
    lock: LockState,
    model: RolloutView,
    *,
    is_wide: bool,
    width: int | None,
    room: int | None,
) -> list[str]:
    """The nodes in as many lines as there is room for, and how many are left out."""
    if not shown:
        return []
    first = shown if room is None else shown[:room]
    states = {each.name: each for each in model.nodes}
    present = Surroundings(views={node.name: node for node in nodes}, lock=lock, now=model.at)
    with_cordons = any(node.unschedulable for node in first)
    with_ready = not is_wide and any(not node.ready for node in first)
    header = [
        *["NODE", "PHASE", "SINCE", "LINE"],
        *(["READY"] if with_ready else []),
        *(["CORDON"] if with_cordons else []),
        *(_WIDE if is_wide else []),
        "REASON",
    ]
    rows = [
        [
            node.name,
            _phase(node, states),
            age(_since(node), model.at),
            place_of(node, lock),
            *([ready_of(node, model.at)] if with_ready else []),
            *([cordon_of(node, model.at)] if with_cordons else []),
            *(_wide(node, model.at) if is_wide else []),
            _told(node, states.get(node.name), present),
        ]
        for node in first
    ]
    text = table(header, rows, width=width).split("\n")
    if room is None or (len(text) - 1 <= room and len(first) == len(shown)):
        return ["", *text]
    while rows and len(text) > room:
        rows = rows[: max(0, len(rows) - max(1, (len(text) - room) // 3))]
        text = table(header, rows, width=width).split("\n")
    left = len(shown) - len(rows)
    return ["", *text, f"… and {count_of(left, 'more node')}: `careen status --all` shows every node, -o json too."]


def _told(node: NodeView, state: NodeState | None, present: Surroundings) -> str:
    """The reason; of a holder without progress first what is wrong with it, of a node whose refusals are all disproved
    first what disproves them, and of one that only the halt holds no more than that: the report begins with it."""
    if state is not None and state.causes and all(key.startswith(f"{halt.name}/") for key in state.causes):
        return "the roll-out halts"
    if state is not None and state.state is State.QUEUED:
        overs = [disproof(each, node, present) for each in refusals_of(node)]
        if overs and all(overs):
            return f"{overs[0]}, so this is over: {reason_of(node)}"
    if state is not None and state.state is State.STUCK:
        return f"{state.trouble}; the Node says: {reason_of(node)}" if reason_of(node) else state.trouble
    return reason_of(node)


def ready_of(node: NodeView, now: datetime) -> str:
    """`yes`, or since when the Node is not."""
    if node.ready:
        return "yes"
    return f"NotReady {age(node.ready_since, now)}" if node.ready_since is not None else "NotReady"


def _causes_text(model: RolloutView, width: int | None) -> list[str]:
    """What holds nodes back, those with most nodes first. A halt with which the report begins is not repeated."""
    is_told = bool(model.obstacles) and model.obstacles[0].code == Code.HALTED
    causes = [each for each in model.causes if each.code != Code.HALTED or not is_told]
    if not causes:
        return []
    found = ["", "Held back by:"]
    alike: dict[tuple[str, tuple[str, ...], str], list[Cause]] = {}  # three cordons that hold the same nodes
    for each in causes:
        alike.setdefault((each.code, each.nodes, each.remedy), []).append(each)
    for members in list(alike.values())[:_SHOWN_CAUSES]:
        what = listed([each.subject or each.sentence for each in members])
        found.append(paragraph(cause_line(members[0], what, model.at), indent="  ", width=width))
    if (left := len(alike) - _SHOWN_CAUSES) > 0:
        found.append(f"  … and {count_of(left, 'more cause')} (-o json)")
    return found


def cause_line(each: Cause, what: str, now: datetime) -> str:
    """`12 nodes: budget shop/web, for 3h: n1, n2 and 10 more. REMEDY`."""
    since = f", for {age(each.since, now)}" if each.since is not None else ""
    seen = f" (as an agent saw it {age(each.seen, now)} ago)" if each.seen is not None else ""
    return f"{count_of(len(each.nodes), 'node')}: {what}{since}{seen}: {listed(each.nodes, most=3)}. {each.remedy}"


_WIDE = ["READY", "ZONE", "LABEL", "MOVES", "LAST REBOOT", "HOLD"]


def _wide(node: NodeView, now: datetime) -> list[str]:
    """The cells of `_WIDE`. MOVES is the number of pods that a drain would evict, by the agent's last count."""
    last = object_of(node.annotations.get(keys.LAST_REBOOT)).get("at")
    at = from_rfc3339(last) if isinstance(last, str) else None
    return [
        ready_of(node, now),
        node.zone,
        node.labels.get(keys.REBOOT_LABEL, ""),
        node.annotations.get(keys.MOVES, ""),
        f"{age(at, now)} ago" if at else "",
        node.annotations.get(keys.HOLD, ""),
    ]


def names_text(
    nodes: Sequence[NodeView], lock: LockState, *, only_busy: bool = False, selector: Selector | None = None
) -> str:
    """A line `node/NAME` for each node that matches, in the order of the table."""
    return "\n".join(
        paragraph(f"node/{node.name}")
        for node in in_order(_chosen(nodes, selector), lock)
        if not only_busy or node.shown_phase != Phase.IDLE
    )


def fleet_json(
    nodes: Sequence[NodeView],
    lock: LockState,
    *,
    raw_lock: str | None = None,
    only_busy: bool = False,
    selector: Selector | None = None,
    model: RolloutView | None = None,
) -> dict[str, Any]:
    """The nodes, those that match, and the lock as JSON. Only the `model` knows expected ends."""
    chosen = in_order(_chosen(nodes, selector), lock)
    shown = [node for node in chosen if not only_busy or node.shown_phase != Phase.IDLE]
    ends = {each.name: each.expected for each in model.nodes} if model else {}
    return {
        "lock": lock_json(lock, raw_lock),
        "strayClaims": stray_json(stray_claims(lock, nodes)),
        "nodes": [{**node_json(node, lock), "expected": expected_json(ends.get(node.name))} for node in shown],
    }


def node_json(node: NodeView, lock: LockState) -> dict[str, Any]:
    """One node as JSON, from its annotations."""
    return {
        "name": node.name,
        "phase": node.shown_phase,
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
            for each in refusals_of(node)
        ],
        "hold": node.annotations.get(keys.HOLD),
        "warning": node.annotations.get(keys.WARNING),
        "unschedulable": node.unschedulable,
        "cordon": cordon_of(node) or None,
        "ready": node.ready,
        "readySince": node.ready_since,
    }


def in_order(nodes: Sequence[NodeView], lock: LockState) -> list[NodeView]:
    """By phase, the most urgent first; within a phase the line, then the others by name."""
    named = lock.line.names if isinstance(lock, LockContent) else ()

    def key(node: NodeView) -> tuple[int, int, str]:
        return (
            _URGENCY.get(node.shown_phase, 0),
            named.index(node.name) if node.name in named else len(named),
            node.name,
        )

    return sorted(nodes, key=key)


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


def cordon_of(node: NodeView, now: datetime | None = None) -> str:
    """`careen`, or another client's name with the age of the cordon, if known; "" if the node is not cordoned."""
    if not node.unschedulable:
        return ""
    if not cordons.is_foreign(node):
        return "careen"
    since = f" {age(node.cordoned_at, now)}" if now is not None and node.cordoned_at is not None else ""
    return f"{cordons.foreign_author(node)}{since}"


def reason_of(node: NodeView) -> str:
    """The reason on the Node, and other facts that explain its state."""
    why, reason = unreadable(node), node.annotations.get(keys.REASON, "")
    parts = [why if why not in reason else "", reason]
    if keys.HOLD in node.annotations and node.shown_phase == Phase.IDLE:
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

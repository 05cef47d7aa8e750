"""Makes the model from the Nodes and the lock, as `careen status` reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil

from careen.core.decision import Refusal
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Unknown
from careen.core.facts.phases import UNDER_CLAIM, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import UnreadableProgress
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import object_of
from careen.core.gates.hold import held_because, hold
from careen.core.gates.question import No
from careen.core.lock.content import Entry, Garbage, LockContent
from careen.core.steps.shared.history import reboots_of
from careen.rollout.durations import expected_ends, is_for_maintenance, last_lengths, usual_seconds
from careen.rollout.model import Cause, Counts, Expected, NodeState, RolloutView, State
from careen.rollout.obstacles import obstacle
from careen.rollout.older_records import refusals_of
from careen.rollout.refusals import PASSING, Surroundings, disproof, ends_of, subjects_of, with_authors
from careen.rollout.remedies import remedy_of
from careen.rollout.troubles import trouble_of

_PLACES = ("ready", "required")
_FOR_MAINTENANCE = {Phase.WAITING, *UNDER_CLAIM} - {Phase.REBOOTING}


def rollout(
    nodes: Sequence[NodeView],
    lock: LockContent | Garbage | Unknown,
    now: datetime,
    policy: Policy | None = None,
) -> RolloutView:
    """The roll-out. Only with the agents' `policy` it knows when windows open. It costs one pass over the Nodes."""
    present = Surroundings(views={node.name: node for node in nodes}, lock=lock, now=now, policy=policy)
    held = {node.name: still_holding(node, present) for node in nodes if node.shown_phase == Phase.WAITING}
    held = {name: refusals for name, refusals in held.items() if refusals}
    causes = _causes(held, present)
    of_node: dict[str, list[str]] = {}
    for cause in causes:
        for name in cause.nodes:
            of_node.setdefault(name, []).append(cause.key)
    history = {node.name: reboots_of(node) for node in nodes}
    lengths = last_lengths(nodes, history)
    ends = expected_ends(nodes, lengths)
    needs = {node.name: node.need_since for node in nodes}
    stand = (needs[node.name] for node in nodes if node.shown_phase != Phase.IDLE)
    begins = min((at for at in stand if at is not None), default=None)
    entries = {entry.node: entry for entry in lock.entries} if isinstance(lock, LockContent) else {}
    named = frozenset(lock.line.names) if isinstance(lock, LockContent) else frozenset()
    statuses = tuple(
        _status(
            node,
            entries.get(node.name),
            now,
            is_done=begins is not None and any(each.at >= begins for each in history[node.name]),
            need_since=needs[node.name],
            is_named=node.name in named,
            causes=tuple(of_node.get(node.name, ())),
            expected=ends.get(node.name),
        )
        for node in nodes
    )
    until = {name: _end(present.views[name], refusals, present) for name, refusals in held.items()}
    found = obstacle(statuses, held, until, present)
    most = max(lock.max_owners, 1) if isinstance(lock, LockContent) else 1
    is_open = isinstance(lock, LockContent) and not lock.is_paused and not lock.failed
    working = {each.name for each in statuses if each.state is State.WORKING}
    places = most - sum(1 for name in entries if name not in working)  # others are gone or down for maintenance
    counts = _counts(statuses, now, places, usual_seconds(lengths), is_stopped=found is not None or not is_open)
    return RolloutView(
        at=now,
        nodes=statuses,
        causes=causes,
        counts=counts,
        obstacles=(found,) if found else (),
        max_owners=most,
    )


def still_holding(node: NodeView, present: Surroundings) -> tuple[Refusal, ...]:
    """The refusals on the Node without those that lock and Nodes disprove, one for a hold that the agent has not seen
    yet, and one for a record that cannot be read: careen does nothing on such a node."""
    stored = tuple(each for each in refusals_of(node) if not disproof(each, node, present))
    record = node.record
    if isinstance(record, UnreadableProgress):
        stored = (*stored, Refusal(gate="record", code=Code.PROGRESS_UNREADABLE, sentence=record.why))
    held = held_because(node, present.now)
    if held and Code.HELD not in {each.code for each in stored}:
        return (*stored, hold.refusal(No(Code.HELD, held)))
    return stored


def _end(node: NodeView, refusals: Sequence[Refusal], present: Surroundings) -> datetime | None:
    """When all refusals end by themselves; None if one does not."""
    ends = [ends_of(each, node, present) for each in refusals]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def _causes(held: Mapping[str, tuple[Refusal, ...]], present: Surroundings) -> tuple[Cause, ...]:
    """By gate, code and subject; those with most nodes first."""
    found: dict[str, list[tuple[str, Refusal, str]]] = {}
    for name, refusals in held.items():
        for refusal in refusals:
            for subject in subjects_of(refusal, name):
                key = f"{refusal.gate}/{refusal.code.value}" + (f"/{subject}" if subject else "")
                found.setdefault(key, []).append((name, refusal, subject))
    load = Counter(name for rows in found.values() for name in {row[0] for row in rows})
    causes = [_cause(key, rows, load, present) for key, rows in found.items()]
    return tuple(sorted(causes, key=lambda each: (-len(each.nodes), -len(each.alone), each.key)))


def _cause(key: str, rows: Sequence[tuple[str, Refusal, str]], load: Mapping[str, int], present: Surroundings) -> Cause:
    names = tuple(dict.fromkeys(name for name, _, _ in rows))
    name, refusal, subject = min(rows, key=lambda row: (not row[1].remedy, row[1].since or present.now, row[0]))
    seen = [at for each, one, _ in rows for at in (last_look(present.views[each]), one.since) if at is not None]
    ends = [ends_of(one, present.views[each], present) for each, one, _ in rows]
    known = [end for end in ends if end is not None]
    return Cause(
        key=key,
        code=refusal.code.value,
        gate=refusal.gate,
        subject=subject if subject != refusal.sentence.replace(name, "the node") else "",
        sentence=with_authors(refusal, present.views, present.now),
        nodes=names,
        alone=tuple(each for each in names if load[each] == 1),
        since=min((row[1].since for row in rows if row[1].since is not None), default=None),
        seen=max(seen, default=None),
        ends=min(known) if len(known) == len(ends) else None,
        remedy=remedy_of(refusal, subject, name if len(names) == 1 else "NODE"),
        is_of_cluster=refusal.is_of_cluster,
        is_passing=refusal.code in PASSING,
    )


def last_look(node: NodeView) -> datetime | None:
    """When its agent last provably looked: its last write, or when it made the forecast. It may have looked since."""
    made = from_rfc3339(object_of(node.annotations.get(keys.FORECAST)).get("at"))
    return max((at for at in (node.agent_wrote, made) if at is not None), default=None)


def _status(
    node: NodeView,
    entry: Entry | None,
    now: datetime,
    *,
    is_done: bool,
    need_since: datetime | None,
    is_named: bool,
    causes: tuple[str, ...],
    expected: Expected | None,
) -> NodeState:
    phase = node.shown_phase
    is_kept_down = phase in _FOR_MAINTENANCE and is_for_maintenance(node, now)
    is_at_work = phase in UNDER_CLAIM or entry is not None
    trouble = trouble_of(node, entry, now) if is_at_work else ""
    if phase == Phase.FAILED:
        state, trouble = State.FAILED, node.annotations.get(keys.REASON, "") or "the reboot failed"
    elif is_at_work:
        state = State.STUCK if trouble else State.KEPT_DOWN if is_kept_down else State.WORKING
    elif is_kept_down:
        state = State.KEPT_DOWN
    elif phase == Phase.WAITING:
        state = State.HELD_BACK if causes else State.QUEUED
    elif is_done:
        state = State.DONE
    else:
        state = State.IDLE
    label = node.labels.get(keys.REBOOT_LABEL, "")
    place = "holder" if entry is not None else "next" if is_named else label if label in _PLACES else ""
    return NodeState(
        name=node.name,
        state=state,
        phase=phase,
        is_for_maintenance=is_kept_down,
        doing=_doing(phase, is_kept_down=is_kept_down) if is_at_work else "",
        zone=node.zone,
        place=place,
        since=from_rfc3339(node.annotations.get(keys.SINCE, "")),
        need_since=need_since,
        reason=node.annotations.get(keys.REASON, ""),
        is_ready=node.ready,
        ready_since=node.ready_since,
        agent_wrote=node.agent_wrote,
        trouble=trouble if state in {State.STUCK, State.FAILED} else "",
        expected=expected,
        causes=causes,
    )


def _doing(phase: str, *, is_kept_down: bool) -> str:
    if phase == Phase.MAINTENANCE:
        return "down for maintenance"
    return f"{phase.lower()} for maintenance" if is_kept_down else phase.lower()


def _counts(
    statuses: Sequence[NodeState], now: datetime, places: int, usual: int | None, *, is_stopped: bool
) -> Counts:
    number = Counter(each.state for each in statuses)
    queued, working = number[State.QUEUED], number[State.WORKING]
    finish = None
    is_stopped = is_stopped or bool(number[State.STUCK] + number[State.FAILED]) or (places < 1 and queued > 0)
    if usual is not None and (queued or working) and not is_stopped:
        left = max((each.expected.end for each in statuses if each.expected is not None), default=now)
        finish = max(left, now) + timedelta(seconds=usual * ceil(queued / max(1, places)))
    return Counts(
        done=number[State.DONE],
        working=working,
        queued=queued,
        held_back=number[State.HELD_BACK],
        kept_down=number[State.KEPT_DOWN],
        stuck=number[State.STUCK],
        failed=number[State.FAILED],
        idle=number[State.IDLE],
        usual_seconds=usual,
        finish=finish,
    )

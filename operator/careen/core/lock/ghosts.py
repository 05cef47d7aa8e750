"""Which claims in the lock are proven to have no holder. Time alone proves nothing; neither does a node's silence.

The proof is a consistent read of the holder's Node made after the lock was read: a claim id is written on the
Node before it enters the lock and leaves the lock before it leaves the Node, so an entry whose Node carries no
such id has nobody behind it. A Node that is gone or was recreated, or whose record was removed while careen's cordon
stands on it, proves nothing by itself (its host may be on its way through the reboot) until it has been so for
longer than the reboot deadline: watched on our own clock, or, for a Node that is gone, marked in the lock by whoever
noticed first, by the API server's clock. The mark lets the watch outlive its process; it never reaches back beyond
the claim."""

from __future__ import annotations

from collections.abc import Mapping

from careen.core.facts import keys
from careen.core.facts.observation import Holders, NodeView, Unknown
from careen.core.facts.progress import UnreadableProgress
from careen.core.facts.times import from_rfc3339
from careen.core.lock.content import Entry, LockContent
from careen.core.situation import Situation
from scheduler_core.values import Value


class GhostWatch(Value, kw_only=True):
    """The entries that are proven ghosts now, and since when (uptime) others have been without their Node or its
    record, by entry."""

    proven: tuple[Entry, ...]
    since: Mapping[str, float]


def watch_key(entry: Entry) -> str:
    """Names one entry in the watch."""
    return f"{entry.node}/{entry.id}"


def watch_on(situation: Situation, content: LockContent, holders: Holders) -> GhostWatch:
    """The watch of this turn, carried on from the last turn's and from the marks in the lock."""
    uptime, before = situation.seen.uptime, situation.memory.behind.ghosts
    since = {key: min(at, before.get(key, at)) for key, at in _marked(situation, content).items()}
    deadline = situation.policy.absence_seconds
    return watch(content, holders, {**before, **since}, uptime=uptime, deadline_seconds=deadline)


def _marked(situation: Situation, content: LockContent) -> dict[str, float]:
    """Since which uptime of ours the marked claims have been without their Node. Nothing while the clocks were
    not compared."""
    if isinstance(situation.seen.clock_skew_seconds, Unknown):
        return {}
    found: dict[str, float] = {}
    for entry in content.entries:
        if entry.overdue is None or not entry.overdue.is_gone:
            continue
        told = (from_rfc3339(entry.overdue.since), from_rfc3339(entry.created))
        if None not in told:
            latest = max(at for at in told if at is not None)
            found[watch_key(entry)] = situation.seen.uptime - max(0.0, (situation.server_now - latest).total_seconds())
    return found


def watch(
    content: LockContent, holders: Holders, since: Mapping[str, float], *, uptime: float, deadline_seconds: float
) -> GhostWatch:
    """Look at every entry whose Node was read or is absent; entries whose Node was not read are left alone."""
    nodes = {node.name: node for node in holders.nodes}
    proven: list[Entry] = []
    watched: dict[str, float] = {}
    for entry in content.entries:
        if entry.is_nameless:
            continue  # there is no Node that could prove anything
        node = nodes.get(entry.node)
        if node is None and entry.node not in holders.absent:
            continue
        if node is not None and _may_hold(node, entry):
            continue
        if node is not None and entry.uid == node.uid and not _may_be_on_its_way(node):
            proven.append(entry)
            continue
        watched[watch_key(entry)] = since.get(watch_key(entry), uptime)
        if uptime - watched[watch_key(entry)] > deadline_seconds:
            proven.append(entry)
    return GhostWatch(proven=tuple(proven), since=watched)


def _may_hold(node: NodeView, entry: Entry) -> bool:
    if not entry.id or entry.unread:
        return True  # kured's entry: its holder keeps no record on the Node; or one of which not all is known
    progress = node.record
    return isinstance(progress, UnreadableProgress) or progress.claim == entry.id


def _may_be_on_its_way(node: NodeView) -> bool:
    """Whether careen's cordon stands on it without a record. A cordon whose author is not told may be careen's."""
    return keys.PROGRESS not in node.annotations and node.unschedulable and node.cordoned_by in _MAY_BE_OURS


_MAY_BE_OURS = ((), (keys.FIELD_MANAGER,))

"""Proves that claims in the lock have no holder (ghosts). Elapsed time alone is no proof, and neither is a silent node.

The proof is a consistent read of the holder's Node after the read of the lock. An agent writes a claim id on its Node
before it adds the entry to the lock, and removes the entry before it removes the id from the Node. So an entry whose
Node does not carry its id has no holder.

Three cases prove nothing at first, because the host may be in the middle of its reboot: a Node that is gone, a Node
that was recreated, and a Node that lost its record under careen's cordon. They become proof when they last longer than
the reboot deadline. Each agent measures that time on its own clock. For a Node that is gone, the first agent that
notices also marks the entry in the lock, by the API server's clock, so that the measurement survives the agent's
process. The time before the claim never counts.
"""

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
    """The entries that are proven ghosts now, and the suspected entries. `since` has the uptime since which each
    suspected entry has lacked its Node or its record."""

    proven: tuple[Entry, ...]
    since: Mapping[str, float]


def watch_key(entry: Entry) -> str:
    """Return the key of an entry in `GhostWatch.since`."""
    return f"{entry.node}/{entry.id}"


def watch_on(situation: Situation, content: LockContent, holders: Holders) -> GhostWatch:
    """Return the watch of this turn. It continues the watch of the turn before and uses the marks in the lock."""
    uptime, before = situation.seen.uptime, situation.memory.behind.ghosts
    since = {key: min(at, before.get(key, at)) for key, at in _marked(situation, content).items()}
    deadline = situation.policy.absence_seconds
    return watch(content, holders, {**before, **since}, uptime=uptime, deadline_seconds=deadline)


def _marked(situation: Situation, content: LockContent) -> dict[str, float]:
    """Return the uptime since which each marked claim has lacked its Node. Return nothing while the agent does not know
    how far its clock differs from the API server's."""
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
    """Check every entry whose Node was read or does not exist. Leave out entries whose Node was not read."""
    nodes = {node.name: node for node in holders.nodes}
    proven: list[Entry] = []
    watched: dict[str, float] = {}
    for entry in content.entries:
        if entry.is_nameless:
            continue  # without a node name there is no Node to check
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
        return True  # a kured entry, whose holder keeps no record on the Node, or an entry that is not read in full
    progress = node.record
    return isinstance(progress, UnreadableProgress) or progress.claim == entry.id


def _may_be_on_its_way(node: NodeView) -> bool:
    """Whether the host may be rebooting, because the Node has careen's cordon but no record. A cordon of an unknown
    author counts as careen's."""
    return keys.PROGRESS not in node.annotations and node.unschedulable and node.cordoned_by in _MAY_BE_OURS


_MAY_BE_OURS = ((), (keys.FIELD_MANAGER,))

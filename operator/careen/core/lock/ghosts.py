"""Finds the ghosts among the claims in the lock: claims under which provably no node works any more. Neither a long
time nor a node that does not respond is a proof.

The proof is a consistent read of the claim's Node after the read of the lock. An agent writes a claim id on its Node
before it adds the entry to the lock, and removes the entry before it removes the id from the Node. So an entry is a
ghost if its Node does not carry the id of the entry.

Three cases prove nothing at first, because the host may be in the middle of its reboot: a Node that is gone, a Node
that was recreated, and a Node that lost its record under careen's cordon. In these cases the claim is a ghost once the
case lasts longer than the reboot deadline. Each agent measures that time on the clock of its host. For a Node that is
gone, the first agent that notices also writes the instant into the claim in the lock, by the API server's clock, so
that the measurement survives the agent's process. Time before the claim was taken never counts.
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
    """`proven` has the claims in the lock that are ghosts now (claims without a holder). `since` has an item for each
    suspected claim: the uptime of this host in seconds at which the claim's Node, or careen's record on the Node, was
    first missing."""

    proven: tuple[Entry, ...]
    since: Mapping[str, float]


def watch_key(entry: Entry) -> str:
    """Return the key that an entry has in the mapping `GhostWatch.since`."""
    return f"{entry.node}/{entry.id}"


def watch_on(situation: Situation, content: LockContent, holders: Holders) -> GhostWatch:
    """Return which claims are ghosts (claims without a holder) or suspected in this round of the agent's loop. A
    suspected claim keeps the instant at which it was first suspected. If an agent wrote an earlier instant into the
    lock, that instant is used."""
    uptime, before = situation.seen.uptime, situation.memory.holder_check.ghosts
    since = {key: min(at, before.get(key, at)) for key, at in _marked(situation, content).items()}
    deadline = situation.policy.absence_seconds
    return watch(content, holders, {**before, **since}, uptime=uptime, deadline_seconds=deadline)


def _marked(situation: Situation, content: LockContent) -> dict[str, float]:
    """For each claim that the lock marks because the claim's Node is missing or was recreated, return the instant of
    the mark as the uptime of this host in seconds. For example, if the host has been up for 1000 seconds and the claim
    was marked 60 seconds ago, the value is 940. If the node took the claim after the instant of the mark, the value is
    the instant at which the node took the claim. The keys are those of `watch_key`. Return an empty mapping while the
    agent does not know how far the host's clock differs from the API server's clock."""
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
    """Return the ghosts and the suspected claims among the entries of the lock. An entry is examined only if its Node
    was read or is known not to exist. `since` is the mapping `GhostWatch.since` of the previous check."""
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
    """Whether the Node has careen's cordon but no record of careen. The host may then be rebooting: the agent cordons a
    node before its reboot, and the record may have been lost later. A cordon of an unknown author is treated as
    careen's."""
    return keys.PROGRESS not in node.annotations and node.unschedulable and node.cordoned_by in _MAY_BE_OURS


_MAY_BE_OURS = ((), (keys.FIELD_MANAGER,))

"""Finds stale claims, by proof: neither a long time nor a node that does not respond is one.

The proof is a consistent read of the claim's Node after the read of the lock. An agent writes a claim id on its Node
before it adds the entry to the lock, and removes the entry before the id: a claim is stale if its Node does not carry
the id.

Three cases prove nothing at first, because the host may be in the middle of its reboot: a Node that is gone, a Node
that was recreated, and a Node with careen's cordon and no claim in its record. The claim is then only suspected, and
stale once the case lasts longer than the reboot deadline. Each agent measures that time on the clock of its host. For a
Node that is gone, the first agent that notices also writes the instant into the claim, by the API server's clock, so
that the measurement survives the agent's process. Time before the claim was taken never counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from careen.core.facts import keys
from careen.core.facts.observation import Holders, NodeView
from careen.core.facts.progress import Progress, UnreadableProgress
from careen.core.facts.times import from_rfc3339
from careen.core.lock.content import Entry, LockContent
from scheduler_core.values import Value


class StaleClaims(Value, kw_only=True):
    """`proven` are the stale claims. `suspected` maps a claim's `key` to the uptime of this host, in seconds, at which
    the claim's Node, or the record on it, was first missing."""

    proven: tuple[Entry, ...]
    suspected: Mapping[str, float]


def key(entry: Entry) -> str:
    """The entry's key in `suspected`: the node's next claim has another one."""
    return f"{entry.node}/{entry.id}"


def examine(
    content: LockContent,
    holders: Holders,
    suspected: Mapping[str, float],
    *,
    uptime: float,
    server_now: datetime | None,
    deadline_seconds: float,
) -> StaleClaims:
    """The stale and the suspected claims, among those whose Nodes were read or are known not to exist. `suspected` is
    the result of the previous check. `server_now` is None if the API server's time is unknown: then the marks in the
    lock do not count."""
    marked = _marked(content, uptime, server_now) if server_now is not None else {}
    since = {**suspected, **{each: min(at, suspected.get(each, at)) for each, at in marked.items()}}
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
        watched[key(entry)] = since.get(key(entry), uptime)
        if uptime - watched[key(entry)] > deadline_seconds:
            proven.append(entry)
    return StaleClaims(proven=tuple(proven), suspected=watched)


def _marked(content: LockContent, uptime: float, server_now: datetime) -> dict[str, float]:
    """By `key`: since when the Nodes of these claims are gone, by the marks in the lock, as uptimes of this host. The
    instant at which the node took the claim replaces an earlier mark."""
    found: dict[str, float] = {}
    for entry in content.entries:
        if entry.overdue is None or not entry.overdue.is_gone:
            continue
        told = (from_rfc3339(entry.overdue.since), from_rfc3339(entry.created))
        if None not in told:
            latest = max(at for at in told if at is not None)
            found[key(entry)] = uptime - max(0.0, (server_now - latest).total_seconds())
    return found


def _may_hold(node: NodeView, entry: Entry) -> bool:
    if not entry.id or entry.unread:
        return True  # a kured entry, whose holder keeps no record on the Node, or an entry that is not read in full
    progress = node.record
    return isinstance(progress, UnreadableProgress) or progress.claim == entry.id


def _may_be_on_its_way(node: NodeView) -> bool:
    """Whether the Node has careen's cordon but no claim in its record: the host may be rebooting, because the agent
    cordons a node before its reboot, and the record may have been lost since, or an older one put back. A cordon of an
    unknown author counts as careen's."""
    progress = node.record
    has_none = isinstance(progress, Progress) and not progress.claim
    return has_none and node.unschedulable and node.cordoned_by in _MAY_BE_OURS


_MAY_BE_OURS = ((), (keys.FIELD_MANAGER,))

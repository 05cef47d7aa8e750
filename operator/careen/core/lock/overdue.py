"""Marks holders as overdue, and describes them in sentences.

A holder whose host, agent or kubelet is dead cannot report that. So the agent of a waiting node reads on each holder's
Node since when it has been in its phase, and since when it has not been Ready outside its reboot. It marks the claims
of those that take too long, where all other agents read the mark. A mark frees no claim and stops no node: it is for
people, and for the proof in `stale_claims.py`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from math import inf

from careen.core.facts import keys
from careen.core.facts.observation import Holders, NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Policy
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.lock.content import Entry, LockContent, Overdue
from scheduler_core.sentences import first_few
from scheduler_core.values import replace_value as replace

_PHASES = frozenset(phase.value for phase in Phase)
LONG_DRAIN_SECONDS = 3600.0  # without --drain-timeout a drain has no deadline; after one hour people should know

NOT_READY = "NotReady"
"""In the place of a phase in the mark of a holder whose Node is not Ready although no reboot is under way."""
NOT_READY_SECONDS = 180.0  # a kubelet that restarts, or a short loss of the network, takes less
_MAY_BE_DOWN = frozenset({Phase.MAINTENANCE, Phase.REBOOTING, Phase.VERIFYING})


def usual_seconds(phase: str, policy: Policy) -> float:
    """How long a holder may be in the phase before it is overdue: the phase's deadline plus a third of the reboot
    deadline, so that the node's own agent can act first. A host usually comes back within that third, which is all that
    a phase without a deadline has."""
    some = policy.reboot_deadline_seconds / 3
    match phase:
        case Phase.CLAIMING:
            return policy.drain.delay_seconds + some
        case Phase.DRAINING:
            return (policy.drain.timeout_seconds or LONG_DRAIN_SECONDS) + policy.reboot_delay_seconds + some
        case Phase.MAINTENANCE:
            return inf  # a person keeps the node down and decides for how long
        case Phase.VERIFYING:
            return policy.verify_timeout_seconds + some
        case Phase.SETTLING:
            slowest = (policy.settle_timeout_seconds, policy.lock_release_delay_seconds, policy.stable_boot_seconds)
            return max(slowest) + some
        case Phase.WAITING | Phase.FAILED:
            return policy.settle_timeout_seconds + some  # after an undone drain
        case _:
            return some


def marked(content: LockContent, holders: Holders, policy: Policy, *, now: datetime) -> LockContent:
    """The content with the claims of overdue holders marked, and those of other holders unmarked. A claim whose Node
    was not read keeps its mark. `now` is by the API server's clock."""
    nodes: dict[str, NodeView | None] = {**dict.fromkeys(holders.absent), **{node.name: node for node in holders.nodes}}
    entries = tuple(
        replace(entry, overdue=_mark(entry, nodes[entry.node], policy, now)) if entry.node in nodes else entry
        for entry in content.entries
    )
    return content if entries == content.entries else replace(content, entries=entries)


def _mark(entry: Entry, node: NodeView | None, policy: Policy, now: datetime) -> Overdue | None:
    if entry.failed or not entry.id:
        return None  # a failed claim is reported as a halt; a kured entry has no record to check
    before = entry.overdue
    if node is None or (entry.uid and node.uid != entry.uid):
        return before if before is not None and before.is_gone else Overdue(phase="", since=rfc3339(now))
    if (unready := _not_ready(node, now)) is not None:
        return unready
    told, since = node.annotations.get(keys.PHASE, ""), _since(node, entry, now)
    if since is None:
        return None
    # An unknown phase becomes Idle: an empty one would say that the Node is gone.
    mark = Overdue(phase=told if told in _PHASES else Phase.IDLE.value, since=rfc3339(since))
    # A claim keeps its mark while the node stays in the marked phase. Otherwise agents with different deadlines would
    # add and remove the mark again and again.
    is_late = mark == before or (now - since).total_seconds() > usual_seconds(mark.phase, policy)
    return mark if is_late else None


def is_unready(node: NodeView) -> bool:
    """Whether the Node of a holder is not Ready although no reboot is under way."""
    return not node.ready and node.annotations.get(keys.PHASE, "") not in _MAY_BE_DOWN


def _not_ready(node: NodeView, now: datetime) -> Overdue | None:
    """The mark of a holder that has not been Ready for minutes, outside its reboot: its host is probably dead, and no
    agent there will ever report it."""
    since = node.ready_since
    if since is None or not is_unready(node):
        return None
    is_late = (now - since).total_seconds() > NOT_READY_SECONDS
    return Overdue(phase=NOT_READY, since=rfc3339(since)) if is_late else None


def _since(node: NodeView, entry: Entry, now: datetime) -> datetime | None:
    """Since when the node has been in its phase, or, if the Node says nothing or an instant in the future, has had its
    claim. None if that is unknown or in the future too."""
    told = (from_rfc3339(node.annotations.get(keys.SINCE, "")), from_rfc3339(entry.created))
    return next((at for at in told if at is not None and at <= now), None)


def holders_overdue(content: LockContent, *, besides: str = "") -> tuple[Entry, ...]:
    """The claims that are marked as overdue, except those of the node `besides`."""
    return tuple(entry for entry in content.entries if entry.overdue is not None and entry.node != besides)


def sentences(entries: Collection[Entry]) -> str:
    """The holders in words, such as `n3 was asked to reboot at 2026-01-05 12:03 UTC and has not come back`. The text
    about a node does not change while its mark stays the same."""
    found = [_sentence(entry.node, entry.overdue) for entry in entries if entry.overdue is not None]
    return first_few(found, separator="; ")


def _sentence(node: str, mark: Overdue) -> str:
    at = from_rfc3339(mark.since)
    since = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if at is not None else mark.since
    match mark.phase:
        case "":
            return f"the Node {node} has been missing or replaced since {since}"
        case "NotReady":
            return f"{node} has been NotReady since {since}, outside its reboot"
        case Phase.REBOOTING:
            return f"{node} was asked to reboot at {since} and has not come back"
        case Phase.DRAINING:
            return f"{node} has been draining since {since}"
        case Phase.VERIFYING:
            return f"{node} has rebooted and has been verifying its reboot since {since}"
        case Phase.SETTLING:
            return f"the displaced workloads of {node} have been settling since {since}"
        case Phase.CLAIMING:
            return f"{node} has been taking its claim since {since}"
        case Phase.WAITING | Phase.FAILED:
            return f"{node} has been releasing its claim since {since}"
        case _:
            return f"{node} has held its claim without progress since {since}"

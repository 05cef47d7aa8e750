"""Changes of the lock's content. Each function returns the content as it is afterwards."""

from __future__ import annotations

from collections.abc import Collection

from careen.core.facts.untrusted import short
from careen.core.lock.content import Entry, LockContent, free_slots, limit, zones_at_work
from scheduler_core.values import replace_value as replace


def add(content: LockContent, entry: Entry, concurrency: int, *, in_one_zone: bool = False) -> LockContent | None:
    """With one more claim, which replaces older entries of the same node. None if there is no free slot, or if, with
    `in_one_zone`, a holder is in another or an unknown zone."""
    others = _without_node(content, entry.node)
    if free_slots(others, concurrency) < 1 or (in_one_zone and not zones_at_work(others) <= {entry.zone}):
        return None
    entry = replace(entry, limit=concurrency)
    return replace(
        others,
        entries=(*others.entries, entry),
        max_owners=limit(others, concurrency),
        line=others.line.without(entry.node),
    )


def put_back(content: LockContent, entry: Entry, concurrency: int) -> LockContent:
    """With the missing claim of a node that careen has taken down. The limit and a pause do not matter: the node *is*
    down."""
    others = _without_node(content, entry.node)
    return replace(
        others,
        entries=(*others.entries, replace(entry, limit=concurrency)),
        max_owners=limit(others, concurrency),
    )


def mark_due(content: LockContent, node: str, claim: str, due: str) -> LockContent:
    """With `due` (RFC 3339) in this claim: when the node expects to release it."""
    return _with(
        content,
        tuple(replace(each, due=due) if each.node == node and each.id == claim else each for each in content.entries),
    )


def mark_failed(content: LockContent, node: str, claim: str, code: str) -> LockContent:
    """With this claim marked as kept after a failure. The mark stays until the node releases the claim, even while the
    agent tries again."""
    return _with(
        content,
        tuple(
            replace(each, failed=code, overdue=None, unread="") if each.node == node and each.id == claim else each
            for each in content.entries
        ),
    )


def remove(content: LockContent, node: str, claim: str) -> LockContent:
    """Without the node's entry with this claim id. An empty id means the entry that kured wrote for the node."""
    return _with(content, tuple(each for each in content.entries if not (each.node == node and each.id == claim)))


def remove_all(content: LockContent, stale: Collection[Entry]) -> LockContent:
    """Without these claims."""
    return _with(content, tuple(each for each in content.entries if each not in stale))


def release_by_hand(content: LockContent, node: str) -> LockContent:
    """Without any claim of this node, for `careen lock release`."""
    return _without_node(content, node)


def released(content: LockContent, at: str) -> LockContent:
    """With `at` (RFC 3339) as the last release of a claim after a reboot."""
    return replace(content, released_at=at)


def pause(content: LockContent, reason: str, concurrency: int) -> LockContent:
    """The paused lock. The recorded limit becomes at least `concurrency`, up to which `render` fills the list `locks`,
    so that a kured that allows several owners cannot add its own entry."""
    return replace(content, is_paused=True, pause_reason=short(reason), max_owners=max(content.max_owners, concurrency))


def resume(content: LockContent) -> LockContent:
    """Without the pause."""
    return replace(content, is_paused=False, pause_reason="")


def _without_node(content: LockContent, node: str) -> LockContent:
    return _with(content, tuple(each for each in content.entries if each.node != node))


def _with(content: LockContent, entries: tuple[Entry, ...]) -> LockContent:
    return replace(content, entries=entries)

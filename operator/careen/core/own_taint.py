"""Finds careen's own soft taints on a Node, with or without a record.

A key of careen's own domain is proof enough: only careen sets such a taint, and it sets it without a value. A
configured key (kured's, for example) may also be another program's. Without a record such a taint is ours only if,
by the API server's managed fields, the patch that added our taint was the last to change the list of taints. The
proof ends with the next change by another writer, such as the node controller, because the whole list is one field
(`listType=atomic`)."""

from __future__ import annotations

from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress


def our_taint(node: NodeView, key: str | None) -> Taint | None:
    """The taint with this key and our effect, no matter who set it. The same key with another effect is not ours."""
    return next((taint for taint in node.taints if taint.key == key and taint.effect == keys.TAINT_EFFECT), None)


def keys_of_ours(node: NodeView, progress: Progress, policy: Policy) -> frozenset[str]:
    """The keys of our soft taints on this Node: as the record says, and without a record by their names or the API
    server's managed fields."""
    found = {progress.taint_key} if progress.taint_key and our_taint(node, progress.taint_key) else set()
    if progress.phase:
        return frozenset(found)
    is_proven = node.tainted_by == (keys.TAINT_MANAGER,) and our_taint(node, policy.taint_key)
    return frozenset(found) | by_name(node, policy) | ({policy.taint_key} if is_proven and policy.taint_key else set())


def by_name(node: NodeView, policy: Policy) -> frozenset[str]:
    """The keys of our soft taints that are proven by their names alone."""
    wanted = policy.taint_key
    names = {keys.DEFAULT_TAINT_KEY, *([wanted] if wanted and wanted.startswith(keys.PREFIX) else ())}
    return frozenset(key for key in names if (taint := our_taint(node, key)) is not None and not taint.value)


def without(node: NodeView, ours: frozenset[str]) -> tuple[Taint, ...] | None:
    """The Node's taints without our taints of these keys; None (leave the list alone) if it has none of them."""
    left = tuple(taint for taint in node.taints if not (taint.key in ours and taint.effect == keys.TAINT_EFFECT))
    return left if len(left) < len(node.taints) else None

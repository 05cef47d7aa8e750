"""Finds the soft taints (effect PreferNoSchedule) on a Node that careen itself set, whether or not the Node still has
careen's record (`facts/progress.py`).

A taint is careen's if it has no value and its key is in careen's domain, because no other program sets such a taint. If
the configured key is in another domain, another program (kured, for example) may use the key too. Without a record, a
taint with such a key is careen's only if careen's taint patch was the last change of the list of taints, according to
the managed fields. The next change of the list by another writer, such as the node controller, ends this proof, because
the whole list is one field (`listType=atomic`).
"""

from __future__ import annotations

from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress


def our_taint(node: NodeView, key: str | None) -> Taint | None:
    """Return the taint with this key and careen's effect, whoever set it. A taint with the same key and another effect
    is not careen's."""
    return next((taint for taint in node.taints if taint.key == key and taint.effect == keys.TAINT_EFFECT), None)


def keys_of_ours(node: NodeView, progress: Progress, policy: Policy) -> frozenset[str]:
    """Return the keys of the soft taints on this Node that careen set. careen's record on the Node contains the key.
    Without a record, the key itself or the managed fields prove that careen set a taint."""
    found = {progress.taint_key} if progress.taint_key and our_taint(node, progress.taint_key) else set()
    if progress.phase:
        return frozenset(found)
    is_proven = node.tainted_by == (keys.TAINT_MANAGER,) and our_taint(node, policy.taint_key)
    return frozenset(found) | by_name(node, policy) | ({policy.taint_key} if is_proven and policy.taint_key else set())


def by_name(node: NodeView, policy: Policy) -> frozenset[str]:
    """Return the keys of the Node's soft taints that have no value and whose key is careen's default key, or the
    configured key if that key is in careen's domain. Only careen sets such taints."""
    wanted = policy.taint_key
    names = {keys.DEFAULT_TAINT_KEY, *([wanted] if wanted and wanted.startswith(keys.PREFIX) else ())}
    return frozenset(key for key in names if (taint := our_taint(node, key)) is not None and not taint.value)


def without(node: NodeView, ours: frozenset[str]) -> tuple[Taint, ...] | None:
    """Return the Node's list of taints without the soft taints that have these keys. Return None (leave the list
    unchanged) if the Node has no such taint."""
    left = tuple(taint for taint in node.taints if not (taint.key in ours and taint.effect == keys.TAINT_EFFECT))
    return left if len(left) < len(node.taints) else None


def without_ours(node: NodeView, progress: Progress, policy: Policy) -> tuple[Taint, ...] | None:
    """The Node's taints without careen's; None (no change) if careen set none."""
    return without(node, keys_of_ours(node, progress, policy))


def with_ours(node: NodeView, progress: Progress, policy: Policy) -> tuple[tuple[Taint, ...] | None, str]:
    """The Node's taints with careen's soft taint, None if they need no change; and the key of that taint, empty if
    careen wants none or another program set a soft taint with the wanted key."""
    wanted = policy.taint_key
    ours = keys_of_ours(node, progress, policy)
    kept = without(node, ours - {wanted})
    taints = node.taints if kept is None else kept
    if wanted is None:
        return kept, ""
    if our_taint(node, wanted) is not None:
        return kept, wanted if wanted in ours else ""
    return (*taints, Taint(key=wanted, effect=keys.TAINT_EFFECT)), wanted

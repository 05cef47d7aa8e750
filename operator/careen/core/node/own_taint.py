"""Which soft taints on a Node are careen's, with or without a record on the Node.

A taint is careen's if it has no value and its key is in careen's domain: no other program sets such a taint. If the
configured key is in another domain, another program (kured, for example) may use it too. Without a record, a taint with
such a key is careen's only if careen's taint patch was the last change of the list of taints, by the managed fields.
The next change by another writer, such as the node controller, ends this proof, because the whole list is one field
(`listType=atomic`).
"""

from __future__ import annotations

from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress


def our_taint(node: NodeView, key: str | None) -> Taint | None:
    """The soft taint with this key, whoever set it. A taint with another effect is not careen's."""
    return next((taint for taint in node.taints if taint.key == key and taint.effect == keys.TAINT_EFFECT), None)


def keys_of_ours(node: NodeView, progress: Progress, policy: Policy) -> frozenset[str]:
    """The keys of careen's soft taints: by the record, and without a record by name or managed fields."""
    recorded = frozenset({progress.taint_key} if progress.taint_key and our_taint(node, progress.taint_key) else ())
    return recorded if progress.phase else recorded | by_name(node, policy) | proven(node, policy)


def by_name(node: NodeView, policy: Policy | None) -> frozenset[str]:
    """The keys of the soft taints that only careen sets: no value, and the default key or a configured one in careen's
    domain."""
    wanted = policy.taint_key if policy else None
    names = {keys.DEFAULT_TAINT_KEY, *([wanted] if wanted and wanted.startswith(keys.PREFIX) else ())}
    return frozenset(key for key in names if (taint := our_taint(node, key)) is not None and not taint.value)


def proven(node: NodeView, policy: Policy | None) -> frozenset[str]:
    """The key of the soft taint that careen set by the managed fields. If the policy cannot be read any more, only a
    lone soft taint is certain."""
    if node.tainted_by != (keys.TAINT_MANAGER,):
        return frozenset()
    soft = [taint.key for taint in node.taints if taint.effect == keys.TAINT_EFFECT]
    if policy is None:
        return frozenset(soft) if len(soft) == 1 else frozenset()
    return frozenset(soft) & {policy.taint_key}


def without(node: NodeView, ours: frozenset[str]) -> tuple[Taint, ...] | None:
    """The Node's taints without the soft taints of these keys; None (no change) if it has none of them."""
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

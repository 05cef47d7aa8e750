"""Which of a Node's soft taints are careen's, also where no record tells it any more.

Under a key of careen's own domain the name is the proof: careen sets such a taint, without a value, and nobody
else does. A key that was configured (kured's, say) may stand for somebody else's taint. Without a record it is
ours only if the API server says that the list of taints was last changed by the patch that added ours. That is
all it can tell, because the list is one field (`listType=atomic`), and the node controller, which writes taints
as well, takes it over with its next change."""

from __future__ import annotations

from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress


def our_taint(node: NodeView, key: str | None) -> Taint | None:
    """The taint under this key with our effect, whoever set it. The same key with another effect is somebody else's."""
    return next((taint for taint in node.taints if taint.key == key and taint.effect == keys.TAINT_EFFECT), None)


def keys_of_ours(node: NodeView, progress: Progress, policy: Policy) -> frozenset[str]:
    """The keys of the soft taints on this Node that are ours: by the record; where there is none, by their name
    or the API server's word."""
    found = {progress.taint_key} if progress.taint_key and our_taint(node, progress.taint_key) else set()
    if progress.phase:
        return frozenset(found)
    is_proven = node.tainted_by == (keys.TAINT_MANAGER,) and our_taint(node, policy.taint_key)
    return frozenset(found) | by_name(node, policy) | ({policy.taint_key} if is_proven and policy.taint_key else set())


def by_name(node: NodeView, policy: Policy) -> frozenset[str]:
    """The keys of those that their name alone proves."""
    wanted = policy.taint_key
    names = {keys.DEFAULT_TAINT_KEY, *([wanted] if wanted and wanted.startswith(keys.PREFIX) else ())}
    return frozenset(key for key in names if (taint := our_taint(node, key)) is not None and not taint.value)


def without(node: NodeView, ours: frozenset[str]) -> tuple[Taint, ...] | None:
    """The Node's taints without these of ours; None (leave them) when there is none."""
    left = tuple(taint for taint in node.taints if not (taint.key in ours and taint.effect == keys.TAINT_EFFECT))
    return left if len(left) < len(node.taints) else None

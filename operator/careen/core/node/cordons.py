"""Tells careen's cordons from those of other clients, by the record on the Node and the managed fields."""

from __future__ import annotations

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import Progress

SOMEBODY = "somebody"


def is_cordon_proven(node: NodeView) -> bool:
    """Whether the managed fields prove that careen set the present cordon.

    The API server assigns a field to the client that last changed its value. So `kubectl cordon` on a node that careen
    has cordoned does not change the owner of the field, but `kubectl uncordon` followed by `kubectl cordon` does. A
    client that sets the same value by server-side apply becomes a second owner, and then there is no proof.
    """
    return node.unschedulable and node.cordoned_by == (keys.FIELD_MANAGER,)


def is_foreign(node: NodeView) -> bool:
    """Whether the Node is cordoned, and neither its record nor the managed fields show that careen did it."""
    progress = node.record
    is_recorded = isinstance(progress, Progress) and progress.is_cordoned_by_us
    return node.unschedulable and not is_recorded and not is_cordon_proven(node)


def looks_like_ours(node: NodeView) -> bool:
    """Whether a Node that lost its record still shows that careen cordoned it for a reboot."""
    return node.labels.get(keys.REBOOT_LABEL) == "in-progress" or is_cordon_proven(node)


def is_ours_under_claim(node: NodeView, *, was_cordoned: bool) -> bool:
    """Whether careen cordoned a Node that lost its record: by the managed fields, or if the API server reports none, by
    careen's label and the claim, which says whether the node was cordoned before."""
    if node.cordoned_by:
        return is_cordon_proven(node)
    return node.unschedulable and not was_cordoned and looks_like_ours(node)


def foreign_author(node: NodeView) -> str:
    """The field managers that set a cordon which is not careen's; "somebody" if none is known: not every API server
    reports managed fields, and careen's lists of Nodes leave them out."""
    return ", ".join(name for name in node.cordoned_by if name != keys.FIELD_MANAGER) or SOMEBODY

"""Distinguishes careen's cordons from the cordons of other clients, by careen's record on the Node
(`facts/progress.py`) and the API server's managed fields."""

from __future__ import annotations

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import Progress


def is_cordon_proven(node: NodeView) -> bool:
    """Whether the managed fields prove that careen set the present cordon.

    The API server assigns a field to the client that last changed its value. So `kubectl cordon` on a node that careen
    has cordoned does not change the owner of the field, but `kubectl uncordon` followed by `kubectl cordon` does. A
    client that sets the same value by server-side apply becomes a second owner, and then there is no proof.
    """
    return node.unschedulable and node.cordoned_by == (keys.FIELD_MANAGER,)


def is_foreign(node: NodeView) -> bool:
    """Whether the Node is cordoned, and neither its record nor the managed fields show that careen cordoned it."""
    progress = node.record
    is_recorded = isinstance(progress, Progress) and progress.is_cordoned_by_us
    return node.unschedulable and not is_recorded and not is_cordon_proven(node)


def foreign_author(node: NodeView) -> str:
    """Return the names of the field managers that set a cordon which is not careen's. Return "somebody" if no name is
    known: not every API server reports managed fields, and careen's lists of Nodes leave managed fields out."""
    return ", ".join(name for name in node.cordoned_by if name != keys.FIELD_MANAGER) or "somebody"

"""Whose cordon a Node carries, as far as its record and the API server tell."""

from __future__ import annotations

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import Progress


def is_cordon_proven(node: NodeView) -> bool:
    """Whether the API server says that careen, and nobody besides, set the cordon as it stands.

    A field belongs to whoever last changed its value, so a `kubectl cordon` on a node that careen has cordoned
    changes no owner, and one after a `kubectl uncordon` does. Who applies the same value from the server's side
    becomes an owner beside us."""
    return node.unschedulable and node.cordoned_by == (keys.FIELD_MANAGER,)


def is_foreign(node: NodeView) -> bool:
    """Whether the Node is cordoned and neither its record nor the API server says that careen did it."""
    progress = node.record
    is_recorded = isinstance(progress, Progress) and progress.is_cordoned_by_us
    return node.unschedulable and not is_recorded and not is_cordon_proven(node)


def foreign_author(node: NodeView) -> str:
    """Who set a foreign cordon; a list of Nodes does not tell, and some servers never do."""
    return ", ".join(name for name in node.cordoned_by if name != keys.FIELD_MANAGER) or "somebody"

"""Tells careen's cordons from those of others, by the Node's record and the API server's managed fields."""

from __future__ import annotations

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import Progress


def is_cordon_proven(node: NodeView) -> bool:
    """Whether careen is the only field manager of the present cordon.

    A field belongs to the client that last changed its value. So `kubectl cordon` on a node that careen has
    cordoned changes no owner, but after a `kubectl uncordon` it does. A client that sets the same value by
    server-side apply becomes a second owner."""
    return node.unschedulable and node.cordoned_by == (keys.FIELD_MANAGER,)


def is_foreign(node: NodeView) -> bool:
    """Whether the Node is cordoned, and neither its record nor the API server names careen as the author."""
    progress = node.record
    is_recorded = isinstance(progress, Progress) and progress.is_cordoned_by_us
    return node.unschedulable and not is_recorded and not is_cordon_proven(node)


def foreign_author(node: NodeView) -> str:
    """The field managers that set a foreign cordon, or "somebody": careen's lists of Nodes have no managed fields, and
    some servers never report them."""
    return ", ".join(name for name in node.cordoned_by if name != keys.FIELD_MANAGER) or "somebody"

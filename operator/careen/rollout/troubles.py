"""Which holders look dead, or take too long."""

from __future__ import annotations

from datetime import datetime

from careen.core.facts.observation import NodeView
from careen.core.facts.times import age
from careen.core.lock import overdue
from careen.core.lock.content import Entry


def trouble_of(node: NodeView, entry: Entry | None, now: datetime) -> str:
    """Why the holder shows no progress; "" if it does, or if the node may be down now."""
    return not_ready(node, now) or (overdue.sentences((entry,)) if entry is not None else "")


def not_ready(node: NodeView, now: datetime) -> str:
    """A sentence if the Node of a holder is not Ready although no reboot is under way."""
    if not overdue.is_unready(node):
        return ""
    since = f" for {age(node.ready_since, now)}" if node.ready_since is not None else ""
    wrote = f"; its agent last wrote {age(node.agent_wrote, now)} ago" if node.agent_wrote is not None else ""
    return f"{node.name} has been NotReady{since}, outside its reboot{wrote}"

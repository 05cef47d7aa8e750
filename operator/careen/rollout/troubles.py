"""Which holders look dead, take too long, or have a record that their agents cannot read."""

from __future__ import annotations

from datetime import datetime

from careen.core.facts.observation import NodeView
from careen.core.facts.progress import UnreadableProgress
from careen.core.facts.times import age
from careen.core.lock import overdue
from careen.core.lock.content import Entry


def trouble_of(node: NodeView, entry: Entry | None, now: datetime) -> str:
    """Why the holder shows no progress; "" if it does, or if the node may be down now."""
    late = overdue.sentences((entry,)) if entry is not None else ""
    return not_ready(node, now) or _unreadable(node) or late


def _unreadable(node: NodeView) -> str:
    record = node.record
    return f"{record.why}, so its agent does nothing" if isinstance(record, UnreadableProgress) else ""


def not_ready(node: NodeView, now: datetime) -> str:
    """A sentence if the Node of a holder is not Ready although no reboot is under way."""
    return unready(node, now) if overdue.is_unready(node) else ""


def unready(node: NodeView, now: datetime) -> str:
    """A sentence if the Node is not Ready."""
    if node.ready:
        return ""
    since = f" for {age(node.ready_since, now)}" if node.ready_since is not None else ""
    where = ", outside its reboot" if overdue.is_unready(node) else ""
    wrote = f"; its agent last wrote {age(node.agent_wrote, now)} ago" if node.agent_wrote is not None else ""
    return f"{node.name} has been NotReady{since}{where}{wrote}"

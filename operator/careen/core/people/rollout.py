"""The figures of a roll-out, from each node's report of its last reboot.

A reboot's period begins when the node first needed it. Reboots are of one roll-out if their periods overlap, directly
or through others: a roll-out lasts as long as any node waits for its reboot or is down for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import object_of, whole
from scheduler_core.values import Value

_MOST = 10**9  # seconds, pods or failures: anyone may have written the annotation


class Figures(Value, kw_only=True):
    """The figures of one roll-out."""

    nodes: int
    seconds: float  # from the first drain to the last node back in service
    pods: int  # evicted
    failures: int  # tries that were undone before a node rebooted


class _Reboot(Value, kw_only=True):
    needed: datetime
    began: datetime
    ended: datetime
    pods: int
    failures: int


def figures(nodes: Iterable[NodeView]) -> Figures | None:
    """The figures of the last roll-out; None if no node has a report."""
    reboots = sorted((each for node in nodes if (each := _of(node)) is not None), key=lambda each: each.ended)
    if not reboots:
        return None
    last = [reboots.pop()]
    start = last[0].needed
    # Backwards from the last reboot: each one that ended after the earliest need so far belongs to the roll-out.
    while reboots and reboots[-1].ended >= start:
        last.append(reboots.pop())
        start = min(start, last[-1].needed)
    return Figures(
        nodes=len(last),
        seconds=(last[0].ended - min(each.began for each in last)).total_seconds(),
        pods=sum(each.pods for each in last),
        failures=sum(each.failures for each in last),
    )


def _of(node: NodeView) -> _Reboot | None:
    report = object_of(node.annotations.get(keys.LAST_REBOOT))
    ended = _instant(report.get("at"))
    if ended is None:
        return None
    began = ended - timedelta(seconds=whole(report.get("seconds"), _MOST) or 0)
    # Reports of earlier releases do not say since when the reboot was needed.
    needed = _instant(report.get("needSince")) or began
    return _Reboot(
        needed=min(needed, began),
        began=began,
        ended=ended,
        pods=whole(report.get("moves"), _MOST) or 0,
        failures=whole(report.get("failures"), _MOST) or 0,
    )


def _instant(value: object) -> datetime | None:
    return from_rfc3339(value) if isinstance(value, str) else None

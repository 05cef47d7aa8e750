"""Refuses while the node's last reboot is too recent (--minimum-interval). A node that never rebooted under careen has
no such annotation, and may go on."""

from __future__ import annotations

from datetime import datetime, timedelta

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.facts.untrusted import object_of
from careen.core.gates.maintenance_window import is_waived
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate
from careen.core.situation import Situation


def _ends(node: NodeView, policy: Policy) -> datetime | None:
    interval, last = policy.minimum_interval_seconds, last_reboot(node)
    return last + timedelta(seconds=interval) if interval and last is not None else None


@gate("minimum-interval", when=BEFORE_THE_CORDON, cost=Cost.CHEAP, ends=_ends)
def minimum_interval(situation: Situation) -> No | None:
    last, again = last_reboot(situation.node), _ends(situation.node, situation.policy)
    if last is None or again is None or is_waived(situation.node, situation.seen.now) or situation.seen.now >= again:
        return None
    return No(
        Code.MINIMUM_INTERVAL,
        f"the last reboot of this node was at {rfc3339(last)}; its next reboot may begin at {rfc3339(again)}",
        ends=again,
    )


def last_reboot(node: NodeView) -> datetime | None:
    """When the node last rebooted, by an annotation of the Node; None if the annotation does not say."""
    return from_rfc3339(object_of(node.annotations.get(keys.LAST_REBOOT)).get("at"))

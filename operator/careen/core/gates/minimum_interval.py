"""This gate refuses to let the node begin its drain while the node's last reboot is too recent (--minimum-interval)."""

from __future__ import annotations

from datetime import datetime, timedelta

from careen.core.decision import Refusal
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.facts.untrusted import object_of
from careen.core.gates.maintenance_window import is_waived
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, Gate, When, nothing
from careen.core.situation import Situation


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal during the interval after the node's last reboot, which an annotation of the Node reports. A
    node without this annotation has never rebooted under careen, so the gate does not refuse."""
    last, again = last_reboot(situation.node), ends(situation.node, situation.policy)
    if last is None or again is None or is_waived(situation.node, situation.seen.now) or situation.seen.now >= again:
        return None
    return Refusal(
        gate=GATE.name,
        code=Code.MINIMUM_INTERVAL,
        sentence=f"the last reboot of this node was at {rfc3339(last)}; its next reboot may begin at {rfc3339(again)}",
    )


def ends(node: NodeView, policy: Policy) -> datetime | None:
    """Return when the interval after this node's last reboot ends. Return None if no interval is set, or if the Node
    reports no reboot."""
    interval, last = policy.minimum_interval_seconds, last_reboot(node)
    return last + timedelta(seconds=interval) if interval and last is not None else None


def last_reboot(node: NodeView) -> datetime | None:
    """Return when the node last rebooted, according to an annotation of the Node; None if the annotation does
    not say."""
    return from_rfc3339(object_of(node.annotations.get(keys.LAST_REBOOT)).get("at"))


GATE = Gate(
    name="minimum-interval",
    ask=ask,
    when=BEFORE_THE_CORDON,
    cost=Cost.CHEAP,
    needs=nothing,
    ends=ends,
)

"""Refuses until some time has passed since the last node of the cluster came back from its reboot
(--cluster-minimum-interval).

The lock, which every waiting node reads anyway, holds the instant at which that node released its claim. While another
node holds a claim, its reboot is not over: with this setting nodes reboot one after another.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339, span
from careen.core.gates.maintenance_window import is_waived
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, When, gate
from careen.core.lock.content import LockContent
from careen.core.situation import Situation

_CLOCKS_DIFFER = timedelta(minutes=5)  # an instant farther in the future is a mistake and would block for very long


@gate(
    "cluster-interval",
    when=BEFORE_THE_CORDON,
    cost=Cost.COSTLY,  # it reads nothing, but a cheap refusal would take one node after another out of the line,
)
def cluster_interval(situation: Situation, when: When) -> No | None:
    content = situation.lock
    if not situation.policy.cluster_interval_seconds or is_waived(situation.node, situation.seen.now):
        return None
    if not isinstance(content, LockContent):
        return None  # the gate `hold` refuses such a lock
    interval = span(situation.policy.cluster_interval_seconds)
    if holder := _before_us(situation, content, when):
        # Whether the holder reboots is not known: a person may keep that node down.
        return _no(f"{holder} holds a claim and goes first; if that node reboots, {interval} must pass afterwards")
    again = ends(content, situation.policy, situation.server_now)
    if again is None or situation.server_now >= again:
        return None
    return _no(
        f"the last reboot in the cluster ended at {content.released_at}; the next reboot may begin at {rfc3339(again)}",
        ends=again,
    )


def ends(content: LockContent, policy: Policy, now: datetime) -> datetime | None:
    """When the interval after the cluster's last reboot ends; None without an interval or a reboot in the lock."""
    last = from_rfc3339(content.released_at)
    if not policy.cluster_interval_seconds or last is None or last > now + _CLOCKS_DIFFER:
        return None
    return last + timedelta(seconds=policy.cluster_interval_seconds)


def _before_us(situation: Situation, content: LockContent, when: When) -> str:
    """A node whose claim comes before this node's in the lock, or "". A node without a claim comes after all
    holders."""
    holders, own = list(content.holders), situation.node.name
    if when is When.CLAIMED and own in holders:
        holders = holders[: holders.index(own)]
    return next((name for name in holders if name != own), "")


def _no(sentence: str, ends: datetime | None = None) -> No:
    return No(Code.CLUSTER_INTERVAL, sentence, is_of_cluster=True, ends=ends)

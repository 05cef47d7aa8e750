"""The pause between two turns of a drain. Each turn reads the Node, the lock and the pods, so there should be few; but
a turn that comes a second late delays every waiting node by that second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from careen.core.actions import Evict
from careen.core.decision import Decision
from careen.core.facts.memory import ENDS_EVICTION, Memory
from careen.core.facts.observation import PodView
from scheduler_core.values import replace_value as replace

LOOK_SECONDS = 2.0  # three reads in each turn; a pod's grace period is 30 s by default
AFTER_EVICTION_SECONDS = 1.0  # a kubelet takes about a second to remove even a pod whose containers end at once
UNTRIED_SECONDS = 0.5  # a turn that ran out of time for its evictions soon goes on with the rest
_ENDING_SECONDS = 0.5
_ENDING_SHARE = 0.25  # of the pod's time so far
_SAME_ROUND_SECONDS = 0.5


def without_eviction(ending: Iterable[PodView], pauses: Sequence[float], now: datetime) -> float:
    """The pause in seconds after a turn without an eviction. `pauses` are the seconds until the refused evictions may
    be requested again; if there are any, the terminating pods (`ending`) do not matter, because the drain cannot end
    earlier."""
    if pauses:
        return _until_next_round(pauses)
    return min((_terminating_pause_seconds(pod, now) for pod in ending), default=LOOK_SECONDS)


def after_evictions(decision: Decision, memory: Memory, *, uptime: float) -> Decision:
    """The decision with its pause adapted to the answers to its evictions, which `memory` has."""
    asked = [pod.uid for action in decision.actions if isinstance(action, Evict) for pod in action.pods]
    if not asked:
        return decision
    return replace(decision, look_again_seconds=_after(asked, memory, uptime))


def _after(asked: Sequence[str], memory: Memory, uptime: float) -> float:
    answered = memory.drain.evictions
    if any(uid not in answered or answered[uid].not_before <= uptime for uid in asked):
        return UNTRIED_SECONDS
    pauses = [each.not_before - uptime for each in answered.values() if each.answer not in ENDS_EVICTION]
    return max(UNTRIED_SECONDS, _until_next_round(pauses)) if pauses else AFTER_EVICTION_SECONDS


def _until_next_round(pauses: Sequence[float]) -> float:
    """The seconds until the next eviction is due, at most `LOOK_SECONDS`. Evictions that are due within half a second
    go together, because each turn costs three reads."""
    first = min(pauses)
    return min(max(each for each in pauses if each <= first + _SAME_ROUND_SECONDS), LOOK_SECONDS)


def _terminating_pause_seconds(pod: PodView, now: datetime) -> float:
    """The seconds until the agent looks whether a terminating pod is gone. Short at first, because most pods are gone
    long before their grace period ends; then it grows with the time since the eviction."""
    if pod.deletion_timestamp is None:
        return LOOK_SECONDS
    asked = pod.deletion_timestamp - timedelta(seconds=pod.deletion_grace_seconds or 0.0)
    return min(max(_ENDING_SECONDS, (now - asked).total_seconds() * _ENDING_SHARE), LOOK_SECONDS)

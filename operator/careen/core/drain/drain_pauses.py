"""Decides how many seconds the agent pauses during a drain before the next round of its loop (observe, decide, apply).
Each round reads the Node, the lock and the pods, so there should be few rounds. But if a round comes a second too late,
the reboots of all waiting nodes are delayed by that second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from careen.core.actions import Evict
from careen.core.decision import Decision
from careen.core.facts.memory import ENDS_EVICTION, Memory
from careen.core.facts.observation import PodView

LOOK_SECONDS = 2.0  # three reads in each round; a pod's grace period is 30 s by default
AFTER_EVICTION_SECONDS = 1.0  # a kubelet takes about a second to remove even a pod whose containers end at once
UNTRIED_SECONDS = 0.5  # a round that ran out of time for its evictions goes on soon with the remaining evictions
_ENDING_SECONDS = 0.5
_ENDING_SHARE = 0.25  # of the pod's time so far
_SAME_ROUND_SECONDS = 0.5


def without_eviction(ending: Iterable[PodView], pauses: Sequence[float], now: datetime) -> float:
    """Return the pause in seconds after a round of the agent's loop that requests no eviction. `pauses` has, for each
    pod whose eviction was refused, the seconds until the agent may request the eviction again. If `pauses` is not
    empty, the terminating pods (`ending`) do not matter, because the drain cannot end before the next request."""
    if pauses:
        return _until_next_round(pauses)
    return min((_terminating_pause_seconds(pod, now) for pod in ending), default=LOOK_SECONDS)


def after_evictions(decision: Decision, memory: Memory, *, uptime: float) -> Decision:
    """Return the decision with its pause adapted to the API server's responses to the eviction requests of this
    decision. `memory` contains these responses. A decision without eviction requests is returned unchanged."""
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
    """Return the seconds until the next eviction may be requested, but at most `LOOK_SECONDS`. Evictions that become
    allowed within half a second of each other are requested together, because each round of the agent's loop reads the
    Node, the lock and the pods."""
    first = min(pauses)
    return min(max(each for each in pauses if each <= first + _SAME_ROUND_SECONDS), LOOK_SECONDS)


def _terminating_pause_seconds(pod: PodView, now: datetime) -> float:
    """Return the seconds to wait before the agent checks whether a terminating pod is gone. The pause is short at
    first, because most pods are gone long before their grace period ends. Then the pause grows with the time since the
    eviction."""
    if pod.deletion_timestamp is None:
        return LOOK_SECONDS
    asked = pod.deletion_timestamp - timedelta(seconds=pod.deletion_grace_seconds or 0.0)
    return min(max(_ENDING_SECONDS, (now - asked).total_seconds() * _ENDING_SHARE), LOOK_SECONDS)

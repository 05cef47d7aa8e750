"""Messages to people about reboots."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from careen.core.actions import Notify, Occasion
from careen.core.facts import keys
from careen.core.facts.observation import Unknown
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import object_of, short, whole
from careen.core.situation import Situation
from scheduler_core.simulation.forecast import Forecast, Outcome

_SHOWN_PODS = 3
_MOST_PODS = 100_000  # more than any node holds: anyone may have written the annotation


def about_reboot(situation: Situation, occasion: Occasion, sentence: str, *, since: str) -> Notify:
    """A message about the reboot of this claim, with the time that has passed since `since` (RFC 3339, or empty)."""
    node, began = situation.node, from_rfc3339(since)
    return Notify(
        occasion=occasion,
        sentence=sentence,
        claim=situation.progress.claim,
        reason=node.annotations.get(keys.NEED, ""),
        seconds=_seconds(began, situation.seen.now),
        forecast=forecast_line(situation),
    )


def about_failure(situation: Situation, occasion: Occasion, sentence: str) -> Notify:
    """A message about a failure, with the time that has passed since the drain began."""
    began = from_rfc3339(situation.progress.drain_started_at)
    return Notify(
        occasion=occasion,
        sentence=f"Node {situation.node.name}: {sentence}",
        reason=f"{situation.node.name}: {sentence}",
        seconds=_seconds(began, situation.seen.now),
        forecast=forecast_line(situation),
    )


def forecast_line(situation: Situation) -> str:
    """Where this node's pods go, by this turn's forecast, else by the one on the Node; "" without a readable one."""
    made = situation.seen.forecast
    if isinstance(made, Forecast):
        moving = {pod.title: tuple(pod.landing) for pod in made.with_outcome(Outcome.MOVES)}
        return _line({outcome.value: count for outcome, count in made.counts.items()}, moving)
    stored = object_of(situation.node.annotations.get(keys.FORECAST))
    counts, pods = stored.get("counts"), stored.get("pods")
    if not isinstance(counts, Mapping):
        return ""
    return _line(
        {key: number for key, value in counts.items() if (number := whole(value, _MOST_PODS)) is not None},
        {
            title: tuple(each for each in nodes if isinstance(each, str))
            for title, nodes in (pods if isinstance(pods, Mapping) else {}).items()
            if isinstance(nodes, list)
        },
    )


def _line(counts: Mapping[str, int], moving: Mapping[str, tuple[str, ...]]) -> str:
    """Such as `4 pods move (shop/a to n2; shop/b to n3; shop/c to n2 or n3; pods not listed: 1), 1 pod stays
    pending`."""
    moves = counts.get(Outcome.MOVES.value, 0)
    shown = [f"{pod} to {_places(nodes)}" for pod, nodes in list(moving.items())[:_SHOWN_PODS] if nodes]
    pods = "; ".join(shown)
    if shown and moves > len(shown):
        pods = f"{pods}; pods not listed: {moves - len(shown)}"
    where = f" ({pods})" if shown else ""
    clauses = [f"1 pod moves{where}" if moves == 1 else f"{moves} pods move{where}"]
    pending = counts.get(Outcome.PENDING.value, 0)
    clauses.append("1 pod stays pending" if pending == 1 else f"{pending} pods stay pending")
    unknown = counts.get(Outcome.UNKNOWN.value, 0) + counts.get(Outcome.BLOCKED.value, 0)
    if unknown:
        clauses.append(
            "1 pod is blocked or not predictable" if unknown == 1 else f"{unknown} pods are blocked or not predictable"
        )
    return short(", ".join(clauses))


def _places(nodes: tuple[str, ...]) -> str:
    named = [each for each in nodes if each != keys.AND_OTHERS]
    return " or ".join(named[:2]) + (" or other nodes" if len(named) > 2 or keys.AND_OTHERS in nodes else "")


def _seconds(since: datetime | None, now: datetime) -> float | None:
    """None if `since` is unknown or in the future."""
    seconds = (now - since).total_seconds() if since is not None else -1.0
    return seconds if seconds >= 0 else None


def is_last_of_rollout(situation: Situation, holders: tuple[str, ...]) -> bool:
    """Whether the roll-out ends with this node's claim: no other node waits, and `holders`, who are left, are none."""
    waiters = situation.seen.waiters
    if isinstance(waiters, Unknown) or not isinstance(waiters, tuple) or holders:
        return False
    return not any(waiter.name != situation.node.name for waiter in waiters)

"""The first sentences about a roll-out: the obstacle, and how far it is. Every view uses them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from careen.core.decision import stored_refusals
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.reasons import Code
from careen.core.facts.times import age, duration
from careen.report.tables import listed, paragraph
from careen.rollout.as_json import obstacle_json
from careen.rollout.model import RolloutView, Standstill, State


def asks_for_policy(nodes: Iterable[NodeView]) -> bool:
    """To say when a window opens."""
    return any(
        refusal.code is Code.OUTSIDE_WINDOW
        for node in nodes
        if Code.OUTSIDE_WINDOW.value in node.annotations.get(keys.REFUSALS, "")  # most nodes need not be parsed
        for refusal in stored_refusals(node)
    )


def headline_text(found: Standstill, now: datetime, *, width: int | None = None) -> str:
    """For a terminal, with the remedies."""
    since = f" The cause has lasted for {age(found.since, now)}." if found.since else ""
    lines = [paragraph(f"{found.why}.{since}", width=width)]
    if found.ways_out:
        lines += ["What you can do:", *(paragraph(each, indent="  ", width=width) for each in found.ways_out)]
    return "\n".join(lines)


def headline_json(found: Standstill | None) -> dict[str, Any] | None:
    """The headline as JSON."""
    return None if found is None else obstacle_json(found)


def progress_sentence(view: RolloutView) -> str:
    """How far the roll-out is; "" if no node needs a reboot and none is down for maintenance."""
    counts = view.counts
    if not counts.open and not counts.kept_down:
        return ""
    parts = [f"{counts.done} of {counts.done + counts.open} done"] if counts.open else []
    working = view.in_state(State.WORKING)
    if working:
        first = working[0]
        usual = f", usually {duration(timedelta(seconds=counts.usual_seconds))}" if counts.usual_seconds else ""
        began = first.expected.started if first.expected is not None else first.since
        names = listed([each.name for each in working], most=1)
        parts.append(f"{len(working)} working ({names} for {age(began, view.at)}{usual})")
    for number, what, named in (
        (counts.queued, "queued", None),
        (counts.held_back, "held back", None),
        (counts.stuck, "without progress", State.STUCK),
        (counts.failed, "failed", State.FAILED),
        (counts.kept_down, "in maintenance, on the way there or back", None),
    ):
        if number:
            names = f" ({listed([each.name for each in view.in_state(named)], most=1)})" if named is not None else ""
            parts.append(f"{number} {what}{names}")
    if counts.finish is not None:
        rest = " for the nodes that nothing holds back" if counts.held_back else ""
        parts.append(f"finish at about {counts.finish.astimezone(UTC):%H:%M} UTC{rest}")
    return ", ".join(parts)

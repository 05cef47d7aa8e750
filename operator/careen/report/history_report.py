"""Past reboots, and when the nodes that reboot now should be back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from careen.core.facts.observation import NodeView
from careen.core.facts.times import age, duration
from careen.core.steps.shared.history import Reboot, reboots_of
from careen.report.tables import listed, paragraph, table
from careen.rollout.model import Expected
from scheduler_core.sentences import count_of


def history_text(nodes: Sequence[NodeView], now: datetime, *, width: int | None = None) -> str:
    """Every recorded reboot, newest first."""
    reboots = _all(nodes)
    if not reboots:
        asked = listed([node.name for node in nodes]) or "any node"
        return paragraph(f"careen has recorded no reboot of {asked}.", width=width)
    rows = [
        [
            name,
            f"{each.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
            f"{age(each.at, now)} ago",
            "" if each.seconds is None else duration(timedelta(seconds=each.seconds)),
            "" if each.moves is None else str(each.moves),
            each.why,
        ]
        for name, each in reboots
    ]
    names = {name for name, _ in reboots}
    counted = f"{count_of(len(reboots), 'reboot')} of {count_of(len(names), 'node')}"
    total = f"{counted}; each Node records only its last five reboots."
    header = ["NODE", "BACK AT", "AGE", "TOOK", "MOVES", "WHY"]
    return f"{table(header, rows, width=width)}\n\n{paragraph(total, width=width)}"


def history_json(nodes: Sequence[NodeView]) -> dict[str, Any]:
    """The history as JSON."""
    return {
        "reboots": [
            {"node": name, "at": each.at, "why": each.why, "seconds": each.seconds, "moves": each.moves}
            for name, each in _all(nodes)
        ]
    }


def _all(nodes: Sequence[NodeView]) -> list[tuple[str, Reboot]]:
    found = [(node.name, each) for node in nodes for each in reboots_of(node)]
    return sorted(found, key=lambda row: (-row[1].at.timestamp(), row[0]))


def expected_text(ends: Mapping[str, Expected], now: datetime, *, width: int | None = None) -> list[str]:
    """One sentence for each reboot under way."""
    return [paragraph(_sentence(name, each, now), width=width) for name, each in ends.items()]


def _sentence(name: str, each: Expected, now: datetime) -> str:
    so_far = age(each.started, now)
    estimate = f"estimated duration: {duration(timedelta(seconds=each.seconds))}, based on {each.basis}"
    end = f"{each.end.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    should_be = "should have been" if each.end < now else "should be"
    return f"The reboot of {name} began {so_far} ago; it {should_be} over at {end} ({estimate})."


def expected_json(each: Expected | None) -> dict[str, Any] | None:
    """The expected end as JSON."""
    if each is None:
        return None
    return {"started": each.started, "seconds": each.seconds, "end": each.end, "basis": each.basis}

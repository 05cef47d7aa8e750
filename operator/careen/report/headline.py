"""The obstacle above the table of nodes, in words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from careen.core.decision import stored_refusals
from careen.core.facts.observation import NodeView
from careen.core.facts.reasons import Code
from careen.core.facts.times import age
from careen.report.tables import paragraph
from careen.rollout.as_json import obstacle_json
from careen.rollout.model import Standstill


def asks_for_policy(nodes: Iterable[NodeView]) -> bool:
    """To say when a window opens."""
    return any(refusal.code is Code.OUTSIDE_WINDOW for node in nodes for refusal in stored_refusals(node))


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

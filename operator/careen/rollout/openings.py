"""When the maintenance windows of waiting nodes open next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo

from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Policy
from careen.core.facts.times import age
from careen.core.windows import openings


def next_opening(policy: Policy, nodes: Iterable[NodeView], now: datetime) -> datetime | None:
    """When the first of their windows opens; `now` if one is open, None if none ever opens again."""
    found = {openings.windows_of(policy, node.labels) for node in nodes}
    if any(openings.is_open(windows, now) for windows in found):
        return now
    instants = (openings.change_after(windows, now) for windows in found)
    return min((each for each in instants if each is not None), default=None)


def in_zone(at: datetime, zone: tzinfo) -> str:
    """`Fri 2026-03-06 22:00 CET (Europe/Berlin)`, with the zone's name, because the abbreviation changes with daylight
    saving time."""
    local = at.astimezone(zone)
    letters, name = local.strftime("%Z"), str(zone)
    shown = f"{local:%a %Y-%m-%d %H:%M:%S}" if local.second else f"{local:%a %Y-%m-%d %H:%M}"
    return f"{shown} {letters}" if name == letters else f"{shown} {letters} ({name})"


def opening_clause(policy: Policy, nodes: Iterable[NodeView], now: datetime) -> str:
    """Such as "the next window opens at …, in 2h"."""
    opening = next_opening(policy, nodes, now)
    if opening == now:
        return "a window has opened in the meantime"
    if opening is None:
        return "no window ever opens"
    return f"the next window opens at {in_zone(opening, policy.window.zone)}, in {age(now, opening)}"


def shut_at(policy: Policy, nodes: Sequence[NodeView], begins: datetime) -> list[str]:
    """A sentence if all these windows are closed when a plan begins."""
    opening = next_opening(policy, nodes, begins)
    if not nodes or opening == begins:
        return []
    if opening is None:
        return ["no maintenance window of these nodes ever opens"]
    first = in_zone(opening, policy.window.zone)
    return [f"the maintenance windows are closed when the plan begins; the first window opens {first}"]

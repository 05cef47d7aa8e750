"""The plan over which the real roll-out is drawn: what `careen plan -o json` wrote, as far as a page needs it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import field

from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import whole
from scheduler_core.values import Value

_MOST_MOVES = 10**6
_MOST_UNBLOCKS = 5


class Planned(Value, kw_only=True):
    """When each node should be done, how many pods its drain should move, and which changes would free more nodes.
    `note` says why there is no plan; `is_failed` if the next try may make one."""

    made_at: datetime | None = None
    ends: Mapping[str, datetime] = field(default_factory=dict)
    moves: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    is_failed: bool = False
    unblocks: tuple[str, ...] = ()  # what a few changes buy, each on top of those before it

    @property
    def finish(self) -> datetime | None:
        """None if no node reboots in the plan."""
        return max(self.ends.values(), default=None)


def planned_of(value: Any) -> Planned | None:
    """The plan in this JSON value; None if it is none of `careen plan -o json`."""
    visits = value.get("visits") if isinstance(value, dict) else None
    if not isinstance(visits, list):
        return None
    ends: dict[str, datetime] = {}
    moves: dict[str, int] = {}
    for visit in visits:
        match visit:
            case {"node": str(node), "end": end, **more} if not more.get("undone") and (at := from_rfc3339(end)):
                ends[node] = at
                if (count := whole(more.get("moves"), _MOST_MOVES)) is not None:
                    moves[node] = count
    rows = value.get("unblocks")
    said = [row.get("sentence") for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict)]
    return Planned(
        made_at=from_rfc3339(value.get("begins")),
        ends=ends,
        moves=moves,
        unblocks=tuple(each for each in said if isinstance(each, str))[:_MOST_UNBLOCKS],
    )

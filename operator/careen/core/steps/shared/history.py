"""The annotation with the last five reboots of a node: when, why, how long, and how many pods moved. What careen writes
has a limited length, whatever stood there: unreadable rows are left out, and long reasons are cut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import field

from careen.core.decision import refused_seconds
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.facts.untrusted import json_of, object_of, short, whole
from scheduler_core.simulation.forecast import Outcome
from scheduler_core.values import Value

MOST = 5
_ANNOTATIONS = frozenset({keys.HISTORY, keys.LAST_REBOOT})
_LONGEST_WHY = 200
_MOST_SECONDS = 10**9
_MOST_MOVES = 10**6
LONGEST_KERNEL = 64  # utsname has 65 bytes for a release


class Reboot(Value, kw_only=True):
    """One reboot. `at` is when the node was back in service, `seconds` the time since its cordon, `moves` the number of
    pods that the drain had to evict, `forecast_moves` that of the last forecast before. `refused` has the seconds for
    which each reason code held the node back."""

    at: datetime
    why: str = ""
    seconds: int | None = None
    moves: int | None = None
    forecast_moves: int | None = None
    need_since: datetime | None = None
    kernel_left: str = ""
    kernel: str = ""
    refused: Mapping[str, int] = field(default_factory=dict)


def reboots_of(node: NodeView) -> tuple[Reboot, ...]:
    """The last reboots, newest first. A Node that an earlier release of careen annotated may have only the last one."""
    if _ANNOTATIONS.isdisjoint(node.annotations):
        return ()
    rows = json_of(node.annotations.get(keys.HISTORY))
    if not isinstance(rows, list):
        rows = [object_of(node.annotations.get(keys.LAST_REBOOT))]
    found = [reboot for row in rows[:MOST] if (reboot := _reboot(row)) is not None]
    return tuple(sorted(found, key=lambda each: each.at, reverse=True))


def with_one_more(node: NodeView, reboot: Reboot) -> str:
    """The value of the annotation with this reboot at the front: at most `MOST` reboots, each only once."""
    before = [each for each in reboots_of(node) if each.at != reboot.at]
    return json.dumps([_row(each) for each in (reboot, *before)[:MOST]], separators=(",", ":"), ensure_ascii=False)


def refused_of(node: NodeView) -> dict[str, int]:
    """For how many seconds each reason code has refused the need that stands, as far as refusals have ended."""
    return refused_seconds(json_of(node.annotations.get(keys.REFUSED)))


def forecast_moves_of(node: NodeView) -> int | None:
    """How many pods leave the node in the forecast on the Node; None without one."""
    counts = object_of(node.annotations.get(keys.FORECAST)).get("counts")
    if not isinstance(counts, dict):
        return None
    known = [whole(counts.get(each.value), _MOST_MOVES) or 0 for each in Outcome if each is not Outcome.STAYS]
    return min(sum(known), _MOST_MOVES)


def _reboot(row: Any) -> Reboot | None:
    at = from_rfc3339(row.get("at")) if isinstance(row, dict) else None
    if at is None:
        return None
    why = row.get("why")
    return Reboot(
        at=at,
        why=short(why, _LONGEST_WHY) if isinstance(why, str) else "",
        seconds=whole(row.get("seconds"), _MOST_SECONDS),
        moves=whole(row.get("moves"), _MOST_MOVES),
        forecast_moves=whole(row.get("forecast"), _MOST_MOVES),
        need_since=from_rfc3339(row.get("needSince")),
        kernel_left=_kernel(row.get("kernelLeft")),
        kernel=_kernel(row.get("kernel")),
        refused=refused_seconds(row.get("refused")),
    )


def _kernel(text: Any) -> str:
    return short(text, LONGEST_KERNEL) if isinstance(text, str) else ""


def _row(reboot: Reboot) -> dict[str, Any]:
    row = {
        "at": rfc3339(reboot.at),
        "why": short(reboot.why, _LONGEST_WHY),
        "seconds": reboot.seconds,
        "moves": reboot.moves,
        "forecast": reboot.forecast_moves,
        "needSince": rfc3339(reboot.need_since) if reboot.need_since else None,
        "kernelLeft": reboot.kernel_left,
        "kernel": reboot.kernel,
        "refused": dict(reboot.refused) or None,
    }
    return {key: value for key, value in row.items() if value not in (None, "")}

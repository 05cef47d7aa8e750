"""The annotation `careen.dev/last-reboot`: the node's report of its last reboot, with the duration of each part."""

from __future__ import annotations

import json
from typing import Any

from careen.core.facts import keys
from careen.core.facts.progress import Mark, Progress
from careen.core.facts.untrusted import LONGEST_SENTENCE, number, object_of
from careen.core.situation import Situation

_LARGEST = 10**9


def drain_seconds(progress: Progress) -> int | None:
    """The duration of the drain; None if its start or end is unknown, or they are not on the same boot. Without
    --reboot-delay the record may have no end: the agent then announces the reboot right after the drain."""
    return _seconds_between(progress.drain_started, progress.drained or progress.announced)


def with_settle_seconds(situation: Situation) -> dict[str, str | None]:
    """The report, extended by the seconds of the phase Settling; {} if the node has no report of this boot."""
    report = object_of(situation.node.annotations.get(keys.LAST_REBOOT))
    waited = situation.elapsed(situation.progress.settle_started)
    if waited is None or waited < 0 or report.get("boot") != situation.boot:
        return {}
    kept = {key: value for key, value in report.items() if _is_ours(value)}
    return {keys.LAST_REBOOT: compact({**kept, "settleSeconds": round(waited)})}


def compact(report: dict[str, Any]) -> str:
    """Short JSON, without values that are None."""
    return json.dumps({key: value for key, value in report.items() if value is not None}, separators=(",", ":"))


def _is_ours(value: object) -> bool:
    """Whether careen may have written the value: other clients may have changed the annotation."""
    if isinstance(value, dict):
        return all(isinstance(each, dict) and all(map(_is_plain, each.values())) for each in value.values())
    return _is_plain(value)


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_SENTENCE
    return value is None or number(value, _LARGEST, -_LARGEST) is not None


def _seconds_between(earlier: Mark | None, later: Mark | None) -> int | None:
    if earlier is None or later is None or earlier.boot != later.boot:
        return None
    seconds = round(later.uptime - earlier.uptime)
    return seconds if seconds >= 0 else None

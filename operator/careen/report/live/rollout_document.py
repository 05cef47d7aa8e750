"""The document that the live page draws: the whole roll-out as JSON, columns instead of objects for its nodes."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.times import from_rfc3339
from careen.core.plain_text import LONGEST_CELL, one_line
from careen.report.fleet_report import phase_of, reason_of
from careen.report.headline import Headline, headline
from careen.report.history_report import expected_ends
from careen.report.live.planned import Planned
from careen.report.live.standing import Standing, standing_of
from careen.report.lock_report import LockState, lock_sentence
from careen.report.tables import age, count_of, duration
from scheduler_core.values import Value

DONE = "Done"
"""Shown instead of Idle for a node that rebooted in this roll-out."""

_PHASES = (
    Phase.FAILED,
    Phase.REBOOTING,
    Phase.VERIFYING,
    Phase.DRAINING,
    Phase.CLAIMING,
    Phase.MAINTENANCE,
    Phase.SETTLING,
    Phase.WAITING,
    DONE,
    Phase.IDLE,
)
MOST_ZONES = 8  # a reader cannot distinguish more stripes; the smallest zones become "others"
_MOST_CAUSES = 50


class Seen(Value, kw_only=True):
    """One look at the cluster. `refresh_seconds` until the next one; `trouble` says why the last one failed."""

    nodes: tuple[NodeView, ...]
    lock: LockState
    at: datetime
    server: str = ""
    refresh_seconds: float = 5.0
    trouble: str = ""
    load: str = ""  # what the looks cost the API server, as a sentence


def rollout_document(seen: Seen, planned: Planned) -> dict[str, Any]:
    """Times are seconds since 1970; texts from the cluster are on one line each."""
    standing = standing_of(seen.nodes, seen.lock, seen.at)
    zones = [zone or "no zone" for zone in sorted({node.zone for node in seen.nodes})]
    return {
        "version": 1,
        "readAt": _seconds(seen.at),
        "refreshSeconds": seen.refresh_seconds,
        "trouble": _line(seen.trouble),
        "headline": _headline(seen, standing),
        "progress": {
            "total": len(seen.nodes),
            "done": len(standing.done),
            "working": len(standing.working),
            "waiting": len(standing.waiting),
            "failed": len(standing.failed),
            "kept": len(standing.kept),
            "began": _seconds(standing.began),
            "finish": _seconds(standing.finish),
            "planned": _seconds(planned.finish),
        },
        "working": _working(seen, standing),
        "causes": _causes(seen, standing),
        "phases": [str(each) for each in _PHASES],
        "zones": [_cell(zone) for zone in zones],
        "nodes": _nodes(seen, standing, zones),
        "chart": _chart(seen, standing, planned),
        "foot": _foot(seen),
    }


# ---- sentences ----


def headline_of(seen: Seen, standing: Standing) -> tuple[str, str, str]:
    """The tone (`fine`, `working`, `stuck`), the verdict and the details."""
    found = headline(seen.nodes, seen.lock, seen.at)
    if found is not None and not standing.working:
        since = f" The cause has lasted for {age(found.since, seen.at)}." if found.since else ""
        return "stuck", f"{found.why}.", f"{_ways_out(found)}{since}".strip()
    detail = f"Lock: {lock_sentence(seen.lock, seen.at)}."
    if standing.failed:
        return "stuck", f"{_are(len(standing.failed), 'failed')}.", detail
    if standing.working:
        return "working", f"{progress_sentence(seen, standing)}.", detail
    if standing.waiting:
        return "working", f"{_are(len(standing.waiting), 'waiting')}; none is at work yet.", detail
    if standing.done and standing.began:
        return "fine", f"The roll-out is over: {count_of(len(standing.done), 'node')} rebooted.", detail
    return "fine", "No node needs a reboot.", detail


def progress_sentence(seen: Seen, standing: Standing) -> str:
    """Such as `12 of 40 nodes have rebooted; 2 are at work (n13 for 1m10s); 26 wait`."""
    asked = len(standing.done) + len(standing.working) + len(standing.waiting) + len(standing.failed)
    since = {node.name: from_rfc3339(node.annotations.get(keys.SINCE, "")) for node in seen.nodes}
    first = standing.working[:3]
    shown = ", ".join(f"{name} for {age(since[name], seen.at)}" for name in first)
    more = ", …" if len(standing.working) > len(first) else ""
    parts = [f"{len(standing.done)} of {count_of(asked, 'node')} rebooted"]
    parts.append(f"{len(standing.working)} at work ({shown}{more})")
    if standing.waiting:
        parts.append(f"{len(standing.waiting)} waiting")
    return "; ".join(parts)


def _ways_out(found: Headline) -> str:
    return " ".join(f"{each.rstrip('.')}." for each in found.ways_out[:3])


def _are(number: int, what: str) -> str:
    return f"{count_of(number, 'node')} {'is' if number == 1 else 'are'} {what}"


def _headline(seen: Seen, standing: Standing) -> dict[str, str]:
    tone, sentence, detail = headline_of(seen, standing)
    return {"tone": tone, "sentence": _line(sentence), "detail": _line(detail)}


def _foot(seen: Seen) -> str:
    every = duration(timedelta(seconds=seen.refresh_seconds))
    where = f" of {seen.server}" if seen.server else ""
    load = f"; {seen.load}" if seen.load else ""
    return _line(
        f"careen reads the cluster{where} every {every} while a page is open{load}. This page changes nothing."
    )


# ---- nodes ----


def _working(seen: Seen, standing: Standing) -> list[dict[str, Any]]:
    ends = expected_ends(seen.nodes)
    by_name = {node.name: node for node in seen.nodes}
    rows = []
    for name in (*standing.failed, *standing.working, *standing.kept):
        node = by_name[name]
        end = ends.get(name)
        ready = "" if node.ready else "the node is not Ready; "
        rows.append(
            {
                "node": _cell(name),
                "phase": _cell(phase_of(node)),
                "since": _since(node),
                "expected": _seconds(end.end) if end else None,
                "says": _line(ready + reason_of(node)),
            }
        )
    return rows


def _causes(seen: Seen, standing: Standing) -> list[dict[str, Any]]:
    place = {node.name: number for number, node in enumerate(seen.nodes)}
    return [
        {
            "key": _line(cause.key),
            "title": _line(cause.title),
            "remedy": _line(cause.remedy),
            "since": _seconds(cause.since),
            "count": len(cause.nodes),
            "nodes": [place[name] for name in cause.nodes],
        }
        for cause in standing.causes[:_MOST_CAUSES]
    ]


def _nodes(seen: Seen, standing: Standing, zones: Sequence[str]) -> dict[str, list[Any]]:
    phase_at = {str(phase): number for number, phase in enumerate(_PHASES)}
    zone_at = {zone: number for number, zone in enumerate(zones)}
    held: dict[str, list[int]] = {}
    for number, cause in enumerate(standing.causes[:_MOST_CAUSES]):
        for name in cause.nodes:
            held.setdefault(name, []).append(number)
    return {
        "name": [_cell(node.name) for node in seen.nodes],
        "zone": [zone_at[node.zone or "no zone"] for node in seen.nodes],
        "phase": [
            phase_at[DONE] if node.name in standing.done else phase_at.get(phase_of(node), phase_at[Phase.FAILED])
            for node in seen.nodes
        ],
        "since": [
            _seconds(standing.done[node.name].at) if node.name in standing.done else _since(node) for node in seen.nodes
        ],
        "ready": [int(node.ready) for node in seen.nodes],
        "causes": [held.get(node.name, 0) for node in seen.nodes],
    }


# ---- the chart ----


def _chart(seen: Seen, standing: Standing, planned: Planned) -> dict[str, Any]:
    """Only the nodes of the roll-out: those that are done, at work or waiting, and those of the plan."""
    taking_part = {*standing.done, *standing.working, *standing.waiting, *standing.failed, *planned.ends}
    members = [node for node in seen.nodes if node.name in taking_part]
    stripe_of = _stripes(members)
    working, waiting = set(standing.working), {*standing.waiting, *standing.failed}
    rows = []
    for stripe in sorted(set(stripe_of.values())):
        names = [name for name, each in stripe_of.items() if each == stripe]
        rows.append(
            {
                "name": _cell(stripe),
                "total": len(names),
                "done": sorted(_seconds(standing.done[name].at) or 0 for name in names if name in standing.done),
                "plan": sorted(_planned_ends(names, standing, planned)),
                "working": sum(1 for name in names if name in working),
                "waiting": sum(1 for name in names if name in waiting),
            }
        )
    instants = [at for at in (standing.began, planned.made_at) if at] or [seen.at]
    # The first reboot, not the first need: hosts may have waited for days.
    first = min((each.at for each in standing.done.values()), default=seen.at)
    begins = max(min(instants), first - timedelta(minutes=10))
    ends = max([seen.at, *(at for at in (standing.finish, planned.finish) if at)])
    return {
        "from": _seconds(begins),
        "to": _seconds(ends),
        "zones": rows,
        "note": _line(_chart_note(seen, standing, planned)),
    }


def _chart_note(seen: Seen, standing: Standing, planned: Planned) -> str:
    if not planned.ends:
        return planned.note
    ends = sorted(planned.ends.values())
    due = bisect_right(ends, seen.at)
    done = sum(1 for name in standing.done if name in planned.ends)
    late = due - done
    stand = (
        "as planned" if not late else f"{count_of(abs(late), 'node')} {'behind' if late > 0 else 'ahead of'} the plan"
    )
    return f"Pale: the plan; solid: what has happened. The roll-out is {stand}."


def _planned_ends(names: Sequence[str], standing: Standing, planned: Planned) -> list[int]:
    """Nodes that were done before the plan was made count as they really were."""
    if not planned.ends:
        return []
    real = {name: standing.done[name].at for name in names if name in standing.done}
    found = (planned.ends.get(name) or real.get(name) for name in names)
    return [_seconds(at) or 0 for at in found if at]


def _stripes(members: Sequence[NodeView]) -> dict[str, str]:
    sizes = Counter(node.zone for node in members)
    ranked = sorted(sizes, key=lambda zone: (-sizes[zone], zone))
    kept = set(ranked if len(ranked) <= MOST_ZONES else ranked[: MOST_ZONES - 1])
    return {node.name: (node.zone or "no zone") if node.zone in kept else "others" for node in members}


# ---- values ----


def _seconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())


def _since(node: NodeView) -> int | None:
    return _seconds(from_rfc3339(node.annotations.get(keys.SINCE, "")))


def _line(text: str) -> str:
    return one_line(text)


def _cell(text: str) -> str:
    return one_line(text, LONGEST_CELL)

"""The plan as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from careen.core.facts.times import rfc3339
from careen.plan.ranges import Ranges
from careen.plan.unblocking import Bought, barriers
from careen.report.plan.causes import bought
from careen.report.plan.risks import risks
from careen.report.plan.sentences import verdict
from careen.report.plan.values import Origin, Plan, comparison, widths
from scheduler_core.simulation.timeline import Timeline


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON. Times are in UTC, durations in seconds."""
    return {
        "order": plan.line.value,
        "agentsOrder": plan.agents_line.value,
        "concurrency": plan.concurrency,
        "origin": _origin_json(plan.origin) if plan.origin else None,
        "closes": rfc3339(plan.closes) if plan.closes else None,
        "notes": list(plan.notes),
        **_timeline_json(plan.timeline),
        "ranges": _ranges_json(plan, plan.ranges) if plan.ranges else None,
        "verdict": verdict(plan),
        "causes": _causes(plan.timeline),
        "unblocks": _unblocks(plan.unblocks),
        "risks": [{"what": risk.what, "remedy": risk.remedy} for risk in risks(plan)],
        "comparison": {line.value: _figures(timeline) for line, timeline in comparison(plan)},
        "atOnce": {str(most): _figures(timeline) for most, timeline in widths(plan)},
    }


def _causes(timeline: Timeline) -> list[dict[str, Any]]:
    """Every node that does not reboot, by its causes."""
    return [
        {
            "rule": each.rule,
            "subject": each.subject,
            "sentence": each.sentence,
            "nodes": list(each.nodes),
            "changes": [change.sentence for change in each.changes],
        }
        for each in barriers(timeline)
    ]


def _unblocks(unblocks: Sequence[Bought]) -> list[dict[str, Any]]:
    """What each set of changes buys on top of those before it."""
    return [
        {
            "sentence": sentence,
            "changes": [
                {"kind": change.kind.value, "subject": change.subject, "sentence": change.sentence}
                for change in each.changes
            ],
            "nodes": each.nodes,
            "seconds": each.seconds,
        }
        for each, sentence in zip(unblocks, bought(unblocks), strict=True)
    ]


def _ranges_json(plan: Plan, ranges: Ranges) -> dict[str, Any]:
    """Each range is a list of minimum and maximum."""
    return {
        "seeds": ranges.seeds,
        "leftToChance": plan.timeline.is_open,
        "moves": list(ranges.moves),
        "doubleMoves": list(ranges.double_moves),
        "ends": [rfc3339(each) for each in ranges.ends],
        "seconds": [round((each - plan.timeline.begins).total_seconds()) for each in ranges.ends],
        "pendingSeconds": [round(each) for each in ranges.pending_seconds],
        "notClean": ranges.not_clean,
    }


def _origin_json(origin: Origin) -> dict[str, Any]:
    return {
        "server": origin.server or None,
        "context": origin.context or None,
        "dump": origin.dump or None,
        "kubernetes": origin.kubernetes or None,
        "takenAt": rfc3339(origin.taken_at),
        "settings": dict(origin.settings),
    }


def _figures(timeline: Timeline) -> dict[str, Any]:
    return {
        "reboots": len(timeline.reboots),
        "seconds": round((timeline.ends - timeline.begins).total_seconds()),
        "moves": len(timeline.moves),
        "doubleMoves": timeline.double_moves,
        "pending": len(timeline.pending),
        "pendingSeconds": round(timeline.pending_seconds),
        "left": len(timeline.left),
    }


def _timeline_json(timeline: Timeline) -> dict[str, Any]:
    return {
        "begins": rfc3339(timeline.begins),
        "ends": rfc3339(timeline.ends),
        "nodes": list(timeline.nodes),
        "mostAtOnce": timeline.most_at_once(),
        "figures": _figures(timeline),
        "visits": [
            {
                "node": visit.node,
                "start": rfc3339(visit.start),
                "end": rfc3339(visit.end),
                "moves": visit.moves,
                "undone": visit.undone or None,
                "steps": [
                    {"step": span.step.value, "start": rfc3339(span.start), "end": rfc3339(span.end)}
                    for span in visit.spans
                ],
            }
            for visit in timeline.visits
        ],
        "moves": [
            {
                "pod": move.pod,
                "from": move.source,
                "to": move.target,
                "at": rfc3339(move.at),
                "choices": move.choices,
                "preempted": move.is_preempted,
                "open": move.is_open,
            }
            for move in timeline.moves
        ],
        "waits": [
            {
                "pod": wait.pod,
                "node": wait.node,
                "since": rfc3339(wait.since),
                "until": rfc3339(wait.until) if wait.until else None,
                "returns": wait.returns,
                "why": wait.why,
            }
            for wait in timeline.waits
        ],
        "lost": list(timeline.lost),
        "unknown": list(timeline.unknown),
        "slow": list(timeline.slow),
        "hindrances": [
            {"rule": each.rule, "subject": each.subject, "seconds": round(each.seconds), "nodes": list(each.nodes)}
            for each in timeline.hindrances
        ],
        "closings": [{"at": rfc3339(closing.at), "left": closing.left} for closing in timeline.closings],
        "left": [
            {"node": left.node, "rule": left.obstacle.rule, "sentence": left.obstacle.sentence}
            for left in timeline.left
        ],
    }

"""The document about one node that the live page draws: its gates, the forecast with its landings, its history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from careen.core.facts import keys
from careen.core.facts.observation import Unknown
from careen.core.facts.times import age, duration, from_rfc3339
from careen.core.facts.untrusted import object_of
from careen.core.plain_text import one_line
from careen.core.steps.shared.history import reboots_of
from careen.report.gate_answers import NodeStory, gate_answers
from careen.report.lock_report import lock_sentence
from careen.report.why_report import (
    cordon_sentence,
    line_sentence,
    next_sentence,
    remedies,
    seen_sentence,
    summary,
)
from scheduler_core.sentences import count_of

_MOST_PODS = 250


def node_document(story: NodeStory) -> dict[str, Any]:
    """Ready for the page: facts as pairs, tables as rows of texts."""
    node = story.node
    agents = (
        "not known"
        if isinstance(story.agents, Unknown)
        else ", ".join(f"{pod.title} ({'ready' if pod.is_ready else 'not ready'})" for pod in story.agents) or "none"
    )
    facts = [
        ("Phase", story.phase),
        ("For", age_of(node.annotations.get(keys.SINCE, ""), story.now)),
        ("Ready", "yes" if node.ready else "no"),
        ("Zone", node.zone or "none"),
        ("Line", line_sentence(story)),
        ("Cordon", cordon_sentence(story)),
        ("Warning", node.annotations.get(keys.WARNING, "")),
        ("Prepared", node.annotations.get(keys.PREPARED, "")),
        ("Need", node.annotations.get(keys.NEED, "")),
        ("Agent", agents),
        ("Answers", seen_sentence(story)),
        ("Next", next_sentence(story)),
        ("Lock", lock_sentence(story.lock, story.now)),
    ]
    return {
        "version": 1,
        "name": one_line(node.name),
        "summary": one_line(f"{summary(story).rstrip('.')}."),
        "facts": [[name, one_line(value)] for name, value in facts if value],
        "waysOut": [one_line(each) for each in remedies(story)],
        "tables": [_gates(story), _forecast(story), _history(story)],
    }


def age_of(since: str, now: datetime) -> str:
    """The age of an instant in RFC 3339; a dash if it is none."""
    return age(from_rfc3339(since), now)


def _gates(story: NodeStory) -> dict[str, Any]:
    rows = [[each.gate, each.answer.value, age(each.since, story.now), each.sentence] for each in gate_answers(story)]
    return _table("Gates", ["Gate", "Answer", "Since", "Why"], rows, "The agent has asked no gate.")


def _forecast(story: NodeStory) -> dict[str, Any]:
    said = object_of(story.node.annotations.get(keys.FORECAST))
    pods = said.get("pods")
    counts = said.get("counts")
    counted = (
        ", ".join(f"{count} {name}" for name, count in counts.items() if count) if isinstance(counts, dict) else ""
    )
    made = age_of(str(said.get("at") or ""), story.now)
    title = f"Forecast made {made} ago: {counted}" if said else "Forecast"
    rows = [
        [pod, ", ".join(str(node) for node in nodes)]
        for pod, nodes in list(pods.items() if isinstance(pods, dict) else ())[:_MOST_PODS]
        if isinstance(nodes, list)
    ]
    none = "No pod moves." if said else "The agent forecasts a drain only when the node is next in line."
    return _table(title, ["Pod", "May land on"], rows, none)


def _history(story: NodeStory) -> dict[str, Any]:
    rows = [
        [
            f"{each.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
            "-" if each.seconds is None else duration(timedelta(seconds=each.seconds)),
            "-" if each.moves is None else count_of(each.moves, "pod"),
            each.why or "-",
        ]
        for each in reboots_of(story.node)
    ]
    return _table("Last reboots", ["Back at", "Took", "Moved", "Why"], rows, "careen has not rebooted this node yet.")


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], none: str) -> dict[str, Any]:
    return {
        "title": one_line(title),
        "header": list(header),
        "rows": [[one_line(cell) for cell in row] for row in rows],
        "none": none,
    }

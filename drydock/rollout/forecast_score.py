"""Counts in the API server's journal, without the agents' own results, how often their forecasts were right.

With its cordon, an agent writes a forecast on the Node: for each pod, the nodes that may get its replacement.
Replacements of one owner are interchangeable, so each is matched with one evicted pod of its owner such that most
forecasts are right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drydock.checker.journal import Write


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastScore:
    """`total` counts the evicted pods whose forecast lists all possible nodes, `hits` those whose replacement came
    to one of them."""

    hits: int
    total: int


def score_forecasts(writes: Sequence[Write]) -> ForecastScore | None:
    """The score of all drains together; None if no agent wrote a forecast with pods."""
    scores = [
        score
        for write in writes
        if write.cordons and write.agent == write.name and (score := _score(write, writes)) is not None
    ]
    return ForecastScore(hits=sum(s.hits for s in scores), total=sum(s.total for s in scores)) if scores else None


def _score(cordon: Write, writes: Sequence[Write]) -> ForecastScore | None:
    landing = _landing(cordon.after)
    if not landing:
        return None
    node = cordon.name
    end = next(
        (
            w.at
            for w in writes
            if w.plural == "nodes"
            and w.name == node
            and w.at > cordon.at
            and not (w.after.get("spec") or {}).get("unschedulable")
        ),
        float("inf"),
    )
    evicted = [
        w for w in writes if w.plural == "pods" and w.verb == "evict" and w.agent == node and cordon.at <= w.at <= end
    ]
    owners = {_owner(w.before) for w in evicted}
    bound = [
        w
        for w in writes
        if w.plural == "pods" and w.verb == "bind" and cordon.at <= w.at <= end and _owner(w.after) in owners
    ]
    said = [(w, landing["/".join(w.key)]) for w in evicted if "/".join(w.key) in landing]
    said = [(w, nodes) for w, nodes in said if "…" not in nodes]  # a truncated set cannot be wrong
    hits = 0
    for owner in owners:
        places = [w.after["spec"]["nodeName"] for w in bound if _owner(w.after) == owner]
        hits += _most_matches([nodes for w, nodes in said if _owner(w.before) == owner], places)
    return ForecastScore(hits=hits, total=len(said))


def _most_matches(said: list[tuple[str, ...]], places: list[str]) -> int:
    """The most forecasts of `said` that can be matched, each with a node of its own in `places` (by augmenting
    paths)."""
    taken: dict[int, int] = {}

    def place(forecast: int, seen: set[int]) -> bool:
        for index, node in enumerate(places):
            if node in said[forecast] and index not in seen:
                seen.add(index)
                if index not in taken or place(taken[index], seen):
                    taken[index] = forecast
                    return True
        return False

    return sum(place(forecast, set()) for forecast in range(len(said)))


def _owner(pod: Mapping[str, Any]) -> str:
    return next((o["uid"] for o in pod["metadata"].get("ownerReferences") or () if o.get("controller")), "")


def _landing(node: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """For each pod in careen.dev/forecast, the nodes that may get its replacement."""
    text = (node["metadata"].get("annotations") or {}).get("careen.dev/forecast", "")
    try:
        pods = json.loads(text)["pods"] if text else {}
        return {pod: tuple(nodes) if isinstance(nodes, list) else (nodes,) for pod, nodes in pods.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}

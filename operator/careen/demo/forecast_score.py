"""How often the agents' forecasts were right, counted from outside.

An agent writes beside its cordon where it thinks that each pod will land; where the replacements really went stands in
the journal. Replacements of one owner are alike, so they are matched owner by owner: a forecast node counts as hit
once for each replacement that went there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from careen.demo.checker.evidence import Write, agent_node


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastScore:
    """`hits` of `total` evicted pods landed where it was said."""

    hits: int
    total: int


def score_forecasts(writes: Sequence[Write]) -> ForecastScore | None:
    """The score over all drains; None when no agent wrote a forecast that names pods."""
    scores = [score for write in writes if write.cordons and agent_node(write.actor) == write.key[1] and (score := _score(write, writes)) is not None]
    return ForecastScore(hits=sum(s.hits for s in scores), total=sum(s.total for s in scores)) if scores else None


def _score(cordon: Write, writes: Sequence[Write]) -> ForecastScore | None:
    landing = _landing(cordon.after)
    if not landing:
        return None
    node = cordon.key[1]
    end = next((w.at for w in writes if w.plural == "nodes" and w.key[1] == node and w.at > cordon.at and not (w.after.get("spec") or {}).get("unschedulable")), float("inf"))
    evicted = [w for w in writes if w.plural == "pods" and w.verb == "evict" and agent_node(w.actor) == node and cordon.at <= w.at <= end]
    owners = {_owner(w.before) for w in evicted}
    bound = [w for w in writes if w.plural == "pods" and w.verb == "bind" and cordon.at <= w.at <= end and _owner(w.after) in owners]
    went: dict[str, Counter[str]] = {}
    for write in bound:
        went.setdefault(_owner(write.after), Counter())[write.after["spec"]["nodeName"]] += 1
    hits = total = 0
    for write in evicted:
        said = landing.get("/".join(write.key))
        if said is None:
            continue
        total += 1
        places = went.get(_owner(write.before), Counter())
        hit = next((place for place in said if places[place] > 0), None)
        if hit is not None:
            hits += 1
            places[hit] -= 1
    return ForecastScore(hits=hits, total=total)


def _owner(pod: Mapping[str, Any]) -> str:
    return next((o["uid"] for o in pod["metadata"].get("ownerReferences") or () if o.get("controller")), "")


def _landing(node: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Pod -> the nodes it may land on, from the annotation careen.dev/forecast."""
    text = (node["metadata"].get("annotations") or {}).get("careen.dev/forecast", "")
    try:
        pods = json.loads(text)["pods"] if text else {}
        return {pod: tuple(nodes) if isinstance(nodes, list) else (nodes,) for pod, nodes in pods.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}

"""The model as JSON: the form that scripts, the page and `careen status` share."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from careen.core.facts.times import rfc3339
from careen.rollout.model import Cause, Expected, NodeState, RolloutView, Standstill


def rollout_json(found: RolloutView) -> dict[str, Any]:
    """Unknown instants are null. A node's `causes` are the `key` of causes."""
    counts = found.counts
    return {
        "at": _at(found.at),
        "progress": {
            "done": counts.done,
            "working": counts.working,
            "queued": counts.queued,
            "heldBack": counts.held_back,
            "keptDown": counts.kept_down,
            "stuck": counts.stuck,
            "failed": counts.failed,
            "idle": counts.idle,
            "usualSeconds": counts.usual_seconds,
            "finish": _at(counts.finish),
        },
        "maxOwners": found.max_owners,
        "obstacles": [obstacle_json(each) for each in found.obstacles],
        "causes": [cause_json(each) for each in found.causes],
        "nodes": [node_state_json(each) for each in found.nodes],
    }


def obstacle_json(each: Standstill) -> dict[str, Any]:
    """One obstacle."""
    return {"code": each.code, "why": each.why, "since": _at(each.since), "waysOut": list(each.ways_out)}


def cause_json(each: Cause) -> dict[str, Any]:
    """One cause with the nodes that it holds."""
    return {
        "key": each.key,
        "code": each.code,
        "gate": each.gate,
        "subject": each.subject,
        "sentence": each.sentence,
        "nodes": list(each.nodes),
        "alone": list(each.alone),
        "since": _at(each.since),
        "seen": _at(each.seen),
        "ends": _at(each.ends),
        "remedy": each.remedy,
        "ofCluster": each.is_of_cluster,
        "passing": each.is_passing,
    }


def node_state_json(each: NodeState) -> dict[str, Any]:
    """One node."""
    return {
        "name": each.name,
        "state": each.state.value,
        "phase": each.phase,
        "doing": each.doing,
        "zone": each.zone,
        "place": each.place,
        "since": _at(each.since),
        "needSince": _at(each.need_since),
        "reason": each.reason,
        "ready": each.is_ready,
        "readySince": _at(each.ready_since),
        "agentWrote": _at(each.agent_wrote),
        "trouble": each.trouble,
        "expected": _expected(each.expected),
        "causes": list(each.causes),
    }


def _expected(each: Expected | None) -> dict[str, Any] | None:
    if each is None:
        return None
    return {"started": _at(each.started), "seconds": each.seconds, "end": _at(each.end), "basis": each.basis}


def _at(at: datetime | None) -> str | None:
    return rfc3339(at) if at is not None else None

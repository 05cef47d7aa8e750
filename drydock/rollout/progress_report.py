"""The state of a roll-out, read from the simulated API server and the hosts' log without asking the agents.
`view.py` shows it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from drydock.controllers.ownership import PODS, controller_uid
from drydock.hosts.agent_processes import AGENT_USER
from drydock.rollout.cluster import EmbeddedCluster
from drydock.server.kinds.resources import resource_named
from drydock.server.store import ObjectChange

_NODES = resource_named("nodes")
_PREFIX = "careen.dev/"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLine:
    name: str
    zone: str
    phase: str
    reason: str
    forecast: str
    pods: int
    moved: int
    is_ready: bool
    is_cordoned: bool
    is_rebooted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutProgress:
    """`seconds` counts from the hosts' needs."""

    seconds: float
    nodes: tuple[NodeLine, ...]
    moved: int
    moved_twice: int

    @property
    def rebooted(self) -> int:
        return sum(node.is_rebooted for node in self.nodes)


def read_progress(cluster: EmbeddedCluster, since: float) -> RolloutProgress:
    """The state now. `since` is the beginning of the roll-out on the store's clock."""
    store = cluster.api.store
    moves = evictions(store.journal, since)
    placed = [s.content["spec"].get("nodeName", "") for s in store.items(PODS.storage)]
    booted = {e.host for e in cluster.hosts.log if e.what == "ready" and e.at >= since}
    lines = tuple(_line(s.content, placed, moves, booted) for s in store.items(_NODES.storage))
    return RolloutProgress(
        seconds=store.clock() - since, nodes=lines, moved=len(moves), moved_twice=sum(move.is_repeat for move in moves)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionMove:
    """A pod that an agent evicted. `is_repeat`: the pod was created after the roll-out began."""

    pod: str
    node: str
    is_repeat: bool


def evictions(journal: Iterable[ObjectChange], since: float) -> list[EvictionMove]:
    """The pods that agents evicted, in the order of the evictions."""
    born: dict[str, float] = {}
    moves: list[EvictionMove] = []
    for change in journal:
        if change.storage != PODS.storage:
            continue
        if change.before is None and change.after is not None:
            born[change.after.content["metadata"]["uid"]] = change.at
        was_going = change.before is not None and "deletionTimestamp" in change.before.content["metadata"]
        if (
            change.verb == "evict"
            and change.actor.startswith(AGENT_USER)
            and not was_going
            and change.before is not None
        ):
            content = change.before.content
            repeat = bool(controller_uid(content)) and born.get(content["metadata"]["uid"], 0.0) > since
            moves.append(
                EvictionMove(pod="/".join(change.key), node=content["spec"].get("nodeName", ""), is_repeat=repeat)
            )
    return moves


def _line(node: Mapping[str, Any], placed: list[str], moves: list[EvictionMove], booted: set[str]) -> NodeLine:
    metadata = node["metadata"]
    annotations = {
        k.removeprefix(_PREFIX): v for k, v in (metadata.get("annotations") or {}).items() if k.startswith(_PREFIX)
    }
    name = metadata["name"]
    conditions = {c["type"]: c["status"] for c in node["status"].get("conditions") or ()}
    return NodeLine(
        name=name,
        zone=(metadata.get("labels") or {}).get("topology.kubernetes.io/zone", ""),
        phase=annotations.get("phase", "Idle"),
        reason=annotations.get("reason", ""),
        forecast=forecast_words(annotations.get("forecast", "")),
        pods=placed.count(name),
        moved=sum(move.node == name for move in moves),
        is_ready=conditions.get("Ready") == "True",
        is_cordoned=bool(node["spec"].get("unschedulable")),
        is_rebooted=name in booted,
    )


def forecast_words(text: str) -> str:
    """The annotation careen.dev/forecast in short, such as `5 moves, 1 returns`; "" without a forecast."""
    try:
        counts = json.loads(text).get("counts", {}) if text else {}
    except (ValueError, AttributeError):
        return ""
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count and outcome != "stays")

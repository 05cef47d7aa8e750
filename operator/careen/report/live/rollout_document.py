"""The document that the live page draws: the whole roll-out as JSON, columns instead of objects for its nodes."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Policy
from careen.core.facts.times import age, duration
from careen.core.plain_text import LONGEST_CELL, one_line
from careen.core.steps.shared.history import Reboot
from careen.report.headline import progress_sentence
from careen.report.live.done import done_nodes
from careen.report.live.planned import Planned
from careen.report.lock_report import LockState, lock_sentence
from careen.rollout.model import NodeState, RolloutView, State
from careen.rollout.reading import rollout
from scheduler_core.sentences import count_of
from scheduler_core.values import Value

DONE, STUCK, HELD_BACK, TO_MAINTENANCE = "Done", "Stuck", "Held back", "To maintenance or back"
"""Shown instead of the phase, which does not tell."""

_PHASES = (
    STUCK,
    Phase.FAILED,
    Phase.REBOOTING,
    Phase.VERIFYING,
    Phase.DRAINING,
    Phase.CLAIMING,
    Phase.MAINTENANCE,
    TO_MAINTENANCE,
    Phase.SETTLING,
    HELD_BACK,
    Phase.WAITING,
    DONE,
    Phase.IDLE,
)
_SHOWN_AS = {State.STUCK: STUCK, State.FAILED: Phase.FAILED, State.HELD_BACK: HELD_BACK, State.DONE: DONE}
_AT_WORK = (State.STUCK, State.FAILED, State.WORKING, State.KEPT_DOWN)
MOST_ZONES = 8  # a reader cannot distinguish more stripes; the smallest zones become "others"
_MOST_CAUSES = 50


class Seen(Value, kw_only=True):
    """One look at the cluster. `refresh_seconds` until the next one; `trouble` says why the last one failed."""

    nodes: tuple[NodeView, ...]
    lock: LockState
    at: datetime
    policy: Policy | None = None
    server: str = ""
    refresh_seconds: float = 5.0
    trouble: str = ""
    load: str = ""  # what the looks cost the API server, as a sentence


class RolloutScene(Value, kw_only=True):
    """The model of one look, and the nodes that are done with their last reboots."""

    seen: Seen
    view: RolloutView
    done: Mapping[str, Reboot]

    @classmethod
    def of(cls, seen: Seen) -> RolloutScene:
        """Makes the model."""
        view = rollout(seen.nodes, seen.lock, seen.at, seen.policy)
        return cls(seen=seen, view=view, done=done_nodes(seen.nodes, view))

    def shown_as(self, node: NodeState) -> str:
        """The node's phase, or a word that tells more."""
        if node.name in self.done:
            return DONE
        if node.is_for_maintenance and node.state is State.KEPT_DOWN and node.phase != Phase.MAINTENANCE:
            return TO_MAINTENANCE
        return _SHOWN_AS.get(node.state, node.phase)


def rollout_document(seen: Seen, planned: Planned) -> dict[str, Any]:
    """Times are seconds since 1970; texts from the cluster are on one line each."""
    scene = RolloutScene.of(seen)
    counts = scene.view.counts
    zones = [zone or "no zone" for zone in sorted({node.zone for node in seen.nodes})]
    return {
        "version": 1,
        "readAt": _seconds(seen.at),
        "refreshSeconds": seen.refresh_seconds,
        "trouble": _line(seen.trouble),
        "headline": _headline(scene),
        "progress": {
            "total": len(seen.nodes),
            "done": len(scene.done),
            "working": counts.working,
            "queued": counts.queued,
            "heldBack": counts.held_back,
            "stuck": counts.stuck,
            "failed": counts.failed,
            "kept": counts.kept_down,
            "usualSeconds": counts.usual_seconds,
            "finish": _seconds(counts.finish),
            "planned": _seconds(planned.finish),
        },
        "working": _working(scene),
        "causes": _causes(scene),
        "unblocks": [_line(each) for each in planned.unblocks],
        "plannedAt": _seconds(planned.made_at),
        "phases": [str(each) for each in _PHASES],
        "zones": [_cell(zone) for zone in zones],
        "nodes": _nodes(scene, zones),
        "chart": _chart(scene, planned),
        "foot": _foot(seen),
    }


# ---- sentences ----


def headline_of(scene: RolloutScene) -> tuple[str, str, str]:
    """The tone (`fine`, `working`, `stuck`), the verdict and the details."""
    seen, counts = scene.seen, scene.view.counts
    lock, progress = f"Lock: {lock_sentence(seen.lock, seen.at)}.", progress_sentence(scene.view)
    if scene.view.obstacles:
        found = scene.view.obstacles[0]
        since = f"The cause has lasted for {age(found.since, seen.at)}." if found.since else ""
        ways = " ".join(f"{each.rstrip('.')}." for each in found.ways_out[:3])
        return "stuck", f"{found.why}.", f"{since} {ways}".strip()
    if troubled := scene.view.in_state(State.STUCK, State.FAILED):
        first = troubled[0]
        others = f"; {count_of(len(troubled) - 1, 'other node')} too" if len(troubled) > 1 else ""
        return "stuck", f"{first.name}: {first.trouble.rstrip('.')}{others}.", f"{progress}. {lock}"
    if counts.open:
        return "working", f"{progress}.", lock
    if scene.done:
        return "fine", f"The roll-out is over: {count_of(len(scene.done), 'node')} rebooted.", lock
    return "fine", "No node needs a reboot.", lock


def _headline(scene: RolloutScene) -> dict[str, str]:
    tone, sentence, detail = headline_of(scene)
    return {"tone": tone, "sentence": _line(sentence), "detail": _line(detail)}


def _foot(seen: Seen) -> str:
    every = duration(timedelta(seconds=seen.refresh_seconds))
    where = f" of {seen.server}" if seen.server else ""
    load = f"; {seen.load}" if seen.load else ""
    looks = f"careen reads the cluster{where} every {every} while a page is open{load}"
    return _line(f"{looks}. This page changes nothing.")


# ---- nodes ----


def _working(scene: RolloutScene) -> list[dict[str, Any]]:
    return [
        {
            "node": _cell(node.name),
            "phase": _cell(node.doing or node.phase),
            "since": _seconds(node.since),
            "expected": _seconds(node.expected.end) if node.expected else None,
            "says": _line(says(node, scene.seen.at)),
        }
        for state in _AT_WORK
        for node in scene.view.in_state(state)
    ]


def says(node: NodeState, now: datetime) -> str:
    """What is wrong with the node, otherwise what its agent wrote, and when it last wrote."""
    parts = [node.trouble or node.reason]
    parts += ["" if node.is_ready else f"NotReady for {age(node.ready_since, now)}"]
    parts += [f"agent last wrote {age(node.agent_wrote, now)} ago" if node.agent_wrote else ""]
    return "; ".join(dict.fromkeys(part for part in parts if part))


def _causes(scene: RolloutScene) -> list[dict[str, Any]]:
    place = {node.name: number for number, node in enumerate(scene.seen.nodes)}
    return [
        {
            "key": _line(cause.key),
            "title": _line(cause.sentence.rstrip(".")),
            "remedy": _line(cause.remedy),
            "since": _seconds(cause.since),
            "seen": _seconds(cause.seen),
            "ends": _seconds(cause.ends),
            "count": len(cause.nodes),
            "alone": len(cause.alone),
            "nodes": [place[name] for name in cause.nodes if name in place],
        }
        for cause in scene.view.causes[:_MOST_CAUSES]
    ]


def _nodes(scene: RolloutScene, zones: Sequence[str]) -> dict[str, list[Any]]:
    phase_at = {str(phase): number for number, phase in enumerate(_PHASES)}
    zone_at = {zone: number for number, zone in enumerate(zones)}
    cause_at = {cause.key: number for number, cause in enumerate(scene.view.causes[:_MOST_CAUSES])}
    nodes, done = scene.view.nodes, scene.done
    return {
        "name": [_cell(node.name) for node in nodes],
        "zone": [zone_at[node.zone or "no zone"] for node in nodes],
        # another release's phase is one that a person should look at
        "phase": [phase_at.get(scene.shown_as(node), phase_at[STUCK]) for node in nodes],
        "since": [_seconds(done[node.name].at if node.name in done else node.since) for node in nodes],
        "ready": [int(node.is_ready) for node in nodes],
        "causes": [[cause_at[key] for key in node.causes if key in cause_at] or 0 for node in nodes],
    }


# ---- the chart ----


def _chart(scene: RolloutScene, planned: Planned) -> dict[str, Any]:
    """Only the nodes of the roll-out: those that are done, at work or waiting, and those of the plan."""
    open_nodes = {
        each.name: each for each in scene.view.nodes if each.state not in (State.IDLE, State.DONE, State.KEPT_DOWN)
    }
    taking_part = {*scene.done, *open_nodes, *planned.ends}
    stripe_of = _stripes([node for node in scene.seen.nodes if node.name in taking_part])
    members: dict[str, list[str]] = {}
    for name, stripe in stripe_of.items():
        members.setdefault(stripe, []).append(name)
    rows = []
    for stripe, names in sorted(members.items()):
        states = Counter(open_nodes[name].state for name in names if name in open_nodes)
        rows.append(
            {
                "name": _cell(stripe),
                "total": len(names),
                "done": sorted(_seconds(scene.done[name].at) or 0 for name in names if name in scene.done),
                "plan": sorted(_planned_ends(names, scene.done, planned)),
                "working": states[State.WORKING] + states[State.STUCK],
                "waiting": states[State.QUEUED] + states[State.HELD_BACK] + states[State.FAILED],
            }
        )
    # From the first reboot, not from the first need: hosts may have waited for days.
    first = min((each.at for each in scene.done.values()), default=scene.seen.at)
    begins = min(first - timedelta(minutes=10), planned.made_at or first)
    finish = scene.view.counts.finish
    ends = max([scene.seen.at, *(at for at in (finish, planned.finish) if at)])
    return {
        "from": _seconds(begins),
        "to": _seconds(ends),
        "zones": rows,
        "note": _line(_chart_note(scene, planned)),
    }


def _chart_note(scene: RolloutScene, planned: Planned) -> str:
    if not planned.ends:
        return planned.note
    due = bisect_right(sorted(planned.ends.values()), scene.seen.at)
    late = due - sum(1 for name in scene.done if name in planned.ends)
    where = "behind" if late > 0 else "ahead of"
    stand = f"{count_of(abs(late), 'node')} {where} the plan" if late else "as planned"
    return f"Pale: the plan; solid: what has happened. The roll-out is {stand}."


def _planned_ends(names: Sequence[str], done: Mapping[str, Reboot], planned: Planned) -> list[int]:
    """Nodes that were done before the plan was made count as they really were."""
    if not planned.ends:
        return []
    found = (planned.ends.get(name) or (done[name].at if name in done else None) for name in names)
    return [_seconds(at) or 0 for at in found if at]


def _stripes(members: Sequence[NodeView]) -> dict[str, str]:
    sizes = Counter(node.zone for node in members)
    ranked = sorted(sizes, key=lambda zone: (-sizes[zone], zone))
    kept = set(ranked if len(ranked) <= MOST_ZONES else ranked[: MOST_ZONES - 1])
    return {node.name: (node.zone or "no zone") if node.zone in kept else "others" for node in members}


# ---- values ----


def _seconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())


def _line(text: str) -> str:
    return one_line(text)


def _cell(text: str) -> str:
    return one_line(text, LONGEST_CELL)

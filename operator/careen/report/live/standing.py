"""Where a roll-out stands: which nodes are done since it began, which are at work, which wait, and what holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median

from careen.core.decision import Refusal, stored_refusals
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import WORKING, Phase
from careen.core.facts.progress import Progress
from careen.core.facts.times import from_rfc3339
from careen.core.lock.content import LockContent
from careen.core.steps.shared.history import Reboot, reboots_of
from careen.report.fleet_report import phase_of
from careen.report.lock_report import LockState
from careen.report.why_report import remedy_for
from scheduler_core.values import Value

# Nightly windows of two hours leave pauses of 22 hours inside of one roll-out.
_LONGEST_PAUSE = timedelta(hours=26)
_AT_WORK = frozenset({*WORKING, Phase.CLAIMING, Phase.SETTLING} - {Phase.MAINTENANCE})


class Cause(Value, kw_only=True):
    """What holds nodes back, and since when for the one that it has held for longest."""

    key: str
    title: str
    remedy: str
    nodes: tuple[str, ...]
    since: datetime | None


class Standing(Value, kw_only=True):
    """Names of nodes by state, each node in at most one. `began` is None without a roll-out."""

    began: datetime | None
    done: Mapping[str, Reboot]
    working: tuple[str, ...]
    waiting: tuple[str, ...]
    failed: tuple[str, ...]
    kept: tuple[str, ...]  # a person keeps them down
    causes: tuple[Cause, ...]
    finish: datetime | None  # None if unknown

    @property
    def is_over(self) -> bool:
        """Whether nobody waits or works."""
        return not (self.working or self.waiting or self.failed)


def standing_of(nodes: Sequence[NodeView], lock: LockState, now: datetime) -> Standing:
    """From the Nodes and the lock, read at `now`."""
    phases = {node.name: phase_of(node) for node in nodes}
    groups = {
        name: tuple(node.name for node in nodes if phases[node.name] in wanted)
        for name, wanted in (
            ("working", _AT_WORK),
            ("waiting", {Phase.WAITING}),
            ("failed", {Phase.FAILED}),
            ("kept", {Phase.MAINTENANCE}),
        )
    }
    last = {node.name: found[0] for node in nodes if (found := reboots_of(node))}
    began = _began(nodes, last, now)
    done = {
        name: reboot
        for name, reboot in last.items()
        if began is not None and reboot.at >= began and phases[name] == Phase.IDLE
    }
    return Standing(
        began=began,
        done=done,
        causes=_causes(nodes, phases),
        finish=_finish(groups, done, lock, now),
        **groups,
    )


def need_since(node: NodeView) -> datetime | None:
    """Since when the host has needed the reboot, by the node's record."""
    record = node.record
    return from_rfc3339(record.need_since) if isinstance(record, Progress) else None


def _began(nodes: Sequence[NodeView], last: Mapping[str, Reboot], now: datetime) -> datetime | None:
    """The first need or reboot before which nothing happened for longer than a pause between windows."""
    needs = [at for node in nodes if phase_of(node) != Phase.IDLE and (at := need_since(node))]
    instants = sorted([*needs, *(each.at for each in last.values())], reverse=True)
    if not instants or (not needs and now - instants[0] > _LONGEST_PAUSE):
        return None
    began = instants[0]
    for at in instants:
        if began - at > _LONGEST_PAUSE:
            break
        began = at
    return began


def _finish(
    groups: Mapping[str, Sequence[str]], done: Mapping[str, Reboot], lock: LockState, now: datetime
) -> datetime | None:
    """By the pace of the nodes that are done: their median time under a claim, as many at once as the lock admits."""
    left = len(groups["waiting"]) + len(groups["working"])
    seconds = [each.seconds for each in done.values() if each.seconds]
    if not left or not seconds or groups["failed"]:
        return None
    at_once = max(1, lock.max_owners) if isinstance(lock, LockContent) else 1
    # Those at work are half done on average.
    turns = (len(groups["waiting"]) + len(groups["working"]) / 2) / at_once
    return now + timedelta(seconds=max(1.0, turns) * median(seconds))


def _causes(nodes: Sequence[NodeView], phases: Mapping[str, str]) -> tuple[Cause, ...]:
    found: dict[str, list[tuple[str, Refusal]]] = {}
    for node in nodes:
        if phases[node.name] == Phase.IDLE:
            continue
        for refusal in stored_refusals(node):
            found.setdefault(f"{refusal.gate}/{refusal.code}/{refusal.sentence}", []).append((node.name, refusal))
    causes = [
        Cause(
            key=key,
            title=rows[0][1].sentence.rstrip("."),
            remedy=rows[0][1].remedy or remedy_for(rows[0][1].code, rows[0][0]),
            nodes=tuple(sorted({name for name, _ in rows})),
            since=min((refusal.since for _, refusal in rows if refusal.since), default=None),
        )
        for key, rows in found.items()
    ]
    return tuple(sorted(causes, key=lambda cause: (-len(cause.nodes), cause.key)))

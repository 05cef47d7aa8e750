"""Reads the cluster to plan, from the API server or a dump, and makes notes on its present state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from careen.agent.clock import SystemClock
from careen.agent.forecast.child import supported
from careen.cli.support.agents_settings import Agents, agents_of
from careen.cli.support.connection import Cluster, look_at_lock
from careen.cli.support.files import dump_of
from careen.cluster.nodes import list_nodes
from careen.cluster.snapshot_reader import server_version
from careen.cluster.whole_cluster import read_cluster
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.gates.budgets import works
from careen.core.lock.content import LockContent
from careen.core.node.autoscalers import removed_by
from careen.core.people.requests import request_of
from careen.report.plan.values import Origin
from careen.report.tables import listed
from scheduler_core.model.node import Node
from scheduler_core.sentences import first_few
from scheduler_core.snapshot.left_out import left_out
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class World(Value, kw_only=True):
    """The input of a plan: the cluster and its agents' settings."""

    snapshot: Snapshot
    views: tuple[NodeView, ...]
    version: str
    taken_at: datetime
    agents: Agents
    notes: tuple[str, ...]
    origin: Origin
    named: tuple[str, ...] = ()  # the nodes in the agents' line now
    learnt: object = None  # what `careen shadow` learned about the scheduler's search and wrote into the dump
    released_at: str = ""  # when the last reboot ended, as the lock has it


async def from_cluster(cluster: Cluster) -> World:
    """From the API server."""
    release = await server_version(cluster.api)
    version, note = supported(release)
    taken_at = cluster.clock.now()
    snapshot = await read_cluster(cluster.api)
    views = {view.name: view for view in await list_nodes(cluster.api) if view.name in snapshot.columns.row_of}
    lock = (await look_at_lock(cluster)).state
    notes = [note] if note else []
    if isinstance(lock, LockContent) and lock.is_paused:
        notes.append("the cluster is paused now; the plan assumes that the pause has ended")
    return World(
        snapshot=snapshot,
        views=tuple(views.get(node.name) or _view(node) for node in snapshot.nodes),
        version=version,
        taken_at=taken_at,
        agents=await agents_of(cluster),
        notes=(*notes, *_unread(snapshot)),
        origin=Origin(server=cluster.server, context=cluster.context_in_use, kubernetes=release, taken_at=taken_at),
        named=lock.line.names if isinstance(lock, LockContent) else (),
        released_at=lock.released_at if isinstance(lock, LockContent) else "",
    )


def from_dump(path: Path) -> World:
    """A dump has neither annotations nor the agents' settings."""
    dump = dump_of(path)
    version, note = supported(dump.header.kube_version)
    notes = [
        (
            "a dump has no annotations, so the plan does not know which nodes are held, how long their last reboots "
            "took, and since when each node needs a reboot"
        ),
        *([note] if note else []),
        *_unread(dump.snapshot),
    ]
    taken_at = from_rfc3339(dump.header.taken_at) or SystemClock().now()
    return World(
        snapshot=dump.snapshot,
        views=tuple(_view(node) for node in dump.snapshot.nodes),
        version=version,
        taken_at=taken_at,
        learnt=dump.learnt,
        agents=Agents(),
        origin=Origin(dump=str(path), kubernetes=dump.header.kube_version, taken_at=taken_at),
        notes=tuple(notes),
    )


def _unread(snapshot: Snapshot) -> list[str]:
    unread = [f"the plan leaves out an object that could not be read: {problem}" for problem in snapshot.problems[:5]]
    return [*unread, *left_out(snapshot)]


def _view(node: Node) -> NodeView:
    """A Node of a dump as the gates read it. Whether it was ready shows in the taints of the node-lifecycle
    controller."""
    return NodeView(
        name=node.name,
        uid=node.uid,
        resource_version="",
        labels=node.labels,
        unschedulable=node.unschedulable,
        taints=tuple(Taint(key=taint.key, effect=taint.effect, value=taint.value or None) for taint in node.taints),
        ready=not any(taint.key in _NOT_READY for taint in node.taints),
    )


def kept_down(world: World) -> list[str]:
    """A note on nodes in maintenance. The plan takes them as back in service, and does not simulate their claims."""
    kept = [view for view in world.views if view.shown_phase == Phase.MAINTENANCE]
    if not kept:
        return []
    ends = [request.until for view in kept if (request := request_of(view)) and request.until]
    until = f" until {rfc3339(max(ends))}" if len(ends) == len(kept) else ""
    names, is_one = listed(sorted(view.name for view in kept)), len(kept) == 1
    return [
        (
            f"{names} {'is' if is_one else 'are'} in maintenance{until}; the plan assumes that "
            f"{'this node is' if is_one else 'these nodes are'} back in service"
        )
    ]


def left_alone(world: World) -> list[str]:
    """A note on nodes that the agents skip because an autoscaler is removing them."""
    names = [view.name for view in world.views if removed_by(view)]
    if not names:
        return []
    return [
        (
            f"the plan leaves out {first_few(names)}, because an autoscaler is removing "
            f"{'this node' if len(names) == 1 else 'these nodes'}; to plan such a node anyway, give its name"
        )
    ]


def nobody_at_work(world: World, chosen: Sequence[str]) -> tuple[World, list[str]]:
    """The cluster without the cordons of rebooting nodes and of nodes in maintenance, and a note on the former.

    The plan assumes that those reboots have not begun, and that maintenance is over.
    """
    kept = {view.name for view in world.views if view.shown_phase == Phase.MAINTENANCE}
    begun = {view.name for view in world.views if works(view) and view.name in chosen} - kept
    if not (busy := begun | kept):
        return world, []
    snapshot, views = world.snapshot, list(world.views)
    for place, view in enumerate(views):
        progress = view.written
        if view.name in busy and isinstance(progress, Progress) and progress.is_cordoned_by_us:
            views[place] = replace(view, unschedulable=progress.prior_unschedulable)
            if not progress.prior_unschedulable:
                snapshot = snapshot.with_node_uncordoned(view.name)
    is_one = len(begun) == 1
    note = (
        f"{listed(sorted(begun))} {'is' if is_one else 'are'} already rebooting; the plan assumes that "
        f"{'this reboot has' if is_one else 'these reboots have'} not begun"
    )
    return replace(world, snapshot=snapshot, views=tuple(views)), [note] if begun else []

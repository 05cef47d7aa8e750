"""Consolidation: which nodes could go because their pods find room on the others, and what moves where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from scheduler_core.arguments import checked, expect_count
from scheduler_core.cycle import Scheduler
from scheduler_core.model.pod import Pod
from scheduler_core.model.resources import CPU, MEMORY
from scheduler_core.sentences import html_table
from scheduler_core.simulation.drain import FinishedDrain, run_drain
from scheduler_core.simulation.evicted.replacements import BOUND, Recreation, recreation_of
from scheduler_core.simulation.forecast import Forecast, Outcome
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

_TENTH: Final = 10
_STAYS_WITH_ITS_NODE: Final = (Outcome.STAYS, Outcome.MOVES)


class RemovableNode(Value, kw_only=True):
    """`moves`: the new node of each pod that the drain evicts, by the pod's key. `loses_data`: the pods whose emptyDir
    is lost."""

    name: str
    moves: Mapping[str, str]
    loses_data: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<RemovableNode {self.name!r} moves={len(self.moves)} loses_data={len(self.loses_data)}>"


class Removable(Value, kw_only=True):
    """`nodes` can go together. `kept`: why each other candidate must stay, by its name.
    `without`: the cluster afterwards."""

    nodes: tuple[RemovableNode, ...]
    kept: Mapping[str, str]
    without: Snapshot

    def __repr__(self) -> str:
        return f"<Removable nodes={list(self.names)} kept={len(self.kept)}>"

    def _repr_html_(self) -> str:
        """For notebooks: the nodes that go with their moves, then why the others stay."""
        rows = [(each.name, "goes", ", ".join(map(" to ".join, each.moves.items()))) for each in self.nodes]
        rows += [(name, "stays", why) for name, why in self.kept.items()]
        return html_table(("node", "", "what moves, or why"), rows)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.nodes)


@checked
def removable_nodes(
    scheduler: Scheduler, snapshot: Snapshot, candidates: Sequence[str] | None = None, most: int | None = None
) -> Removable:
    """Which of the candidates (by default all nodes) could go, at most so many, the least used first.

    A node stays if one of its pods finds no room elsewhere without preemption, would not come back, asks not to be
    disturbed, or may not be evicted. DaemonSet pods and static pods go with their node. Pods without a node get none of
    the room. Raises UnknownNodeError if a candidate does not exist.
    """
    if most is not None:
        expect_count("most", most, of="how many nodes may go")
    names = snapshot.node_names if candidates is None else tuple(dict.fromkeys(candidates))
    world, kept = snapshot, dict[str, str]()
    gone: list[str] = []
    for name in sorted(names, key=lambda name: (_used(snapshot, name), name)):
        if most is not None and len(gone) >= most:
            kept[name] = f"{most} {'node goes' if most == 1 else 'nodes go'} already"
            continue
        drain = run_drain(world, [name], scheduler, with_details=False, stays=_why_not, preempts=False)
        if reason := _why_kept(drain):
            kept[name] = reason
        else:
            gone.append(name)
            world = _without(drain, [name])
    return _together(scheduler, snapshot, gone, kept)


def _together(scheduler: Scheduler, snapshot: Snapshot, gone: list[str], kept: dict[str, str]) -> Removable:
    """Drained one by one, a pod may move several times. Cordoned together, each pod moves once, and not to a node that
    goes; if that fails, fewer nodes go."""
    while gone:
        drain = run_drain(snapshot, gone, scheduler, with_details=False, stays=_why_not, preempts=False)
        if not (reason := _why_kept(drain)):
            moves = {each.pod.key: each.replacement.node_name for each in drain.displaced}
            nodes = tuple(_removable(forecast, moves) for forecast in drain.forecasts)
            return Removable(nodes=nodes, kept=kept, without=_without(drain, gone))
        fewer = len(gone) - max(1, len(gone) // _TENTH)
        kept |= dict.fromkeys(gone[fewer:], f"if all of these nodes go together, {reason}")
        gone = gone[:fewer]
    return Removable(nodes=(), kept=kept, without=snapshot)


def _removable(forecast: Forecast, moves: Mapping[str, str]) -> RemovableNode:
    keys = [f"{pod.namespace}/{pod.name}" for pod in forecast.pods]
    lost = tuple(f"{pod.namespace}/{pod.name}" for pod in forecast.pods if pod.loses_data)
    return RemovableNode(name=forecast.node, moves={key: moves[key] for key in keys if key in moves}, loses_data=lost)


def _why_kept(drain: FinishedDrain) -> str:
    """ "" if nothing keeps these nodes."""
    for forecast in drain.forecasts:
        for pod in forecast.pods:
            if pod.outcome not in _STAYS_WITH_ITS_NODE:
                return f"{pod.namespace}/{pod.name} {pod.sentence}"
        for left in drain.world.pods_on(forecast.node):
            if recreation_of(left) is not Recreation.STAYS and not left.terminating:
                return f"{left.key} {_why_not(left) or BOUND}"
    return ""


def _without(drain: FinishedDrain, names: Sequence[str]) -> Snapshot:
    world = drain.world
    for name in names:
        world = world.without_node(name)
    return world.with_orphans(tuple(pod for pod in world.orphans if pod.node_name not in names))


def _why_not(pod: Pod) -> str:
    return f"asks not to be disturbed ({pod.wants_rest})" if pod.wants_rest else ""


def _used(snapshot: Snapshot, name: str) -> float:
    """The larger requested share of cpu and memory."""
    node = snapshot.node(name)
    info = snapshot.node_info(snapshot.row(name))
    return max(info.requested.get(each, 0) / max(1, node.allocatable.get(each, 0)) for each in (CPU, MEMORY))

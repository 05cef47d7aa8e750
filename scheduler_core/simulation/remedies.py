"""Finds single changes of the cluster that would place a pending pod. Each is tried in the snapshot, and reported only
if the pod then finds a node.

The cheapest come first: more of a missing resource on a node, an uncordon, a removed taint, a spread constraint with
maxSkew one higher. Each kind is tried on at most `_TRIES` nodes, those with the smallest shortage first: the reader
needs one solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.verdict import Verdict
from scheduler_core.model.node import ZONE_LABEL, Node
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.model.requests import incoming_requests
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler_core.model.taints import first_untolerated
from scheduler_core.snapshot.snapshot import Snapshot

_TRIES = 3
Remedy = tuple[str, Snapshot, Pod]  # the sentence, and the cluster and the pod after the change


def remedies(
    scheduler: Scheduler, world: Snapshot, pod: Pod, result: CycleResult, drained: frozenset[str]
) -> tuple[str, ...]:
    """Changes such as "250m more cpu on n3 (zone b)", each confirmed by a simulated cycle. Empty if no single change
    is enough."""
    refused = {name: verdict for name, verdict in result.statuses.items() if name not in drained}
    kinds: tuple[Callable[[Scheduler, Snapshot, Pod, dict[str, Verdict]], Iterator[Remedy]], ...] = (
        _more_resources,
        _without_cordon,
        _without_taint,
        _wider_spread,
    )
    found = (_first_that_helps(scheduler, kind(scheduler, world, pod, refused)) for kind in kinds)
    return tuple(sentence for sentence in found if sentence) or _one_more_node(scheduler, world, pod, drained)


def _one_more_node(scheduler: Scheduler, world: Snapshot, pod: Pod, drained: frozenset[str]) -> tuple[str, ...]:
    """The text "one more empty, uncordoned node like …" if the pod would fit on such a copy of a drained node. Called
    if no change of an existing node is enough."""
    for name in sorted(drained):
        node, fresh = world.node(name), world
        for other in world.pods_on(name):
            fresh = fresh.without_pod(other.key)
        if name in scheduler.schedule(fresh.with_node_uncordoned(name), pod).best:
            return (f"one more empty, uncordoned node like {_place(node)}",)
    return ()


def _first_that_helps(scheduler: Scheduler, tries: Iterator[Remedy]) -> str:
    for _, (sentence, world, pod) in zip(range(_TRIES), tries, strict=False):
        if scheduler.schedule(world, pod).node is not None:
            return sentence
    return ""


def _more_resources(scheduler: Scheduler, world: Snapshot, pod: Pod, refused: dict[str, Verdict]) -> Iterator[Remedy]:
    short = [
        (node, lack)
        for node in _refused_by(world, refused, "NodeResourcesFit")
        if (lack := _shortage(scheduler, world, node, pod))
    ]
    for node, lack in sorted(short, key=lambda each: (len(each[1]), _weight(each[1]), each[0].name)):
        larger = replace(
            node,
            allocatable={
                **node.allocatable,
                **{name: node.allocatable.get(name, 0) + amount for name, amount in lack.items()},
            },
        )
        amounts = " and ".join(f"{_amount(name, amount)} more {name}" for name, amount in lack.items())
        yield f"{amounts} on {_place(node)}", world.with_node_replaced(larger), pod


def _shortage(scheduler: Scheduler, world: Snapshot, node: Node, pod: Pod) -> dict[str, int]:
    info, wanted = world.node_info(world.row(node.name), scheduler.rules), incoming_requests(pod.spec, scheduler.rules)
    names = (CPU, MEMORY, EPHEMERAL_STORAGE, *wanted.scalars)
    lack = {
        name: wanted.amount(name) + info.requested.get(name, 0) - node.allocatable.get(name, 0)
        for name in names
        if wanted.amount(name)
    }
    lack[PODS] = len(info.pods) + 1 - info.allowed_pods
    return {name: amount for name, amount in lack.items() if amount > 0}


def _weight(lack: dict[str, int]) -> float:
    """Compares shortages of different resources: one missing CPU (1000m) weighs as much as 4 GiB of memory, the
    ratio of common machines."""
    return sum(
        amount / (1000 if name == CPU else 4 * 2**30 if name in (MEMORY, EPHEMERAL_STORAGE) else 1)
        for name, amount in lack.items()
    )


def _without_cordon(_: Scheduler, world: Snapshot, pod: Pod, refused: dict[str, Verdict]) -> Iterator[Remedy]:
    for node in sorted(_refused_by(world, refused, "NodeUnschedulable"), key=lambda node: node.name):
        yield f"{_place(node)} uncordoned", world.with_node_uncordoned(node.name), pod


def _without_taint(_: Scheduler, world: Snapshot, pod: Pod, refused: dict[str, Verdict]) -> Iterator[Remedy]:
    for node in sorted(_refused_by(world, refused, "TaintToleration"), key=lambda node: node.name):
        taint = first_untolerated(node.taints, pod.spec.tolerations)
        if taint is not None:
            text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
            bare = replace(node, taints=tuple(other for other in node.taints if other != taint))
            yield f"{_place(node)} without its taint {text}", world.with_node_replaced(bare), pod


def _wider_spread(_: Scheduler, world: Snapshot, pod: Pod, refused: dict[str, Verdict]) -> Iterator[Remedy]:
    if not any(verdict.plugin == "PodTopologySpread" for verdict in refused.values()):
        return
    for index, constraint in enumerate(pod.spec.topology_spread):
        if constraint.when_unsatisfiable == "DoNotSchedule":
            wider = replace(constraint, max_skew=constraint.max_skew + 1)
            spread = (*pod.spec.topology_spread[:index], wider, *pod.spec.topology_spread[index + 1 :])
            yield (
                f"a maxSkew of {wider.max_skew} over {constraint.topology_key}",
                world,
                replace(pod, spec=_with_spread(pod.spec, spread)),
            )


def _with_spread(spec: PodSpec, spread: tuple[object, ...]) -> PodSpec:
    return replace(spec, topology_spread=spread)  # type: ignore[arg-type]  # built from the spec's own constraints


def _refused_by(world: Snapshot, refused: dict[str, Verdict], plugin: str) -> list[Node]:
    return [world.node(name) for name, verdict in refused.items() if verdict.plugin == plugin]


def _place(node: Node) -> str:
    zone = node.labels.get(ZONE_LABEL)
    return f"{node.name} (zone {zone})" if zone else node.name


def _amount(resource: str, amount: int) -> str:
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        return f"{-(-amount // 2**20)}Mi"
    return str(amount)

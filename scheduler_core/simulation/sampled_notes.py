"""The notes of a forecast for a scheduler that checks only a part of the nodes for each pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from scheduler_core.batching import batches
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.landings import Landing
from scheduler_core.simulation.scenario_parts.displaced import Displaced


def sample_notes(landings: Sequence[Landing]) -> Iterable[str]:
    """How many nodes the scheduler checks, and for how many pods the node depends on the start of the search."""
    mine = [landing for landing in landings if not landing.main.waited]
    samples = [landing.sample for landing in mine if landing.sample]
    if not samples:
        return
    looked_at, feasible = min(each.looked_at for each in samples), max(each.feasible for each in samples)
    open_ones = sum(1 for landing in mine if landing.depends_on_the_start)
    depend = f"for {open_ones} of {counted(len(mine), 'pod')}, the chosen node depends on this start"
    if looked_at == 1:
        yield (
            f"no plugin of this profile scores nodes, so kube-scheduler takes the first fitting node of its search; a "
            f"pod fits on up to {feasible} nodes, and it is unknown where the search starts; {depend}"
        )
        return
    yield (
        f"a pod fits on up to {feasible} nodes, but kube-scheduler checks only {looked_at} of them, and it is unknown "
        f"where its search starts; {depend}; the nodes that the forecast lists for a pod take this pod in 95 of 100 "
        f"cases; with percentageOfNodesToScore: 100, kube-scheduler checks all nodes, and the forecast is exact"
    )


def batch_notes(scheduler: Scheduler, displaced: Iterable[Displaced]) -> Iterable[str]:
    """That the profile places identical pods in batches; nothing if no two displaced pods are identical."""
    kinds = Counter(each.kind for each in displaced if batches(scheduler, each.pod))
    if batched := sum(number for number in kinds.values() if number > 1):
        pods = f"one of these {counted(batched, 'pod')}"
        when = (
            f"{pods} comes right after another one"
            if scheduler.kube_version.batches_keep_the_last_node
            else f"{pods} does not fit on the node of the previous pod"
        )
        yield (
            f"the scheduler's profile places identical pods in batches: if {when}, the scheduler may choose another "
            f"node than the forecast says"
        )


def counted(number: int, noun: str) -> str:
    """Such as "1 pod", "2 pods"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

"""Measures what it costs `careen shadow` to learn where searches start. `python -m bench.shadow` prints these figures
after its other table.

A simulated scheduler binds pods, and a `SearchEstimate` learns. Measured are the processor time to predict a binding,
to learn from it and, for comparison, to choose a node without learning; the memory of what was learned, and the most
that one binding needs. tracemalloc slows bindings down, so time and memory are measured on different ones.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from bench.scheduler import cluster
from scheduler_core.cycle import Scheduler
from scheduler_core.learning.search_estimate import SearchEstimate
from scheduler_core.model.manifests.from_manifest import pod_from_manifest
from scheduler_core.model.pod import Pod
from scheduler_core.sampling import Search
from scheduler_core.snapshot.loading import load_pages
from scheduler_core.snapshot.snapshot import Snapshot

HEADER = (
    "NODES",
    "SEARCHES, FIRST",
    "SEARCHES, LAST 20",
    "MS, FIRST",
    "MS, 2 TO 20",
    "MS, LAST 20",
    "WITHOUT LEARNING",
    "KIB KEPT, FIRST",
    "KIB KEPT, LAST",
    "MIB AT THE PEAK",
)
BINDINGS = 40
EARLY = 20
_MEASURED_LAST = 2  # further bindings; the bench measures how much memory it takes to learn from the last one

Seen = tuple[Snapshot, Pod, str]


def rows(folder: Path, sizes: Sequence[int]) -> Iterator[list[str]]:
    """One for each size of cluster."""
    for nodes in sizes:
        place = folder / f"{nodes}-1"
        cluster.write(place, nodes=nodes, seed=1)
        pages = [path.read_bytes() for path in sorted(place.glob("*.json"))]
        yield row(load_pages(pages))


def row(snapshot: Snapshot, bindings: int = BINDINGS) -> list[str]:
    scheduler = Scheduler()
    seen = list(_bindings(snapshot, scheduler, bindings + _MEASURED_LAST))
    first = estimate = SearchEstimate.unknown(snapshot, scheduler)
    followed, learning_seconds, decision_seconds = [], [], []
    for before, pod, node in seen[:bindings]:
        followed.append(len(estimate.followed))
        began = time.process_time()
        estimate = estimate.after_binding(estimate.expect(before, scheduler, pod), node)
        between = time.process_time()
        scheduler.schedule(before, pod)
        learning_seconds.append(between - began)
        decision_seconds.append(time.process_time() - between)
    kept, peak_bytes = zip(*(_memory(each, scheduler, seen[-1]) for each in (first, estimate)), strict=True)
    return [
        f"{len(snapshot.nodes):,}",
        str(followed[0]),
        f"{mean(followed[EARLY:]):.0f}",
        f"{1000 * learning_seconds[0]:.1f}",
        f"{1000 * mean(learning_seconds[1:EARLY]):.1f}",
        f"{1000 * mean(learning_seconds[EARLY:]):.1f}",
        f"{1000 * mean(decision_seconds[EARLY:]):.1f}",
        *(f"{kept_bytes / 1024:.0f}" for kept_bytes in kept),
        f"{max(peak_bytes) / 2**20:.1f}",
    ]


def _bindings(snapshot: Snapshot, scheduler: Scheduler, count: int) -> Iterator[Seen]:
    """Binds `count` new pods of the cluster's applications. Yields the cluster before each binding, the pod and its
    node. The learner does not know where the searches begin."""
    chance, search = random.Random(1), Search(len(snapshot.nodes) // 3)
    for number in range(count):
        pod = pod_from_manifest(cluster.pod_at(None, app=chance.randrange(50), suffix=f"new{number}", is_running=False))
        result = scheduler.schedule(snapshot, pod, search=search)
        if result.node is None or result.next_start is None:
            raise ValueError(f"pod {pod.key} fits on no node: the cluster of the bench is too full")
        yield snapshot, pod, result.node
        snapshot, search = scheduler.place(snapshot, result), Search(result.next_start)


def _memory(estimate: SearchEstimate, scheduler: Scheduler, seen: Seen) -> tuple[int, int]:
    """After one binding, the bytes that stay allocated, and their peak."""
    before, pod, node = seen
    tracemalloc.start()
    try:
        after = estimate.after_binding(estimate.expect(before, scheduler, pod), node)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return kept if after is not estimate else 0, peak

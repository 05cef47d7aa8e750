"""Measures what one event of a pod costs those who follow a cluster, such as `careen shadow`: the event, and a snapshot
after it.

    python -m bench.shadow.events [--nodes 1000] [--pods 2000] [--waiting 0 10000]

The cluster is that of the scheduler's bench. Each pod has the four events of its life: it is created, bound, scheduled
and ready. *Waiting*: so many further pods are pending all the time. Processor microseconds of one event.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.scheduler import cluster
from scheduler_core.cache.cluster_cache import ClusterCache
from scheduler_core.cache.events import Sync


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--waiting", type=int, nargs="*", default=[0, 10_000])
    given = parser.parse_args()
    place = Path(tempfile.gettempdir()) / "careen-bench-cache" / f"{given.nodes}-1"
    cluster.write(place, nodes=given.nodes, seed=1)
    print("| nodes | waiting | event and snapshot, µs |\n|---|---|---|")
    for waiting in given.waiting:
        cache = ClusterCache()
        for kind, stem in cluster.LISTS.items():
            cache.apply(Sync(kind, (path.read_bytes() for path in sorted(place.glob(f"{stem}-*.json")))))
        for number in range(waiting):
            cache.apply(_line("ADDED", _pod(1_000_000 + number, given.nodes), number))
        lines = [line for number in range(given.pods) for line in _life(number, given.nodes)]
        gc.collect()
        gc.freeze()
        began = time.thread_time_ns()
        for line in lines:
            cache.apply(line)
            cache.snapshot()
        spent = (time.thread_time_ns() - began) / 1e3 / len(lines)
        gc.unfreeze()
        print(f"| {given.nodes:,} | {waiting:,} | {spent:.0f} |", flush=True)


def _pod(number: int, nodes: int) -> dict[str, Any]:
    return {**cluster._pod(number % cluster._applications(nodes), f"new-{number}"), "status": {"phase": "Pending"}}


def _life(number: int, nodes: int) -> list[bytes]:
    pod = _pod(number, nodes)
    lines = [_line("ADDED", pod, 1_000_000 + 4 * number)]
    pod["spec"]["nodeName"] = cluster.node_name(number % nodes)
    for step, phase in enumerate(("Pending", "Pending", "Running"), start=1):
        ready = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": str(phase == "Running")}]
        pod["status"] = {"phase": phase, "conditions": ready, "podIP": "10.0.0.1"}
        lines.append(_line("MODIFIED", pod, 1_000_000 + 4 * number + step))
    return lines


def _line(kind: str, pod: dict[str, Any], version: int) -> bytes:
    pod["metadata"]["resourceVersion"] = str(version)
    return json.dumps({"type": kind, "object": {"apiVersion": "v1", "kind": "Pod", **pod}}).encode()


if __name__ == "__main__":
    main()

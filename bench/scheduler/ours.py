"""Measures scheduler_core in one process: `python -m bench.scheduler.ours cycles|drain …` prints JSON lines.

Times are processor time: with one thread on one idle core, that is elapsed time.
"""

from __future__ import annotations

import gc
import json
import re
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scheduler_core import Scheduler, Snapshot, pod_from_manifest
from scheduler_core.snapshot.loading import load_pages


def main() -> None:
    """Runs the measurement that the first argument names."""
    {"cycles": cycles, "drain": drain}[sys.argv[1]](*sys.argv[2:])


def cycles(pages: str, pods: str, rounds: str) -> None:
    """Loads the pages, then chooses a node for every pod `rounds` times, each time in the same cluster. One line
    about the load, and one per pod."""
    snapshot = _load(pages)
    scheduler = Scheduler()
    manifests = [json.loads(line) for line in Path(pods).read_text().splitlines()]
    pending = [pod_from_manifest(manifest) for manifest in manifests]
    seconds: list[list[float]] = [[] for _ in pending]
    for _ in range(int(rounds)):
        for i, pod in enumerate(pending):
            start = time.process_time()
            result = scheduler.schedule(snapshot, pod)
            assert result.best  # every node is filtered and every feasible one scored by now
            seconds[i].append(time.process_time() - start)
    for pod, took in zip(pending, seconds, strict=True):
        _print({"pod": pod.key, "seconds": took, "answer": answer(scheduler, snapshot, pod)})
    if seconds[0]:
        _print({"placing": _placing(scheduler, snapshot, pending)})


def _placing(scheduler: Scheduler, snapshot: Snapshot, pending: list[Any]) -> list[float]:
    """Processor seconds per pod, each placed in the cluster with all earlier ones."""
    took = []
    for pod in pending:
        start = time.process_time()
        result = scheduler.schedule(snapshot, pod)
        assert result.node is not None
        snapshot = snapshot.with_pod_placed(pod, result.node)
        took.append(time.process_time() - start)
    return took


def drain(pages: str, node: str, rounds: str) -> None:
    """Simulates the drain of one node `rounds` times."""
    from scheduler_core.simulation.drain import simulate_drain

    snapshot = _load(pages)
    for _ in range(int(rounds)):
        start = time.process_time()
        (forecast,) = simulate_drain(snapshot, (node,), made_at="2026-01-01T00:00:00Z")
        _print(
            {
                "seconds": time.process_time() - start,
                "pods": len(forecast.pods),
                "landed": sum(bool(pod.landing) for pod in forecast.pods),
            }
        )


def answer(scheduler: Scheduler, snapshot: Snapshot, pod: Any) -> dict[str, Any]:
    """The decision as JSON values, to compare with kube-scheduler's. Its time is not measured."""
    from scheduler_core.judge.answer import as_answer

    found: dict[str, Any] = as_answer(scheduler.schedule(snapshot, pod))
    return found


def _load(pages: str) -> Snapshot:
    """Loads the pages in a fresh process, as a command does, and prints its time and memory."""
    gc.collect()
    before = _resident()
    start, processor = time.perf_counter(), time.process_time()
    snapshot = load_pages(_bodies(pages))
    took, processor = time.perf_counter() - start, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    gc.collect()
    _print(
        {
            "load_seconds": took,
            "processor_seconds": processor,
            "peak_bytes": peak,
            "after_bytes": _resident(),
            "before_bytes": before,
            "nodes": len(snapshot.nodes),
            "pods": len(snapshot.placed_pods),
        }
    )
    return snapshot


def _bodies(directory: str) -> Iterator[bytes]:
    for path in sorted(Path(directory).glob("*.json")):
        yield path.read_bytes()


def _resident() -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def _print(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

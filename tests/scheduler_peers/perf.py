"""scheduler_perf, Kubernetes' own benchmark, with `careen scheduler` and with kube-scheduler one after the other on the
same machine.

    python -m tests.scheduler_peers.perf WORK CONTROLPLANE [NODES [NAME]…]

Prints a table in Markdown, of all workloads or of those with these names. NODES: 500, or 5000 for the sizes that
Kubernetes' own CI has thresholds for. The harness samples every tenth of a second instead of every second, because a
workload that ends within two samples has no figure. *others*: the processor time of the API server, etcd and the
harness, which creates the pods, beside careen's; *busy*: the part of all processors that they and careen used, from the
first node to the end.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.scheduler_peers.module import module_of
from tests.scheduler_peers.run import RELEASE, SCHEDULER, Bench

_ROOT: Final = "test/integration/scheduler_perf"
_USED: Final = re.compile(r"^EXTERNAL SCHEDULER used seconds=([0-9.]+)$", re.MULTILINE)


class Workload(NamedTuple):
    """`threshold`: average pods/s that Kubernetes' CI asks of `large`, its workload on 5,000 nodes."""

    topic: str
    name: str
    large: str
    threshold: int


WORKLOADS: Final = (
    Workload("misc", "SchedulingBasic", "5000Nodes_10000Pods_QueueingHintsEnabled", 270),
    Workload("affinity", "SchedulingPodAntiAffinity", "5000Nodes_2000Pods_QueueingHintsEnabled", 60),
    Workload("affinity", "SchedulingPodAffinity", "5000Nodes_5000Pods_QueueingHintsEnabled", 35),
    Workload("affinity", "MixedSchedulingBasePod", "5000Nodes_5000Pods_QueueingHintsEnabled", 140),
    Workload("topology_spreading", "TopologySpreading", "5000Nodes_5000Pods_QueueingHintsEnabled", 85),
    Workload("misc", "PreemptionAsync", "5000Nodes_AsyncPreemptionEnabled", 160),
)


def main() -> None:
    work, controlplane = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    is_large, chosen = sys.argv[3:4] == ["5000"], sys.argv[4:]
    bench = Bench(work, module_of(RELEASE, work), controlplane=controlplane)
    programs = {topic: bench.built(f"{_ROOT}/{topic}") for topic in sorted({each.topic for each in WORKLOADS})}
    print(
        "| workload | careen scheduler, pods/s | kube-scheduler, pods/s | ratio "
        "| threshold of Kubernetes' CI, 5,000 nodes | careen's processor time, s | others', s | busy, % |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for each in [each for each in WORKLOADS if not chosen or each.name in chosen]:
        size = each.large if is_large else "500Nodes"
        ours, theirs = [_measured(bench, programs[each.topic], each, size, scheduler) for scheduler in (SCHEDULER, "")]
        print(_row(f"{each.name}/{size}", each.threshold, ours, theirs), flush=True)


class Measured(NamedTuple):
    """`rate`: average pods/s of the measured pods; 0 if they were too few. In seconds: `used` by the program,
    `all_used` by it and all others, `elapsed`."""

    rate: float
    used: float
    all_used: float
    elapsed: float


def _row(name: str, threshold: int, ours: Measured, theirs: Measured) -> str:
    ratio = f"{ours.rate / theirs.rate:.2f}" if ours.rate and theirs.rate else "–"
    rates = (f"{each.rate:.0f}" if each.rate else "too few" for each in (ours, theirs))
    busy = ours.all_used / (ours.elapsed * (os.cpu_count() or 1)) * 100
    times = (f"{ours.used:.2f}", f"{ours.all_used - ours.used:.2f}", f"{busy:.0f}")
    return "| " + " | ".join((name, *rates, ratio, str(threshold), *times)) + " |"


def _measured(bench: Bench, program: Path, workload: Workload, size: str, scheduler: str) -> Measured:
    items = bench.logs / "perf"
    shutil.rmtree(items, ignore_errors=True)
    items.mkdir()
    out = bench.logs / f"perf-{workload.name}-{size}-{'careen' if scheduler else 'kube'}.txt"
    options = (
        "-test.run=^$",
        "-test.benchtime=1x",
        f"-test.bench=^BenchmarkPerfScheduling$/^{workload.name}$/^{size}$",
        "-test.timeout=60m",
        "-perf-scheduling-label-filter=",
        f"-data-items-dir={items}",
        "-v=0",
    )
    before, began = _children_seconds(), time.monotonic()
    bench.ran(f"{_ROOT}/{workload.topic}", program, *options, out=out, scheduler=scheduler, ARTIFACTS=str(bench.logs))
    used = _USED.search(out.read_text(encoding="utf-8", errors="replace"))
    return Measured(
        rate=next(_averages(items), 0.0),
        used=float(used[1]) if used else 0.0,
        all_used=_children_seconds() - before,
        elapsed=time.monotonic() - began,
    )


def _children_seconds() -> float:
    """Processor time of the ended child processes and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _averages(items: Path) -> Iterator[float]:
    for path in sorted(items.glob("*.json")):
        for item in json.loads(path.read_text(encoding="utf-8"))["dataItems"] or []:
            if item["labels"].get("Metric") == "SchedulingThroughput":
                yield item["data"]["Average"]


if __name__ == "__main__":
    main()

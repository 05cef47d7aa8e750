"""Measures the real scheduler's code and scheduler_core side by side: `make bench-scheduler`.

The two programs read the same generated cluster, in files with the list pages of an API server, and place the same
pods. Each program runs on one core, filters every node and scores every feasible node. The results are compared node by
node. This command prints every published figure, and writes its output to bench/scheduler/results.md and growth.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.scheduler import cluster
from bench.scheduler.growth import plot
from tests.oracle.comparison import differences

HERE = Path(__file__).parent
MAIN_SIZE = 5000
SIZES = (100, 300, 1000, 3000, MAIN_SIZE, 10000)
PODS = 40
ROUNDS = 3
Runs = list[dict[str, Any]]


def main() -> int:
    """Measures both programs, prints and writes the results. 1 if a decision differs from kube-scheduler's,
    otherwise 0."""
    options = _options()
    sizes = sorted({*options.sizes, options.size})
    lines: list[str] = []

    def say(text: str = "") -> None:
        print(text, flush=True)
        lines.append(text)

    say("# scheduler_core beside kube-scheduler\n")
    say(
        f"`make bench-scheduler`, seed {options.seed}, {_machine()}. Each program runs on one core, and the figures "
        "are processor time. Every node is filtered and every feasible node is scored, without sampling and without "
        "API calls."
    )
    say(
        f"kube-scheduler is measured with its own Go packages, {_version()}. A node has {cluster.PODS_PER_NODE} pods. "
        f"Both programs decide about {PODS} pods:"
    )
    say(
        "a quarter each with spread constraints, required anti-affinity, preferred (anti-)affinity and nothing "
        "special. Each pod belongs to a different application.\n"
    )
    say(
        "The other times are those of scheduler_core. *cold*: the time of the very first decision after loading, which "
        "builds indexes of the cluster. *new*: the mean time of the first decision about a pod. This mean leaves out "
        "the first pod of each of the four kinds that are listed above."
    )
    say(
        f"*again*: the next {ROUNDS - 1} decisions about the same pod (mean); kube-scheduler's times are of this "
        "kind, too. *placed*: each pod is placed on its node before the next decision (mean).\n"
    )
    growth, wrong = _growth(options, sizes, say)
    _loading(options, say)
    _draining(options, say)
    (HERE / "results.md").write_text("\n".join(lines) + "\n")
    (HERE / "growth.svg").write_text(plot("decision about one pod, all nodes filtered and scored, one core", growth))
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument(
        "--size", type=int, default=MAIN_SIZE, help="number of nodes for the measurements of loading and draining"
    )
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=SIZES, help="numbers of nodes of the clusters in the table"
    )
    parser.add_argument("--cache", type=Path, default=Path(".cache/bench"))
    return parser.parse_args()


def _growth(
    options: argparse.Namespace, sizes: Sequence[int], say: Callable[[str], None]
) -> tuple[dict[str, list[tuple[float, float]]], int]:
    """Prints a row for each size of cluster and, for the main size, one for each kind of pod. Returns the points of
    the plot, and how many results differ."""
    say(
        "## One pod\n\n| nodes | pods | kube-scheduler ms | again ms | ratio | new ms | placed ms | cold ms | "
        "answers |\n|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    )
    growth: dict[str, list[tuple[float, float]]] = {"kube-scheduler": [], "scheduler_core": []}
    wrong, by_kind = 0, []
    for size in sizes:
        theirs, ours, placed = _both(options, size)
        differing = sum(
            bool(differences(want["answer"], got["answer"])) for want, got in zip(theirs, ours, strict=True)
        )
        wrong += differing
        real, again = _again(theirs), _again(ours)
        for name, value in zip(growth, (real, again), strict=True):
            growth[name].append((size, value))
        cold = ours[0]["seconds"][0] * 1000
        same = "all equal" if not differing else f"{differing} of {len(ours)} decisions differ from kube-scheduler's"
        say(
            f"| {size:,} | {size * cluster.PODS_PER_NODE:,} | {real:.2f} | {again:.2f} | {real / again:.0f} | "
            f"{_new(ours[len(cluster.KINDS) :]):.2f} | {placed:.2f} | {cold:.0f} | {same} |"
        )
        if size == options.size:
            by_kind = [(kind, _only(theirs, kind), _only(ours, kind)) for kind in cluster.KINDS]
    say(
        f"\n![growth](growth.svg)\n\nMilliseconds for one decision at {options.size:,} nodes, by kind of pod:\n\n"
        "| kind | kube-scheduler, same pod again | scheduler_core, same pod again | scheduler_core, new pod "
        "|\n|---|---:|---:|---:|"
    )
    for kind, theirs, ours in by_kind:
        say(f"| {kind} | {_again(theirs):.2f} | {_again(ours):.2f} | {_new(ours[1:]):.2f} |")
    return growth, wrong


def _loading(options: argparse.Namespace, say: Callable[[str], None]) -> None:
    pages = _pages(options, options.size)
    loads = [_run(_ours("cycles", pages, _pods(options, options.size), 0), options.core)[0] for _ in range(3)]
    load = sorted(loads, key=lambda each: each["processor_seconds"])[1]
    raw = sum(path.stat().st_size for path in pages.glob("*.json"))
    say(
        f"\n## Loading\n\nA new process loads {load['nodes']:,} nodes and {load['pods']:,} pods from {raw / 1e6:.0f} "
        f"MB of raw API pages (median of 3): **{load['processor_seconds']:.1f} s** of processor time "
        f"({load['load_seconds']:.1f} s by the clock). Its resident memory is {load['before_bytes'] / 2**20:.0f} MiB "
        f"before loading, at most {load['peak_bytes'] / 2**20:.0f} MiB, and {load['after_bytes'] / 2**20:.0f} MiB "
        "after loading."
    )


def _draining(options: argparse.Namespace, say: Callable[[str], None]) -> None:
    _load, *drains = _run(_ours("drain", _pages(options, options.size), _node_to_drain(options), 6), options.core)
    warm = statistics.median(one["seconds"] for one in drains[1:])
    say(
        f"\n## Draining\n\nThe drain of a node with {drains[0]['pods']} pods ({drains[0]['landed']} of them get a "
        f"node) in a cluster of {options.size:,} nodes; each pod is placed before the decision about the next pod. "
        f"The first drain takes {drains[0]['seconds'] * 1000:.0f} ms, a later drain **{warm * 1000:.0f} ms** (median "
        f"of {len(drains) - 1})."
    )


def _node_to_drain(options: argparse.Namespace) -> str:
    """The first node that is not cordoned: draining a cordoned one is less work."""
    for path in sorted(_pages(options, options.size).glob("0-nodes-*.json")):
        for node in json.loads(path.read_text())["items"]:
            if not node["spec"].get("taints"):
                return str(node["metadata"]["name"])
    raise LookupError("every node has taints")


def _both(options: argparse.Namespace, size: int) -> tuple[Runs, Runs, float]:
    """First kube-scheduler, then scheduler_core: in parallel, each would slow the other down on the shared memory
    bus."""
    pages, pods = _pages(options, size), _pods(options, size)
    theirs = _run([options.oracle, "time", str(pages), str(pods), str(ROUNDS)], options.core)
    _load, *ours, placing = _run(_ours("cycles", pages, pods, ROUNDS), options.core)
    return theirs, ours, statistics.fmean(placing["placing"]) * 1000


def _pages(options: argparse.Namespace, size: int) -> Path:
    directory: Path = options.cache / f"{size}-{options.seed}"
    cluster.write(directory, nodes=size, seed=options.seed)
    return directory


def _pods(options: argparse.Namespace, size: int) -> Path:
    path: Path = options.cache / f"{size}-{options.seed}-pods.jsonl"
    path.write_text("".join(json.dumps(pod) + "\n" for pod in cluster.pods_to_place(size, PODS)))
    return path


def _ours(what: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "bench.scheduler.ours", what, *map(str, arguments)]


def _run(command: list[str], core: int) -> Runs:
    """The lines that a program prints, run with one thread on one core."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GOMAXPROCS"), "1")
    ran = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, **threads},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        timeout=3600,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def _new(runs: Runs) -> float:
    return statistics.fmean(run["seconds"][0] for run in runs) * 1000


def _again(runs: Runs) -> float:
    return statistics.fmean(took for run in runs for took in run["seconds"][1:]) * 1000


def _only(runs: Runs, kind: str) -> Runs:
    return [run for i, run in enumerate(runs) if cluster.KINDS[i % len(cluster.KINDS)] == kind]


def _machine() -> str:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{model}, Python {platform.python_version()}"


def _version() -> str:
    modules = Path(__file__).parents[2] / "tests" / "oracle" / "go.mod"
    return next(
        line.split()[-1] for line in modules.read_text().splitlines() if line.strip().startswith("k8s.io/kubernetes ")
    )


if __name__ == "__main__":
    sys.exit(main())

"""Measures a roll-out of any agent over 12 nodes on a real control plane: `make bench-rollout`.

The nodes have 8 cpu and 32 Gi, in 3 zones. There are 99 pods of 7 controllers, 5 budgets, zone spread on two
controllers, required host anti-affinity on two, one StatefulSet, and 2 DaemonSets; the pods request 65 % of the cpu.
Pods start in 3 s and stop in 1 s; a boot takes 5 s (`--boot`). All sentinels appear at the beginning. The time ends
when every node is ready and schedulable again and the lock has no claim. `--seed` varies this cluster within bounds;
the same seed always places the pods in the same way. `--nodes 60` has five times as many nodes and pods, and the
machine runs 60 agents: give each boot more time than they need to start (`--boot 20`).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.rollout.measure import Result, Trial, measure
from bench.rollout.memory import ProcessMemory
from bench.rollout.sample import NODES, sample
from tests.cluster.harness.cluster import CAREEN, KURED
from tests.cluster.harness.machines.agents import careen_template
from tests.cluster.harness.machines.control_plane import ControlPlane, PodTimes, a_control_plane
from tests.cluster.harness.measures.figures import Spread, spread

# A shorter period costs requests and gains nothing.
KURED_FLAGS = (
    "--node-id={node} --ds-namespace={namespace} --ds-name={daemonset} --reboot-sentinel={sentinel} "
    "--reboot-method=command "
    "--reboot-command={reboot_command} --period=10s --metrics-host=127.0.0.1 --metrics-port={port}"
)
KURED_TAINT = "--prefer-no-schedule-taint=weave.works/kured-node-reboot"
# Each kured passes a start delay of 30 to 90 s before it looks at its host for the first time.
KURED_WARM_UP_SECONDS = 100.0
CAREEN_WARM_UP_SECONDS = 20.0
POD_TIMES = PodTimes(start_seconds=3.0, stop_seconds=1.0)


def main() -> int:
    options = _options()
    if os.geteuid() != 0:
        print(
            "run bench-rollout as root: it gives each agent its own Linux namespaces, like a container", file=sys.stderr
        )
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = []
    for run in range(options.runs):
        result = _run(_trial(options), keep=options.keep)
        results.append(result)
        print(f"run {run + 1} of {options.runs}" if options.runs > 1 else "", *_rows(result), sep="\n", flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps([asdict(each) for each in results], indent=1))
    if options.runs > 1:
        print(*_medians(results), sep="\n")
    return 0 if all(result.finished for result in results) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.rollout", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--agent",
        help="command of an agent; placeholders: see tests/cluster/harness/machines/agents.py. Default: this "
        "repository's careen",
    )
    parser.add_argument("--kured", type=Path, help="path of a kured program, which the bench runs with KURED_FLAGS")
    parser.add_argument(
        "--identity",
        choices=("careen", "kured"),
        help="the DaemonSet and the rights that the --agent uses (default: those of careen)",
    )
    parser.add_argument("--flags", default="", help="more flags for the agent; they override its other flags")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cluster; 0 is the reference cluster")
    parser.add_argument(
        "--nodes", type=int, default=NODES, help="how many nodes, rounded down to a multiple of 12; default: 12"
    )
    parser.add_argument("--asking", type=int, help="how many of the hosts need a reboot; default: all")
    parser.add_argument("--boot", type=float, default=5.0, help="seconds that a host takes to boot")
    parser.add_argument(
        "--warm-up",
        type=float,
        help="seconds from the start of the agents until hosts need a reboot (kured waits up to 90 s after its start)",
    )
    parser.add_argument("--limit", type=float, default=1800, help="the bench gives up after this many seconds")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", help="file to which every figure is written after each run")
    parser.add_argument("--keep", action="store_true", help="keep the agents' logs")
    return parser.parse_args()


def _trial(options: argparse.Namespace) -> Trial:
    is_kured = bool(options.kured) or options.identity == "kured"
    template = options.agent or (f"{options.kured} {KURED_FLAGS} {KURED_TAINT}" if options.kured else careen_template())
    warm_up = (
        options.warm_up
        if options.warm_up is not None
        else KURED_WARM_UP_SECONDS
        if is_kured
        else CAREEN_WARM_UP_SECONDS
    )
    return Trial(
        sample=sample(options.seed, options.asking, times=max(1, options.nodes // NODES)),
        identity=KURED if is_kured else CAREEN,
        template=f"{template} {options.flags}",
        boot_seconds=options.boot,
        warm_up_seconds=warm_up,
        limit_seconds=options.limit,
    )


def _run(trial: Trial, *, keep: bool) -> Result:
    with a_control_plane(
        "rollout", lambda folder, guardian: ControlPlane(folder, guardian=guardian, pods=POD_TIMES), keeps_logs=keep
    ) as plane:
        return measure(trial, plane)


def _rows(result: Result) -> list[str]:
    figures, requests = result.rollout, result.requests
    verbs, calls = (
        ", ".join(f"{asked} {count}" for asked, count in counts.items())
        for counts in (requests.by_verb, requests.by_call)
    )
    table = [
        ("finished", "yes" if result.finished else "NO"),
        ("wall, s", f"{figures.wall:.0f}"),
        ("- lock idle between nodes (gap)", f"{figures.idle_lock:.0f}"),
        ("- drain (from the claim to the reboot)", f"{figures.drain:.0f}"),
        ("- boot (from the reboot to Ready)", f"{figures.boot:.0f}"),
        ("- Ready but cordoned (wait)", f"{figures.ready_but_cordoned:.0f}"),
        ("- schedulable, claim still held (settling)", f"{figures.settling:.0f}"),
        ("from a release to the next claim, s", _spread(figures.next_start)),
        ("max nodes down at once", str(figures.most_down)),
        ("node-seconds down", f"{figures.node_seconds_down:.0f}"),
        ("pod moves (least possible number)", f"{figures.moves.total} ({figures.moves.floor})"),
        ("repeat moves", str(figures.moves.repeat)),
        ("pending pod-seconds", f"{figures.moves.pending_seconds:.0f}"),
        ("- pending pod-seconds without a node", f"{figures.moves.unscheduled_seconds:.1f}"),
        ("pods pending at the end", str(result.pending_at_the_end)),
        ("nodes tainted before their cordon", f"{figures.tainted} of {result.asked}"),
        ("sentinel to taint, s", _spread(figures.sentinel_to_taint)),
        ("lead time (taint to cordon), s", _spread(figures.lead)),
        ("API requests", str(requests.total)),
        ("- API requests for Events", str(requests.events)),
        ("- API requests per node-minute", f"{requests.total / result.node_minutes:.1f}"),
        ("- API requests by verb", verbs),
        ("- API requests by call", calls),
        ("- API requests answered with 429", str(requests.too_many)),
        ("processor time of all agents, s", f"{result.processor_seconds:.1f}"),
        ("processor time of agents' warm-up, s", f"{result.starting_seconds:.1f}"),
        ("RSS of an idle agent, MiB", _memories(result.idle, "resident")),
        ("private memory of an idle agent, MiB", _memories(result.idle, "private")),
        ("greatest RSS of an agent, MiB", _memories(result.working, "resident")),
        ("private memory at the greatest RSS, MiB", _memories(result.working, "private")),
        ("agent crashes", str(result.crashes)),
    ]
    return [f"{name:<44} {value}" for name, value in table] + [
        "(three figures with slashes: the least, the median and the greatest)"
    ]


def _medians(results: Sequence[Result]) -> list[str]:
    """Medians over several runs. Runs differ: the scheduler chooses among equal nodes at random, and the agents'
    turns come at different times."""
    figures = [result.rollout for result in results]
    rows: dict[str, list[float]] = {
        "wall, s": [one.wall for one in figures],
        "pod moves": [one.moves.total for one in figures],
        "repeat moves": [one.moves.repeat for one in figures],
        "pending pod-seconds": [one.moves.pending_seconds for one in figures],
        "max nodes down at once": [one.most_down for one in figures],
        "API requests": [result.requests.total for result in results],
        "- API requests for Events": [result.requests.events for result in results],
        "processor time of all agents, s": [result.processor_seconds for result in results],
    }
    return [
        f"all {len(results)} runs together (least / median / greatest)",
        *(f"{name:<44} {_spread(spread(values))}" for name, values in rows.items()),
    ]


def _memories(memories: Iterable[ProcessMemory], which: str) -> str:
    return _spread(spread(getattr(memory, which) for memory in memories))


def _spread(found: Spread | None) -> str:
    return "-" if found is None else str(found)


if __name__ == "__main__":
    sys.exit(main())

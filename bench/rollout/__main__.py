"""A roll-out over 12 nodes on a real control plane, measured, for any agent: `make bench-rollout`.

Nodes have 8 cpu and 32 Gi in 3 zones, 99 pods of 7 controllers, 5 budgets, zone spread on two, required host
anti-affinity on two, one StatefulSet, 2 DaemonSets; 65 % of the cpu is requested. Pods start in 3 s and stop in 1 s, a boot
takes 5 s (`--boot`). All sentinels appear at t0; the clock stops when every node is back, schedulable, and nobody holds
the lock.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench.rollout.memory import Memory, Sampler, agent_memory
from bench.rollout.sample import PODS, nodes, workloads
from tests.cluster.harness.agents import by_template, careen_template
from tests.cluster.harness.audit import Requests, requests_of
from tests.cluster.harness.cluster import CAREEN, KURED, Cluster, Identity, manifest_files
from tests.cluster.harness.control_plane import ControlPlane, PodTimes
from tests.cluster.harness.figures import Rollout, Spread, rollout, spread
from tests.cluster.harness.hosts import Host
from tests.cluster.harness.processes import Guardian

# kured with the settings that do best in such a roll-out: a shorter period costs requests and gains nothing.
KURED_FLAGS = (
    "--node-id={node} --ds-namespace={namespace} --ds-name={daemonset} --reboot-sentinel={sentinel} --reboot-method=command "
    "--reboot-command={reboot_command} --period=10s --prefer-no-schedule-taint=weave.works/kured-node-reboot "
    "--metrics-host=127.0.0.1 --metrics-port={port}"
)


def main() -> int:
    options = _options()
    if os.geteuid() != 0:
        print("bench-rollout gives each agent namespaces of its own, as a container has: run it as root", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    identity = KURED if options.kured or options.identity == "kured" else CAREEN
    template = options.agent or (f"{options.kured} {KURED_FLAGS}" if options.kured else careen_template())
    results = []
    for run in range(options.runs):
        folder = Path(tempfile.mkdtemp(prefix="careen-rollout-"))
        guardian = Guardian()
        try:
            result = _one_run(options, identity, template, folder, guardian)
        finally:
            guardian.close()
            if options.keep:
                print(f"logs are in {folder}", file=sys.stderr)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        results.append(result)
        print(f"run {run + 1} of {options.runs}" if options.runs > 1 else "", *_rows(result), sep="\n", flush=True)
    if options.runs > 1:
        print(*_medians(results), sep="\n")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1, default=str))
    return 0 if all(result["finished"] for result in results) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.rollout", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", help="command of an agent; placeholders: see tests/cluster/harness/agents.py. Default: this repository's careen")
    parser.add_argument("--kured", type=Path, help="a kured program, run with the flags that suit it best")
    parser.add_argument("--identity", choices=("careen", "kured"), default="careen", help="whose DaemonSet and rights the --agent uses")
    parser.add_argument("--boot", type=float, default=5.0, help="seconds that a host takes to boot")
    parser.add_argument("--warm-up", type=float, help="seconds between the start of the agents and t0 (kured: its start delay is up to 90 s)")
    parser.add_argument("--limit", type=float, default=1800, help="give up after this many seconds")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", help="write every figure there too")
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    return parser.parse_args()


def _one_run(options: argparse.Namespace, identity: Identity, template: str, folder: Path, guardian: Guardian) -> dict[str, object]:
    plane = ControlPlane(folder, guardian=guardian, pods=PodTimes(start_seconds=3.0, stop_seconds=1.0))
    try:
        cluster = Cluster(plane, identity, folder)
        try:
            return _measure(options, cluster, template)
        finally:
            cluster.close()
    finally:
        plane.close()


def _measure(options: argparse.Namespace, cluster: Cluster, template: str) -> dict[str, object]:
    identity = cluster.identity
    for file in [Path(__file__).with_name("kured.yaml")] if identity is KURED else manifest_files():
        cluster.apply_file(file)
    command = by_template(cluster.plane, template, namespace=identity.namespace, daemonset=identity.daemonset)
    hosts = [Host(name=name, zone=zone, folder=cluster.folder / "hosts" / name, boot_seconds=options.boot) for name, zone in nodes()]
    fleet = cluster.start_fleet(hosts, command)
    cluster.apply(*workloads())
    cluster.wait_for(f"{PODS} pods are ready", cluster.pods_are_ready, 180)
    cluster.wait_for("every agent runs", cluster.agents_run, 120)
    time.sleep(options.warm_up if options.warm_up is not None else 100 if options.kured else 20)
    idle = [memory for host in hosts if (memory := agent_memory(host)) is not None]

    cluster.observer.forget()
    audit_from = cluster.plane.audit_log.stat().st_size
    sampler = Sampler(fleet.hosts)
    start = time.time()
    for host in hosts:
        host.ask_for_reboot()
    try:
        cluster.wait_for("the roll-out is over", lambda: _is_over(cluster, hosts), options.limit)
        finished = True
    except AssertionError as error:
        print(error, file=sys.stderr)
        finished = False
    end = time.time()
    sampler.close()
    time.sleep(2)  # the audit log is written a moment later
    return {
        "finished": finished,
        "rollout": rollout(cluster.observer.seen, {host.name: host.reboots for host in hosts}, start, end),
        "requests": requests_of(cluster.plane.audit_events(audit_from), identity.user),
        "idle": idle,
        "working": list(sampler.greatest.values()),
        "crashes": sum(len(host.crashes) for host in hosts),
        "pending_at_the_end": sum(not life.from_daemonset and life.ready_at is None for life in cluster.observer.pods()),
        "node_minutes": len(hosts) * (end - start) / 60,
    }


def _is_over(cluster: Cluster, hosts: list[Host]) -> bool:
    states = [cluster.observer.node(host.name) for host in hosts]
    return (
        all(host.reboots and host.up and not host.sentinel.exists() for host in hosts)
        and all(state is not None and not state.down for state in states)
        and not cluster.observer.lock_now().holders
    )


def _rows(result: dict[str, object]) -> list[str]:
    figures, requests = result["rollout"], result["requests"]
    assert isinstance(figures, Rollout)
    assert isinstance(requests, Requests)
    verbs = ", ".join(f"{verb} {count}" for verb, count in requests.by_verb.items())
    table = [
        ("finished", "yes" if result["finished"] else "NO"),
        ("wall, s", f"{figures.wall:.0f}"),
        ("- lock idle between nodes (gap)", f"{figures.idle_lock:.0f}"),
        ("- drain (claim to reboot)", f"{figures.drain:.0f}"),
        ("- boot (reboot to Ready)", f"{figures.boot:.0f}"),
        ("- Ready but cordoned (wait)", f"{figures.ready_but_cordoned:.0f}"),
        ("- schedulable, claim still held (settling)", f"{figures.settling:.0f}"),
        ("release to next claim, s", _spread(figures.next_start)),
        ("max nodes down at once", str(figures.most_down)),
        ("node-seconds down", f"{figures.node_seconds_down:.0f}"),
        ("pod moves (floor)", f"{figures.moves.total} ({figures.moves.floor})"),
        ("repeat moves", str(figures.moves.repeat)),
        ("pending pod-seconds", f"{figures.moves.pending_seconds:.0f}"),
        ("- of which unscheduled", f"{figures.moves.unscheduled_seconds:.1f}"),
        ("pods pending at the end", str(result["pending_at_the_end"])),
        ("nodes tainted before their cordon", f"{figures.tainted} of {len(nodes())}"),
        ("sentinel to taint, s", _spread(figures.sentinel_to_taint)),
        ("taint lead, s", _spread(figures.lead)),
        ("API requests", str(requests.total)),
        ("- per node-minute", f"{requests.total / float(str(result['node_minutes'])):.1f}"),
        ("- by verb", verbs),
        ("- answered 429", str(requests.too_many)),
        ("agent RSS idle, MiB", _memories(result["idle"], "resident")),
        ("agent private memory idle, MiB", _memories(result["idle"], "private")),
        ("agent RSS greatest, MiB", _memories(result["working"], "resident")),
        ("agent private memory then, MiB", _memories(result["working"], "private")),
        ("agent crashes", str(result["crashes"])),
    ]
    return [f"{name:<44} {value}" for name, value in table] + ["(three figures with slashes: least / median / greatest)"]


def _medians(results: list[dict[str, object]]) -> list[str]:
    """Single runs differ by chance: ties between nodes, and when each agent happens to look."""
    figures = [result["rollout"] for result in results if isinstance(result["rollout"], Rollout)]
    requests = [result["requests"] for result in results if isinstance(result["requests"], Requests)]
    rows = {
        "wall, s": [one.wall for one in figures],
        "pod moves": [one.moves.total for one in figures],
        "repeat moves": [one.moves.repeat for one in figures],
        "pending pod-seconds": [one.moves.pending_seconds for one in figures],
        "max nodes down at once": [one.most_down for one in figures],
        "API requests": [one.total for one in requests],
    }
    return [f"of {len(results)} runs (least / median / greatest)", *(f"{name:<44} {_spread(spread(values))}" for name, values in rows.items())]


def _memories(memories: object, which: str) -> str:
    assert isinstance(memories, list)
    return _spread(spread(getattr(memory, which) for memory in memories if isinstance(memory, Memory)))


def _spread(found: Spread | None) -> str:
    return "-" if found is None else str(found)


if __name__ == "__main__":
    sys.exit(main())

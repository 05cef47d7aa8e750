"""Measures the plan of a whole roll-out and prints the plan's figures. Also measures a forecast of one node.

    make bench-plan
    python -m bench.plan --nodes 1000 [--order oldest] [--concurrency 4]

The first command plans 200 nodes in every order and 5,000 nodes in the default order, and writes results.md. The
cluster is that of the scheduler's bench (30 pods a node), but without cordoned nodes, with few namespaces, and with ten
old ReplicaSets for each application, as Deployments leave them. The bench reads the cluster from a dump, as `careen
plan --from` does, and keeps the dump in a folder for the next run. CPU is the processor time of the process, user and
system. Other work on the machine increases this time, because all processes share the processor's caches.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.scheduler import cluster
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Order, Policy
from careen.plan.few_collections import few_collections
from careen.plan.rollout_rules import RolloutRules
from careen.report.tables import table
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.rollout import Durations, simulate_rollout
from scheduler_core.snapshot.dump import Header, read_dump, write_dump
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

NAMESPACES = 3
OLD_REVISIONS = 10  # a Deployment's revisionHistoryLimit, unless it says otherwise
FORECAST_WAS_MADE = (0, 3)  # 3: a pod would find no room
BEGINS = datetime(2026, 1, 1, tzinfo=UTC)
RESULTS = Path(__file__).with_name("results.md")
MEASURED = {200: tuple(Order), 5000: (Order.OLDEST,)}
HEADER = ["ORDER", "SECONDS", "CPU", "REBOOTS", "MOVES", "DOUBLE", "PENDING S"]


class Measured(Value, kw_only=True):
    """One size of cluster. `read` (the dump) and `forecast` (`careen forecast` for one node) are processor seconds.
    `rows` has one row per simulated order. `resident` is the most memory, in MiB, that the process had used until
    then."""

    nodes: int
    pods: int
    read: float
    forecast: float
    rows: tuple[tuple[str, ...], ...]
    resident: int

    def lines(self) -> list[str]:
        return [
            (
                f"{self.nodes} nodes, {self.pods} pods; processor time: {self.read:.1f} s to read the dump, "
                f"{self.forecast:.1f} s for `careen forecast` of one node from the dump"
            ),
            table(HEADER, [list(row) for row in self.rows]),
            f"largest resident set: {self.resident} MiB",
        ]


def main() -> None:
    """A row for each order in each size of cluster."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, help="number of nodes of the cluster; by default the sizes in results.md")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument(
        "--order",
        action="append",
        choices=[line.value for line in Order],
        help="order of the nodes in the plan; repeatable; by default every order",
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "careen-bench-plan-3")
    given = parser.parse_args()
    sizes = {given.nodes: tuple(map(Order, given.order or Order))} if given.nodes else MEASURED
    found = []
    for nodes, orders in sizes.items():
        found.append(measured(given.folder, nodes, orders, seed=given.seed, concurrency=given.concurrency))
        print("\n".join(found[-1].lines()), flush=True)
    if not given.nodes:
        RESULTS.write_text(page(found, given.concurrency), encoding="utf-8")


def measured(folder: Path, nodes: int, orders: Sequence[Order], *, seed: int, concurrency: int) -> Measured:
    """The plan of one cluster in each order, and the forecast of its first node."""
    dump = folder / f"{nodes}-{seed}.json.gz"
    if not dump.exists():
        dump.parent.mkdir(parents=True, exist_ok=True)
        dump.write_bytes(dump_of(folder / f"{nodes}-{seed}", nodes=nodes, seed=seed))
    forecast = cost([sys.executable, "-m", "careen", "forecast", cluster.node_name(0), "--from", str(dump)])
    cpu = time.process_time()
    snapshot = read_dump(io.BytesIO(dump.read_bytes())).snapshot
    read = time.process_time() - cpu
    return Measured(
        nodes=len(snapshot.nodes),
        pods=len(snapshot.placed_pods),
        read=read,
        forecast=forecast,
        rows=tuple(tuple(_row(snapshot, order, concurrency)) for order in orders),
        resident=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def cost(command: Sequence[str]) -> float:
    """Processor seconds of a command and of the processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in FORECAST_WAS_MADE:
        raise SystemExit(f"{' '.join(command)} ended with exit code {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def page(found: Sequence[Measured], concurrency: int) -> str:
    """The content of results.md."""
    rows = "\n".join(
        f"| {each.nodes:,} | {each.pods:,} | {order} | {seconds} | {processor_seconds} | {moves} | {double_moves} |"
        for each in found
        for order, seconds, processor_seconds, _reboots, moves, double_moves, _pending in each.rows
    )
    others = "\n".join(
        f"| {each.nodes:,} | {each.read:.1f} | {each.forecast:.1f} | {each.resident:,} MiB |" for each in found
    )
    return f"""# The plan of a whole roll-out

`make bench-plan`, Python {platform.python_version()}: {cluster.PODS_PER_NODE} pods a node, {concurrency} reboots at a
time, {NAMESPACES} namespaces and {OLD_REVISIONS} old ReplicaSets for each application. At the end of the measurement,
the machine with {os.cpu_count()} processors had a load of {os.getloadavg()[1]:.1f}; other work on the machine makes the
measured processor times longer.

| nodes | pods | order | seconds | processor seconds | moves | double moves |
|---:|---:|---|---:|---:|---:|---:|
{rows}

Each further seed of `careen plan` (`--seeds`) takes about as long as the plan of a row.

The bench reads each cluster from a dump. The next table shows the processor seconds for reading the dump, and for a
forecast of one node from the dump. The time of the forecast includes the reading of the dump:

| nodes | reading | `careen forecast --from` | largest resident set |
|---:|---:|---:|---:|
{others}
"""


def _row(snapshot: Snapshot, line: Order, concurrency: int) -> list[str]:
    views = [NodeView(name=node.name, uid=node.uid, resource_version="", labels=node.labels) for node in snapshot.nodes]
    rules = RolloutRules(views, Policy(node_name="-", concurrency=concurrency, order=line))
    began, cpu = time.perf_counter(), time.process_time()
    with few_collections():  # as `careen plan` does
        made = simulate_rollout(
            snapshot,
            snapshot.node_names,
            Scheduler(),
            rules,
            begins=BEGINS,
            durations=Durations(),
            taint_key=keys.DEFAULT_TAINT_KEY,
        )
    took, used = time.perf_counter() - began, time.process_time() - cpu
    return [
        line.value,
        f"{took:.1f}",
        f"{used:.1f}",
        str(len(made.reboots)),
        str(len(made.moves)),
        str(made.double_moves),
        f"{made.pending_seconds:.0f}",
    ]


def dump_of(folder: Path, *, nodes: int, seed: int) -> bytes:
    """What `careen snapshot` would write of the bench's cluster."""
    out = io.BytesIO()
    pages = pages_of(folder, nodes=nodes, seed=seed)
    write_dump(Header(kube_version="v1.36.0", taken_at="2026-01-01T00:00:00Z"), pages, out)
    return out.getvalue()


def pages_of(folder: Path, *, nodes: int, seed: int) -> Iterator[bytes]:
    """The bench's cluster as list pages, without cordoned nodes: a cordoned one counts as down during the whole
    roll-out, and with a small concurrency no other node could reboot."""
    cluster.write(folder, nodes=nodes, seed=seed, namespaces=NAMESPACES, old_revisions=OLD_REVISIONS)
    for path in sorted(folder.glob("*.json")):
        page = json.loads(path.read_bytes())
        for item in page["items"] if page["kind"] == "NodeList" else ():
            if item["spec"].pop("unschedulable", False):
                item["spec"].pop("taints")
        yield json.dumps(page).encode()


if __name__ == "__main__":
    main()

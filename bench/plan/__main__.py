"""How long the plan of a whole roll-out takes, in every order, and its result.

    python -m bench.plan [--nodes 200] [--order oldest] [--concurrency 4]

The cluster is that of the scheduler's bench (30 pods a node) without cordoned nodes, with few namespaces and ten old
ReplicaSets for each application, as Deployments leave them; it is read from a dump, as by `careen plan --from`, and its
pages are kept in a folder for the next run. CPU is the processor time of the process, user and system."""

from __future__ import annotations

import argparse
import io
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.scheduler import cluster
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Order, Policy
from careen.plan.rollout_rules import RolloutRules
from careen.report.tables import table
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.rollout import Durations, simulate_rollout
from scheduler_core.snapshot.dump import Header, read_dump, write_dump
from scheduler_core.snapshot.snapshot import Snapshot

NAMESPACES = 3
OLD_REVISIONS = 10  # a Deployment's revisionHistoryLimit, unless it says otherwise
BEGINS = datetime(2026, 1, 1, tzinfo=UTC)
HEADER = ["ORDER", "SECONDS", "CPU", "REBOOTS", "MOVES", "DOUBLE", "PENDING S"]


def main() -> None:
    """Prints a row for each order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument(
        "--order", action="append", choices=[line.value for line in Order], help="repeatable; otherwise all"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "careen-bench-plan-2")
    given = parser.parse_args()
    dump = dump_of(given.folder / f"{given.nodes}-{given.seed}", nodes=given.nodes, seed=given.seed)
    began, cpu = time.perf_counter(), time.process_time()
    snapshot = read_dump(io.BytesIO(dump)).snapshot
    print(
        f"{len(snapshot.nodes)} nodes, {len(snapshot.placed_pods)} pods, {given.concurrency} at a time; read "
        f"in {time.perf_counter() - began:.1f} s ({time.process_time() - cpu:.1f} s of processor time)"
    )
    rows = [_row(snapshot, Order(order), given.concurrency) for order in given.order or [line.value for line in Order]]
    print(table(HEADER, rows))
    print(f"largest resident set: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


def _row(snapshot: Snapshot, line: Order, concurrency: int) -> list[str]:
    views = [NodeView(name=node.name, uid=node.uid, resource_version="", labels=node.labels) for node in snapshot.nodes]
    rules = RolloutRules(views, Policy(node_name="-", concurrency=concurrency, order=line))
    began, cpu = time.perf_counter(), time.process_time()
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
    """The bench's cluster as `careen snapshot` writes it."""
    out = io.BytesIO()
    pages = pages_of(folder, nodes=nodes, seed=seed)
    write_dump(Header(kube_version="v1.36.0", taken_at="2026-01-01T00:00:00Z"), pages, out)
    return out.getvalue()


def pages_of(folder: Path, *, nodes: int, seed: int) -> Iterator[bytes]:
    """The bench's cluster as pages of lists, without cordoned nodes: a cordoned node would count as down for the whole
    roll-out and use up a small concurrency."""
    cluster.write(folder, nodes=nodes, seed=seed, namespaces=NAMESPACES, old_revisions=OLD_REVISIONS)
    for path in sorted(folder.glob("*.json")):
        page = json.loads(path.read_bytes())
        for item in page["items"] if page["kind"] == "NodeList" else ():
            if item["spec"].pop("unschedulable", False):
                item["spec"].pop("taints")
        yield json.dumps(page).encode()


if __name__ == "__main__":
    main()

"""careen's scheduler beside kube-scheduler on one real API server: where the pods land, and what that costs.

    python -m bench.scheduler_live [--nodes 1000] [--pods 1500] [--burst 4000] [--landings 2000] [--only NAME …]
    python -m bench.scheduler_live --landings 0 --filled 20000
    python -m bench.scheduler_live --nodes 5000 --placed 150000

Nodes are API objects without kubelets, as in scheduler_perf. kube-scheduler's client limit is raised to 5,000 requests
a second, and both write Events. Processor time is that of the scheduler's process. Latency is from the answer to a
pod's creation to the answer to its binding, by the API server's audit log. In a burst the pods exist before the
scheduler starts; what a start without pods costs is taken off. Rows of the same load ran one after the other: compare
the ratio. With --filled, so many mixed pods are on the nodes before, as in a cluster in use. With --placed, only a
start is measured: so many mixed pods are on the nodes, and one pod waits. *start s*: from the start of the scheduler's
process until the pod is bound; its processor time and most memory until then.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Callable, Sequence

from bench.scheduler_live.contenders import CALLED, NAMES, Contender
from bench.scheduler_live.figures import POLICY, LiveFigures, figures
from bench.scheduler_live.load import Load, placed, pods
from scheduler_core.values import Value
from tests.cluster.harness.machines.control_plane import ControlPlane, a_control_plane

# Without controllers nobody would take the taint off new nodes, or make service accounts.
FLAGS = (
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority",
    *("--max-requests-inflight=1000", "--max-mutating-requests-inflight=600", "--audit-log-mode=batch"),
)
LOADS = ("steady-plain", "steady-mixed", "steady-waiting", "burst-plain", "burst-mixed")
START_HEADER = ("SCHEDULER", "NODES", "PODS", "START S", "PROCESSOR S", "MOST MIB", "READS")
HEADER = ("LOAD", "SCHEDULER", "MS A POD", "RATIO", "P50 MS", "P99 MS", "PODS/S", "MIB", "READS", "WRITES A POD")


class LiveRow(Value, kw_only=True):
    who: str
    ms_a_pod: float
    mib: float
    found: LiveFigures


class LiveBench:
    """One cluster, in which the contenders run one after the other."""

    def __init__(self, plane: ControlPlane, load: Load, given: argparse.Namespace) -> None:
        self._plane = plane
        self._load = load
        self._given = given
        self._runs = 0

    async def steady(self, who: str, kind: str, *, waiting: int = 0) -> LiveRow:
        """50 pods a second. `waiting`: so many pods fit nowhere, and were refused before."""
        count, name = self._given.pods, NAMES[who]
        scheduler = self._start(who)
        await scheduler.quiet()
        if waiting:
            await self._load.pods(list(pods("huge", waiting, kind="huge", scheduler=name)))
            await scheduler.quiet()
        before, at = scheduler.processor_seconds(), self._plane.audit_log.stat().st_size
        await self._load.pods(list(pods("pod", count, kind=kind, scheduler=name)), rate=50.0)
        await self._load.all_bound(but=waiting, seconds=600, is_alive=scheduler.is_alive)
        return await self._end(scheduler, before, at, count)

    async def burst(self, who: str, kind: str) -> LiveRow:
        count, name = self._given.burst, NAMES[who]
        idle = self._start(who)
        await idle.quiet()
        start = idle.processor_seconds()
        idle.stop()
        await self._load.pods(list(pods("pod", count, kind=kind, scheduler=name)))
        at = self._plane.audit_log.stat().st_size
        scheduler = self._start(who)
        await self._load.all_bound(but=0, seconds=900, is_alive=scheduler.is_alive)
        return await self._end(scheduler, start, at, count)

    async def start(self, who: str) -> list[str]:
        """The cells of a row, until one pod is bound."""
        at = self._plane.audit_log.stat().st_size
        await self._load.pods(list(pods("pod", 1, kind="plain", scheduler=NAMES[who])))
        began = time.time()
        scheduler = self._start(who)
        await self._load.bound("pod-000000", is_alive=scheduler.is_alive)
        used, memory = scheduler.processor_seconds(), scheduler.most_mib()
        scheduler.stop()
        await asyncio.sleep(2)  # the log is written in batches
        found = figures(self._plane.audit_events(at), "pod")
        await self._load.delete("pod-000000")
        cells = (f"{found.first_bound_at - began:.1f}", f"{used:.1f}", f"{memory:.0f}", str(_reads(found)))
        return [CALLED[who], f"{self._given.nodes:,}", f"{self._given.placed:,}", *cells]

    async def landed(self, who: str) -> dict[str, str]:
        """Where mixed pods land, with all nodes scored on one thread.

        Nodes and pods are created one after the other while the scheduler runs. kube-scheduler takes the nodes that
        exist when it starts in random order, and the order decides between nodes of equal score.
        """
        await self._load.empty("/api/v1/nodes")
        scheduler = self._start(who, is_exact=True)
        await scheduler.quiet()
        await self._load.nodes(self._given.nodes)
        await scheduler.quiet()
        await self._load.in_order(list(pods("pod", self._given.landings, kind="mixed", scheduler=NAMES[who])))
        await self._load.all_bound(but=0, seconds=900, is_alive=scheduler.is_alive)
        found = await self._load.landings()
        scheduler.stop()
        await self._load.empty()
        return found

    def _start(self, who: str, *, is_exact: bool = False) -> Contender:
        self._runs += 1
        return Contender(self._plane, who, self._runs, is_exact=is_exact)

    async def _end(self, scheduler: Contender, before: float, at: int, count: int) -> LiveRow:
        await scheduler.quiet()  # the last Events are written
        used, memory = scheduler.processor_seconds() - before, scheduler.resident_mib()
        scheduler.stop()
        await asyncio.sleep(2)  # the log is written in batches
        found = figures(self._plane.audit_events(at), "pod")
        await self._load.empty()
        return LiveRow(who=scheduler.who, ms_a_pod=used * 1000 / count, mib=memory, found=found)


def lines(load: str, rows: Sequence[LiveRow]) -> list[str]:
    """The rows of one load, of which the last is kube-scheduler's."""
    return ["| " + " | ".join(_cells(load, row, rows[-1])) + " |" for row in rows]


def _cells(load: str, row: LiveRow, reference: LiveRow) -> list[str]:
    found = row.found
    writes = sum(number for call, number in found.calls.items() if call.split()[0] in ("create", "patch", "delete"))
    is_steady = load.startswith("steady")
    return [
        load,
        CALLED[row.who],
        f"{row.ms_a_pod:.2f}",
        f"{row.ms_a_pod / reference.ms_a_pod:.2f}",
        *((f"{found.latency_ms(0.5):.1f}", f"{found.latency_ms(0.99):.0f}") if is_steady else ("", "")),
        f"{found.bindings_per_second:.0f}",
        f"{row.mib:.0f}",
        str(_reads(found)),
        f"{writes / found.bound:.2f}",
    ]


def _reads(found: LiveFigures) -> int:
    return sum(number for call, number in found.calls.items() if call.split()[0] in ("get", "list", "watch"))


async def run(plane: ControlPlane, given: argparse.Namespace) -> None:
    load = Load(plane.folder / "admin.kubeconfig")
    bench = LiveBench(plane, load, given)
    try:
        if given.placed:
            await _starts(bench, load, given)
            return
        if given.landings:
            await _compare(bench, given)
        else:
            await load.nodes(given.nodes)
        await load.pods(placed(given.filled, given.nodes))
        print("\n| " + " | ".join(HEADER).lower() + " |\n" + "|---" * len(HEADER) + "|", flush=True)
        for name in given.only or LOADS:
            rows = [await _measured(bench, who, name, given) for who in ("careen", "kube")]
            print("\n".join(lines(name, rows)), flush=True)
    finally:
        load.close()


async def _starts(bench: LiveBench, load: Load, given: argparse.Namespace) -> None:
    await load.nodes(given.nodes)
    await load.pods(placed(given.placed, given.nodes))
    print("\n| " + " | ".join(START_HEADER).lower() + " |\n" + "|---" * len(START_HEADER) + "|", flush=True)
    for who in ("careen", "kube"):
        print("| " + " | ".join(await bench.start(who)) + " |", flush=True)


async def _compare(bench: LiveBench, given: argparse.Namespace) -> None:
    ours, theirs = [await bench.landed(who) for who in ("careen", "kube")]
    other = sorted(name for name in theirs if ours.get(name) != theirs[name])
    print(
        f"Landings of {given.landings} mixed pods: {len(theirs) - len(other)} of {len(theirs)} are equal.", flush=True
    )
    for name in other[:5]:
        print(f"* {name}: careen scheduler {ours.get(name)}, kube-scheduler {theirs[name]}", flush=True)


async def _measured(bench: LiveBench, who: str, name: str, given: argparse.Namespace) -> LiveRow:
    what, kind = name.split("-")
    if what == "burst":
        return await bench.burst(who, kind)
    return await bench.steady(who, *(("plain",) if kind == "waiting" else (kind,)), waiting=_waiting(kind, given))


def _waiting(kind: str, given: argparse.Namespace) -> int:
    return int(given.waiting) if kind == "waiting" else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1500, help="pods of a steady load")
    parser.add_argument("--burst", type=int, default=4000, help="pods of a burst")
    parser.add_argument("--waiting", type=int, default=2000, help="pods that fit nowhere, in steady-waiting")
    parser.add_argument("--landings", type=int, default=2000, help="pods whose nodes are compared; 0 for none")
    parser.add_argument("--only", nargs="*", choices=LOADS)
    parser.add_argument("--filled", type=int, default=0, help="mixed pods on the nodes before the loads")
    parser.add_argument("--placed", type=int, default=0, help="pods on the nodes of a start; nothing else is measured")
    given = parser.parse_args()
    words = f"--nodes {given.nodes} --pods {given.pods} --burst {given.burst} --landings {given.landings}"
    words += f" --filled {given.filled}" if given.filled else ""
    words = f"--nodes {given.nodes} --placed {given.placed}" if given.placed else words
    command = f"`python -m bench.scheduler_live {words}`"
    print(f"# careen's scheduler beside kube-scheduler\n\n{command}, {os.cpu_count()} cores.\n", flush=True)
    start: Callable[..., ControlPlane] = lambda folder, guardian: ControlPlane(  # noqa: E731
        folder, guardian=guardian, audit_policy=POLICY, api_server_flags=FLAGS, is_bare=True
    )
    with a_control_plane("live", start) as plane:
        asyncio.run(run(plane, given))


if __name__ == "__main__":
    main()

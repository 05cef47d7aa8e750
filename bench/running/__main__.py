"""Measures what the scheduling machine costs for each pod that it binds, without HTTP: every answer comes at once.

    python -m bench.running [--nodes 1000 5000] [--bind 3000] [--waiting 10000]

The cluster is that of the scheduler's bench, with 30 pods a node, read from its list pages; the pods to bind belong to
its applications in turn. *mixed*: a quarter each with spread constraints, required anti-affinity, preferred
(anti-)affinity and no rule; *plain*: no rule. A pod's way has four events of its watch (added; after the binding twice
pending, then running), one cycle and one Bind. *waiting*: so many pods that fit nowhere have been refused before.

Times are processor milliseconds of one thread for each bound pod. *cycle*: the decision with its snapshot; *cache*: the
events, with their JSON; *queue* and *assume*: the calls of these parts; *sum*: the four together; *all*: the whole
machine, with its commands. *gc*: what the garbage collector took of these times. *pause*: the longest piece of a relist
of all pods, in milliseconds. Memory is that of the whole process with its events, after the lists and at the end.
Each row is a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.scheduler import cluster
from scheduler_core.cache.events import Sync
from scheduler_core.cycle import Scheduler
from scheduler_core.running import machine as machine_module
from scheduler_core.running.commands import Bind, Commands, WriteStatus
from scheduler_core.running.failures import WriteOutcome
from scheduler_core.running.machine import Machine

QUEUE_CALLS = ("add", "update", "delete", "move_all", "pop", "done", "add_unschedulable", "flush_backoff")
SECTIONS = ("cycle", "cache", "queue", "assume", "sum", "all", "gc")
WARM_UP = 200
HEADER = ("NODES", "PODS", "KIND", "WAITING", *SECTIONS, "PAUSE", "LISTED MIB", "END MIB", "PLACEMENTS")
DONE = WriteOutcome(code=201)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[1000, 5000])
    parser.add_argument("--kinds", nargs="*", choices=["plain", "mixed"], default=["plain", "mixed"])
    parser.add_argument("--bind", type=int, default=3000, help="number of pods to bind and to measure")
    parser.add_argument("--waiting", type=int, default=10_000, help="pods that fit nowhere in the last rows; 0: no row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "careen-bench-cache")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(MeasuredRun(json.loads(given.one)).measured()))
        return
    print("# The scheduling machine\n")
    command = " ".join(["python -m bench.running", *sys.argv[1:]])
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    print(f"`{command}`, Python {sys.version.split()[0]}; load average {load}.\n")
    print("| " + " | ".join(name.lower() for name in HEADER) + " |")
    print("|" + "---|" * len(HEADER))
    for nodes, kind, waiting in _rows(given):
        row = {"nodes": nodes, "kind": kind, "waiting": waiting, "bind": given.bind, "seed": given.seed}
        found = _in_a_process({**row, "folder": str(given.folder)})
        print("| " + " | ".join(found[name] for name in HEADER) + " |", flush=True)


def _rows(given: argparse.Namespace) -> Iterator[tuple[int, str, int]]:
    for nodes in given.nodes:
        for kind in given.kinds:
            yield nodes, kind, 0
        if given.waiting:
            yield nodes, given.kinds[-1], given.waiting


def _in_a_process(row: Mapping[str, Any]) -> dict[str, str]:
    command = [sys.executable, "-m", "bench.running", "--one", json.dumps(row)]
    found: dict[str, str] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


class Watch:
    """The processor nanoseconds of this thread by section."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._collector = 0
        gc.callbacks.append(self._collected)

    def over(self, section: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time_ns()
            try:
                return call(*args, **kwargs)
            finally:
                self.spent[section] += time.thread_time_ns() - began

        return timed

    def _collected(self, phase: str, _: Mapping[str, int]) -> None:
        if phase == "start":
            self._collector = time.thread_time_ns()
        else:
            self.spent["gc"] += time.thread_time_ns() - self._collector


class MeasuredRun:
    """One row."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = row
        self._now = 0.0
        self._version = 1_000_000
        self._place = Path(row["folder"]) / f"{row['nodes']}-{row['seed']}"
        self._placed = hashlib.sha256()
        self._applications = cluster._applications(row["nodes"])
        cluster.write(self._place, nodes=row["nodes"], seed=row["seed"])
        self._watch = Watch()
        self._machine = Machine(Scheduler())

    def measured(self) -> dict[str, str]:
        for kind in cluster.LISTS:
            self._list(kind)
        listed = _resident()
        gc.collect()
        gc.freeze()
        self._take_sections()
        self._let_wait(self._row["waiting"])
        for number in range(WARM_UP + self._row["bind"]):
            if number == WARM_UP:
                self._watch.spent.clear()
            self._bind(number)
        spent = {name: self._watch.spent[name] / 1e6 / self._row["bind"] for name in SECTIONS}
        spent["sum"] = sum(spent[name] for name in ("cycle", "cache", "queue", "assume"))
        end = _resident()
        return {
            "NODES": f"{self._row['nodes']:,}",
            "PODS": f"{self._row['nodes'] * cluster.PODS_PER_NODE:,}",
            "KIND": self._row["kind"],
            "WAITING": f"{self._row['waiting']:,}",
            **{name: f"{spent[name]:.3f}" for name in SECTIONS},
            "PAUSE": f"{self._list('Pod'):.0f}",
            "LISTED MIB": str(listed),
            "END MIB": str(end),
            "PLACEMENTS": self._placed.hexdigest()[:8],
        }

    def _list(self, kind: str) -> float:
        """The longest piece of the list, in processor milliseconds."""
        pages = (path.read_bytes() for path in sorted(self._place.glob(f"{cluster.LISTS[kind]}-*.json")))
        self._machine.take(Sync(kind, pages), self._now)
        longest = 0
        while self._machine.is_listing(kind):
            began = time.thread_time_ns()
            self._machine.next(self._now)
            longest = max(longest, time.thread_time_ns() - began)
        return longest / 1e6

    def _take_sections(self) -> None:
        over, machine, parts = self._watch.over, self._machine, self._machine.parts
        self._set(machine, "all", "take", "next", "answered")
        machine._cycle = over("cycle", machine._cycle)  # type: ignore[method-assign]
        self._set(machine_module, "cache", "read_event")
        self._set(parts.cache, "cache", "apply_read")
        self._set(parts.cache, "assume", "assume")
        self._set(parts.queue, "queue", *QUEUE_CALLS)

    def _set(self, owner: object, section: str, *names: str) -> None:
        for name in names:
            setattr(owner, name, self._watch.over(section, getattr(owner, name)))

    def _let_wait(self, count: int) -> None:
        for number in range(count):
            pod = self._pod(10_000_000 + number)
            pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
            self._machine.take(self._line("ADDED", pod), self._now)
        while self._machine.has_work:
            self._answer(self._machine.next(self._now))
        self._now += 60
        self._machine.tick(self._now)

    def _bind(self, number: int) -> None:
        pod = self._pod(number)
        self._answer(self._machine.take(self._line("ADDED", pod), self._now))
        node = ""
        while self._machine.has_work and not node:
            node = self._answer(self._machine.next(self._now))
        self._now += 0.001
        if not node:
            raise SystemExit(f"no node for pod {pod['metadata']['name']}")
        pod["spec"]["nodeName"] = node
        for phase in ("Pending", "Pending", "Running"):
            is_running = str(phase == "Running")
            pod["status"] = {
                "phase": phase,
                "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": is_running}],
                "containerStatuses": [{"name": "c", "ready": phase == "Running"}],
                "podIP": "10.0.0.1",
            }
            self._answer(self._machine.take(self._line("MODIFIED", pod), self._now))

    def _answer(self, commands: Commands) -> str:
        """The node of a Bind among the commands."""
        node = ""
        for command in commands:
            if isinstance(command, Bind):
                node = command.node
                self._placed.update(f"{command.pod} {node}\n".encode())
            if isinstance(command, (Bind, WriteStatus)):
                self._version += 1
                self._machine.answered(
                    command, DONE if node else WriteOutcome(code=200, version=self._version), self._now
                )
        return node

    def _pod(self, number: int) -> dict[str, Any]:
        kinds = len(cluster.KINDS)
        kind = number % kinds if self._row["kind"] == "mixed" else cluster.KINDS.index("plain")
        pod = cluster._pod(number * kinds % self._applications // kinds * kinds + kind, f"new-{number}")
        pod["status"] = {"phase": "Pending", "qosClass": "Burstable"}
        return pod

    def _line(self, kind: str, pod: Mapping[str, Any]) -> bytes:
        self._version += 1
        pod["metadata"]["resourceVersion"] = str(self._version)
        written = {"type": kind, "object": {"apiVersion": "v1", "kind": "Pod", **pod}}
        return json.dumps(written, separators=(",", ":")).encode()


def _resident() -> int:
    """MiB."""
    gc.collect()
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) // 1024


if __name__ == "__main__":
    main()

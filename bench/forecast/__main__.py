"""Measures one node's forecast in a fresh process: from a dump, and from a real API server with the same cluster.

    python -m bench.forecast [--nodes 100 --nodes 5000] [--from files] [--runs 3]

The bench measures the whole command `careen forecast NODE`, from the start of its process to its end: elapsed seconds,
processor seconds of the command and its child process together, and the resident memory of the larger process. It also
measures the requests for the lists and their bytes, and by how much two forecasts increase an agent's memory. Modules
have their bytecode, as in an installation by pip and in the image. `--without-bytecode` measures a fresh clone that
cannot write bytecode.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.scheduler import cluster
from careen.agent.clock import SystemClock
from careen.cluster.snapshot_reader import pages, server_version
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.client import connect
from careen.cluster.wire.transport import Request, Response
from careen.report.tables import table
from scheduler_core.snapshot.dump import Header, write_dump

NODE = cluster.node_name(0)
HEADER = ["NODES", "PODS", "FROM", "SECONDS", "CPU S", "PEAK MIB", "PODS FORECAST"]


@dataclass(frozen=True, slots=True)
class ForecastCost:
    """One run of `careen forecast`."""

    seconds: float
    processor_seconds: float
    peak_mib: float
    pods: int


def main() -> None:
    """A row for each cluster and source (dump or API server), the requests to the server, the agent's memory after
    forecasts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--nodes", type=int, action="append", help="number of nodes of the cluster; repeatable; by default 100 and 5000"
    )
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        choices=["files", "server"],
        help="source of the cluster: `files` (a dump) or `server` (a kube-apiserver, which `make cluster-programs` "
        "builds with Go); give the option once for each source; by default both sources",
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "careen-bench-forecast",
        help="folder that keeps the clusters for the next run",
    )
    parser.add_argument("--without-bytecode", action="store_true", help="compile every module of careen in every run")
    given = parser.parse_args()
    environment = _environment(given.folder / "bytecode", has_bytecode=not given.without_bytecode)
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; each figure is the median "
        f"of {given.runs} runs\n"
    )
    rows = []
    for nodes in given.nodes or [100, 5000]:
        folder = given.folder / f"{nodes}-{given.seed}"
        cluster.write(folder, nodes=nodes, seed=given.seed)
        for source in given.sources or ["files", "server"]:
            with (from_files if source == "files" else from_server)(folder) as (arguments, told):
                cost(arguments, environment)  # writes the bytecode and reads the files once
                rows.append(_row(nodes, source, [cost(arguments, environment) for _ in range(given.runs)]))
                for line in (*told, left_behind(arguments)):
                    print(f"{nodes:,} nodes, read from {source}: {line}", flush=True)
    print("", table(HEADER, rows), sep="\n")


def _row(nodes: int, source: str, costs: list[ForecastCost]) -> list[str]:
    def middle(values: Iterator[float]) -> float:
        return median(values)

    return [
        f"{nodes:,}",
        f"{nodes * cluster.PODS_PER_NODE:,}",
        source,
        f"{middle(each.seconds for each in costs):.1f}",
        f"{middle(each.processor_seconds for each in costs):.1f}",
        f"{max(each.peak_mib for each in costs):.0f}",
        str(costs[0].pods),
    ]


def _environment(folder: Path, *, has_bytecode: bool) -> dict[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    }
    return inherited | ({"PYTHONPYCACHEPREFIX": str(folder)} if has_bytecode else {"PYTHONDONTWRITEBYTECODE": "1"})


def cost(arguments: list[str], environment: dict[str, str]) -> ForecastCost:
    """Runs `careen forecast` once. The kernel's counters measure the command and its child process."""
    began = time.monotonic()
    command = [sys.executable, "-m", "careen", "forecast", NODE, *arguments, "--timeout=600", "--output=json"]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)  # the process is reaped: no other code may wait for it
        if process.returncode not in (0, 3):
            raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
        output.seek(0)
        answer = json.load(output)
    return ForecastCost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, len(answer["pods"]))


def left_behind(arguments: list[str]) -> str:
    """A sentence with the agent's resident memory before any, after one and after two forecasts, and the largest of
    a child."""
    flag, value = arguments[0].removeprefix("--").replace("from", "dump"), arguments[1]
    told = json.loads(
        subprocess.run(
            [sys.executable, "-m", "bench.forecast.resident", NODE, f"--{flag}", value], check=True, capture_output=True
        ).stdout
    )
    before, first, second = told["resident_mib"]
    has_or_has_not = "has" if told["has_numpy"] else "has not"
    return (
        f"the agent's resident memory is {before} MiB before a forecast, {first} MiB after one forecast and {second} "
        f"MiB after two; the agent {has_or_has_not} loaded numpy; the process of a forecast used at most "
        f"{told['peak_of_children_mib']} MiB"
    )


@contextmanager
def from_files(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Writes the bench's cluster as `careen snapshot` does, and yields the options to read it."""
    dump = folder / "dump.json.gz"
    if not dump.exists():
        with dump.open("wb") as file:
            write_dump(Header(kube_version="v1.36.0", taken_at="2026-01-01T00:00:00Z"), bodies(folder), file)
    yield ["--from", str(dump)], [f"the dump has {dump.stat().st_size:,} bytes"]


@contextmanager
def from_server(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Runs a real kube-apiserver with the bench's cluster. Yields the options to read it, and a sentence about the
    requests for that."""
    from bench.forecast.store import FilledControlPlane
    from tests.cluster.harness.machines.control_plane import a_control_plane

    with a_control_plane(
        "bench-forecast", lambda place, guardian: FilledControlPlane(place, bodies(folder), guardian=guardian)
    ) as plane:
        kubeconfig = plane.folder / "admin.kubeconfig"
        yield ["--kubeconfig", str(kubeconfig)], [asyncio.run(asked(kubeconfig))]


async def asked(kubeconfig: Path) -> str:
    """Reads the cluster as a forecast's child does: a sentence with the number of requests, their bytes and the
    time."""
    counted: list[tuple[str, int]] = []

    def count(request: Request, response: Response | None) -> None:
        counted.append((request.path, 0 if response is None else len(response.body)))

    transport = connect(kubeconfig, part="bench")
    api = ClusterApi(transport, SystemClock(), chance=random.random, observer=count)
    began = time.monotonic()
    await server_version(api)
    async for _ in pages(api):
        pass
    took = time.monotonic() - began
    transport.close()
    pods = sum(1 for path, _ in counted if path.endswith("/pods"))
    return (
        f"{len(counted)} requests ({pods} pages of pods), {sum(size for _, size in counted):,} bytes of "
        f"JSON; reading them took {took:.1f} s"
    )


def bodies(folder: Path) -> Iterator[bytes]:
    """The JSON text of the list pages, one by one."""
    for path in sorted(folder.glob("*.json")):
        yield path.read_bytes()


if __name__ == "__main__":
    main()

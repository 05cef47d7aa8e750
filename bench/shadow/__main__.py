"""Measures `careen shadow` by the size of the cluster: memory, processor time, and requests to the API server.

    python -m bench.shadow [--nodes 100 1000 5000] [--seconds 60] [--pods 5]

The cluster is that of the scheduler's bench, 30 pods a node; the bench's process serves the cluster as list pages and
watches. The shadow is a separate process, and only its figures count. While the shadow follows the cluster, `--pods`
pods a second are created, bound to random nodes, and started. So nearly every binding is a disagreement, which costs
more than an agreement. Processor time is that of all the shadow's threads. The columns "lists: requests", "mb" and
"processor s" show what the shadow needs until it follows the cluster: the number of requests without watches, the size
of the lists in megabytes, and the processor time, including the start of Python.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

from bench.scheduler import cluster
from bench.shadow import learner

ROOT = Path(__file__).resolve().parents[2]
STEMS = {
    "nodes": ("0-nodes", "Node"),
    "namespaces": ("1-namespaces", "Namespace"),
    "services": ("2-services", "Service"),
    "replicasets": ("3-replicasets", "ReplicaSet"),
    "pods": ("4-pods", "Pod"),
}
LEARNER = f"""## The learner alone

`careen shadow` learns from bindings where the scheduler's next search starts. Here it learns from {learner.BINDINGS}
bindings, and does not know where the first search starts. *Searches*: the number of possible searches that the learner
follows. *Ms*: the processor time to predict one binding and to learn from this binding. *Without learning*: the
processor time of one decision. *Kept*: the memory of what was learned."""
HEADER = (
    "NODES", "PODS", "LISTS: REQUESTS", "MB", "PROCESSOR S", "PODS/S", "EVENTS/S", "KB/S", "PROCESSOR %",
    "RSS MIB", "PEAK MIB", "COMPARED", "BEHIND",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 1000, 5000])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument(
        "--pods", type=float, nargs="*", default=[1.0], help="number of pods that are bound in one second"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "careen-bench-shadow")
    given = parser.parse_args()
    words = " ".join(map(str, given.nodes))
    rates = " ".join(f"{each:g}" for each in given.pods)
    command = f"python -m bench.shadow --nodes {words} --seconds {given.seconds} --pods {rates}"
    print(f"# What `careen shadow` costs\n\n`{command}` on {os.cpu_count()} cores.\n")
    print("| " + " | ".join(name.lower() for name in HEADER) + " |")
    print("|" + "---|" * len(HEADER), flush=True)
    for nodes in given.nodes:
        for pods in given.pods:
            row = asyncio.run(Bench(given.folder, nodes, pods).run(given.seconds))
            print("| " + " | ".join(row) + " |", flush=True)
    print(f"\n{LEARNER}\n")
    print("| " + " | ".join(name.lower() for name in learner.HEADER) + " |")
    print("|" + "---|" * len(learner.HEADER), flush=True)
    for row in learner.rows(given.folder, given.nodes):
        print("| " + " | ".join(row) + " |", flush=True)


class Bench:
    """One size of cluster."""

    def __init__(self, folder: Path, nodes: int, rate: float) -> None:
        place = folder / f"{nodes}-1"
        cluster.write(place, nodes=nodes, seed=1)
        self.nodes = nodes
        self.rate = rate
        self.pages = {plural: sorted(place.glob(f"{stem}-*.json")) for plural, (stem, _) in STEMS.items()}
        self.requests = self.bytes = self.events = self.event_bytes = 0
        self.watches: dict[str, asyncio.Queue[bytes]] = {}
        self.version = 1000
        self.url = ""

    async def run(self, seconds: int) -> list[str]:
        """A row of the table."""
        application = web.Application()
        application.router.add_route("GET", "/{path:.*}", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.2)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            return await self._measured(seconds)
        finally:
            await runner.cleanup()

    async def _measured(self, seconds: int) -> list[str]:
        with tempfile.TemporaryDirectory() as scratch:
            shadow = self._started(Path(scratch))
            errors = Path(scratch) / "errors"
            while "follows" not in errors.read_text():
                assert shadow.poll() is None, errors.read_text()
                await asyncio.sleep(0.1)
            requests, size = self.requests, self.bytes
            at_start = _processor_seconds(shadow.pid)
            since = time.monotonic()
            pods = await self._lives(seconds)
            await asyncio.sleep(2)
            passed, used = time.monotonic() - since, _processor_seconds(shadow.pid) - at_start
            memory, peak = _memory(shadow.pid)
            shadow.send_signal(signal.SIGTERM)
            while shadow.poll() is None:
                await asyncio.sleep(0.1)
            said = json.loads((Path(scratch) / "output").read_text())
        reasons: dict[str, int] = said["profiles"][0]["reasons"] if said["profiles"] else {}
        return [
            f"{self.nodes:,}",
            f"{said['pods']:,}",
            str(requests),
            f"{size / 1e6:.1f}",
            f"{at_start:.1f}",
            f"{pods / passed:.1f}",
            f"{self.events / passed:.1f}",
            f"{self.event_bytes / passed / 1e3:.1f}",
            f"{100 * used / passed:.0f}",
            str(memory),
            str(peak),
            str(said["agreed"] + said["disagreed"]),
            str(reasons.get("behind", 0)),
        ]

    def _started(self, scratch: Path) -> subprocess.Popen[bytes]:
        kubeconfig = scratch / "kubeconfig"
        kubeconfig.write_text(
            "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {token: t}}], contexts: "
            "[{name: c, context: {cluster: s, user: u}}], clusters: [{name: s, cluster: "
            f"{{server: '{self.url}'}}}}]}}"
        )
        with (scratch / "output").open("wb") as output, (scratch / "errors").open("wb") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "careen", "shadow", "--kubeconfig", str(kubeconfig), "--output", "json"],
                stdout=output,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'operator'}{os.pathsep}{ROOT}"},
            )

    # ---- the server ----

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.rsplit("/", 1)[-1]
        self.requests += "watch" not in request.query
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.36.3"})
        if plural not in self.pages:
            return _no_such_thing()
        if "watch" in request.query:
            return await self._watch(request, plural)
        number = int(request.query.get("continue") or 0)
        pages = self.pages[plural]
        body = json.loads(pages[number].read_bytes()) if pages else _empty(STEMS[plural][1])
        body["metadata"] = {
            "resourceVersion": "1000",
            "continue": str(number + 1) if number + 1 < len(pages) else "",
        }
        for item in body["items"]:
            item["metadata"] |= {"resourceVersion": "999", "uid": f"uid-{item['metadata']['name']}"}
        text = json.dumps(body).encode()
        self.bytes += len(text)
        return web.Response(body=text, content_type="application/json")

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        queue = self.watches[plural] = asyncio.Queue()
        while True:
            try:
                line = await asyncio.wait_for(queue.get(), 30)
            except TimeoutError:
                line = json.dumps({"type": "BOOKMARK", "object": _bookmark(STEMS[plural][1], self.version)}).encode()
            self.events += 1
            self.event_bytes += len(line)
            await response.write(line + b"\n")

    # ---- events ----

    async def _lives(self, seconds: int) -> int:
        """Sends the events of new pods, which are created, bound and started one after another. Returns their
        number."""
        chance, ends, number = random.Random(1), time.monotonic() + seconds, 0
        while time.monotonic() < ends:
            node = chance.randrange(self.nodes)
            for event, where, is_running in (
                ("ADDED", None, False),
                ("MODIFIED", node, False),
                ("MODIFIED", node, True),
            ):
                self._tell(event, number, where, is_running=is_running)
                await asyncio.sleep(0.005)
            number += 1
            await asyncio.sleep(max(0.0, 1.0 / self.rate - 0.015))
        return number

    def _tell(self, event: str, number: int, node: int | None, *, is_running: bool) -> None:
        self.version += 1
        pod = cluster.pod_at(node, app=number % 50, suffix=f"new{number}", is_running=is_running)
        pod["metadata"] |= {"resourceVersion": str(self.version), "uid": f"uid-new-{number}"}
        pod |= {"kind": "Pod", "apiVersion": "v1"}
        self.watches["pods"].put_nowait(json.dumps({"type": event, "object": pod}).encode())


def _empty(kind: str) -> dict[str, Any]:
    return {"kind": f"{kind}List", "apiVersion": "apps/v1" if kind == "ReplicaSet" else "v1", "items": []}


def _bookmark(kind: str, version: int) -> dict[str, Any]:
    api_version = "apps/v1" if kind == "ReplicaSet" else "v1"
    return {"kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": str(version)}}


def _no_such_thing() -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
    return web.json_response(status, status=404)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> tuple[int, int]:
    """Current and peak resident memory in MiB."""
    found = dict(_lines(Path(f"/proc/{pid}/status")))
    return int(found["VmRSS"]) // 1024, int(found["VmHWM"]) // 1024


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        yield name, (value.split() or [""])[0]


if __name__ == "__main__":
    main()

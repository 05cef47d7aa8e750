"""Makes nodes and pods on a real API server, on one event loop."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bench.scheduler import cluster
from careen.cluster.wire.client import ServerAccess
from careen.scheduler.wire.lanes import HttpAnswer, HttpCall, Lane
from careen.scheduler.wire.server import Server

PODS = "/api/v1/namespaces/default/pods"
APPLICATIONS = 40
_PLACED = "placed"  # the label of pods that stay


class Load:
    """Requests with the administrator's rights."""

    def __init__(self, kubeconfig: Path) -> None:
        server = Server(ServerAccess(kubeconfig), agent="load", monotonic=time.monotonic)
        self._lane = Lane(server, connections=16, deadline_seconds=300.0)

    def close(self) -> None:
        self._lane.close()

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        answered: asyncio.Future[HttpAnswer] = asyncio.get_running_loop().create_future()
        data = None if body is None else json.dumps(body).encode()
        self._lane.send(HttpCall(method=method, path=path, body=data), answered.set_result)  # type: ignore[arg-type]
        answer = await answered
        if not 200 <= answer.status < 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.body[:300]!r}")
        return json.loads(answer.body)

    async def nodes(self, count: int) -> None:
        """One after the other."""
        await self._in_order("/api/v1/nodes", [node(number) for number in range(count)])

    async def pods(self, pods: Iterable[dict[str, Any]], *, rate: float = 0.0) -> None:
        """`rate`: how many a second; 0 as fast as the server takes them."""
        if not rate:
            await self._all(PODS, pods)
            return
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number, each in enumerate(pods):
                await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
                tasks.create_task(self.ask("POST", PODS, each))

    async def in_order(self, pods: Sequence[dict[str, Any]]) -> None:
        """One after the other."""
        await self._in_order(PODS, pods)

    async def landings(self) -> dict[str, str]:
        """The node of each pod that has one."""
        listed = await self.ask("GET", f"{PODS}?resourceVersion=0")
        found = ((each["metadata"]["name"], each["spec"].get("nodeName", "")) for each in listed["items"])
        return {name: where for name, where in found if where}

    async def all_bound(self, *, but: int, seconds: float, is_alive: Callable[[], None]) -> None:
        """Waits until only `but` pods have no node."""
        end = time.monotonic() + seconds
        while True:
            is_alive()
            page = await self.ask("GET", f"{PODS}?fieldSelector=spec.nodeName%3D&limit=1")
            left = len(page["items"]) + page["metadata"].get("remainingItemCount", 0)
            if left <= but:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"{left} pods still have no node")
            await asyncio.sleep(0.25)

    async def empty(self, *more: str) -> None:
        """No pods but placed ones, no Events, and nothing on the paths of other lists."""
        events = "/apis/events.k8s.io/v1/namespaces/default/events?"
        for path in (f"{PODS}?labelSelector=%21{_PLACED}&", events, *(f"{each}?" for each in more)):
            while (await self.ask("GET", f"{path}limit=1"))["items"]:
                await self.ask("DELETE", f"{path}limit=200&gracePeriodSeconds=0")

    async def bound(self, pod: str, *, is_alive: Callable[[], None]) -> None:
        """Waits until the pod has a node."""
        while "nodeName" not in (await self.ask("GET", f"{PODS}/{pod}"))["spec"]:
            is_alive()
            await asyncio.sleep(0.1)

    async def delete(self, pod: str) -> None:
        await self.ask("DELETE", f"{PODS}/{pod}?gracePeriodSeconds=0")

    async def _in_order(self, path: str, bodies: Sequence[dict[str, Any]]) -> None:
        for each in bodies:
            await self.ask("POST", path, each)

    async def _all(self, path: str, bodies: Iterable[dict[str, Any]]) -> None:
        left = iter(bodies)
        while part := list(islice(left, 200)):
            await asyncio.gather(*(self.ask("POST", path, each) for each in part))


def node(number: int) -> dict[str, Any]:
    """As a person would create it: the server writes the rest."""
    found = cluster.node_object(number, seed=1)
    meta = {key: found["metadata"][key] for key in ("name", "labels")}
    return {**found, "metadata": meta}


def pods(prefix: str, count: int, *, kind: str, scheduler: str) -> Iterator[dict[str, Any]]:
    """`kind`: plain; mixed, a quarter each of plain pods and those with a zone spread, a required anti-affinity and a
    preferred affinity; or huge pods, which fit nowhere."""
    for number in range(count):
        yield _pod(f"{prefix}-{number:06d}", number, kind=kind, scheduler=scheduler)


def placed(count: int, nodes: int) -> Iterator[dict[str, Any]]:
    """Mixed pods of no scheduler, on the nodes in turn."""
    for number, pod in enumerate(pods("placed", count, kind="mixed", scheduler="nobody")):
        pod["metadata"]["labels"][_PLACED] = ""
        pod["spec"]["nodeName"] = cluster.node_name(number * nodes // count)
        yield pod


def _pod(name: str, number: int, *, kind: str, scheduler: str) -> dict[str, Any]:
    application = number % APPLICATIONS
    requests = {"cpu": "1000" if kind == "huge" else "100m", "memory": "128Mi"}
    wishes = cluster.wishes(cluster.KINDS[number % 4], application) if kind == "mixed" else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": f"app-{application}"}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "image": "registry.example/web:1", "resources": {"requests": requests}}],
            "terminationGracePeriodSeconds": 0,
            **wishes,
        },
    }

"""The embedded cluster as a whole: API server, controllers, scheduler, kubelets and hosts."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drydock.controllers import (
    budgets,
    daemon_sets,
    deployments,
    garbage,
    node_lifecycle,
    replica_sets,
    stateful_sets,
)
from drydock.controllers.control_loop import run_controllers
from drydock.controllers.ownership import PODS
from drydock.controllers.scheduler_loop import SchedulerLoop
from drydock.hosts.kubelets import Kubelets
from drydock.hosts.machines import Hosts, SimulatedHost
from drydock.rollout.patience import GaveUp, TimeLimit
from drydock.rollout.sample_cluster import mirror_pods, sample_nodes, sample_objects
from drydock.rollout.timings import Timings
from drydock.server.api_server import ApiServer, embedded_api
from drydock.server.evictions import pod_is_ready
from drydock.server.faults import FaultPlan, no_faults
from drydock.server.kinds.resources import BY_KIND, resource_named
from drydock.zoo.citizen import Citizen

CONTROLLERS = (
    deployments.CONTROLLER,
    replica_sets.CONTROLLER,
    stateful_sets.CONTROLLER,
    daemon_sets.CONTROLLER,
    budgets.CONTROLLER,
    node_lifecycle.CONTROLLER,
    garbage.CONTROLLER,
)
_SETTLE_LOOK_SECONDS = 0.1


class PartDied(Exception):
    """A part of the cluster failed, so the run shows nothing about the agents. The message names part and cause."""


@dataclass(slots=True, kw_only=True)
class EmbeddedCluster:
    """A running cluster. The demo sets `on_down` and `on_up` to kill and start the host's agent."""

    api: ApiServer
    hosts: Hosts
    on_down: Callable[[SimulatedHost], None] = field(default=lambda _host: None)
    on_up: Callable[[SimulatedHost], None] = field(default=lambda _host: None)
    # Ends with `PartDied` when the first part does.
    failure: asyncio.Future[None] | None = None

    async def wait_until_settled(self, seconds: float) -> None:
        """Waits until every pod is bound and ready. Raises `GaveUp`, with the unready pods, if nothing progresses
        within the limit."""
        patience = TimeLimit(seconds)
        while True:
            self.raise_if_broken_down()
            waiting = [
                f"{s.key[0]}/{s.key[1]}" for s in self.api.store.items(PODS.storage) if not pod_is_ready(s.content)
            ]
            if not waiting and self.api.store.count(PODS.storage):
                return
            if patience.is_over(len(waiting)):
                raise GaveUp(f"some pods are not ready after {patience.waited}: {', '.join(waiting)}")
            await asyncio.sleep(_SETTLE_LOOK_SECONDS)

    def raise_if_broken_down(self) -> None:
        if self.failure is not None and self.failure.done():
            self.failure.result()


@contextlib.asynccontextmanager
async def running_cluster(
    folder: Path,
    *,
    nodes: int,
    seed: int,
    timings: Timings | None = None,
    plan: FaultPlan = no_faults,
    port: int = 0,
    agent_arguments: Sequence[str] = (),
    citizens: Sequence[Citizen] = (),
    schedule: Callable[[str], Coroutine[Any, Any, None]] | None = None,
) -> AsyncIterator[EmbeddedCluster]:
    """Runs a cluster with the demo's workloads for the `async with` block; all hosts are up when the block begins.

    `citizens` of the zoo live beside the demo's workloads. No agent is started; careen's DaemonSet shows
    `agent_arguments` as its container's. `schedule` binds the pods of the API server at this URL, in place of the
    cluster's own loop.
    """
    pace, chance = timings or Timings(), random.Random(seed)
    api = embedded_api(clock=time.monotonic, wall_clock=lambda: datetime.now(UTC), seed=seed, plan=plan)
    await api.start(port)
    kubelets = Kubelets(api.verbs, pace, chance)
    manifests = sample_nodes(nodes)
    by_name = {name: SimulatedHost(name, folder / name, chance) for name in (m["metadata"]["name"] for m in manifests)}

    def down(host: SimulatedHost) -> None:
        kubelets.node_is_down(host.name)
        cluster.on_down(host)

    def up(host: SimulatedHost) -> None:
        kubelets.node_is_up(host.name, host.boot_id)
        cluster.on_up(host)

    hosts = Hosts(by_name, pace, chance, clock=time.monotonic, on_down=down, on_up=up)
    cluster = EmbeddedCluster(api=api, hosts=hosts)
    _create(api, manifests, nodes, agent_arguments)
    for host in by_name.values():
        kubelets.node_is_up(host.name, host.boot_id)
    for citizen in citizens:
        citizen.settle(api.verbs)
    theirs = (controller for citizen in citizens for controller in citizen.controllers)
    parts: dict[str, Coroutine[Any, Any, None]] = {
        "controllers": run_controllers(api.verbs, (*CONTROLLERS, *theirs)),
        "kubelets": kubelets.run(),
        "hosts": hosts.run(),
        "scheduler": SchedulerLoop(api.verbs).run() if schedule is None else schedule(api.url),
    }
    tasks = [asyncio.create_task(part, name=name) for name, part in parts.items()]
    cluster.failure = asyncio.ensure_future(_first_failure(tasks))
    try:
        yield cluster
    finally:
        cluster.failure.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, cluster.failure, return_exceptions=True)
        await api.stop()


async def _first_failure(tasks: list[asyncio.Task[None]]) -> None:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        if cause := task.exception():
            raise PartDied(f"the embedded cluster's {task.get_name()} died: {type(cause).__name__}: {cause}") from cause


def _create(api: ApiServer, nodes: list[dict[str, Any]], count: int, agent_arguments: Sequence[str]) -> None:
    for manifest in nodes:
        stored = api.verbs.create(resource_named("nodes"), "", manifest, actor="system:kubelet")
        for pod in mirror_pods(manifest, stored.content["metadata"]["uid"]):
            api.verbs.create(PODS, pod["metadata"]["namespace"], pod, actor="system:kubelet")
    for manifest in sample_objects(count, agent_arguments):
        resource = BY_KIND[manifest["apiVersion"], manifest["kind"]]
        api.verbs.create(resource, manifest["metadata"].get("namespace", ""), manifest, actor="admin")

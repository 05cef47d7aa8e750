"""Drains nodes of real clusters whose scheduler checks only a part of the nodes for each pod, and records these
drains."""

from __future__ import annotations

import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.accuracy.__main__ import DEFAULT_SCHEDULER
from bench.accuracy.records import DrainRecord, write
from tests.cluster.harness.api import Api, ApiError, Object
from tests.cluster.harness.machines.control_plane import ControlPlane, a_control_plane
from tests.cluster.harness.machines.processes import Guardian
from tests.cluster.harness.measures.drains import PODS, Drainer, apply, careen_engine
from tests.cluster.harness.measures.varied import VariedCluster, varied_cluster

# The client's rate limits do not affect where pods go; with the default ones, filling a cluster takes minutes.
SAMPLING_SCHEDULER = {**DEFAULT_SCHEDULER, "clientConnection": {"qps": 500, "burst": 1000}}
_YIELDING = {
    "multiPoint": {"enabled": [{"name": "Yielding"}]},
    "filter": {"enabled": [{"name": "Yielding"}]},  # named twice, it comes before all others
}
_EVALUATED = re.compile(rb'"Successfully bound pod to node".* evaluatedNodes=(\d+)')
_CHURN = "churn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterKind:
    title: str
    clusters: int = 1
    sizes: tuple[int, ...] = (200,)
    shape: Mapping[str, Any] = field(default_factory=dict)  # of `varied_cluster`
    scheduler: Mapping[str, Any] = field(default_factory=dict)
    processors: int = 0  # of the scheduler
    is_readded: bool = False
    has_churn: bool = False


KINDS: Mapping[str, ClusterKind] = {
    "varied": ClusterKind(title="Varied clusters", clusters=21, sizes=(200, 300)),
    "identical": ClusterKind(title="Identical nodes", shape={"is_uniform": True}),
    "churn": ClusterKind(title="CronJobs and other pods come and go", has_churn=True),
    "readded": ClusterKind(
        title="A third of the nodes deleted and recreated, and the scheduler restarted", is_readded=True
    ),
    "large": ClusterKind(title="1,000 nodes", sizes=(1000,), shape={"fill": 0.3}),
    "processors": ClusterKind(
        title="Parallel workers, imitated with GOMAXPROCS=1 and a Filter plugin that yields at each node",
        scheduler={"profiles": [{"schedulerName": "default-scheduler", "plugins": _YIELDING}]},
        processors=1,
    ),
}


def drain_cluster(folder: Path, kind: str, seed: int, size: int, drains: int) -> None:
    """Drains nodes one after another and writes a record after each. The control plane is the cluster's own, so that
    the scheduler's log is about nothing else."""
    missing = [number for number in range(drains) if not _path(folder, kind, seed, size, number).exists()]
    if not missing:
        return
    began, like = time.monotonic(), KINDS[kind]
    with a_control_plane("sampled", lambda place, guardian: _plane(place, guardian, like)) as plane:
        cluster = varied_cluster(seed, size, **like.shape)
        drainer = Drainer(plane, careen_engine())
        apply(plane.admin, cluster.nodes)
        if like.is_readded:
            _make_again(plane.admin, cluster)
        apply(plane.admin, cluster.workloads)
        drainer.settle(patience_seconds=1800)
        begins = 0
        if like.is_readded:
            begins = _restart_scheduler(plane, size)
        print(
            f"cluster {kind} {seed}: its {size} nodes are full after {time.monotonic() - began:.0f} s",
            file=sys.stderr,
            flush=True,
        )
        # A node without pods gives no information. An interrupted bench may choose other nodes, because its drains
        # moved pods.
        busy = {pod["spec"].get("nodeName", "") for pod in plane.admin.list(PODS)} - {""}
        chosen = random.Random(seed).sample(sorted(busy), drains)
        with _churn(plane, like):
            for number in missing:
                before = _log(plane)
                happened = drainer.happened(chosen[number])
                record = DrainRecord(
                    kind=kind,
                    seed=seed,
                    size=size,
                    node=happened.node,
                    start=next_start(before[begins:], size),
                    pages=[page.decode() for page in happened.pages],
                    lacking=dict(happened.lacking),
                    events=happened.events,
                    seconds=happened.seconds,
                    log=_log(plane)[len(before) :].decode(),
                )
                write(_path(folder, kind, seed, size, number), record)
                print(
                    f"cluster {kind} {seed}: {record.node} is drained after {time.monotonic() - began:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )


def _plane(folder: Path, guardian: Guardian, like: ClusterKind) -> ControlPlane:
    # Each renewed lease is a write, and hundreds of nodes renew theirs every ten seconds.
    return ControlPlane(
        folder,
        guardian=guardian,
        scheduler={**SAMPLING_SCHEDULER, **like.scheduler},
        scheduler_processors=like.processors,
        lease_seconds=600,
    )


def next_start(log: bytes, nodes: int) -> int:
    """Where the scheduler's next search starts. A cycle that binds moves this by the number of nodes that it
    evaluated; a failed one evaluates all nodes, which leaves it where it is."""
    return sum(int(each[1]) for each in _EVALUATED.finditer(log)) % nodes


def _make_again(admin: Api, cluster: VariedCluster) -> None:
    time.sleep(2)  # creation times have whole seconds
    for node in random.Random(cluster.seed).sample(cluster.nodes, len(cluster.nodes) // 3):
        admin.delete(f"/api/v1/nodes/{node['metadata']['name']}")
        admin.create("/api/v1/nodes", node)


def _restart_scheduler(plane: ControlPlane, nodes: int) -> int:
    """Waits until the scheduler has read the nodes. Returns the length of its log before the restart."""
    plane.stop_scheduler()
    begins = len(_log(plane))
    plane.start_scheduler()
    while _log(plane)[begins:].count(b'"Added node to NodeTree"') < nodes:
        plane.check()
        time.sleep(0.5)
    return begins


@contextmanager
def _churn(plane: ControlPlane, like: ClusterKind) -> Iterator[None]:
    """Creates and deletes pods, some by a CronJob, during the `with` block; nothing if the kind has no churn."""
    if not like.has_churn:
        yield
        return
    api, ended = plane.client(), threading.Event()
    api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _CHURN}})
    api.create(f"/apis/batch/v1/namespaces/{_CHURN}/cronjobs", _cron_job())
    thread = threading.Thread(target=_come_and_go, args=(api, ended.wait), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        api.close()


def _come_and_go(api: Api, wait: Callable[[float], bool]) -> None:
    """About one pod a second, each for about twenty seconds."""
    chance, path, number = random.Random(1), f"/api/v1/namespaces/{_CHURN}/pods", 0
    while not wait(chance.uniform(0.2, 1.8)):
        try:
            api.create(path, _pod(f"pod-{number}", chance.choice([50, 100, 500])))
            if number >= 20:
                api.delete(f"{path}/pod-{number - 20}")
        except ApiError as error:
            print(f"churn: {error}", file=sys.stderr, flush=True)
        number += 1


def _spec(millis: int) -> Object:
    return {
        "containers": [{"name": "app", "image": "example.com/tiny:1", "resources": {"requests": {"cpu": f"{millis}m"}}}]
    }


def _pod(name: str, millis: int) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": _spec(millis)}


def _cron_job() -> Object:
    template = {
        "metadata": {"annotations": {"tests/runs-for": "20s"}},
        "spec": {**_spec(100), "restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "every-minute"},
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": {"parallelism": 5, "completions": 5, "template": template}},
        },
    }


def _path(folder: Path, kind: str, seed: int, size: int, number: int) -> Path:
    return folder / f"{kind}-{size}-{seed:06}" / f"{number}.json.gz"


def _log(plane: ControlPlane) -> bytes:
    return (plane.folder / "logs" / "scheduler.log").read_bytes()

"""Records drains on the real control plane: the forecast, and all events of pods during the drain.

The resourceVersions show the real order of evictions, creations and bindings, because etcd numbers all writes of a
cluster.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import urllib3

from careen.agent.apply import ONE_BY_ONE_SECONDS
from careen.agent.clock import SystemClock
from careen.cluster.evictions import evict
from careen.cluster.pods import list_pods_on
from careen.cluster.snapshot_reader import pages as pages_of
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.client import ClientTransport, load_configuration
from careen.core.actions import EvictPod
from careen.core.drain.drain_plan import plan, requests
from careen.core.facts.memory import Memory, after_eviction
from careen.core.facts.policy import DrainPolicy
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.snapshot.loading import load_pages
from scheduler_core.snapshot.snapshot import Snapshot
from tests.cluster.harness.api import Api, ApiError, Object
from tests.cluster.harness.machines.control_plane import ControlPlane
from tests.cluster.harness.measures.varied import NAMESPACE

# Other changes in the cluster are not caused by the drain.
PODS, JOBS = f"/api/v1/namespaces/{NAMESPACE}/pods", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
_JOB_SECONDS = 12.0  # wait for the first replacement; later ones take too long

Engine = Callable[["Drainer", str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvent:
    """The creation, binding, eviction or deletion of one pod."""

    version: int
    at: float
    kind: str  # created, bound, evicted, deleted
    uid: str
    title: str  # namespace/name
    owner: str  # "ReplicaSet varied/app01-5d9", empty for a bare pod
    node: str


class PodWatch:
    """Records what happens to the pods of workloads, from resource version `version` until `close`."""

    def __init__(self, api: Api, version: str) -> None:
        self.events: list[PodEvent] = []
        self.changed = time.monotonic()  # when a pod last came, went, got a node, or became ready
        self._api = api
        self._version = version
        self._seen: dict[str, tuple[bool, bool, bool]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pod-watch", daemon=True)

    def start(self, pods: Sequence[Object]) -> PodWatch:
        """Start to record. `pods` is the list of pods at the resource version at which the record begins."""
        for pod in pods:
            self._seen[pod["metadata"]["uid"]] = _state(pod)
        self._thread.start()
        return self

    def knows(self, pods: Sequence[Object]) -> bool:
        """Whether the recorded pods and their last recorded states are exactly those in this list."""
        return dict(self._seen) == {pod["metadata"]["uid"]: _state(pod) for pod in pods}

    def close(self) -> list[PodEvent]:
        self._ended.set()
        self._thread.join(timeout=10)
        self._api.close()
        return self.events

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                for event in self._api.watch(PODS, self._version, seconds=2):
                    self._note(event)
            except (urllib3.exceptions.HTTPError, ApiError):
                time.sleep(0.05)

    def _note(self, event: Object) -> None:
        pod = event["object"]
        self._version = pod["metadata"]["resourceVersion"]
        if event["type"] == "BOOKMARK":
            return
        uid, state = pod["metadata"]["uid"], _state(pod)
        (is_bound, is_ending, _), (was_bound, was_ending, _) = state, self._seen.get(uid, (False, False, False))
        if event["type"] == "DELETED" or self._seen.get(uid) != state:
            self.changed = time.monotonic()
        if event["type"] == "ADDED":
            self._add("created", pod)
        if is_bound and not was_bound:
            self._add("bound", pod)
        if is_ending and not was_ending:
            self._add("evicted", pod)
        self._seen[uid] = state
        if event["type"] == "DELETED":
            self._add("deleted", pod)
            del self._seen[uid]

    def _add(self, kind: str, pod: Object) -> None:
        meta = pod["metadata"]
        self.events.append(
            PodEvent(
                version=int(meta["resourceVersion"]),
                at=time.time(),
                kind=kind,
                uid=meta["uid"],
                title=f"{meta['namespace']}/{meta['name']}",
                owner=owner_title(pod),
                node=pod["spec"].get("nodeName", ""),
            )
        )


def _state(pod: Object) -> tuple[bool, bool, bool]:
    """Return three flags: the pod has a node, it terminates, it is ready."""
    return bool(pod["spec"].get("nodeName")), "deletionTimestamp" in pod["metadata"], is_ready(pod)


def owner_title(pod: Object) -> str:
    """Return the kind, namespace and name of a pod's controller as a forecast writes them, such as
    `ReplicaSet varied/app01-5d9`. Return an empty text if the pod has no controller.
    """
    owner = next((owner for owner in pod["metadata"].get("ownerReferences", ()) if owner.get("controller")), None)
    return f"{owner['kind']} {pod['metadata']['namespace']}/{owner['name']}" if owner else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """A finished drain without a forecast: the cluster before the drain, and the events of pods during the drain."""

    node: str
    pages: list[bytes]
    lacking: Mapping[str, int] = field(
        default_factory=dict
    )  # for each owner: the pods of earlier drains that it had not replaced when this drain began
    events: list[PodEvent] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class Drain:
    """A finished drain, with a forecast that was computed from the cluster before the drain."""

    node: str
    pages: list[bytes]
    forecast: Forecast
    budgeted: frozenset[str] = frozenset()  # pods under a budget: their eviction may be refused and repeated later
    lacking: Mapping[str, int] = field(default_factory=dict)
    events: list[PodEvent] = field(default_factory=list)
    seconds: float = 0.0


def with_forecast(happened: Happened, snapshot: Snapshot, forecast: Forecast) -> Drain:
    """Add a forecast to a finished drain. Only the pods in the namespace `varied` stay in the forecast, because
    `PodWatch` records only the events of that namespace.
    """
    forecast = replace(forecast, pods=tuple(pod for pod in forecast.pods if pod.namespace == NAMESPACE))
    budgets = snapshot.objects.budgets
    budgeted = frozenset(
        pod.key
        for pod in snapshot.pods_on(happened.node)
        if any(b.namespace == pod.namespace and b.selector.matches(pod.labels) for b in budgets)
    )
    return Drain(
        node=happened.node,
        pages=happened.pages,
        forecast=forecast,
        budgeted=budgeted,
        lacking=happened.lacking,
        events=happened.events,
        seconds=happened.seconds,
    )


class Drainer:
    """Drains the nodes of one cluster one after another, and uncordons each node afterwards."""

    def __init__(self, plane: ControlPlane, engine: Engine) -> None:
        self.plane = plane
        self._engine = engine

    @property
    def admin(self) -> Api:
        return self.plane.admin

    def drain(self, node: str) -> Drain:
        """List the cluster, drain the node, wait until nothing changes, uncordon the node, and wait again."""
        happened = self.happened(node)
        snapshot = load_pages(happened.pages)
        (forecast,) = simulate_drain(snapshot, [node], made_at="")
        return with_forecast(happened, snapshot, forecast)

    def happened(self, node: str) -> Happened:
        """Drain the node as `drain` does, but without a forecast. The caller can compute the forecast later from the
        field `pages` of the result.
        """
        pages, lacking = asyncio.run(self._pages()), self._lacking()
        watch, began = self.watch(), time.time()
        self.admin.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
        self._engine(self, node)
        self.settle(watch)
        seconds, events = time.time() - began, list(watch.events)
        self.admin.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": False}})
        self.settle(watch)
        watch.close()
        return Happened(node=node, pages=pages, lacking=lacking, events=events, seconds=seconds)

    def watch(self) -> PodWatch:
        """Record the events of pods in the namespace `varied` from now on, until the caller closes the `PodWatch`."""
        listed = self.admin.get(PODS)
        return PodWatch(self.plane.client(), listed["metadata"]["resourceVersion"]).start(listed["items"])

    def settle(self, watch: PodWatch | None = None, quiet_seconds: float = 1.5, patience_seconds: float = 90) -> None:
        """Wait until no pod has changed for `quiet_seconds`. Also wait some seconds for Jobs, because they replace pods
        late.
        """
        if watch is None:
            with closing(self.watch()) as own:
                self.settle(own, quiet_seconds, patience_seconds)
            return
        give_up = time.monotonic() + patience_seconds
        since, jobs_until = time.monotonic(), time.monotonic() + _JOB_SECONDS
        while True:
            time.sleep(0.5)
            if time.monotonic() < jobs_until and not self._jobs_are_back():
                since = time.monotonic()
            if time.monotonic() - max(since, watch.changed) > quiet_seconds:
                # A watch may be late. Its events count once a list shows the same state.
                if watch.knows(self.admin.list(PODS)):
                    return
                since = time.monotonic()
            if time.monotonic() > give_up:
                raise AssertionError("pods still come and go")

    def _jobs_are_back(self) -> bool:
        return not self._lacking() and not any(job["status"].get("terminating") for job in self.admin.list(JOBS))

    def _lacking(self) -> dict[str, int]:
        """Return how many pods each Job lacks. A Job waits ten seconds before it replaces an evicted pod, and doubles
        this time with each further replacement.
        """
        absent = {
            f"Job {job['metadata']['namespace']}/{job['metadata']['name']}": job["spec"]["parallelism"]
            - job["status"].get("active", 0)
            for job in self.admin.list(JOBS)
        }
        return {owner: count for owner, count in absent.items() if count > 0}

    async def _pages(self) -> list[bytes]:
        transport = ClientTransport(
            lambda: load_configuration(self.plane.folder / "admin.kubeconfig"), agent="accuracy", threads=1
        )
        try:
            return [page async for page in pages_of(ClusterApi(transport, SystemClock(), chance=random.random))]
        finally:
            transport.close()


def is_ready(pod: Object) -> bool:
    return any(
        entry["type"] == "Ready" and entry["status"] == "True" for entry in pod.get("status", {}).get("conditions", ())
    )


# -- engines


def careen_engine(parallel: int = DrainPolicy().parallel, seconds: float = 60) -> Engine:
    """Return a function that drains a node with careen's own drain plan and evictions, as an agent does."""

    def run(drainer: Drainer, node: str) -> None:
        asyncio.run(_evict_all(drainer.plane, node, DrainPolicy(parallel=parallel), seconds))

    return run


async def _evict_all(plane: ControlPlane, node: str, policy: DrainPolicy, seconds: float) -> None:
    clock = SystemClock()
    transport = ClientTransport(lambda: load_configuration(plane.folder / "admin.kubeconfig"), agent="drain")
    api, memory, give_up = ClusterApi(transport, clock, chance=random.random), Memory(), clock.monotonic() + seconds
    few = asyncio.Semaphore(policy.parallel)

    async def ask(pod: EvictPod) -> None:
        nonlocal memory
        async with few:
            asked = clock.monotonic()
            said = await evict(api, pod)
            if policy.parallel == 1:
                await clock.sleep(max(0.0, ONE_BY_ONE_SECONDS - (clock.monotonic() - asked)))
            memory = after_eviction(
                memory,
                pod_uid=pod.uid,
                answer=said.answer,
                uptime=clock.monotonic(),
                jitter=random.random(),
                detail=said.detail,
            )

    try:
        while clock.monotonic() < give_up:
            planned = plan(await list_pods_on(api, node), policy, memory, uptime=clock.monotonic(), now=clock.now())
            if planned.is_done:
                return
            await asyncio.gather(*(ask(pod) for pod in requests(planned, policy)))
            await asyncio.sleep(planned.look_again_seconds)
    finally:
        transport.close()


def kubectl_engine(seconds: int = 60) -> Engine:
    """Return a function that drains a node with `kubectl drain`, which requests all evictions at once."""

    def run(drainer: Drainer, node: str) -> None:
        kubeconfig = str(drainer.plane.folder / "admin.kubeconfig")
        subprocess.run(
            [
                "kubectl",
                "--kubeconfig",
                kubeconfig,
                "drain",
                node,
                "--ignore-daemonsets",
                "--delete-emptydir-data",
                "--force",
                f"--timeout={seconds}s",
            ],
            capture_output=True,
            check=False,
        )

    return run


def apply(api: Api, items: Sequence[Object]) -> None:
    """Create the objects one after another, so that the pods do not all appear at once. Skips existing objects."""
    for item in items:
        try:
            api.create(_collection(item), item)
        except ApiError as error:
            if error.status != 409:
                raise


def _collection(item: Object) -> str:
    from tests.cluster.harness.workloads import path_of

    return path_of(item)


def sweep(api: Api, namespace: str) -> None:
    """Remove workloads, pods and nodes, so that the next cluster is empty at first."""
    now: dict[str, Any] = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
    for kind in (
        "apps/v1/{}/deployments",
        "apps/v1/{}/statefulsets",
        "apps/v1/{}/replicasets",
        "batch/v1/{}/jobs",
        "policy/v1/{}/poddisruptionbudgets",
    ):
        api.delete(f"/apis/{kind.format(f'namespaces/{namespace}')}", now)
    give_up = time.monotonic() + 60
    while api.list("/api/v1/pods"):
        for pod in api.list("/api/v1/pods"):
            api.delete(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}", now)
        if time.monotonic() > give_up:
            raise AssertionError("pods are still there")
        time.sleep(0.3)
    api.delete("/api/v1/nodes", now)

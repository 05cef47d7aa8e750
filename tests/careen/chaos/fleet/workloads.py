"""Simulates the pods of a fleet, and the controllers, scheduler and disruption controller that manage the pods."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from drydock.controllers.budgets import reconcile as count_budgets
from drydock.server.evictions import pod_is_ready
from drydock.server.kinds.resources import resource_named
from drydock.server.verbs import DeleteOptions
from drydock.zoo.citizen import ENDS_AFTER
from tests.careen.chaos.fleet.small_server import SmallServer

NAMESPACE = "shop"
_PODS = resource_named("pods")
_KUBELET, _CONTROLLER, _SCHEDULER = "system:node", "system:controller", "system:kube-scheduler"
_PLURALS = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}
_MAKER = {
    "manager": "kube-controller-manager",
    "operation": "Update",
    "fieldsV1": {"f:spec": {"f:containers": {}}},
}
"""The managedFields of a pod whose creator did not set `spec.nodeName`, so that the scheduler chooses the node."""
Seconds = tuple[float, float]
"""A range of durations: the shortest and the longest."""


@dataclass(frozen=True, kw_only=True)
class App:
    """A workload: its controller, its number of replicas, and how long its pods take to end and to become ready."""

    name: str
    replicas: int
    kind: str = "ReplicaSet"
    grace_seconds: int = 5
    ends_within: Seconds = (0.1, 5.0)
    ready_within: Seconds = (0.3, 3.0)
    may_be_away: int | None = None  # a PodDisruptionBudget's maxUnavailable; None: it has no budget


def plain_apps(replicas: int) -> tuple[App, ...]:
    return App(name="web", replicas=replicas), App(name="db", replicas=replicas)


def town_apps(nodes: int) -> tuple[App, ...]:
    """Return a cluster's usual workloads: a ReplicaSet, a StatefulSet whose pods keep their names, and a ReplicaSet
    whose pods take up to 80 seconds to end. The first two have a disruption budget."""
    return (
        App(name="web", replicas=2 * nodes, may_be_away=2),
        App(name="db", kind="StatefulSet", replicas=nodes, ready_within=(0.5, 6.0), may_be_away=1),
        App(name="queue", replicas=nodes, grace_seconds=90, ends_within=(2.0, 80.0)),
    )


class Workloads:
    """All pods of the fleet and their controllers. `places` returns the nodes on which a scheduler may place a pod now.
    `is_running` says whether a node's kubelet runs."""

    def __init__(
        self,
        server: SmallServer,
        seed: float,
        *,
        later: Callable[[float, Callable[[], None]], None],
        places: Callable[[], list[str]],
        is_running: Callable[[str], bool],
    ) -> None:
        self.server = server
        self.apps: dict[str, App] = {}
        self.daemons: list[str] = ["net"]
        self.ends_from: dict[str, float] = {}
        """For each node whose pods end late: the earliest time, by the server's clock, at which they end."""
        self._seed = seed
        self._chances: dict[str, random.Random] = {}
        self._later = later
        self._places = places
        self._is_running = is_running
        self._serial = 0
        self._ending: set[str] = set()
        self._jobs: dict[str, str] = {}  # by name: how it ends
        self._is_count_due = False
        server.store.listen([_PODS.storage], self._on_pods)

    def _chance_of(self, name: str) -> random.Random:
        """Return the random number generator of this controller. Each controller has its own generator, so that an
        additional random draw for one controller does not change the pods of other controllers."""
        return self._chances.setdefault(name, random.Random(f"{self._seed} {name}"))

    def _draw(self, name: str, seconds: Seconds) -> float:
        return self._chance_of(name).uniform(*seconds)

    # The initial objects -------------------------------------------------------------------------------------

    def add_apps(self, apps: Iterable[App], nodes: list[str]) -> None:
        """Create each workload with all its pods, spread evenly over the nodes."""
        for app in apps:
            self.apps[app.name] = app
            self._put_controller(app)
            if app.may_be_away is not None:
                self._put_budget(app.name, app.may_be_away)
            for index in range(app.replicas):
                self._put_pod(
                    self._name_of(app, index),
                    nodes[index % len(nodes)],
                    owner=_owner(app.kind, app.name),
                    grace_seconds=app.grace_seconds,
                    is_ready=True,
                )

    def _put_controller(self, app: App) -> None:
        self.server.put(
            {
                "apiVersion": "apps/v1",
                "kind": app.kind,
                "metadata": {"name": app.name, "namespace": NAMESPACE, "uid": f"uid-{app.name}", "generation": 1},
                "spec": {
                    "replicas": app.replicas,
                    "selector": {"matchLabels": {"app": app.name}},
                    "template": {"metadata": {"labels": {"app": app.name}}, "spec": {}},
                },
                "status": {"replicas": app.replicas, "readyReplicas": app.replicas},
            }
        )

    def _put_budget(self, name: str, may_be_away: int) -> None:
        self.server.put(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": NAMESPACE, "generation": 1},
                "spec": {"selector": {"matchLabels": {"app": name}}, "maxUnavailable": may_be_away},
                "status": {},
            }
        )

    def set_budget(self, name: str, may_be_away: int) -> None:
        self.server.change(
            "poddisruptionbudgets",
            name,
            lambda old: {**old, "spec": {**old["spec"], "maxUnavailable": may_be_away}},
            actor="person",
            namespace=NAMESPACE,
        )
        self._count_soon()

    def open_budgets(self) -> None:
        for app in self.apps.values():
            if app.may_be_away is not None:
                self.set_budget(app.name, app.may_be_away)

    def place_daemons(self, node: str) -> None:
        for daemon in self.daemons:
            if self.server.get("daemonsets", daemon, NAMESPACE) is None:
                self._put_daemon_set(daemon)
            if self.server.get("pods", f"{daemon}-{node}", NAMESPACE) is None:
                self._put_pod(f"{daemon}-{node}", node, owner=_owner("DaemonSet", daemon), is_ready=True)

    def _put_daemon_set(self, name: str) -> None:
        self.server.put(
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"},
                "spec": {
                    "selector": {"matchLabels": {"app": name}},
                    "template": {
                        "metadata": {"labels": {"app": name}},
                        "spec": {"containers": [{"name": "c", "image": "i"}]},
                    },
                },
                "status": {"desiredNumberScheduled": 0, "currentNumberScheduled": 0, "numberMisscheduled": 0},
            }
        )

    def daemons_ready(self, node: str, *, is_ready: bool) -> None:
        for daemon in self.daemons:
            self._pod_ready(f"{daemon}-{node}", is_ready=is_ready)

    def add_crashing_daemon(self, node: str) -> None:
        """Add a DaemonSet pod to this node. The pod is not ready and never becomes ready."""
        self._put_pod(f"crash-{node}", node, owner=_owner("DaemonSet", "crash"), is_ready=False)

    def add_bare_pod(self, node: str) -> None:
        """Add a pod that no controller recreates."""
        self._serial += 1
        self._put_pod(f"bare-{self._serial}", node, owner=None, is_ready=True)

    def remove_bare_pods(self) -> None:
        for pod in self.server.all("pods"):
            if not pod["metadata"].get("ownerReferences"):
                self.server.remove("pods", pod["metadata"]["name"], actor="person", namespace=NAMESPACE)

    # Jobs ----------------------------------------------------------------------------------------------------

    def add_job(self, node: str, ends: str) -> None:
        """Add a Job with a pod on this node. `ends` says what the Job does after the eviction of its pod: with
        `completes` it completes on another node, with `fails` it fails, and with `cleared` it completes and is then
        deleted."""
        self._serial += 1
        name = f"job-{self._serial}"
        self._jobs[name] = ends
        self.server.put(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "generation": 1},
                "spec": {
                    "parallelism": 1,
                    "completions": 1,
                    "backoffLimit": 0 if ends == "fails" else 6,
                    "template": {"metadata": {"labels": {"app": name}}, "spec": {}},
                },
                "status": {"active": 1, "ready": 1},
            },
            actor=_CONTROLLER,
        )
        self._put_pod(f"{name}-{self._serial}", node, owner=_owner("Job", name), is_ready=True)

    def _job_lost_its_pod(self, name: str) -> None:
        if self._jobs[name] == "fails":
            self._end_job(name, "Failed", {"failed": 1})
        else:
            self._job_status(name, {"active": 0, "ready": 0})
            self._later(self._draw(name, (0.05, 1.0)), lambda: self._replace_pod_of_job(name))

    def _replace_pod_of_job(self, name: str) -> None:
        places = self._places()
        if not places:
            self._later(2.0, lambda: self._replace_pod_of_job(name))
            return
        self._serial += 1
        pod = f"{name}-{self._serial}"
        self._put_pod(pod, self._chance_of(name).choice(places), owner=_owner("Job", name), is_ready=False)
        self._later(self._draw(name, (0.3, 3.0)), lambda: self._job_pod_ready(name, pod))
        self._later(self._draw(name, (3.0, 40.0)), lambda: self._job_pod_completes(name, pod))

    def _job_pod_ready(self, name: str, pod: str) -> None:
        self._pod_ready(pod, is_ready=True)
        self._job_status(name, {"active": 1, "ready": 1})

    def _job_pod_completes(self, name: str, pod: str) -> None:
        if (found := self.server.get("pods", pod, NAMESPACE)) is None or "deletionTimestamp" in found["metadata"]:
            return
        self._pod_status(pod, _status(is_ready=False, phase="Succeeded"))
        self._end_job(name, "Complete", {"succeeded": 1})

    def _end_job(self, name: str, condition: str, counts: dict[str, int]) -> None:
        self._job_status(name, {"ready": 0, **counts, "conditions": [{"type": condition, "status": "True"}]})
        if self._jobs[name] == "cleared":
            self._later(1.0, lambda: self.server.remove("jobs", name, actor=_CONTROLLER, namespace=NAMESPACE))

    def _job_status(self, name: str, status: dict[str, Any]) -> None:
        self.server.change(
            "jobs",
            name,
            lambda old: {**old, "status": status},
            actor=_CONTROLLER,
            namespace=NAMESPACE,
            subresource="status",
        )

    # Pods ----------------------------------------------------------------------------------------------------

    def _name_of(self, app: App, index: int) -> str:
        if app.kind == "StatefulSet":
            return f"{app.name}-{index}"
        self._serial += 1
        return f"{app.name}-{self._serial}"

    def _put_pod(
        self,
        name: str,
        node: str,
        *,
        owner: dict[str, Any] | None,
        is_ready: bool,
        grace_seconds: int = 5,
    ) -> None:
        metadata: dict[str, Any] = {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"app": owner["name"] if owner else "bare"},
            "managedFields": [_MAKER],
        }
        if owner:
            metadata["ownerReferences"] = [owner]
        self.server.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {
                    **({"nodeName": node} if node else {}),
                    "terminationGracePeriodSeconds": grace_seconds,
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}],
                },
                "status": _status(is_ready=is_ready) if node else {"phase": "Pending", "conditions": []},
            },
            actor=_CONTROLLER,
        )

    def _replace(self, app: App, name: str) -> None:
        """Recreate the pod as its controller does, and schedule it a moment later."""
        if self.server.get("pods", name, NAMESPACE) is None:
            owner = _owner(app.kind, app.name)
            self._put_pod(name, "", owner=owner, is_ready=False, grace_seconds=app.grace_seconds)
            uid = (self.server.get("pods", name, NAMESPACE) or {})["metadata"]["uid"]
            self._later(self._draw(app.name, (0.05, 0.5)), lambda: self._schedule(app, name, uid))

    def _schedule(self, app: App, name: str, uid: str) -> None:
        pod = self.server.get("pods", name, NAMESPACE)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        places = self._places()
        if not places:
            self._later(2.0, lambda: self._schedule(app, name, uid))
            return
        node = self._chance_of(app.name).choice(places)
        self.server.put(
            {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": _status(is_ready=False)}, actor=_SCHEDULER
        )
        self._later(self._draw(app.name, app.ready_within), lambda: self._becomes_ready(name, uid, node))

    def _becomes_ready(self, name: str, uid: str, node: str) -> None:
        pod = self.server.get("pods", name, NAMESPACE)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        if pod["status"]["phase"] != "Running":
            return
        if self._is_running(node):
            self._pod_ready(name, is_ready=True)
        else:
            self._later(2.0, lambda: self._becomes_ready(name, uid, node))

    def _pod_ready(self, name: str, *, is_ready: bool) -> None:
        self._pod_status(name, _status(is_ready=is_ready))

    def _pod_status(self, name: str, status: dict[str, Any]) -> None:
        self.server.change(
            "pods",
            name,
            lambda old: {**old, "status": status},
            actor=_KUBELET,
            namespace=NAMESPACE,
            subresource="status",
        )

    def node_lost(self, node: str) -> None:
        """Mark the node's pods as not ready, as the node controller does if the kubelet is silent."""
        for pod in self._pods_on(node):
            self._pod_ready(pod["metadata"]["name"], is_ready=False)

    def node_back(self, node: str) -> None:
        """Make the node's pods ready again, one after another, as the kubelet does after a boot. `daemons_ready` does
        the same for DaemonSet pods."""
        for pod in self._pods_on(node):
            name, uid, owner = pod["metadata"]["name"], pod["metadata"]["uid"], pod["metadata"]["labels"]["app"]
            if owner not in self.daemons and owner != "crash":
                self._later(
                    self._draw(owner, (0.1, 3.0)), lambda name=name, uid=uid: self._becomes_ready(name, uid, node)
                )

    def _pods_on(self, node: str) -> list[dict[str, Any]]:
        return [
            pod
            for pod in self.server.all("pods")
            if pod["spec"].get("nodeName") == node and pod["status"]["phase"] == "Running"
        ]

    def collect_pods_of(self, node: str) -> None:
        """Remove a deleted Node's pods, as the garbage collector does."""
        if self.server.get("nodes", node) is None:
            for pod in self.server.all("pods"):
                if pod["spec"].get("nodeName") == node:
                    self.server.remove("pods", pod["metadata"]["name"], actor=_CONTROLLER, namespace=NAMESPACE)

    # The effects of a change ---------------------------------------------------------------------------------

    def _on_pods(self) -> None:
        change = self.server.store.journal[-1]
        if change.after is None:
            before = change.before.content if change.before else {}
            self._ending.discard(before["metadata"]["uid"])
            self._gone(before)
        elif (
            "deletionTimestamp" in change.after.content["metadata"]
            and (uid := change.after.content["metadata"]["uid"]) not in self._ending
        ):
            self._ending.add(uid)
            owner = change.after.content["metadata"]["labels"]["app"]
            app = self.apps.get(owner)
            asked = (change.after.content["metadata"].get("annotations") or {}).get(ENDS_AFTER)
            within = (float(asked), float(asked)) if asked else (0.1, 5.0)
            seconds = self._draw(owner, app.ends_within if app else within)
            self._later(seconds, lambda: self._end(change.key, uid))
        self._count_soon()

    def _end(self, key: tuple[str, str], uid: str) -> None:
        found = self.server.store.get(_PODS.storage, key)
        if found is None or found.content["metadata"]["uid"] != uid:
            return
        node = found.content["spec"].get("nodeName", "")
        wait = max(self.ends_from.get(node, 0.0) - self.server.store.clock(), 0.0 if self._is_running(node) else 1.0)
        if wait > 0.0:
            self._later(wait, lambda: self._end(key, uid))
        else:
            self.server.verbs.delete(_PODS, *key, DeleteOptions(grace_seconds=0), actor=_KUBELET)

    def _gone(self, pod: Mapping[str, Any]) -> None:
        owner = (pod["metadata"].get("ownerReferences") or ({"name": ""},))[0]["name"]
        app = self.apps.get(owner)
        if app is not None:
            index = int(pod["metadata"]["name"].rsplit("-", 1)[1])
            self._later(self._draw(app.name, (0.05, 0.6)), lambda: self._replace(app, self._name_of(app, index)))
        elif owner in self._jobs and pod["status"]["phase"] == "Running":
            self._job_lost_its_pod(owner)

    def _count_soon(self) -> None:
        """Count the ready pods of every workload at the end of this instant of virtual time. The count runs only once,
        even if several pods change in the same instant."""
        if not self._is_count_due:
            self._is_count_due = True
            self._later(0.0, self._count)

    def _count(self) -> None:
        self._is_count_due = False
        pods = [each.content for each in self.server.store.items(_PODS.storage)]
        ready = Counter(pod["metadata"]["labels"]["app"] for pod in pods if _serves(pod))
        for app in self.apps.values():
            plural, count = _PLURALS[app.kind], ready[app.name]
            stands = self.server.get(plural, app.name, NAMESPACE)
            if stands is not None and stands["status"].get("readyReplicas") != count:
                self.server.change(
                    plural,
                    app.name,
                    lambda old, count=count: {**old, "status": {**old["status"], "readyReplicas": count}},
                    actor=_CONTROLLER,
                    namespace=NAMESPACE,
                    subresource="status",
                )
        count_budgets(self.server.verbs)


def _owner(kind: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "name": name,
        "uid": f"uid-{name}",
        "controller": True,
    }


def _serves(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod_is_ready(pod)


def _status(*, is_ready: bool, phase: str = "Running") -> dict[str, Any]:
    return {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}]}

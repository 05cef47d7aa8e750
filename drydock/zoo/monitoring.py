"""A Prometheus with rules of kube-prometheus, and the faults of the servers that people put in front of it.

Rules: kubernetes-mixin `alerts/apps_alerts.libsonnet` and `alerts/kubelet.libsonnet`, with their `for` of 15 minutes;
kube-prometheus evaluates them every 30 seconds. Only the answers to queries are here: `rollout/monitoring_server.py`
serves them over HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import PODS
from drydock.server.kinds.resources import resource_named
from drydock.server.verbs import Verbs, rfc3339
from drydock.zoo.citizen import BUDGETS, NODES, Citizen, Habitat, Series, is_up, pod_named, serves, workload

EVALUATION_SECONDS = 30.0
FOR_SECONDS = 900.0
_DEPLOYMENTS, _STATEFUL, _DAEMONS = (resource_named(each) for each in ("deployments", "statefulsets", "daemonsets"))

Labels = tuple[tuple[str, str], ...]
Instances = Iterator[Labels]


def _labels(name: str, severity: str, **own: str) -> Labels:
    return tuple(sorted({"alertname": name, "severity": severity, **own}.items()))


def _workloads(verbs: Verbs) -> Instances:
    for resource, alert, label, wanted, ready in (
        (_DEPLOYMENTS, "KubeDeploymentReplicasMismatch", "deployment", "replicas", "availableReplicas"),
        (_STATEFUL, "KubeStatefulSetReplicasMismatch", "statefulset", "replicas", "readyReplicas"),
    ):
        for item in verbs.store.items(resource.storage):
            status = item.content.get("status") or {}
            if status.get(ready, 0) < item.content["spec"].get(wanted, 1):
                yield _labels(alert, "warning", namespace=item.key[0], **{label: item.key[1]})
    for item in verbs.store.items(_DAEMONS.storage):
        status = item.content.get("status") or {}
        if status.get("numberReady", 0) < status.get("desiredNumberScheduled", 0):
            yield _labels("KubeDaemonSetRolloutStuck", "warning", namespace=item.key[0], daemonset=item.key[1])


def _pods(verbs: Verbs) -> Instances:
    """A pod that terminates still has its phase, so a drained node's pods count until they are gone."""
    for item in verbs.store.items(PODS.storage):
        is_daemon = any(each.get("kind") == "Node" for each in item.content["metadata"].get("ownerReferences") or ())
        if not is_daemon and item.content["status"].get("phase") in ("Pending", "Failed", "Unknown"):
            yield _labels("KubePodNotReady", "warning", namespace=item.key[0], pod=item.key[1])


def _nodes(verbs: Verbs) -> Instances:
    """Since kubernetes-mixin 1.1 the rule leaves out cordoned nodes."""
    for item in verbs.store.items(NODES.storage):
        if not is_up(verbs, item.key[1]) and not item.content["spec"].get("unschedulable"):
            yield _labels("KubeNodeNotReady", "warning", node=item.key[1])


def _budgets(verbs: Verbs) -> Instances:
    for item in verbs.store.items(BUDGETS.storage):
        status = item.content.get("status") or {}
        if status.get("currentHealthy", 0) < status.get("desiredHealthy", 0):
            yield _labels(
                "KubePdbNotEnoughHealthyPods", "warning", namespace=item.key[0], poddisruptionbudget=item.key[1]
            )


RULES: tuple[Callable[[Verbs], Instances], ...] = (_workloads, _pods, _nodes, _budgets)
_WATCHDOG = _labels("Watchdog", "none")


def prometheus_pod(_habitat: Habitat) -> Citizen:
    """The only pod of a Prometheus. A `Monitoring` whose `pod` is `prometheus-0` runs in it."""
    return Citizen(
        name="moving-prometheus", objects=(workload("StatefulSet", "prometheus", 1, serviceName="prometheus"),)
    )


@dataclass(slots=True)
class Monitoring:
    """`active` has the beginning of each alert by the server's clock, as of the last evaluation."""

    habitat: Habitat
    serve: Callable[[Verbs], list[Series]] = field(default=lambda _verbs: [])
    active: dict[Labels, float] = field(default_factory=dict)
    evaluated_at: float | None = None
    started_at: float = 0.0
    lacks_a_store: bool = False
    tenant: str = ""
    pod: str = ""
    """The server runs in this pod of the zoo: it is away with it, and starts again with its successor."""
    has_rules_of_rook: bool = False
    verbs: Verbs | None = None
    _boot: str = ""
    _is_away: bool = False

    def citizen(self) -> Citizen:
        return Citizen(
            name="kube-prometheus",
            controllers=(Controller(name="prometheus", watches=(), reconcile=self._evaluate),),
        )

    def restart(self, clock: float) -> None:
        """It starts without alerts and samples, and evaluates its rules for the first time half a minute later."""
        self.active, self.evaluated_at, self.started_at = {}, None, clock

    def _evaluate(self, verbs: Verbs) -> float:
        self.verbs = verbs
        now, every = verbs.store.clock(), self.habitat.seconds(EVALUATION_SECONDS)
        if self.pod:
            self._follow_pod(verbs, now)
        if now - self.started_at >= every and (self.evaluated_at is None or now - self.evaluated_at >= every):
            found = {labels for rule in RULES for labels in rule(verbs)}
            if self.has_rules_of_rook:
                found.update(self._rook(verbs))
            self.active = {labels: self.active.get(labels, now) for labels in found}
            self.active[_WATCHDOG] = float("-inf")
            self.evaluated_at = now
        return every / 6 if not self.pod else self.habitat.resync / 2

    def _follow_pod(self, verbs: Verbs, now: float) -> None:
        pod = pod_named(verbs, self.pod)
        self._is_away = not serves(pod)
        boot = str((pod or {}).get("metadata", {}).get("uid", ""))
        if not self._is_away and boot != self._boot:
            if self._boot:
                self.restart(now)
            self._boot = boot

    def _rook(self, verbs: Verbs) -> Instances:
        """Rook's alerts carry the labels of the scraped mgr, whatever is broken."""
        target = {"job": "rook-ceph-mgr", "namespace": "rook-ceph", "pod": "rook-ceph-mgr-a-7d5c9-x2x4k"}
        for labels, value in self.serve(verbs):
            if labels["__name__"] == "ceph_health_status" and value == 1.0:
                yield _labels("CephHealthWarning", "warning", **target)

    def runtime_information(self) -> tuple[int, dict[str, Any]]:
        """The answer to `/api/v1/status/runtimeinfo`."""
        if self._is_away or self.verbs is None:
            return 503, {}
        began = self.verbs.wall_clock() - timedelta(seconds=self.verbs.store.clock() - self.started_at)
        return 200, {"status": "success", "data": {"startTime": rfc3339(began), "storageRetention": "15d"}}

    def state(self, labels: Labels) -> str:
        age = (self.evaluated_at or 0.0) - self.active[labels]
        return "firing" if age >= self.habitat.seconds(FOR_SECONDS) else "pending"

    def answer(self, query: str, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """The status and body of an instant query of Prometheus' HTTP API."""
        if self._is_away:
            return 503, {}
        tenant = next((value for name, value in headers.items() if name.lower() == "x-scope-orgid"), "")
        if self.tenant and not tenant:
            return 401, {"status": "error", "errorType": "auth", "error": "no org id"}
        body: dict[str, Any] = {"status": "success"}
        if self.lacks_a_store:
            body["warnings"] = ['fetch series for {replica="a"}: rpc error: code = Unavailable desc = connection error']
        is_other = bool(self.tenant) and tenant != self.tenant
        result = [] if is_other or self.lacks_a_store or self.verbs is None else list(self._rows(query, self.verbs))
        return 200, {**body, "data": {"resultType": "vector", "result": result}}

    def _rows(self, query: str, verbs: Verbs) -> Iterator[dict[str, Any]]:
        now = verbs.wall_clock().timestamp()
        inner = re.fullmatch(r"\s*timestamp\(\s*(.*?)\s*\)\s*", query, re.DOTALL)
        name = (inner[1] if inner else query).strip().partition("{")[0]
        for labels, value in self._series(verbs):
            if labels["__name__"] == name:
                shown = {key: text for key, text in labels.items() if not inner or key != "__name__"}
                yield {"metric": shown, "value": [now, str(now if inner else value)]}

    def _series(self, verbs: Verbs) -> Iterator[Series]:
        began = verbs.wall_clock().timestamp() - (verbs.store.clock() - self.started_at)
        yield {"__name__": "process_start_time_seconds", "job": "prometheus-k8s"}, began
        if self.evaluated_at is None:
            return
        for labels in sorted(self.active):
            yield {"__name__": "ALERTS", "alertstate": self.state(labels), **dict(labels)}, 1.0
        yield from self.serve(verbs)

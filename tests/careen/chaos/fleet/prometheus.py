"""A Prometheus with the rules of kube-prometheus that a drain or a reboot can touch, evaluated every 30 seconds: an
alert is pending, then firing, then resolved. Its labels are those of kube-prometheus-stack, with the labels of the
scraped kube-state-metrics.

It also answers `ceph_health_status`: 1, HEALTH_WARN, while the pod of an OSD is missing or its host is down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from careen.core.facts.observation import Alert, Sample
from tests.careen.chaos.fleet.agents import START
from tests.careen.chaos.fleet.workloads import NAMESPACE

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World

EVALUATION_SECONDS = 30.0
STATE_METRICS = {
    "job": "kube-state-metrics",
    "container": "kube-state-metrics",
    "endpoint": "http",
    "service": "kube-state-metrics",
    "instance": "10.244.9.9:8080",
}
_MINUTES = {  # how long an alert is pending
    "Watchdog": 0,
    "InfoInhibitor": 0,
    "TargetDown": 10,
    "KubeNodeUnschedulable": 5,
}
_USUAL_MINUTES = 15

Row = tuple[str, dict[str, str]]


@dataclass
class Prometheus:
    """Call `run` in a task. `more` are further alerts that a test switches on and off."""

    world: World
    more: list[Alert] = field(default_factory=list)
    active: tuple[Alert, ...] = ()
    _since: dict[str, float] = field(default_factory=dict)

    async def active_alerts(self) -> tuple[Alert, ...]:
        return self.active

    async def samples(self, query: str, *, fresh_seconds: float) -> tuple[Sample, ...]:
        assert query == "ceph_health_status"
        status, at = float(bool(self.osds_down())), START.timestamp() + self.world.now
        return (Sample(value=status, age_seconds=5.0, evaluated_at=at, labels={"job": "rook-ceph-mgr"}),)

    async def run(self) -> None:
        while True:
            self.evaluate()
            await asyncio.sleep(EVALUATION_SECONDS)

    def evaluate(self) -> None:
        now, rows = (
            self.world.now,
            {f"{name} {sorted(labels.items())}": (name, labels) for name, labels in self._true()},
        )
        self._since = {key: self._since.get(key, now) for key in rows}
        found = []
        for key, (name, labels) in rows.items():
            is_firing = now - self._since[key] >= 60.0 * _MINUTES.get(name, _USUAL_MINUTES)
            found.append(Alert(name=name, state="firing" if is_firing else "pending", labels=labels))
        self.active = (*found, *self.more)

    def _true(self) -> Iterator[Row]:
        """The expressions that are true now."""
        world, server = self.world, self.world.server
        yield "Watchdog", {"severity": "none"}
        for kind, label, name in (
            ("replicasets", "deployment", "KubeDeploymentReplicasMismatch"),
            ("statefulsets", "statefulset", "KubeStatefulSetReplicasMismatch"),
        ):
            for each in server.all(kind):
                if each["status"].get("readyReplicas", 0) < each["spec"]["replicas"]:
                    pod = {"pod": "kube-state-metrics-6c4d-x7v2p", "severity": "warning"}
                    yield name, {**STATE_METRICS, **pod, "namespace": NAMESPACE, label: each["metadata"]["name"]}
        for pod in server.all("pods"):
            if pod["status"].get("phase") in ("Pending", "Unknown"):
                meta = pod["metadata"]
                yield "KubePodNotReady", {"namespace": meta["namespace"], "pod": meta["name"], "severity": "warning"}
        for node in server.all("nodes"):
            name = node["metadata"]["name"]
            if node["spec"].get("unschedulable"):
                yield "KubeNodeUnschedulable", {**STATE_METRICS, "node": name, "severity": "info"}
                yield "InfoInhibitor", {**STATE_METRICS, "node": name, "severity": "none"}
            if not world.fleet.hosts[name].is_up:
                yield "KubeNodeNotReady", {**STATE_METRICS, "node": name, "severity": "warning"}
                yield "TargetDown", {"job": "node-exporter", "namespace": "monitoring", "service": "node-exporter"}

    # Ceph ----------------------------------------------------------------------------------------------------

    def add_osds(self) -> None:
        for name in self.world.shape.names:
            self._put_osd(name)

    def osds_down(self) -> list[str]:
        """Return the nodes whose OSD does not run."""
        return [name for name in self.world.shape.names if not self._runs(name)]

    async def restart_osds(self) -> None:
        """The OSD's controller: its pod can run only on its node."""
        while True:
            await asyncio.sleep(1.0)
            for name in self.osds_down():
                spec = (self.world.server.get("nodes", name) or {}).get("spec", {})
                is_free = self.world.server.get("pods", f"osd-{name}", NAMESPACE) is None
                if is_free and not spec.get("unschedulable") and self.world.fleet.hosts[name].is_up:
                    self._put_osd(name)

    def _runs(self, name: str) -> bool:
        pod: dict[str, Any] | None = self.world.server.get("pods", f"osd-{name}", NAMESPACE)
        is_there = pod is not None and not pod["metadata"].get("deletionTimestamp")
        return is_there and self.world.fleet.hosts[name].is_up

    def _put_osd(self, name: str) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"osd-{name}", "uid": f"uid-osd-{name}"}
        meta = {
            "name": f"osd-{name}",
            "namespace": NAMESPACE,
            "labels": {"app": f"osd-{name}"},
            "ownerReferences": [{**owner, "controller": True}],
        }
        self.world.server.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": meta,
                "spec": {
                    "nodeName": name,
                    "terminationGracePeriodSeconds": 5,
                    "containers": [{"name": "osd", "image": "ceph", "resources": {"requests": {"cpu": "100m"}}}],
                },
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            },
            actor="rook",
        )

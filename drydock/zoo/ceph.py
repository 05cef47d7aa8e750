"""Rook: one OSD for each node, budgets that follow the OSD that is down, and a health metric that is bad meanwhile.

Source: Rook `design/ceph/ceph-managed-disruptionbudgets.md`; `ceph_health_status` of Ceph's module prometheus.
"""

from __future__ import annotations

from drydock.controllers.control_loop import Controller
from drydock.server.kinds.object_rules import Object
from drydock.server.verbs import Verbs
from drydock.zoo.citizen import (
    Citizen,
    Habitat,
    Stopwatch,
    budget,
    is_up,
    keep_budget,
    pods_of_the_zoo,
    serves,
    template,
    workload,
)

_ACTOR = "rook-ceph-operator"
_RECOVERY_SECONDS = 20.0
HEALTH_OK, HEALTH_WARN, HEALTH_ERR = 0.0, 1.0, 2.0


def rook_ceph(habitat: Habitat) -> Citizen:
    """With one failure domain down Ceph warns; with two it has an error."""
    operator = _Operator(habitat)
    return Citizen(
        name="rook-ceph",
        objects=tuple(_osd(node) for node in habitat.nodes),
        controllers=(
            Controller(name=_ACTOR, watches=("nodes", "pods", "poddisruptionbudgets"), reconcile=operator.reconcile),
        ),
        series=lambda verbs: [({"__name__": "ceph_health_status", "job": "rook-ceph-mgr"}, operator.health(verbs))],
    )


def osd(node: str) -> str:
    return f"rook-ceph-osd-{node}"


def _osd(node: str) -> Object:
    name = osd(node)
    tolerations = [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]
    pods = template(name, nodeSelector={"kubernetes.io/hostname": node}, tolerations=tolerations)
    labels = {**pods["metadata"]["labels"], "ceph": "osd", "topology-location-host": node}
    return workload("Deployment", name, 1, {**pods, "metadata": {"labels": labels}})


class _Operator:
    def __init__(self, habitat: Habitat) -> None:
        self._habitat = habitat
        self._back_for = Stopwatch()
        self._recovering: set[str] = set()
        self._have_begun = False

    def reconcile(self, verbs: Verbs) -> float | None:
        """While a failure domain is down or recovers, every other one has a budget of zero."""
        down = self._down(verbs)
        keep_budget(verbs, budget("rook-ceph-osd", {"ceph": "osd"}, maxUnavailable=1), stands=not down, actor=_ACTOR)
        for node in self._habitat.nodes:
            blocking = budget(
                f"rook-ceph-osd-host-{node}", {"ceph": "osd", "topology-location-host": node}, maxUnavailable=0
            )
            keep_budget(verbs, blocking, stands=bool(down) and node not in down, actor=_ACTOR)
        return self._habitat.resync if down else None

    def health(self, verbs: Verbs) -> float:
        return (HEALTH_OK, HEALTH_WARN, HEALTH_ERR)[min(2, len(self._down(verbs)))]

    def _down(self, verbs: Verbs) -> list[str]:
        """The nodes whose OSD does not run or is not yet clean. A fresh cluster is clean once all OSDs run."""
        served = {
            pod["metadata"]["labels"]["topology-location-host"]
            for pod in pods_of_the_zoo(verbs)
            if pod["metadata"]["labels"].get("ceph") == "osd" and serves(pod) and is_up(verbs, pod["spec"]["nodeName"])
        }
        if not self._have_begun:
            self._have_begun = len(served) == len(self._habitat.nodes)
            return []
        return [node for node in self._habitat.nodes if not self._is_clean(verbs, node, is_served=node in served)]

    def _is_clean(self, verbs: Verbs, node: str, *, is_served: bool) -> bool:
        if not is_served:
            self._recovering.add(node)
        back = self._back_for.seconds(verbs, node, holds=is_served and node in self._recovering)
        if back >= self._habitat.seconds(_RECOVERY_SECONDS):
            self._recovering.discard(node)
        return node not in self._recovering

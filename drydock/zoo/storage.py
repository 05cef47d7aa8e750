"""Longhorn: a budget of zero for each node's instance manager, until the node is cordoned and its volumes are detached.
Portworx: a storage pod that its operator binds to its node and creates again at once, also on a cordoned one.

Source: longhorn-manager, `controller/instance_manager_controller.go` (syncInstanceManagerPDB), with the default node
drain policy block-if-contains-last-replica; longhorn/longhorn#3459 for pods that return.
"""

from __future__ import annotations

from drydock.controllers.control_loop import Controller
from drydock.server.verbs import Verbs
from drydock.zoo.citizen import (
    Citizen,
    Habitat,
    Stopwatch,
    budget,
    create_pod,
    is_cordoned,
    is_up,
    keep_budget,
    node_named,
    owner,
    pod_named,
    serves,
    template,
    workload,
)
from drydock.zoo.volumes import attach_detach, attached_to, with_volume

_ACTOR = "longhorn-manager"
_DRIVER = "driver.longhorn.io"
_DETACH_SECONDS = 5.0
_REBUILD_SECONDS = 20.0


def longhorn(habitat: Habitat, *, is_single: bool = False) -> Citizen:
    """Each volume has a replica on its own node of the list and on the next one. With `is_single`, one volume has its
    only replica on the first node."""
    manager = _Manager(habitat, single=habitat.nodes[0] if is_single else "")
    pods = with_volume(template("shelf"), _DRIVER, "pvc-*")
    return Citizen(
        name="longhorn-single" if is_single else "longhorn",
        objects=(workload("StatefulSet", "shelf", len(habitat.nodes), pods, serviceName="shelf"),),
        controllers=(
            attach_detach(habitat, _DRIVER, _DETACH_SECONDS),
            Controller(
                name=_ACTOR,
                watches=("nodes", "pods", "poddisruptionbudgets", "volumeattachments"),
                reconcile=manager.reconcile,
            ),
        ),
    )


def portworx(habitat: Habitat) -> Citizen:
    """The storage pods have one budget, which their operator owns."""
    cluster = owner("core.libopenstorage.org/v1", "StorageCluster", "px")
    tolerations = [{"operator": "Exists"}]

    def reconcile(verbs: Verbs) -> None:
        for node in habitat.nodes:
            if pod_named(verbs, f"px-{node}") is None and is_up(verbs, node):
                pods = template("px-storage", tolerations=tolerations)
                create_pod(verbs, f"px-{node}", pods, actor="px-operator", controller=cluster, nodeName=node)

    return Citizen(
        name="portworx",
        objects=(budget("px-storage", {"app": "px-storage"}, controller=cluster, minAvailable=len(habitat.nodes) - 1),),
        controllers=(Controller(name="px-operator", watches=("nodes", "pods"), reconcile=reconcile),),
    )


def instance_manager(node: str) -> str:
    return f"instance-manager-{node}"


class _Manager:
    def __init__(self, habitat: Habitat, *, single: str = "") -> None:
        self._habitat = habitat
        self._single = single
        self._healthy_for = Stopwatch()

    def reconcile(self, verbs: Verbs) -> float | None:
        healthy = {node for node in self._habitat.nodes if self._has_healthy_replicas(verbs, node)}
        for node in self._habitat.nodes:
            self._keep_instance_manager(verbs, node)
            name = instance_manager(node)
            may_go = (
                is_cordoned(verbs, node)
                and not attached_to(verbs, node, _DRIVER)
                and not self._has_a_last_replica(node, healthy)
            )
            wanted = budget(name, {"app": name}, minAvailable=1)
            keep_budget(verbs, wanted, stands=pod_named(verbs, name) is not None and not may_go, actor=_ACTOR)
        return self._habitat.resync if len(healthy) < len(self._habitat.nodes) else None

    def _keep_instance_manager(self, verbs: Verbs, node: str) -> None:
        """Longhorn disables a cordoned node, and starts no instance manager there."""
        name = instance_manager(node)
        if pod_named(verbs, name) is None and is_up(verbs, node) and not is_cordoned(verbs, node):
            controller = owner("longhorn.io/v1beta2", "InstanceManager", name)
            labels = {"longhorn.io/component": "instance-manager", "longhorn.io/node": node}
            create_pod(verbs, name, template(name), actor=_ACTOR, controller=controller, labels=labels, nodeName=node)

    def _has_healthy_replicas(self, verbs: Verbs, node: str) -> bool:
        """After the instance manager has started, the replicas on its node are rebuilt. Replicas that existed when the
        cluster began are healthy."""
        is_served = node_named(verbs, node) is not None and serves(pod_named(verbs, instance_manager(node)))
        seconds = self._healthy_for.seconds(verbs, node, holds=is_served)
        began = verbs.store.clock() < self._habitat.seconds(_REBUILD_SECONDS)
        return is_served and (began or seconds >= self._habitat.seconds(_REBUILD_SECONDS))

    def _has_a_last_replica(self, node: str, healthy: set[str]) -> bool:
        nodes = self._habitat.nodes
        index = nodes.index(node)
        others = (nodes[index - 1], nodes[(index + 1) % len(nodes)])
        return node == self._single or (node in healthy and any(other not in healthy for other in others))

"""What a kubelet does with the pods that stay on a node: static pods, and DaemonSet pods after a graceful shutdown.

Source: kubelet `pkg/kubelet/nodeshutdown` (the status and its words), `pkg/kubelet/pod/mirror_client.go`.
"""

from __future__ import annotations

from enum import StrEnum

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import OTHER_CONTROLLER, PODS, owner_reference
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content
from drydock.server.verbs import DeleteOptions, Verbs
from drydock.zoo.citizen import (
    NAMESPACE,
    Citizen,
    Habitat,
    budget,
    create_pod,
    is_cordoned,
    is_up,
    node_named,
    pod_named,
    serves,
    template,
    workload,
    write_pod_status,
)

_SETS = resource_named("daemonsets")
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_KUBELET, _CONTROLLER = "system:kubelet", "system:daemonset-controller"


def static_etcd(habitat: Habitat) -> Citizen:
    """The mirror pod of a stacked etcd on each control-plane node. Its kubelet creates it again if it is missing."""

    def reconcile(verbs: Verbs) -> None:
        for name in habitat.nodes:
            node = node_named(verbs, name)
            if node is None or _CONTROL_PLANE not in (node["metadata"].get("labels") or {}) or not is_up(verbs, name):
                continue
            if pod_named(verbs, f"etcd-{name}") is None:
                create_pod(
                    verbs,
                    f"etcd-{name}",
                    template("etcd", ready_after=5, priorityClassName="system-node-critical"),
                    actor=_KUBELET,
                    controller=owner_reference(node),
                    labels={"component": "etcd", "tier": "control-plane"},
                    annotations={"kubernetes.io/config.mirror": "a1b2", "kubernetes.io/config.source": "file"},
                    nodeName=name,
                    tolerations=[{"operator": "Exists", "effect": "NoExecute"}],
                )

    return Citizen(
        name="static-etcd", controllers=(Controller(name=_KUBELET, watches=("nodes", "pods"), reconcile=reconcile),)
    )


def guard_pods(habitat: Habitat) -> Citizen:
    """OpenShift's guards: on each node a pod without an owner, bound to it, which its operator creates again once the
    node is in service, and a budget for all guards together."""

    def reconcile(verbs: Verbs) -> None:
        for name in habitat.nodes:
            if pod_named(verbs, f"guard-{name}") is None and is_up(verbs, name) and not is_cordoned(verbs, name):
                create_pod(verbs, f"guard-{name}", template("guard"), actor="guard-controller", nodeName=name)

    return Citizen(
        name="openshift-guards",
        objects=(budget("guard", {"app": "guard"}, minAvailable=len(habitat.nodes) - 1),),
        controllers=(Controller(name="guard-controller", watches=("nodes", "pods"), reconcile=reconcile),),
    )


class AfterBoot(StrEnum):
    """How a DaemonSet's pod looks for some time after a boot."""

    FAILED = "failed"  # the pod of the last boot, as the shutdown left it
    LATE = "late"  # a new pod, which is not ready yet
    MISSING = "missing"  # no pod
    COMPLETED = "completed"  # the pod of the last boot, Succeeded, which nobody replaces (kubernetes#117018)


_ENDED = (AfterBoot.FAILED, AfterBoot.COMPLETED)


def graceful_shutdown(habitat: Habitat, *, how: AfterBoot = AfterBoot.FAILED, seconds: float = 90.0) -> Citizen:
    """A DaemonSet `cni`. The shutdown ends its pods in the phase Failed; its controller replaces them `seconds` after
    the boot."""
    keeper = _DaemonPods(habitat, how, seconds)
    manifest = workload("DaemonSet", "cni", 0)
    metadata = {**manifest["metadata"], "annotations": {OTHER_CONTROLLER: "zoo"}}
    return Citizen(
        name=f"graceful-shutdown-{how.value}",
        objects=({**manifest, "metadata": metadata},),
        controllers=(Controller(name=_CONTROLLER, watches=("nodes", "pods"), reconcile=keeper.reconcile),),
    )


class _DaemonPods:
    def __init__(self, habitat: Habitat, how: AfterBoot, seconds: float) -> None:
        self._habitat = habitat
        self._how = how
        self._seconds = habitat.seconds(seconds)
        self._boots: dict[str, str] = {}
        self._booted_at: dict[str, float] = {}

    def reconcile(self, verbs: Verbs) -> float | None:
        found = verbs.store.get(_SETS.storage, (NAMESPACE, "cni"))
        if found is None:
            return None
        waits = [self._keep(verbs, found.content, node) for node in self._habitat.nodes]
        ready = sum(serves(pod_named(verbs, f"cni-{node}")) for node in self._habitat.nodes)
        size = len(self._habitat.nodes)
        status = {"desiredNumberScheduled": size, "currentNumberScheduled": size, "numberReady": ready}
        verbs.change(
            _SETS,
            NAMESPACE,
            "cni",
            lambda old: {**old, "status": {**old["status"], **status}},
            actor=_CONTROLLER,
            subresource="status",
        )
        return self._habitat.resync if any(waits) else None

    def _keep(self, verbs: Verbs, owner: Content, node: str) -> bool:
        """Whether the node's pod is not yet what it should be."""
        pod = pod_named(verbs, f"cni-{node}")
        if not is_up(verbs, node):
            if pod is not None and self._how in _ENDED:
                self._shut_down(verbs, pod)
            return False
        boot = str((node_named(verbs, node) or {})["status"]["nodeInfo"]["bootID"])
        if boot != self._boots.setdefault(node, boot):
            self._boots[node], self._booted_at[node] = boot, verbs.store.clock()
            self._replace(verbs, owner, node, pod)
        elif self._is_waiting(verbs, node):
            return True
        elif pod is None or pod["status"].get("phase") == "Failed":
            self._remove(verbs, pod)
            self._create(verbs, owner, node, ready_after=1)
        return self._is_waiting(verbs, node)

    def _is_waiting(self, verbs: Verbs, node: str) -> bool:
        since = self._booted_at.get(node)
        return since is not None and verbs.store.clock() - since < self._seconds

    def _replace(self, verbs: Verbs, owner: Content, node: str, pod: Content | None) -> None:
        if self._how in _ENDED and pod is not None:
            self._shut_down(verbs, pod)
            return
        self._remove(verbs, pod)
        if self._how is AfterBoot.LATE:
            self._create(verbs, owner, node, ready_after=round(self._seconds))

    def _shut_down(self, verbs: Verbs, pod: Content) -> None:
        status = {
            "phase": "Failed" if self._how is AfterBoot.FAILED else "Succeeded",
            "reason": "Terminated",
            "message": "Pod was terminated in response to imminent node shutdown.",
            "conditions": [{"type": "Ready", "status": "False", "reason": "PodFailed"}],
        }
        write_pod_status(verbs, pod, status, actor=_KUBELET)

    @staticmethod
    def _remove(verbs: Verbs, pod: Content | None) -> None:
        if pod is not None:
            verbs.delete(PODS, NAMESPACE, pod["metadata"]["name"], DeleteOptions(grace_seconds=0), actor=_CONTROLLER)

    @staticmethod
    def _create(verbs: Verbs, owner: Content, node: str, *, ready_after: int) -> None:
        create_pod(
            verbs,
            f"cni-{node}",
            template("cni", ready_after=ready_after),
            actor=_CONTROLLER,
            controller=owner_reference(owner),
            nodeName=node,
            tolerations=[{"operator": "Exists"}],
        )

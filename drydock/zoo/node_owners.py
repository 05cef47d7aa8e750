"""Controllers that regard Nodes and annotations as theirs: a cloud controller that deletes the Node of a host that is
down, a GitOps controller that reverts every annotation that is not in its repository, controllers that uncordon every
node, and a network that taints nodes which have just booted.

Sources: NVIDIA/gpu-operator#304, rancher/system-upgrade-controller#341, and Cilium's taint `agent-not-ready`."""

from __future__ import annotations

from drydock.controllers.control_loop import Controller
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.verbs import DeleteOptions, Verbs
from drydock.zoo.citizen import NODES, Citizen, Habitat, Stopwatch, is_cordoned, is_up, node_named

_SETS = resource_named("daemonsets")
_AGENT_NOT_READY = "node.cilium.io/agent-not-ready"


def cloud_controller(habitat: Habitat, *, seconds: float = 3.0) -> Citizen:
    """Deletes a Node that has not been ready for some seconds, because its instance does not run (`cloud-provider`,
    node lifecycle controller). The kubelet registers it again after the boot."""
    away = Stopwatch()

    def reconcile(verbs: Verbs) -> float | None:
        is_waiting = False
        for node in habitat.nodes:
            is_away = node_named(verbs, node) is not None and not is_up(verbs, node)
            if away.seconds(verbs, node, holds=is_away) >= habitat.seconds(seconds):
                verbs.delete(NODES, "", node, DeleteOptions(), actor="cloud-controller")
            else:
                is_waiting = is_waiting or is_away
        return habitat.resync / 2 if is_waiting else None

    return Citizen(
        name="cloud-controller",
        controllers=(Controller(name="cloud-controller", watches=("nodes",), reconcile=reconcile),),
    )


def cluster_autoscaler(habitat: Habitat, *, seconds: float = 8.0) -> Citizen:
    """Removes the first empty node: its Node gets a deletionTimestamp and goes later, and its machine never comes back
    (kubereboot/kured#1309)."""
    idle = Stopwatch()
    chosen: list[str] = []

    def reconcile(verbs: Verbs) -> float | None:
        for node in habitat.nodes:
            holds = node_named(verbs, node) is not None and (node in chosen or not is_up(verbs, node))
            waited = idle.seconds(verbs, node, holds=holds)
            if chosen in ([], [node]) and waited >= habitat.seconds(seconds):
                chosen[:] = [node]
                verbs.delete(NODES, "", node, DeleteOptions(), actor="cluster-autoscaler")
        return habitat.resync

    return Citizen(
        name="cluster-autoscaler",
        controllers=(Controller(name="cluster-autoscaler", watches=("nodes",), reconcile=reconcile),),
    )


def uncordoner(habitat: Habitat, *, most: int = 1, seconds: float = 4.0) -> Citizen:
    """Some seconds after a node was cordoned it makes the node schedulable again, whoever cordoned it: at the end of a
    work of its own, or (with `most`) again and again."""
    cordoned = Stopwatch()
    done: dict[str, int] = {}

    def reconcile(verbs: Verbs) -> float | None:
        watched = [node for node in habitat.nodes if done.get(node, 0) < most]
        for node in watched:
            if cordoned.seconds(verbs, node, holds=is_cordoned(verbs, node)) >= habitat.seconds(seconds):
                done[node] = done.get(node, 0) + 1
                verbs.change(NODES, "", node, _in_service, actor="driver-manager")
        return habitat.resync / 2 if any(is_cordoned(verbs, node) for node in watched) else None

    return Citizen(
        name="gpu-driver-manager" if most == 1 else "uncordoner",
        controllers=(Controller(name="driver-manager", watches=("nodes",), reconcile=reconcile),),
    )


def _in_service(old: Object) -> Object:
    return {**old, "spec": {**old["spec"], "unschedulable": False}}


def cilium(habitat: Habitat, *, seconds: float = 20.0) -> Citizen:
    """Taints a node that has booted, until its network works."""
    boots: dict[str, str] = {}
    away = Stopwatch()

    def reconcile(verbs: Verbs) -> float | None:
        is_waiting = False
        for name in habitat.nodes:
            node = node_named(verbs, name)
            if node is None or not is_up(verbs, name):
                continue
            boot = node["status"]["nodeInfo"]["bootID"]
            is_tainted = any(each["key"] == _AGENT_NOT_READY for each in node["spec"].get("taints") or ())
            if boot != boots.setdefault(name, boot):
                boots[name] = boot
                verbs.change(NODES, "", name, lambda old: _with_taint(old, is_there=True), actor="cilium-operator")
            elif away.seconds(verbs, name, holds=is_tainted) >= habitat.seconds(seconds):
                verbs.change(NODES, "", name, lambda old: _with_taint(old, is_there=False), actor="cilium-operator")
            is_waiting = is_waiting or is_tainted
        return habitat.resync if is_waiting else None

    return Citizen(
        name="cilium", controllers=(Controller(name="cilium-operator", watches=("nodes",), reconcile=reconcile),)
    )


def _with_taint(old: Object, *, is_there: bool) -> Object:
    taints = [each for each in old["spec"].get("taints") or () if each["key"] != _AGENT_NOT_READY]
    taints += [{"key": _AGENT_NOT_READY, "effect": "NoSchedule"}] if is_there else []
    return {**old, "spec": {**old["spec"], "taints": taints}}


def argo_cd(habitat: Habitat, *, seconds: float = 5.0, daemon_set: tuple[str, str] = ("careen", "careen")) -> Citizen:
    """Self-heals careen's DaemonSet with `Replace=true`: some seconds after a change it removes all annotations that
    the manifest does not have, so also the lock."""
    drifted = Stopwatch()
    manifest: dict[str, Object] = {}

    def reconcile(verbs: Verbs) -> float | None:
        found = verbs.store.get(_SETS.storage, daemon_set)
        if found is None:
            return None
        wanted = manifest.setdefault("annotations", dict(found.content["metadata"].get("annotations") or {}))
        is_other = (found.content["metadata"].get("annotations") or {}) != wanted
        if drifted.seconds(verbs, "annotations", holds=is_other) < habitat.seconds(seconds):
            return habitat.resync if is_other else None

        def edit(old: Object) -> Object:
            return {**old, "metadata": {**old["metadata"], "annotations": wanted}}

        verbs.change(_SETS, *daemon_set, edit, actor="argocd-controller")
        return None

    return Citizen(
        name="argo-cd",
        controllers=(Controller(name="argocd-controller", watches=("daemonsets",), reconcile=reconcile),),
    )

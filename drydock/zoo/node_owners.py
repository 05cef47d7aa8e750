"""Controllers that regard Nodes and annotations as theirs: a cloud controller that deletes the Node of a host that is
down, and a GitOps controller that reverts every annotation that is not in its repository."""

from __future__ import annotations

from drydock.controllers.control_loop import Controller
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.verbs import DeleteOptions, Verbs
from drydock.zoo.citizen import NODES, Citizen, Habitat, Stopwatch, is_up, node_named

_SETS = resource_named("daemonsets")


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

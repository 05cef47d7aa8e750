"""Volumes that stay on a node: the attach-detach controller detaches them late, local ones never leave it, and pods
with a finalizer that nobody removes keep terminating."""

from __future__ import annotations

from datetime import timedelta

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import PODS, is_going
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content
from drydock.server.verbs import DeleteOptions, Verbs, rfc3339
from drydock.zoo.citizen import (
    ENDS_AFTER,
    NAMESPACE,
    NODES,
    Citizen,
    Habitat,
    Stopwatch,
    budget,
    create_pod,
    node_named,
    pods_of_the_zoo,
    template,
    workload,
)

VOLUME = "zoo.example/volume"
"""The annotation with driver and name of the volume that a pod uses: `DRIVER^NAME`. Its value ends with the pod's own
name if it ends with `*`, as the claims of a StatefulSet do."""
ATTACHMENTS = resource_named("volumeattachments")
STUCK_POD = "report"
_CLAIMS, _VOLUMES = resource_named("persistentvolumeclaims"), resource_named("persistentvolumes")
_DRIVER = "csi.example"
_ACTOR = "system:attachdetach-controller"


def volume_of(pod: Content, driver: str) -> str:
    """The volume of this driver that the pod uses; "" if it uses none."""
    of, _, name = (pod["metadata"].get("annotations") or {}).get(VOLUME, "").partition("^")
    if of != driver:
        return ""
    return f"{name[:-1]}{pod['metadata']['name']}" if name.endswith("*") else name


def with_volume(pods: Object, driver: str, volume: str) -> Object:
    return {**pods, "metadata": {**pods["metadata"], "annotations": {VOLUME: f"{driver}^{volume}"}}}


def attached_to(verbs: Verbs, node: str, driver: str = "") -> list[str]:
    """The volumes that a VolumeAttachment attaches to the node."""
    return [
        item.content["spec"]["source"]["persistentVolumeName"]
        for item in verbs.store.items(ATTACHMENTS.storage)
        if item.content["spec"]["nodeName"] == node and driver in ("", item.content["spec"]["attacher"])
    ]


def attach_detach(habitat: Habitat, driver: str, detach_seconds: float) -> Controller:
    """Attaches the volumes of bound pods to their nodes. A volume that no pod of its node uses any more is unmounted at
    once (`volumesInUse`), and detached after `detach_seconds` (VolumeAttachment, `volumesAttached`)."""
    unused = Stopwatch()

    def reconcile(verbs: Verbs) -> float | None:
        used = {
            (volume, pod["spec"]["nodeName"])
            for pod in pods_of_the_zoo(verbs)
            if (volume := volume_of(pod, driver)) and pod["spec"].get("nodeName")
        }
        for volume, node in sorted(used):
            _attach(verbs, driver, volume, node)
        is_waiting = False
        for item in verbs.store.items(ATTACHMENTS.storage):
            spec = item.content["spec"]
            if spec["attacher"] != driver:
                continue
            place = (spec["source"]["persistentVolumeName"], spec["nodeName"])
            waited = unused.seconds(verbs, item.key[1], holds=place not in used)
            if waited >= habitat.seconds(detach_seconds):
                verbs.delete(ATTACHMENTS, "", item.key[1], DeleteOptions(), actor=_ACTOR)
            is_waiting = is_waiting or waited >= 0.0
        for node in habitat.nodes:
            _report(verbs, driver, node, sorted(volume for volume, where in used if where == node))
        return habitat.resync if is_waiting else None

    return Controller(name=_ACTOR, watches=("pods", "nodes", "volumeattachments"), reconcile=reconcile)


def _attach(verbs: Verbs, driver: str, volume: str, node: str) -> None:
    name = f"csi-{volume}-{node}"
    if verbs.store.get(ATTACHMENTS.storage, ("", name)) is None:
        source = {"persistentVolumeName": volume}
        made = {"metadata": {"name": name}, "spec": {"attacher": driver, "nodeName": node, "source": source}}
        verbs.create(ATTACHMENTS, "", made, actor=_ACTOR)
        attached = {"attached": True}
        verbs.change(ATTACHMENTS, "", name, lambda old: {**old, "status": attached}, actor=_ACTOR, subresource="status")


def _report(verbs: Verbs, driver: str, node: str, used: list[str]) -> None:
    if node_named(verbs, node) is None:
        return
    prefix = f"kubernetes.io/csi/{driver}^"
    mine = [{"name": f"{prefix}{volume}", "devicePath": ""} for volume in sorted(attached_to(verbs, node, driver))]

    def edit(old: Object) -> Object:
        status = old["status"]
        in_use = [name for name in status.get("volumesInUse", ()) if not name.startswith(prefix)]
        in_use += [f"{prefix}{volume}" for volume in used]
        attached = [each for each in status.get("volumesAttached", ()) if not each["name"].startswith(prefix)] + mine
        # sorted, or two drivers would write for ever
        shown = {"volumesInUse": sorted(in_use), "volumesAttached": sorted(attached, key=lambda each: each["name"])}
        rest = {key: value for key, value in status.items() if key not in shown}
        return {**old, "status": {**rest, **{key: value for key, value in shown.items() if value}}}

    verbs.change(NODES, "", node, edit, actor=_ACTOR, subresource="status")


def local_volume(name: str, node: str) -> tuple[Object, Object]:
    """A volume that exists on this node only, as TopoLVM and local-path make it, and the claim that is bound to it."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"local-{name}"},
        "spec": {
            **shared,
            "capacity": {"storage": "1Gi"},
            "local": {"path": f"/mnt/{name}"},
            "claimRef": {"namespace": NAMESPACE, "name": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
        "status": {"phase": "Bound"},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {**shared, "volumeName": f"local-{name}", "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }
    return volume, claim


def with_claim(name: str) -> Object:
    """The entry of `spec.volumes` for this claim."""
    return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


def home_of(verbs: Verbs, pod: Content) -> str:
    """The node that has the pod's local volume; "" if it has none."""
    for each in pod["spec"].get("volumes") or ():
        name = (each.get("persistentVolumeClaim") or {}).get("claimName", "")
        claim = verbs.store.get(_CLAIMS.storage, (NAMESPACE, name)) if name else None
        volume = verbs.store.get(_VOLUMES.storage, ("", claim.content["spec"]["volumeName"])) if claim else None
        if volume is not None and "nodeAffinity" in volume.content["spec"]:
            (term,) = volume.content["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
            return str(term["matchExpressions"][0]["values"][0])
    return ""


def late_volumes(habitat: Habitat, *, detach_seconds: float = 40.0) -> Citizen:
    """A StatefulSet whose volumes are detached long after their pods have gone."""
    pods = with_volume(template("ledger"), _DRIVER, "pv-*")
    return Citizen(
        name="late-volumes",
        objects=(workload("StatefulSet", "ledger", len(habitat.nodes), pods, serviceName="ledger"),),
        controllers=(attach_detach(habitat, _DRIVER, detach_seconds),),
    )


def redpanda(habitat: Habitat, *, seconds: float = 60.0) -> Citizen:
    """A StatefulSet whose pods have a finalizer. The operator removes it some time after the deletion, when it has
    moved the data away (redpanda-data/redpanda#10409)."""
    going = Stopwatch()
    pods = template("redpanda")
    pods = {**pods, "metadata": {**pods["metadata"], "finalizers": ["operator.redpanda.com/finalizer"]}}

    def reconcile(verbs: Verbs) -> float | None:
        is_waiting = False
        for pod in pods_of_the_zoo(verbs, app="redpanda"):
            is_going_away = is_going(pod)
            waited = going.seconds(verbs, pod["metadata"]["uid"], holds=is_going_away)
            if waited >= habitat.seconds(seconds):
                verbs.change(PODS, NAMESPACE, pod["metadata"]["name"], _without_finalizers, actor="redpanda-operator")
            is_waiting = is_waiting or is_going_away
        return habitat.resync if is_waiting else None

    return Citizen(
        name="redpanda",
        objects=(
            workload("StatefulSet", "redpanda", len(habitat.nodes), pods, serviceName="redpanda"),
            budget("redpanda", {"app": "redpanda"}, maxUnavailable=1),
        ),
        controllers=(Controller(name="redpanda-operator", watches=("pods",), reconcile=reconcile),),
    )


def long_goodbye(habitat: Habitat, *, seconds: int = 600, grace_seconds: int = 7200) -> Citizen:
    """A Deployment whose pods finish their work before they end, and have a grace period of hours (Azure/AKS#3008)."""
    pods = template("calculation", terminationGracePeriodSeconds=grace_seconds)
    pods = {**pods, "metadata": {**pods["metadata"], "annotations": {ENDS_AFTER: str(seconds)}}}
    return Citizen(name="long-goodbye", objects=(workload("Deployment", "calculation", len(habitat.nodes), pods),))


def stuck_pods(habitat: Habitat, *, node: str = "", days: float = 2.0) -> Citizen:
    """A pod on `node` (by default the first) that has been terminating for days: nobody removes its finalizer."""
    place = node or habitat.nodes[0]

    def arrive(verbs: Verbs) -> None:
        """No verb backdates a deletion, so the store is written directly."""
        create_pod(verbs, STUCK_POD, template(STUCK_POD), actor="person", nodeName=place)
        pod = verbs.read(PODS, NAMESPACE, STUCK_POD).content
        metadata = {
            **pod["metadata"],
            "deletionTimestamp": rfc3339(verbs.wall_clock() - timedelta(days=days)),
            "deletionGracePeriodSeconds": 0,
            "finalizers": ["reports.example/upload"],
        }
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
        content = {**pod, "metadata": metadata, "status": {**pod["status"], **status}}
        verbs.store.put(PODS.storage, (NAMESPACE, STUCK_POD), content, actor="person", verb="delete")

    return Citizen(name="stuck-pods", arrive=arrive)


def finish(verbs: Verbs) -> None:
    """Removes the finalizer of the stuck pod, as a person does. So the pod goes."""

    verbs.change(PODS, NAMESPACE, STUCK_POD, _without_finalizers, actor="person")


def _without_finalizers(old: Object) -> Object:
    return {**old, "metadata": {**old["metadata"], "finalizers": []}}

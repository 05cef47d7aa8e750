"""StatefulSets: pods with ordinals, one after another, never two of one name. Source: pkg/controller/statefulset.

A pod mounts the claim of a volume claim template if the claim exists. Others are ignored: the embedded cluster
provides no storage.
"""

from __future__ import annotations

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import (
    PODS,
    count,
    is_active,
    is_going,
    pod_from_template,
    pods_of,
    template_hash,
    write_status,
)
from drydock.server.evictions import pod_is_ready
from drydock.server.kinds.object_rules import Object
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content
from drydock.server.verbs import DeleteOptions, Verbs

_SETS = resource_named("statefulsets")
_CLAIMS = resource_named("persistentvolumeclaims")
_ACTOR = "system:statefulset-controller"


def reconcile(verbs: Verbs) -> None:
    for stored in verbs.store.items(_SETS.storage):
        if not is_going(stored.content):
            _reconcile_one(verbs, stored.content)


def _reconcile_one(verbs: Verbs, owner: Content) -> None:
    existing = {p["metadata"]["name"]: p for p in pods_of(verbs, owner)}
    revision = f"{owner['metadata']['name']}-{template_hash(owner['spec']['template'])}"
    _fill(verbs, owner, existing, revision)
    _shrink(verbs, owner, existing)
    active = [p for p in pods_of(verbs, owner) if is_active(p)]
    ready = count(active, pod_is_ready)
    current = count(active, lambda p: p["metadata"]["labels"].get("controller-revision-hash") == revision)
    status = {
        "replicas": len(active),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": current,
        "updatedReplicas": current,
        "currentRevision": revision,
        "updateRevision": revision,
        "observedGeneration": owner["metadata"]["generation"],
    }
    write_status(verbs, "statefulsets", owner, status, _ACTOR)


def _names(owner: Content) -> list[str]:
    start = (owner["spec"].get("ordinals") or {}).get("start", 0)
    return [f"{owner['metadata']['name']}-{start + i}" for i in range(owner["spec"]["replicas"])]


def _claimed(verbs: Verbs, owner: Content, pod: str) -> list[Object]:
    """The pod's volumes by the owner's templates."""
    names = [each["metadata"]["name"] for each in owner["spec"].get("volumeClaimTemplates") or ()]
    namespace = owner["metadata"]["namespace"]
    return [
        {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}}
        for name in names
        if verbs.store.get(_CLAIMS.storage, (namespace, f"{name}-{pod}")) is not None
    ]


def _fill(verbs: Verbs, owner: Content, existing: dict[str, Content], revision: str) -> None:
    """Replaces finished and creates missing pods, by ordinal. With OrderedReady, stops at the first that is not
    ready."""
    in_order = owner["spec"].get("podManagementPolicy") != "Parallel"
    for name in _names(owner):
        pod = existing.get(name)
        if pod is not None and not is_going(pod) and not is_active(pod):
            verbs.delete(PODS, owner["metadata"]["namespace"], name, DeleteOptions(), actor=_ACTOR)
        if pod is None:
            ordinal = name.rpartition("-")[2]
            labels = {
                "statefulset.kubernetes.io/pod-name": name,
                "apps.kubernetes.io/pod-index": ordinal,
                "controller-revision-hash": revision,
            }
            made = pod_from_template(owner, owner["spec"]["template"], name=name, labels=labels)
            volumes = [*(made["spec"].get("volumes") or ()), *_claimed(verbs, owner, name)]
            made["spec"] = {**made["spec"], "hostname": name, "subdomain": owner["spec"].get("serviceName", "")}
            made["spec"] |= {"volumes": volumes} if volumes else {}
            pod = verbs.create(PODS, owner["metadata"]["namespace"], made, actor=_ACTOR).content
        if in_order and not (is_active(pod) and pod_is_ready(pod)):
            return


def _shrink(verbs: Verbs, owner: Content, existing: dict[str, Content]) -> None:
    """Deletes surplus pods one at a time, the highest ordinal first."""
    surplus = sorted(
        (n for n in existing if n not in _names(owner)), key=lambda n: int(n.rpartition("-")[2]), reverse=True
    )
    if surplus and not is_going(existing[surplus[0]]):
        verbs.delete(PODS, owner["metadata"]["namespace"], surplus[0], DeleteOptions(), actor=_ACTOR)


CONTROLLER = Controller(name="statefulset", watches=("statefulsets", "pods"), reconcile=reconcile)

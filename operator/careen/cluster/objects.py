"""The few fields of API objects that careen reads, and their conversion to the values of `careen.core`.

A field without a default is in every response, because Go writes it even if it is empty (`json:"name"`, or a struct
that is not a pointer). A response without it is refused, and `wire/answers.py` reports it as unclear. A field that Go
omits when empty (`omitempty`) has a default.

Unknown fields are skipped, so a Node of 6 KB costs only the memory of the fields below. With `gc=False` the cyclic
collector does not walk thousands of objects that cannot form cycles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec

from careen.cluster.workloads.pod_parts import ContainerStatus, Volume, checksum, claims
from careen.cluster.workloads.selectors import selector_text
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, PodView, SignedNode, Taint
from careen.core.facts.progress import OwnerHealth
from careen.core.facts.times import LATEST, bounded, from_rfc3339

_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_MANAGERS: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class OwnerReference(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None


class Meta(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: float | None = None
    finalizers: list[str] | None = None


class ObjectHead(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """The metadata of any object."""

    metadata: Meta


class NodeTaint(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    key: str
    effect: str
    value: str | None = None
    time_added: str | None = None


class NodeSpec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    taints: list[NodeTaint] | None = None
    unschedulable: bool | None = None


class Condition(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    type: str
    status: str


class NodeSystemInfo(msgspec.Struct, gc=False, frozen=True, rename={"boot_id": "bootID", "kernel": "kernelVersion"}):
    boot_id: str = ""
    kernel: str = ""


class NodeAddress(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    type: str
    address: str


class VolumeName(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    name: str


class NodeCondition(Condition, gc=False, frozen=True, rename="camel"):
    last_transition_time: str | None = None


class NodeStatus(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    conditions: list[NodeCondition] | None = None
    addresses: list[NodeAddress] | None = None
    volumes_in_use: list[str] | None = None
    volumes_attached: list[VolumeName] | None = None
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    metadata: Meta
    spec: NodeSpec
    status: NodeStatus


class ManagedFields(msgspec.Struct, gc=False, frozen=True, rename={"fields": "fieldsV1"}):
    """A field manager and the fields that it owns, as paths such as `f:spec` → `f:unschedulable`."""

    manager: str = ""
    subresource: str = ""
    time: str | None = None
    fields: msgspec.Raw = msgspec.Raw(b"{}")


class ManagedMeta(Meta, gc=False, frozen=True, rename="camel"):
    managed_fields: list[ManagedFields] | None = None


class ManagedNode(Node, gc=False, frozen=True, rename="camel"):
    """`managedFields` double the size of a Node, so careen reads them for single Nodes, and in lists only for `careen
    cleanup` and `careen history`."""

    metadata: ManagedMeta


class _SpecFields(msgspec.Struct, gc=False, frozen=True):
    spec: dict[str, msgspec.Raw] = msgspec.field(name="f:spec", default_factory=dict)


class _MetaFields(msgspec.Struct, gc=False, frozen=True):
    labels: dict[str, msgspec.Raw] = msgspec.field(name="f:labels", default_factory=dict)
    annotations: dict[str, msgspec.Raw] = msgspec.field(name="f:annotations", default_factory=dict)


class _ObjectFields(msgspec.Struct, gc=False, frozen=True):
    metadata: _MetaFields = msgspec.field(name="f:metadata", default_factory=_MetaFields)


class Toleration(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class SpreadConstraint(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    topology_key: str = ""
    when_unsatisfiable: str | None = None


class PodSpec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    node_name: str = ""
    restart_policy: str = "Always"
    priority: int | None = None
    volumes: list[Volume] | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None


class PodStatus(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    phase: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None


class Pod(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    metadata: Meta
    spec: PodSpec
    status: PodStatus


class BoundSpec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """Only the node."""

    node_name: str = ""


class TemplateMeta(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    labels: dict[str, str] | None = None


class BoundTemplate(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    spec: BoundSpec
    metadata: TemplateMeta | None = None


class ManagedPod(Pod, gc=False, frozen=True, rename="camel"):
    """`managedFields` double the size of a Pod, so careen reads them only for the pods of one node."""

    metadata: ManagedMeta


class ReplicasSpec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    replicas: int | None = None
    parallelism: int | None = None  # a Job's number of pods
    selector: dict[str, Any] | None = None  # a ReplicationController's is a mapping of labels
    template: BoundTemplate | None = None


class ReplicasStatus(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    ready_replicas: int | None = None
    ready: int | None = None  # a Job's number of ready pods


class Workload(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """A controller of pods, of any kind."""

    metadata: Meta
    spec: ReplicasSpec
    status: ReplicasStatus


class DisruptionStatus(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class SelectorExpression(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class WrittenSelector(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorExpression] | None = None


class DisruptionSpec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    selector: WrittenSelector | None = None


class DisruptionBudget(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """Without a status (no controller has processed it yet) it allows no eviction."""

    metadata: Meta
    spec: DisruptionSpec = DisruptionSpec()
    status: DisruptionStatus = DisruptionStatus()


class Container(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    image: str = ""


class PodTemplateSpec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    containers: list[Container]


class PodTemplate(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    spec: PodTemplateSpec


class DaemonSetSpec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    template: PodTemplate


class DaemonSetStatus(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    desired_number_scheduled: int
    current_number_scheduled: int
    number_misscheduled: int


class DaemonSet(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    metadata: Meta
    spec: DaemonSetSpec
    status: DaemonSetStatus


class ConfigMap(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    metadata: Meta
    data: dict[str, str] | None = None


class LockObject(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """The DaemonSet that carries the lock, and how many nodes should run an agent."""

    metadata: Meta
    status: DaemonSetStatus


def node_view(node: Node, *, all_annotations: bool = True) -> NodeView:
    """The Node for `careen.core`. Without `all_annotations`, as in most lists, it has only careen's and kured's
    annotations, no history and no addresses: no decision needs those, and for thousands of Nodes they would take
    megabytes."""
    annotations = node.metadata.annotations or _NOTHING
    if not all_annotations:
        annotations = {
            key: value
            for key, value in annotations.items()
            if key.startswith((keys.PREFIX, "weave.works/")) and key != keys.HISTORY
        } or _NOTHING
    return NodeView(
        name=node.metadata.name,
        uid=node.metadata.uid,
        resource_version=node.metadata.resource_version,
        labels=node.metadata.labels or _NOTHING,
        annotations=annotations,
        taints=tuple(
            Taint(key=taint.key, effect=taint.effect, value=taint.value, time_added=taint.time_added)
            for taint in node.spec.taints or ()
        ),
        unschedulable=bool(node.spec.unschedulable),
        ready=_is_true(node.status.conditions, "Ready"),
        ready_since=_unready_since(node.status),
        agent_wrote=_agent_wrote(node),
        boot_id=node.status.node_info.boot_id,
        kernel=node.status.node_info.kernel,
        addresses=tuple(each.address for each in node.status.addresses or ()) if all_annotations else (),
        is_being_deleted=node.metadata.deletion_timestamp is not None,
        cordoned_by=_set_by(node, "f:unschedulable") if node.spec.unschedulable else (),
        cordoned_at=_set_at(node, "f:unschedulable") if node.spec.unschedulable else None,
        tainted_by=_set_by(node, "f:taints") if node.spec.taints else (),
        volumes=_volumes(node.status) if all_annotations else (),
        written_by=_written_by(node),
    )


def _unready_since(status: NodeStatus) -> datetime | None:
    """Since when Ready is not "True"; None if it is, or if that is unknown."""
    for each in status.conditions or ():
        if each.type == "Ready" and each.status != "True":
            return from_rfc3339(each.last_transition_time)
    return None


def _agent_wrote(node: Node) -> datetime | None:
    """The latest write of the managers that only agents have; None in lists, which leave managed fields out."""
    if not isinstance(node, ManagedNode):
        return None
    times = (
        from_rfc3339(each.time)
        for each in node.metadata.managed_fields or ()
        if each.manager in {keys.FIELD_MANAGER, keys.TAINT_MANAGER}
    )
    return max((at for at in times if at is not None), default=None)


def _volumes(status: NodeStatus) -> tuple[str, ...]:
    """The volumes that the kubelet uses, and those that the attach/detach controller has attached."""
    attached = (each.name for each in status.volumes_attached or ())
    return tuple(sorted({*(status.volumes_in_use or ()), *attached}))


def _written_by(node: Node) -> Mapping[str, tuple[str, ...]]:
    """The field managers of careen's labels and annotations, where the server records them."""
    found: dict[str, tuple[str, ...]] = {}
    for each in (node.metadata.managed_fields or ()) if isinstance(node, ManagedNode) else ():
        if each.subresource or keys.PREFIX.encode() not in bytes(each.fields):
            continue
        fields = _metadata_of(each)
        for path in (*fields.labels, *fields.annotations):
            if (key := path.removeprefix("f:")).startswith(keys.PREFIX):
                found[key] = tuple(sorted({*found.get(key, ()), each.manager}))
    return found or _NO_MANAGERS


def _set_by(node: Node, field: str) -> tuple[str, ...]:
    """The field managers that own this field of the spec; none if the server does not record them."""
    if not isinstance(node, ManagedNode):
        return ()
    return tuple(
        sorted(
            {each.manager for each in node.metadata.managed_fields or () if not each.subresource and _sets(each, field)}
        )
    )


def _set_at(node: Node, field: str) -> datetime | None:
    """When one of those managers last wrote the Node's spec; None in lists."""
    if not isinstance(node, ManagedNode):
        return None
    entries = (each for each in node.metadata.managed_fields or () if not each.subresource and _sets(each, field))
    return max((at for each in entries if (at := from_rfc3339(each.time)) is not None), default=None)


def signed_node(node: ManagedNode) -> SignedNode:
    """The Node with the field managers of its labels and annotations, as far as the server records them."""
    labels: dict[str, set[str]] = {}
    annotations: dict[str, set[str]] = {}
    for each in node.metadata.managed_fields or ():
        found = _metadata_of(each)
        for authors, fields in ((labels, found.labels), (annotations, found.annotations)):
            for path in fields:
                authors.setdefault(path.removeprefix("f:"), set()).add(each.manager)
    return SignedNode(
        node=node_view(node),
        labels_by={key: tuple(sorted(names)) for key, names in labels.items()},
        annotations_by={key: tuple(sorted(names)) for key, names in annotations.items()},
    )


def _metadata_of(managed: ManagedFields) -> _MetaFields:
    try:
        return msgspec.json.decode(managed.fields, type=_ObjectFields).metadata
    except msgspec.MsgspecError:
        return _MetaFields()


def _sets(managed: ManagedFields, field: str) -> bool:
    try:
        return field in msgspec.json.decode(managed.fields, type=_SpecFields).spec
    except msgspec.MsgspecError:
        return False


def pod_view(pod: Pod) -> PodView:
    """The Pod for `careen.core`."""
    meta = pod.metadata
    owner = controller_of(meta)
    return PodView(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels or _NOTHING,
        annotations=meta.annotations or _NOTHING,
        phase=pod.status.phase,
        owner_kind=owner.kind,
        owner_name=owner.name,
        owner_uid=owner.uid,
        owner_api_version=owner.api_version,
        is_mirror=keys.MIRROR_POD in (meta.annotations or _NOTHING),
        has_empty_dir=any(volume.empty_dir is not None for volume in pod.spec.volumes or ()),
        is_ready=is_ready(pod),
        priority=pod.spec.priority or 0,
        deletion_timestamp=_end(meta.deletion_timestamp),
        deletion_grace_seconds=_grace(meta.deletion_grace_period_seconds),
        created_at=None if meta.creation_timestamp is None else bounded(meta.creation_timestamp),
        tolerates_cordon=any(_tolerates_cordon(each) for each in pod.spec.tolerations or ()),
        spreads_over_zones=any(_spreads_over_zones(each) for each in pod.spec.topology_spread_constraints or ()),
        came_bound=_came_bound(pod),
        finalizers=tuple(meta.finalizers or ()),
        claims=claims(meta.name, pod.spec.volumes or ()),
        is_work=pod.spec.restart_policy != "Always",
        containers=checksum(meta.uid, pod.status.container_statuses or ()),
    )


def _end(at: datetime | None) -> datetime | None:
    """When a terminating pod should be gone. A time that is centuries away becomes the latest that careen can
    represent."""
    return None if at is None else bounded(at) or LATEST


def _grace(seconds: float | None) -> float | None:
    return None if seconds is None else min(max(0.0, seconds), _LONGEST_GRACE_SECONDS)


_LONGEST_GRACE_SECONDS = 100 * 365 * 86_400.0  # the pod's creator chooses it, up to 2⁶³ seconds


def _came_bound(pod: Pod) -> bool | None:
    """Whether the pod was created with `spec.nodeName`; None if unknown. A scheduler sets it later through
    `pods/binding`, for which the server records no field manager (pkg/registry/core/pod/storage/storage.go)."""
    if not isinstance(pod, ManagedPod) or not pod.metadata.managed_fields:
        return None
    return any(not each.subresource and _sets(each, "f:nodeName") for each in pod.metadata.managed_fields)


def _spreads_over_zones(constraint: SpreadConstraint) -> bool:
    return constraint.topology_key == keys.ZONE and constraint.when_unsatisfiable == "DoNotSchedule"


def _tolerates_cordon(toleration: Toleration) -> bool:
    """The taint is `unschedulable:NoSchedule` without a value, as in kube-scheduler (plugins/nodeunschedulable)."""
    is_named = toleration.key == keys.UNSCHEDULABLE or (not toleration.key and toleration.operator == "Exists")
    return (
        is_named
        and toleration.effect in ("", "NoSchedule")
        and (toleration.operator == "Exists" or not toleration.value)
    )


_NO_OWNER = OwnerReference(kind="", name="", uid="")


def controller_of(meta: Meta) -> OwnerReference:
    """Empty if the object has no controller."""
    return next((each for each in meta.owner_references or () if each.controller), _NO_OWNER)


def owner_health(kind: str, workload: Workload) -> OwnerHealth:
    """Wanted and ready replicas. If `replicas`, or a Job's `parallelism`, is not set, it is 1, the API's default."""
    wanted = workload.spec.parallelism if kind == "Job" else workload.spec.replicas
    ready = workload.status.ready if kind == "Job" else workload.status.ready_replicas
    return OwnerHealth(
        kind=kind,
        namespace=workload.metadata.namespace,
        name=workload.metadata.name,
        uid=workload.metadata.uid,
        generation=workload.metadata.generation,
        replicas=1 if wanted is None else wanted,
        ready=ready or 0,
        bound_to=workload.spec.template.spec.node_name if workload.spec.template is not None else "",
        parent="" if kind == "Job" else controller_of(workload.metadata).uid,
        selector="" if kind == "Job" else selector_text(workload.spec.selector),
    )


def is_ready(pod: Pod) -> bool:
    """Whether the pod's condition Ready is true."""
    return _is_true(pod.status.conditions, "Ready")


def _is_true(conditions: Sequence[Condition] | None, kind: str) -> bool:
    return any(condition.type == kind and condition.status == "True" for condition in conditions or ())

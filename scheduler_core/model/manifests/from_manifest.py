"""Pods, nodes, budgets and controllers: from JSON-like mappings or wire structures to the model.

fields.py reads shared parts, storage_from_manifest.py storage. No defaults are added: the API server has already added
them to existing objects, and the scheduler adds none either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import msgspec

from scheduler_core.arguments import expect_flags
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.labels import (
    NOTHING,
    NodeAffinityRules,
    equality_selector,
)
from scheduler_core.model.manifests import wire
from scheduler_core.model.manifests.error import FieldError, ManifestError, object_key
from scheduler_core.model.manifests.fields import (
    API_NAME,
    DISK_IDENTITY,
    amounts_nanos,
    label_selector,
    labels_of,
    node_affinity,
    seconds,
    template_labels,
    template_node,
)
from scheduler_core.model.manifests.job_from_manifest import index_failures
from scheduler_core.model.manifests.strict.checks import check_fields, check_kind, invalid_text, key_of_map
from scheduler_core.model.node import Node, NodeImage
from scheduler_core.model.pod import (
    Container,
    ContainerResize,
    HostPort,
    LegacyDisk,
    OwnerReference,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodResize,
    PodResourceClaim,
    PodSpec,
    PodVolume,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
    WrittenRefusal,
    wants_rest,
)
from scheduler_core.model.resources import whole_amounts
from scheduler_core.model.selecting_owner import SelectingOwner
from scheduler_core.model.taints import Taint, Toleration
from scheduler_core.values import Value

Manifest = Mapping[str, Any]
W = TypeVar("W", bound=wire.Wire)
M = TypeVar("M")


# ---- one function per kind, for a mapping ----


def pod_from_manifest(manifest: Manifest, *, strict: bool = True) -> Pod:
    """A pod from a mapping in the API's form. Raises ManifestError with the pod and the field that cannot be read, or,
    if `strict`, that no supported release has."""
    return _read(manifest, "Pod", wire.WirePod, PodReader().pod, strict=strict)


def node_from_manifest(manifest: Manifest, *, strict: bool = True) -> Node:
    """A node from a mapping in the API's form. Raises ManifestError as `pod_from_manifest` does."""
    return _read(manifest, "Node", wire.WireNode, node, strict=strict)


def budget_from_manifest(manifest: Manifest, *, strict: bool = True) -> DisruptionBudget:
    """Raises ManifestError as `pod_from_manifest` does."""
    return _read(manifest, "PodDisruptionBudget", wire.WireBudget, budget, strict=strict)


def node_affinity_from_manifest(manifest: Manifest | None) -> NodeAffinityRules | None:
    """A nodeAffinity outside of a pod, such as a profile's addedAffinity."""
    if manifest is None:
        return None
    return node_affinity(convert(manifest, "NodeAffinity", wire.WireNodeAffinity))


def spread_constraint_from_manifest(manifest: Manifest) -> TopologySpreadConstraint:
    """A topologySpreadConstraint outside of a pod, such as a profile's default constraint."""
    return spread_constraint(convert(manifest, "TopologySpreadConstraint", wire.WireSpread))


def _read(manifest: Manifest, kind: str, shape: type[W], build: Callable[[W], M], *, strict: bool) -> M:
    expect_flags(strict=strict)
    check_kind(kind, manifest, manifest_key(manifest))
    if strict:
        check_fields(kind, manifest, manifest_key(manifest))
    written = convert(manifest, kind, shape)
    if not (manifest.get("metadata") or {}).get("name"):
        problem = "an object needs a name"
        raise ManifestError(kind=kind, key=manifest_key(manifest), field="metadata.name", problem=problem)
    try:
        return build(written)
    except FieldError as trouble:
        raise ManifestError(
            kind=kind, key=manifest_key(manifest), field=trouble.field, problem=trouble.problem
        ) from trouble
    except UnicodeError:
        raise invalid_text(kind, manifest, manifest_key(manifest)) from None


def convert(manifest: Manifest, kind: str, shape: type[W]) -> W:
    """Raises ManifestError for a field with a value of another type."""
    try:
        return msgspec.convert(manifest, shape, strict=True)
    except msgspec.ValidationError as trouble:
        text, _, path = str(trouble).partition(" - at `$")
        field = key_of_map(manifest, path.lstrip(".").rstrip("`"), text)
        raise ManifestError(kind=kind, key=manifest_key(manifest), field=field, problem=text) from trouble
    except UnicodeError:
        raise invalid_text(kind, manifest, manifest_key(manifest)) from None


def manifest_key(manifest: object) -> str:
    """ "namespace/name", or only the name if the object has no namespace."""
    metadata = manifest.get("metadata") if isinstance(manifest, Mapping) else None
    if not isinstance(metadata, Mapping):
        return "without a name"
    name = str(metadata.get("name") or "without a name")
    return object_key(metadata.get("namespace"), name)


# ---- pods ----


def spread_constraint(written: wire.WireSpread) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=written.max_skew,
        topology_key=written.topology_key,
        when_unsatisfiable=written.when_unsatisfiable or "DoNotSchedule",
        selector=label_selector(written.label_selector),
        min_domains=written.min_domains,
        honors_affinity=written.node_affinity_policy != "Ignore",
        honors_taints=written.node_taints_policy == "Honor",
        match_label_keys=written.match_label_keys or (),
    )


_NAMES: Final = 16384  # Enough for the largest supported clusters, 5,000 nodes and 10,000 namespaces.


class _SharedLabels(dict[str, str]):
    """The labels of all pods with equal labels. A subclass of dict, because a plain dict cannot have weak
    references."""

    __slots__ = ("__weakref__",)


class StatusFields(Value, kw_only=True):
    """What scheduling reads of a pod's status, except the start time."""

    phase: str = "Pending"
    nominated_node_name: str = ""
    is_ready: bool = False
    is_preempted: bool = False
    refusal: WrittenRefusal | None = None
    resize: PodResize | None = None
    generated_claims: tuple[tuple[str, str | None], ...] = ()


_NO_STATUS: Final = StatusFields()


class SharedParts(Value, kw_only=True):
    """What is equal for all pods of a template."""

    labels: Mapping[str, str]
    owner: OwnerReference | None
    spec: PodSpec


class PodReader:
    """Equal specs become one object, and so do equal label sets.

    Most pods are copies of a few templates, so each spec is read once for each template. A spec or a label set is
    forgotten when no pod uses it any more.
    """

    def __init__(self) -> None:
        self._specs: WeakValueDictionary[object, PodSpec] = WeakValueDictionary()
        self._labels: WeakValueDictionary[tuple[tuple[str, str], ...], _SharedLabels] = WeakValueDictionary()
        self._owners: WeakValueDictionary[wire.WireOwner, OwnerReference] = WeakValueDictionary()
        self._resizes: WeakValueDictionary[object, PodResize] = WeakValueDictionary()
        self._names: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._specs) + len(self._labels) + len(self._owners) + len(self._resizes)

    def pod(self, written: wire.WirePod) -> Pod:
        """Raises FieldError for a quantity or time that cannot be read."""
        meta, spec, status = written.metadata, written.spec, written.status
        parts = SharedParts(
            labels=self.shared_labels(meta.labels),
            owner=self.controller(meta.owner_references),
            spec=self.shared_spec(spec, meta.namespace or "default"),
        )
        return self.assembled(meta, parts, spec, status, node_name=spec.node_name)

    def assembled(
        self,
        meta: wire.WireIdentity,
        parts: SharedParts,
        spec: wire.WirePodSpec,
        status: wire.WirePodStatus | None,
        *,
        node_name: str,
    ) -> Pod:
        """A pod from its own metadata, status and node name, and `parts`, which other pods share. Raises FieldError for
        an amount or time that cannot be read."""
        fields = _NO_STATUS if status is None else self._status_fields(status, spec)
        return Pod(
            name=meta.name,
            namespace=self._shared_name(meta.namespace or "default"),
            uid=meta.uid,
            labels=parts.labels,
            spec=parts.spec,
            owner=parts.owner,
            node_name=self._shared_name(node_name),
            nominated_node_name=fields.nominated_node_name,
            phase=fields.phase,
            terminating=meta.deletion_timestamp is not None,
            start_time=None if status is None else seconds(status.start_time, "status.startTime"),
            is_mirror=bool(meta.annotations) and "kubernetes.io/config.mirror" in (meta.annotations or ()),
            is_ready=fields.is_ready,
            preempted_by_scheduler=fields.is_preempted,
            resize=fields.resize,
            generated_claims=fields.generated_claims,
            wants_rest=wants_rest(meta.annotations) if meta.annotations else "",
            index_failures=index_failures(meta.annotations) if meta.annotations else 0,
            refusal=None if node_name else fields.refusal,
        )

    def _status_fields(self, status: wire.WirePodStatus, spec: wire.WirePodSpec) -> StatusFields:
        is_ready, is_preempted, refusal = _conditions(status.conditions or ())
        return StatusFields(
            phase=self._shared_name(status.phase or "Pending"),
            nominated_node_name=status.nominated_node_name or "",
            is_ready=is_ready,
            is_preempted=is_preempted,
            refusal=refusal,
            resize=self._shared_resize(status, spec),
            generated_claims=tuple((c.name, c.resource_claim_name) for c in status.resource_claim_statuses or ()),
        )

    def _shared_name(self, name: str) -> str:
        """One string object for equal names of nodes, namespaces or phases. When there are too many, all are forgotten
        at once: strings cannot have weak references."""
        known = self._names.get(name)
        if known is None:
            if len(self._names) >= _NAMES:
                self._names.clear()
            known = self._names[name] = name
        return known

    def shared_labels(self, written: wire.Pairs | None) -> wire.Pairs:
        """One object for all pods with equal labels."""
        if not written:
            return {}
        key = tuple(sorted(written.items()))
        known = self._labels.get(key)
        if known is None:
            known = self._labels[key] = _SharedLabels(written)
        return known

    def controller(self, owners: tuple[wire.WireOwner, ...] | None) -> OwnerReference | None:
        """The owner that controls the pod, or None; one object for all its pods."""
        found = next((o for o in owners or () if o.controller), None)
        if found is None:
            return None
        known = self._owners.get(found)
        if known is None:
            known = self._owners[found] = OwnerReference(found.api_version, found.kind, found.name, found.uid)
        return known

    def _shared_resize(self, status: wire.WirePodStatus, spec: wire.WirePodSpec) -> PodResize | None:
        """None if the status repeats the resources of the spec, as nearly every pod's does."""
        if _repeats_spec(status, spec):
            return None
        key = tuple(
            (c.name, _resources_identity(c.resources), _items(c.allocated_resources))
            for c in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        )
        whole = (
            key,
            _resources_identity(status.resources),
            _items(status.allocated_resources),
            _resize_is_infeasible(status),
        )
        known = self._resizes.get(whole)
        if known is None:
            known = _resize(status)
            if known is not None:
                self._resizes[whole] = known
        return known

    def shared_spec(self, written: wire.WirePodSpec, namespace: str) -> PodSpec:
        """Equal specs become one object. Raises FieldError for an amount that cannot be read."""
        key = _spec_identity(written, namespace)
        known = self._specs.get(key)
        if known is None:
            known = self._specs[key] = pod_spec(written, namespace)
        return known


def _conditions(conditions: tuple[wire.WireCondition, ...]) -> tuple[bool, bool, WrittenRefusal | None]:
    """Whether the pod is ready, whether preemption is deleting it, and why the scheduler refused it."""
    ready = preempted = False
    refusal = None
    for condition in conditions:
        if condition.status == "True":
            ready |= condition.type == "Ready"
            preempted |= condition.type == "DisruptionTarget" and condition.reason == "PreemptionByScheduler"
        elif condition.type == "PodScheduled" and condition.status == "False":
            refusal = WrittenRefusal(condition.reason or "", condition.message or "")
    return ready, preempted, refusal


def _spec_identity(written: wire.WirePodSpec, namespace: str) -> object:
    """Equal for two specs if scheduling cannot distinguish them: without the node's name, and without volumes of kinds
    that scheduling does not read."""
    volumes = tuple(
        v for v in written.volumes or () if v != wire.WireVolume(v.name)
    )  # a volume with only a name is of a kind that scheduling does not read
    return (
        namespace,
        tuple(_container_identity(c) for c in written.containers or ()),
        tuple(_container_identity(c) for c in written.init_containers or ()),
        _items(written.overhead),
        _resources_identity(written.resources),
        written.scheduler_name,
        written.priority,
        written.preemption_policy,
        _items(written.node_selector),
        msgspec.json.encode(written.affinity) if written.affinity is not None else None,
        written.tolerations,
        msgspec.json.encode(written.topology_spread_constraints) if written.topology_spread_constraints else None,
        volumes,
        written.scheduling_gates,
        written.resource_claims,
        written.host_network,
        written.host_users,
        bool(written.scheduling_group or written.workload_ref),
    )


def _container_identity(written: wire.WireContainer) -> object:
    return (
        written.name,
        written.image,
        _resources_identity(written.resources),
        written.ports,
        written.restart_policy,
        written.restart_policy_rules,
    )


def _resources_identity(written: wire.WireResources | None) -> object:
    return None if written is None else (_items(written.requests), _items(written.limits))


def _items(written: Mapping[str, Any] | None) -> object:
    return tuple(written.items()) if written else None


def pod_spec(written: wire.WirePodSpec, namespace: str) -> PodSpec:
    """An affinity term without namespaces gets this namespace."""
    affinity = written.affinity or wire.WireAffinity()
    pod_level = written.resources
    return PodSpec(
        containers=tuple(_container(c, f"spec.containers[{i}]") for i, c in enumerate(written.containers or ())),
        init_containers=tuple(
            _container(c, f"spec.initContainers[{i}]") for i, c in enumerate(written.init_containers or ())
        ),
        overhead=amounts_nanos(written.overhead, "spec.overhead"),
        pod_level_requests=None if pod_level is None else amounts_nanos(pod_level.requests, "spec.resources.requests"),
        pod_level_limits=None if pod_level is None else amounts_nanos(pod_level.limits, "spec.resources.limits"),
        scheduler_name=written.scheduler_name,
        priority=written.priority or 0,
        preemption_policy=written.preemption_policy or "PreemptLowerPriority",
        node_selector=tuple(sorted((written.node_selector or {}).items())),
        node_affinity=None if affinity.node_affinity is None else node_affinity(affinity.node_affinity),
        pod_affinity=_pod_affinity(affinity.pod_affinity, namespace),
        pod_anti_affinity=_pod_affinity(affinity.pod_anti_affinity, namespace),
        tolerations=tuple(Toleration(t.key, t.operator, t.value, t.effect) for t in written.tolerations or ()),
        topology_spread=tuple(spread_constraint(c) for c in written.topology_spread_constraints or ()),
        volumes=tuple(v for v in (_pod_volume(v) for v in written.volumes or ()) if v is not None),
        scheduling_gates=tuple(g.name for g in written.scheduling_gates or ()),
        resource_claims=tuple(
            PodResourceClaim(
                name=c.name, claim_name=c.resource_claim_name or "", template_name=c.resource_claim_template_name or ""
            )
            for c in written.resource_claims or ()
        ),
        host_network=bool(written.host_network),
        host_users=written.host_users is not False,
        is_of_group=bool(written.scheduling_group or written.workload_ref),
    )


def _container(written: wire.WireContainer, where: str) -> Container:
    resources = written.resources or wire.WireResources()
    return Container(
        name=written.name,
        image=written.image,
        requests=amounts_nanos(resources.requests, f"{where}.resources.requests"),
        limits=amounts_nanos(resources.limits, f"{where}.resources.limits"),
        restarts_always=written.restart_policy == "Always",
        host_ports=tuple(
            HostPort(p.host_ip or "0.0.0.0", p.protocol or "TCP", p.host_port)  # noqa: S104 - compared, never bound
            for p in written.ports or ()
            if p.host_port > 0
        ),
        may_restart_all=any(r.action == "RestartAllContainers" for r in written.restart_policy_rules or ()),
    )


def _pod_affinity(written: wire.WirePodAffinity | None, namespace: str) -> PodAffinity:
    if written is None:
        return PodAffinity()
    return PodAffinity(
        required=tuple(_pod_term(t, namespace) for t in written.required or ()),
        preferred=tuple(
            WeightedPodAffinityTerm(w.weight, _pod_term(w.pod_affinity_term, namespace))
            for w in written.preferred or ()
        ),
    )


def _pod_term(written: wire.WirePodTerm, owner_namespace: str) -> PodAffinityTerm:
    named = frozenset(written.namespaces or ())
    if not named and written.namespace_selector is None:
        named = frozenset({owner_namespace})
    return PodAffinityTerm(
        topology_key=written.topology_key,
        selector=label_selector(written.label_selector),
        namespaces=named,
        namespace_selector=label_selector(written.namespace_selector),
    )


def _pod_volume(written: wire.WireVolume) -> PodVolume | None:
    """None for kinds that neither scheduling nor draining reads (config maps, secrets, tokens, host paths)."""
    if written.persistent_volume_claim is not None:
        source = written.persistent_volume_claim
        return PodVolume(
            name=written.name, kind="persistentVolumeClaim", claim_name=source.claim_name, read_only=source.read_only
        )
    if written.ephemeral is not None:
        return PodVolume(name=written.name, kind="ephemeral", ephemeral=True)
    if written.empty_dir is not None:
        return PodVolume(name=written.name, kind="emptyDir")
    if written.csi is not None:
        return PodVolume(name=written.name, kind="csi", csi_driver=written.csi.driver)
    if written.image is not None:
        return PodVolume(name=written.name, kind="image", image=written.image.reference)
    return _legacy_volume(written)


def _legacy_volume(written: wire.WireVolume) -> PodVolume | None:
    for field, identity in DISK_IDENTITY.items():
        disk: wire.WireDisk | None = getattr(written, field)
        if disk is not None:
            kind = API_NAME.get(field, field)
            return PodVolume(name=written.name, kind=kind, legacy_disk=_legacy_disk(kind, identity(disk), disk))
    return None


def _legacy_disk(kind: str, identity: str, disk: wire.WireDisk) -> LegacyDisk:
    return LegacyDisk(
        kind=kind,
        identity=identity,
        read_only=bool(disk.read_only),
        monitors=disk.monitors or (),
        pool=disk.pool or ("rbd" if kind == "rbd" else ""),
        lun=disk.lun,
        partition=str(disk.partition or ""),
    )


def _resize(status: wire.WirePodStatus) -> PodResize | None:
    statuses = [
        s
        for s in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
        if s.resources is not None or s.allocated_resources is not None
    ]
    is_infeasible = _resize_is_infeasible(status)
    if not statuses and status.resources is None and not is_infeasible:
        return None
    return PodResize(
        containers={s.name: _container_resize(s.resources, s.allocated_resources) for s in statuses},
        pod_level=None if status.resources is None else _container_resize(status.resources, status.allocated_resources),
        is_infeasible=is_infeasible,
    )


def _resize_is_infeasible(status: wire.WirePodStatus) -> bool:
    pending = next((c for c in status.conditions or () if c.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _repeats_spec(status: wire.WirePodStatus, spec: wire.WirePodSpec) -> bool:
    """Whether each container with resources in the status has the same in the spec, in the same notation. False if the
    status reports pod-level resources or an infeasible resize."""
    if status.resources is not None:
        return False
    several = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    reported = [c for c in several if c.resources is not None or c.allocated_resources is not None]
    if not reported:
        return not _resize_is_infeasible(status)
    specs = spec.containers or ()
    if len(reported) == len(specs) == 1 and reported[0].name == specs[0].name:
        return _repeats_container_spec(
            reported[0], specs[0].resources.requests if specs[0].resources else None
        ) and not _resize_is_infeasible(status)
    wanted = {
        c.name: c.resources.requests if c.resources else None
        for c in (*(spec.containers or ()), *(spec.init_containers or ()))
    }
    return all(_repeats_container_spec(c, wanted.get(c.name)) for c in reported) and not _resize_is_infeasible(status)


def _repeats_container_spec(status: wire.WireContainerStatus, wanted: wire.Quantities | None) -> bool:
    """Both the current and the allocated resources, in the same notation."""
    has = status.resources.requests if status.resources else None
    return (has or None) == (wanted or None) and (
        not status.allocated_resources or status.allocated_resources == wanted
    )


def _container_resize(actuated: wire.WireResources | None, allocated: wire.Quantities | None) -> ContainerResize:
    requests = None if actuated is None else actuated.requests
    return ContainerResize(
        actuated=None if requests is None else amounts_nanos(requests, "status.resources.requests"),
        allocated=None if allocated is None else amounts_nanos(allocated, "status.allocatedResources"),
        has_resources=actuated is not None,
    )


# ---- nodes and the rest ----


def node(written: wire.WireNode) -> Node:
    meta, spec, status = written.metadata, written.spec or wire.WireNodeSpec(), written.status or wire.WireNodeStatus()
    return Node(
        name=meta.name,
        uid=meta.uid,
        labels=labels_of(meta.labels),
        annotations=labels_of(meta.annotations),
        taints=tuple(Taint(t.key, t.value, t.effect) for t in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        allocatable=whole_amounts(amounts_nanos(status.allocatable, "status.allocatable")),
        images=tuple(_shared_image(i.names or (), i.size_bytes) for i in status.images or ()),
        declared_features=frozenset(status.declared_features or ()),
        created_at=meta.creation_timestamp or "",
    )


_IMAGES: Final[WeakValueDictionary[tuple[tuple[str, ...], int], NodeImage]] = WeakValueDictionary()


def _shared_image(names: tuple[str, ...], size_bytes: int) -> NodeImage:
    """One object for equal images of several nodes, forgotten when no node has the image any more."""
    known = _IMAGES.get((names, size_bytes))
    if known is None:
        known = _IMAGES[names, size_bytes] = NodeImage(names, size_bytes)
    return known


def budget(written: wire.WireBudget) -> DisruptionBudget:
    spec, status = written.spec or wire.WireBudgetSpec(), written.status or wire.WireBudgetStatus()
    meta = written.metadata
    owner = next((each for each in meta.owner_references or () if each.controller), None)
    return DisruptionBudget(
        name=meta.name,
        namespace=meta.namespace or "default",
        uid=meta.uid,
        generation=meta.generation,
        owner=f"{owner.kind} {owner.name}" if owner else "",
        selector=label_selector(spec.selector),
        disruptions_allowed=status.disruptions_allowed,
        disrupted_pods=frozenset(status.disrupted_pods or ()),
        current_healthy=status.current_healthy,
        desired_healthy=status.desired_healthy,
        expected_pods=status.expected_pods,
        max_unavailable=None if spec.max_unavailable is None else str(spec.max_unavailable),
        min_available=None if spec.min_available is None else str(spec.min_available),
        unhealthy_pod_eviction_policy=spec.unhealthy_pod_eviction_policy or "IfHealthyBudget",
    )


def selecting_controller(kind: str, written: wire.WireSelectingController) -> SelectingOwner:
    spec = written.spec or wire.WireSelectorSpec()
    meta = written.metadata
    return SelectingOwner(
        kind=kind,
        api_version="apps/v1",
        namespace=meta.namespace or "default",
        name=meta.name,
        selector=label_selector(spec.selector),
        replicas=spec.replicas,
        bound_to=template_node(spec.template),
        template_labels=template_labels(spec.template),
    )


def label_selecting(kind: str, written: wire.WireLabelSelecting) -> SelectingOwner:
    spec = written.spec or wire.WireLabelledSpec()
    meta, pairs = written.metadata, spec.selector
    return SelectingOwner(
        kind=kind,
        api_version="v1",
        namespace=meta.namespace or "default",
        name=meta.name,
        selector=equality_selector(pairs) if pairs else NOTHING,
        selects_by_labels=None if pairs is None else tuple(sorted(pairs.items())),
        replicas=spec.replicas,
        bound_to=template_node(spec.template),
        template_labels=template_labels(spec.template),
    )

"""Refuses nodes that the pod's bound volumes cannot reach, and nodes where no volume can be found or provisioned for
its unbound claims.

Source: pkg/scheduler/framework/plugins/volumebinding (v1.36) and component-helpers/storage/volume. The real PreBind
calls the API. This plugin writes no object: Reserve stores a VolumePlan, from which the caller makes the next snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import ShapePoint, VolumeBindingArgs
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PreFilterResult
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.scoring.shapes import FULL, scores_along
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, error, unresolvable
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.model.storage.csi_migration import required_nodes
from scheduler_core.model.storage.pod_claims import (
    claim_class,
    claims_used,
    find_claim,
    ownership_problem,
    volume_class,
)
from scheduler_core.model.storage.volumes import (
    ClaimReference,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler_core.snapshot.cluster_objects import ClusterObjects
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

_UNREACHABLE: Final = "node(s) didn't match PersistentVolume's node affinity"
_UNREACHABLE_UNTIL_1_32: Final = "node(s) had volume node affinity conflict"
_NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
_NO_SPACE: Final = "node(s) did not have enough free storage"
_VOLUME_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

_NANOS = 10**9


class ClaimsOfPod(Value):
    """`waiting` claims get a volume only when the pod has a node; `volumes_by_class`: the volumes of their storage
    classes."""

    bound: tuple[PersistentVolumeClaim, ...]
    waiting: tuple[PersistentVolumeClaim, ...]
    volumes_by_class: Mapping[str, tuple[PersistentVolume, ...]]
    snapshot: Snapshot

    @property
    def objects(self) -> ClusterObjects:
        return self.snapshot.objects


class Provision(Value):
    """`capacity`: the storage pool with room for the volume; None if the driver does not report capacity or the claim
    requests no storage."""

    claim: PersistentVolumeClaim
    capacity: CSIStorageCapacity | None


class VolumesOnNode(Value):
    """What the waiting claims would get on one node. `reasons` say why the node is refused."""

    reasons: tuple[str, ...] = ()
    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...] = ()
    provisions: tuple[Provision, ...] = ()


class VolumePlan(Value):
    """The changed objects of a pod's binding: existing `volumes`, each bound to its claim, and `claims` for which a
    volume will be provisioned, each with the selected node's name."""

    claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()

    def applied_to(self, objects: ClusterObjects) -> ClusterObjects:
        """The objects after the binding, so that the next pod cannot get the same volumes."""
        if not self.claims and not self.volumes:
            return objects
        return replace(
            objects,
            claims={**objects.claims, **{claim.key: claim for claim in self.claims}},
            volumes={**objects.volumes, **{volume.name: volume for volume in self.volumes}},
        )


class VolumeBinding(Value):
    args: VolumeBindingArgs
    kube_version: KubeVersion
    name: str = "VolumeBinding"

    def skips(self, spec: PodSpec) -> bool:
        return not spec.has_claims_or_disks

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:
        objects = nodes.snapshot.objects
        claims: list[PersistentVolumeClaim] = []
        for use in claims_used(pod):
            claim = find_claim(pod, use.name, objects.claims)
            problem = _problem(pod, use.name, claim, is_ephemeral=use.is_ephemeral)
            if problem:
                return PreFilterResult(unresolvable(problem))
            assert claim is not None
            claims.append(claim)
        if not claims:
            return PreFilterResult(SKIP)
        sorted_out = _sort_out(claims, nodes.snapshot)
        if isinstance(sorted_out, Verdict):
            return PreFilterResult(sorted_out)
        state.write(sorted_out)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002 -- the point's signature
        return self._verdict(state.read(ClaimsOfPod), node_info.node)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:  # noqa: ARG002 -- the point's signature
        """One by one, but from the Node objects alone: sums over the nodes' pods need not be computed."""
        claims, all_nodes = state.read(ClaimsOfPod), nodes.columns.nodes
        return Refusals.of_each(self._verdict(claims, all_nodes[row]) for row in nodes.rows)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict:  # noqa: ARG002 -- the point's signature
        return SUCCESS if self.kube_version.storage_capacity_scoring else SKIP

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:  # noqa: ARG002 -- the point's signature
        """The fraction of the node's storage that would be in use, mapped by the profile's shape; the mean over the
        storage classes."""
        claims = state.find(ClaimsOfPod)
        # Without the gate, Score runs only in a profile that disables PreScore.
        if claims is None or not self.kube_version.storage_capacity_scoring:
            return 0
        storage = storage_by_class(self._find(claims, node_info.node))
        if not storage:
            return 0
        total = sum(
            _utilization_score(self.args.shape, requested, capacity) for requested, capacity in storage.values()
        )
        return int(total / len(storage) + 0.5)  # half away from zero, as Go rounds; scores are not negative

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:  # noqa: ARG002 -- the point's signature
        """Plans for each waiting claim: an existing volume is bound to it, or the selected node is recorded, on which
        one will be provisioned."""
        claims = state.find(ClaimsOfPod)
        if claims is None or not claims.waiting:
            state.write(VolumePlan())
            return SUCCESS
        found = self._find(claims, claims.snapshot.node(node_name))
        if found.reasons:
            return error(*found.reasons)
        state.write(
            VolumePlan(
                claims=tuple(
                    replace(p.claim, annotations={**p.claim.annotations, SELECTED_NODE: node_name})
                    for p in found.provisions
                ),
                volumes=tuple(_promised(volume, claim) for claim, volume in found.bindings),
            )
        )
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:  # noqa: ARG002 -- the point's signature
        state.write(VolumePlan())

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:  # noqa: ARG002 -- the point's signature
        """Does nothing. The real plugin writes the plan to the API and waits for the volumes; here the caller must do
        both."""
        return SUCCESS

    def _verdict(self, claims: ClaimsOfPod, node: Node) -> Verdict:
        found = self._find(claims, node)
        return unresolvable(*found.reasons) if found.reasons else SUCCESS

    def _find(self, claims: ClaimsOfPod, node: Node) -> VolumesOnNode:
        reason = _bound_problem(claims, node, says_conflict=self.kube_version.volume_affinity_refusal_says_conflict)
        waiting = _serve(claims, node, counts_attributes_class=self.kube_version.volume_attributes_class)
        # In the order of the real binder: unreachable, nothing to bind, no space, volume missing.
        reasons = sorted((*waiting.reasons, *reason), key=_REASON_ORDER.index)
        return replace(waiting, reasons=tuple(reasons))


_REASON_ORDER: Final = (_UNREACHABLE, _UNREACHABLE_UNTIL_1_32, _NO_VOLUME, _NO_SPACE, _VOLUME_GONE)


# ---- the pod's claims ----


def _problem(pod: Pod, name: str, claim: PersistentVolumeClaim | None, *, is_ephemeral: bool) -> str:
    """Why this claim makes the pod unschedulable; "" if it is usable."""
    if claim is None:
        what = "waiting for ephemeral volume controller to create the " if is_ephemeral else ""
        return f'{what}persistentvolumeclaim "{name}"' + ("" if is_ephemeral else " not found")
    if claim.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume_name}"'
    if claim.terminating:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return ownership_problem(pod, claim) if is_ephemeral else ""


def _sort_out(claims: Iterable[PersistentVolumeClaim], snapshot: Snapshot) -> ClaimsOfPod | Verdict:
    objects = snapshot.objects
    bound: list[PersistentVolumeClaim] = []
    waiting: list[PersistentVolumeClaim] = []
    has_immediate = False
    for claim in claims:
        if claim.volume_name and BIND_COMPLETED in claim.annotations:
            bound.append(claim)
            continue
        storage_class = objects.storage_classes.get(claim_class(claim))
        if storage_class is not None and storage_class.binding_mode is None:
            return error(f'VolumeBindingMode not set for StorageClass "{storage_class.name}"')
        if storage_class is not None and storage_class.binding_mode == "WaitForFirstConsumer" and not claim.volume_name:
            waiting.append(claim)
        else:
            has_immediate = True
    if has_immediate:
        return unresolvable("pod has unbound immediate PersistentVolumeClaims")
    wanted = {claim_class(claim) for claim in waiting}
    by_class: dict[str, list[PersistentVolume]] = {name: [] for name in wanted}
    for volume in objects.volumes.values() if wanted else ():
        if volume_class(volume) in wanted:
            by_class[volume_class(volume)].append(volume)
    return ClaimsOfPod(
        tuple(bound), tuple(waiting), {name: tuple(volumes) for name, volumes in by_class.items()}, snapshot
    )


# ---- one node ----


def _bound_problem(claims: ClaimsOfPod, node: Node, *, says_conflict: bool) -> tuple[str, ...]:
    csi_node = claims.objects.csi_nodes.get(node.name)
    for claim in claims.bound:
        volume = claims.objects.volumes.get(claim.volume_name)
        if volume is None:
            return (_VOLUME_GONE,)
        required = required_nodes(volume, csi_node)
        # The real check passes the node's labels without its name, so a term on metadata.name never matches here.
        if required is not None and not required.matches(node.labels, ""):
            return (_UNREACHABLE_UNTIL_1_32 if says_conflict else _UNREACHABLE,)
    return ()


def _serve(claims: ClaimsOfPod, node: Node, *, counts_attributes_class: bool) -> VolumesOnNode:
    """For each waiting claim the smallest existing volume that fits, or else one that can be provisioned."""
    to_make: list[PersistentVolumeClaim] = []
    to_match: list[PersistentVolumeClaim] = []
    for claim in claims.waiting:
        chosen_node = claim.annotations.get(SELECTED_NODE)
        if chosen_node not in (None, node.name):
            return VolumesOnNode(reasons=(_NO_VOLUME,))
        (to_match if chosen_node is None else to_make).append(claim)
    bindings: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
    for claim in sorted(to_match, key=lambda claim: claim.request_nanos):
        candidates = (
            volume
            for volume in claims.volumes_by_class[claim_class(claim)]
            if all(volume.name != taken.name for _, taken in bindings)
        )
        found = smallest_match(claim, candidates, node, counts_attributes_class=counts_attributes_class)
        if found is None:
            to_make.append(claim)
        else:
            bindings.append((claim, found))
    provisions: list[Provision] = []
    for claim in to_make:
        made = _provision(claim, node, claims.objects)
        if isinstance(made, str):
            return VolumesOnNode(reasons=(made,), bindings=tuple(bindings))
        provisions.append(made)
    return VolumesOnNode(bindings=tuple(bindings), provisions=tuple(provisions))


def smallest_match(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    node: Node,
    *,
    counts_attributes_class: bool = True,
) -> PersistentVolume | None:
    """The volume that is pre-bound to the claim, or else the smallest free one that satisfies it; of equal sizes the
    first.

    None if no volume satisfies the claim, or if the node cannot reach the pre-bound one. All volumes must be of the
    claim's storage class.
    """
    smallest: PersistentVolume | None = None
    for volume in volumes:
        if not _may_hold(claim, volume, counts_attributes_class=counts_attributes_class):
            continue
        is_reachable = volume.node_affinity is None or volume.node_affinity.matches(node.labels, "")
        if volume.claim is not None:
            return volume if is_reachable else None
        if volume.phase != "Available" or not is_reachable or not set(claim.access_modes) <= set(volume.access_modes):
            continue
        if claim.selector is not None and not claim.selector.matches(volume.labels):
            continue
        if smallest is None or smallest.capacity_nanos > volume.capacity_nanos:
            smallest = volume
    return smallest


def _may_hold(claim: PersistentVolumeClaim, volume: PersistentVolume, *, counts_attributes_class: bool) -> bool:
    """Whether the volume is large enough, has the claim's volume mode and attributes class, and is neither bound to
    another claim nor being deleted."""
    if volume.claim is not None and not _is_promised_to(volume.claim, claim):
        return False
    attributes = (claim.attributes_class_name or "") if counts_attributes_class else ""
    return (
        volume.capacity_nanos >= claim.request_nanos
        and volume.volume_mode == claim.volume_mode
        and (volume.attributes_class_name or "") == attributes
        and not volume.terminating
    )


def _is_promised_to(reference: ClaimReference, claim: PersistentVolumeClaim) -> bool:
    return (reference.namespace, reference.name) == (claim.namespace, claim.name) and reference.uid in ("", claim.uid)


def _provision(claim: PersistentVolumeClaim, node: Node, objects: ClusterObjects) -> Provision | str:
    """The volume to provision on this node, or why none can be."""
    storage_class = objects.storage_classes[claim_class(claim)]
    if storage_class.provisioner in ("", NO_PROVISIONER) or not _is_allowed(storage_class, node):
        return _NO_VOLUME
    driver = objects.csi_drivers.get(storage_class.provisioner)
    if not claim.request_nanos or driver is None or not driver.storage_capacity:
        return Provision(claim, None)
    for capacity in objects.capacities:
        if (
            capacity.class_name == storage_class.name
            and _has_room(capacity, claim.request_nanos)
            and _reaches(capacity, node)
        ):
            return Provision(claim, capacity)
    return _NO_SPACE


def _is_allowed(storage_class: StorageClass, node: Node) -> bool:
    terms = storage_class.allowed_topologies
    return not terms or any(
        term and all(node.labels.get(requirement.key) in requirement.values for requirement in term) for term in terms
    )


def _has_room(capacity: CSIStorageCapacity, request_nanos: int) -> bool:
    limit = (
        capacity.capacity_nanos if capacity.maximum_volume_size_nanos is None else capacity.maximum_volume_size_nanos
    )
    return limit is not None and _whole_bytes(limit) >= _whole_bytes(request_nanos)


def _reaches(capacity: CSIStorageCapacity, node: Node) -> bool:
    return capacity.node_topology is not None and capacity.node_topology.matches(node.labels)


def _whole_bytes(nanos: int) -> int:
    return -(-nanos // _NANOS)


def _promised(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    annotations = volume.annotations if volume.claim is not None else {**volume.annotations, BOUND_BY_CONTROLLER: "yes"}
    return replace(volume, claim=ClaimReference(claim.namespace, claim.name, claim.uid), annotations=annotations)


# ---- score ----


def storage_by_class(found: VolumesOnNode) -> Mapping[str, tuple[int, int]]:
    """(requested, capacity) in bytes for each storage class. The capacity is the size of the existing volumes that the
    claims get; if they get none, the size of the storage pools."""
    sums: dict[str, tuple[int, int]] = {}
    if found.bindings:
        for claim, volume in found.bindings:
            requested, capacity = sums.get(volume.class_name, (0, 0))
            sums[volume.class_name] = (
                requested + _whole_bytes(claim.request_nanos),
                capacity + _whole_bytes(volume.capacity_nanos),
            )
        return sums
    for provision in found.provisions:
        if provision.capacity is not None:
            requested, _ = sums.get(provision.claim.class_name or "", (0, 0))
            # One pool serves all claims of the class: its size counts once, not once per claim.
            sums[provision.claim.class_name or ""] = (
                requested + _whole_bytes(provision.claim.request_nanos),
                _whole_bytes(provision.capacity.capacity_nanos or 0),
            )
    return sums


def _utilization_score(shape: tuple[ShapePoint, ...], requested: int, capacity: int) -> int:
    utilization = FULL if capacity == 0 or requested > capacity else requested * 100 // capacity
    return scores_along(shape)[utilization]

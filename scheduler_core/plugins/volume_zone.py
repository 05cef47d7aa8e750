"""Refuses nodes outside the zone or region in the labels of the pod's bound volumes.

Source: pkg/scheduler/framework/plugins/volumezone, v1.36. Newer volumes have a node affinity instead, which
VolumeBinding checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PreFilterResult
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, unresolvable
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.model.storage.pod_claims import claim_class, find_claim
from scheduler_core.model.storage.volumes import PersistentVolume
from scheduler_core.snapshot.cluster_objects import ClusterObjects
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.values import Value

_TODAYS_LABEL: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_TOPOLOGY_LABELS: Final = (*_TODAYS_LABEL, *_TODAYS_LABEL.values())

_NO_ZONE: Final = unresolvable("node(s) had no available volume zone")


class TopologyOfVolume(Value):
    """A zone or region label of a volume, with the values that a node may have for it."""

    key: str
    values: frozenset[str]


class VolumeTopologies(Value):
    """The labels of all volumes to which the pod's claims are bound."""

    topologies: tuple[TopologyOfVolume, ...]


class VolumeZone(Value):
    """Accepts every node that has neither a zone nor a region label: a cluster without these labels is treated as one
    zone."""

    name: str = "VolumeZone"
    prepares_late: ClassVar[tuple[str, ...]] = ("filter",)

    def skips(self, spec: PodSpec) -> bool:
        return not spec.has_claims_or_disks

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:
        topologies: list[TopologyOfVolume] = []
        for volume in pod.spec.volumes:
            if volume.claim_name is None:
                continue
            found = _volume_behind(pod, volume.claim_name, nodes.snapshot.objects)
            if isinstance(found, Verdict):
                return PreFilterResult(found)
            if found is not None:
                topologies += topologies_of(found)
        if not topologies:
            return PreFilterResult(SKIP)
        state.write(VolumeTopologies(tuple(topologies)))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002 -- the point's signature
        return _verdict(node_info.node, state.read(VolumeTopologies))

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:  # noqa: ARG002 -- the point's signature
        wanted, all_nodes = state.read(VolumeTopologies), nodes.columns.nodes
        return Refusals.of_each(_verdict(all_nodes[row], wanted) for row in nodes.rows)


def _verdict(node: Node, wanted: VolumeTopologies) -> Verdict:
    return SUCCESS if _is_within(node.labels, wanted.topologies) else _NO_ZONE


def topologies_of(volume: PersistentVolume) -> list[TopologyOfVolume]:
    """The value `a__b` means a or b. A label with an empty part in its value is ignored."""
    found = []
    for key in _TOPOLOGY_LABELS:
        values = frozenset(value.strip() for value in volume.labels.get(key, "").split("__"))
        if "" not in values:
            found.append(TopologyOfVolume(key, values))
    return found


def _volume_behind(pod: Pod, claim_name: str, objects: ClusterObjects) -> PersistentVolume | Verdict | None:
    """The volume to which the claim is bound; None if it will be bound only after the pod has a node; a refusal if the
    claim cannot be used."""
    if not claim_name:
        return unresolvable("PersistentVolumeClaim had no name")
    claim = find_claim(pod, claim_name, objects.claims)
    if claim is None:
        return unresolvable(f'persistentvolumeclaim "{claim_name}" not found')
    if claim.volume_name:
        volume = objects.volumes.get(claim.volume_name)
        return unresolvable(f'persistentvolume "{claim.volume_name}" not found') if volume is None else volume
    class_name = claim_class(claim)
    if not class_name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = objects.storage_classes.get(class_name)
    if storage_class is None:
        return unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
    if storage_class.binding_mode is None:
        return unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    return (
        None if storage_class.binding_mode == "WaitForFirstConsumer" else unresolvable("PersistentVolume had no name")
    )


def _is_within(node_labels: Mapping[str, str], topologies: tuple[TopologyOfVolume, ...]) -> bool:
    if not any(label in node_labels for label in _TOPOLOGY_LABELS):
        return True
    for topology in topologies:
        value = node_labels.get(topology.key, node_labels.get(_TODAYS_LABEL.get(topology.key, topology.key)))
        if value not in topology.values:
            return False
    return True

"""Refuses nodes on which another pod uses a disk that cannot be shared, and a pod whose ReadWriteOncePod claim another
pod uses.

Source: pkg/scheduler/framework/plugins/volumerestrictions, v1.36; KEP-2485 for ReadWriteOncePod.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PreFilterResult
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, unresolvable, unschedulable
from scheduler_core.model.pod import LegacyDisk, Pod, PodSpec
from scheduler_core.model.storage.pod_claims import find_claim
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.volume_users import VOLUME_USERS
from scheduler_core.values import Value

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
_WATCHED_DISKS: Final = frozenset({"gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"})

_DISK_IN_USE: Final = unschedulable("node(s) had no available disk")
_CLAIM_IN_USE: Final = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_CLAIM_IN_USE_UNTIL_1_33: Final = unschedulable(
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)


class ExclusiveClaims(Value):
    """The pod's ReadWriteOncePod claims, and how often other pods use them."""

    names: frozenset[str]
    conflicts: int

    def changed_by(self, other: Pod, sign: int) -> ExclusiveClaims:
        # The real plugin compares names without their namespace here; a victim in another namespace with a claim of
        # that name counts as well.
        uses = sum(volume.claim_name in self.names for volume in other.spec.volumes if volume.claim_name is not None)
        return ExclusiveClaims(self.names, self.conflicts + sign * uses)


class VolumeRestrictions(Value):
    """Pods of one node cannot share a legacy disk (GCE, EBS, iSCSI, RBD), and only one pod of the cluster can use a
    ReadWriteOncePod claim."""

    kube_version: KubeVersion
    name: str = "VolumeRestrictions"

    def skips(self, spec: PodSpec) -> bool:
        return not spec.has_claims_or_disks

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:
        exclusive: set[str] = set()
        for volume in pod.spec.volumes:
            if volume.claim_name is None:
                continue
            claim = find_claim(pod, volume.claim_name, nodes.snapshot.objects.claims)
            if claim is None:
                return PreFilterResult(unresolvable(f'persistentvolumeclaim "{volume.claim_name}" not found'))
            if READ_WRITE_ONCE_POD in claim.access_modes:
                exclusive.add(volume.claim_name)
        # Counts claims in use, not their pods, as kube-scheduler does: at most one pod can use such a claim.
        uses = nodes.snapshot.tally(VOLUME_USERS).uses if exclusive else {}
        in_use = sum(uses.get(f"{pod.namespace}/{name}", 0) > 0 for name in exclusive)
        if not in_use and not any(
            volume.legacy_disk and volume.legacy_disk.kind in _WATCHED_DISKS for volume in pod.spec.volumes
        ):
            return PreFilterResult(SKIP)
        state.write(ExclusiveClaims(frozenset(exclusive), in_use))
        return PreFilterResult()

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002 -- the point's signature
        state.write(state.read(ExclusiveClaims).changed_by(added, 1))
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002 -- the point's signature
        state.write(state.read(ExclusiveClaims).changed_by(removed, -1))
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:
        if any(disks_clash(pod, other) for other in node_info.pods):
            return _DISK_IN_USE
        return self._claims_verdict(state)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:
        users = nodes.snapshot.tally(VOLUME_USERS).by_row
        clashing = np.fromiter(
            (row for row, others in users.items() if any(disks_clash(pod, other) for other in others)), dtype=np.intp
        )
        codes = np.where(np.isin(nodes.rows, clashing), 1, 0 if self._claims_verdict(state).is_success else 2)
        return Refusals(codes, {1: _DISK_IN_USE, 2: self._claims_verdict(state)})

    def _claims_verdict(self, state: CycleState) -> Verdict:
        if state.read(ExclusiveClaims).conflicts <= 0:
            return SUCCESS
        return (
            _CLAIM_IN_USE_UNTIL_1_33 if self.kube_version.read_write_once_pod_refusal_names_the_node else _CLAIM_IN_USE
        )


def disks_clash(pod: Pod, other: Pod) -> bool:
    """Whether two pods use the same legacy disk in a way that one node does not allow."""
    return any(
        _clash(disk, taken)
        for disk in (volume.legacy_disk for volume in pod.spec.volumes)
        if disk is not None
        for taken in (volume.legacy_disk for volume in other.spec.volumes)
        if taken is not None
    )


def _clash(disk: LegacyDisk, taken: LegacyDisk) -> bool:
    if disk.kind != taken.kind or disk.kind not in _WATCHED_DISKS or disk.identity != taken.identity:
        return False
    if disk.kind == "awsElasticBlockStore":
        return True  # EBS cannot be attached twice, even read-only
    if disk.kind == "rbd" and (disk.pool != taken.pool or not set(disk.monitors) & set(taken.monitors)):
        return False
    return not (disk.read_only and taken.read_only)

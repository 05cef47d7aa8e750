"""NodeVolumeLimits: refuses nodes to which no more volumes of a driver can be attached.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PreFilterResult
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, error, unresolvable, unschedulable
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.model.storage.csi_migration import (
    COUNTED_PLUGINS,
    PORTWORX,
    driver_of_provisioner,
    driver_of_volume,
    is_migratable_provisioner,
    migrated_disk,
    plugin_of,
    plugins_migrated_on,
)
from scheduler_core.model.storage.pod_claims import claim_class, claims_used, find_claim, ownership_problem
from scheduler_core.model.storage.volumes import CSINode, PersistentVolumeClaim
from scheduler_core.snapshot.cluster_objects import ClusterObjects
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.volume_users import VOLUME_USERS
from scheduler_core.values import Value

_NO_PLUGINS: Final[frozenset[str]] = frozenset()
_WITHOUT_PORTWORX: Final = COUNTED_PLUGINS - {PORTWORX}
# On a node without a CSINode; with one that does not name Portworx, until 1.35; with any other.
_COUNTED: Final = (_NO_PLUGINS, _WITHOUT_PORTWORX, COUNTED_PLUGINS)
_TOO_MANY: Final = unschedulable("node(s) exceed max volume count")

Handle = tuple[str, str]
"""A pair that identifies an attachable volume: the CSI driver and the volume handle. Pods that share the volume have
equal pairs."""


class ClusterForLimits(Value):
    """The claims and volumes of the cluster, what is attached to each node, and what the pod would attach.

    `wanted`: by the in-tree plugins whose disks count on a node; a verdict instead if a claim of the pod is unusable.
    """

    objects: ClusterObjects
    attached: Mapping[str, frozenset[Handle]]
    wanted: Mapping[frozenset[str], set[Handle] | Verdict]


class NodeVolumeLimits(Value):
    """Counts the volumes of the node's pods, of VolumeAttachments and of the incoming pod, each once, even if several
    pods use it."""

    kube_version: KubeVersion
    name: str = "NodeVolumeLimits"
    prepares_late: ClassVar[tuple[str, ...]] = ("filter",)

    def skips(self, spec: PodSpec) -> bool:
        return not spec.has_claims_or_disks

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:
        if not has_attachable_volumes(pod):
            return PreFilterResult(SKIP)
        objects = nodes.snapshot.objects
        wanted = {plugins: _handles_of_incoming(pod, objects, plugins) for plugins in _COUNTED}
        state.write(ClusterForLimits(objects, _attached_by_node(objects), wanted))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002 -- the point's signature
        return self._verdict(state.read(ClusterForLimits), node_info.name, node_info.pods)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:  # noqa: ARG002 -- the point's signature
        """One by one, over those pods of each node that have volumes."""
        cluster, names = state.read(ClusterForLimits), nodes.columns.names
        users = nodes.snapshot.tally(VOLUME_USERS).by_row
        return Refusals.of_each(self._verdict(cluster, names[row], users.get(int(row), ())) for row in nodes.rows)

    def _counted_on(self, csi_node: CSINode | None) -> frozenset[str]:
        """The in-tree plugins whose disks count: one of `_COUNTED`."""
        if csi_node is None:
            return _NO_PLUGINS
        if self.kube_version.portworx_disks_need_an_annotation and PORTWORX not in plugins_migrated_on(csi_node):
            return _WITHOUT_PORTWORX
        return COUNTED_PLUGINS

    def _verdict(self, cluster: ClusterForLimits, node_name: str, pods_there: Iterable[Pod]) -> Verdict:
        csi_node = cluster.objects.csi_nodes.get(node_name)
        counted = self._counted_on(csi_node)
        wanted = cluster.wanted[counted]
        if isinstance(wanted, Verdict):
            return wanted
        if not wanted:
            return SUCCESS
        if self.kube_version.volume_limit_scaling:
            missing = {driver for driver, _ in wanted if _must_be_installed(driver, csi_node, cluster.objects)}
            if missing:  # of several, the order of a Go map decides
                return unschedulable(f"{min(missing)} CSI driver is not installed on the node")
        limits = (
            {}
            if csi_node is None
            else {
                driver.name: driver.allocatable_count
                for driver in csi_node.drivers
                if driver.allocatable_count is not None
            }
        )
        if not limits:
            return SUCCESS
        used = _handles_of_running(pods_there, cluster.objects, counted)
        if isinstance(used, Verdict):
            return used
        return (
            SUCCESS if _fits(wanted - used, used | cluster.attached.get(node_name, frozenset()), limits) else _TOO_MANY
        )


def has_attachable_volumes(pod: Pod) -> bool:
    return any(
        volume.claim_name is not None
        or volume.ephemeral
        or (volume.legacy_disk is not None and migrated_disk(volume.legacy_disk) is not None)
        for volume in pod.spec.volumes
    )


def _fits(new: set[Handle], there: set[Handle], limits: Mapping[str, int]) -> bool:
    count_there = Counter(driver for driver, _ in there)
    return all(
        driver not in limits or count_there[driver] + count <= limits[driver]
        for driver, count in Counter(driver for driver, _ in new).items()
    )


def _handles_of_incoming(pod: Pod, objects: ClusterObjects, plugins: frozenset[str]) -> set[Handle] | Verdict:
    """A verdict if one of the pod's claims does not exist or belongs to another pod. `plugins`: in-tree plugins whose
    disks count."""
    handles = _inline_handles(pod, plugins)
    for use in claims_used(pod):
        if not use.name:
            return error("PersistentVolumeClaim had no name")
        claim = find_claim(pod, use.name, objects.claims)
        if claim is None:
            return unresolvable(
                f'looking up PVC {pod.namespace}/{use.name}: persistentvolumeclaim "{use.name}" not found'
            )
        if use.is_ephemeral and (problem := ownership_problem(pod, claim)):
            return error(problem)
        handles |= _handle_of_claim(claim, objects, plugins)
    return handles


def _handles_of_running(pods: Iterable[Pod], objects: ClusterObjects, plugins: frozenset[str]) -> set[Handle] | Verdict:
    """What these pods use on a node with a CSINode. Ignores claims that do not exist."""
    handles: set[Handle] = set()
    for pod in pods:
        handles |= _inline_handles(pod, plugins)
        for use in claims_used(pod):
            claim = find_claim(pod, use.name, objects.claims)
            if claim is None:
                continue
            if use.is_ephemeral and (problem := ownership_problem(pod, claim)):
                return error(problem)
            handles |= _handle_of_claim(claim, objects, plugins)
    return handles


def _inline_handles(pod: Pod, plugins: frozenset[str]) -> set[Handle]:
    disks = (volume.legacy_disk for volume in pod.spec.volumes if volume.legacy_disk is not None)
    counted = (migrated_disk(disk) for disk in disks if plugin_of(disk.kind) in plugins)
    return {handle for handle in counted if handle is not None}


def _handle_of_claim(claim: PersistentVolumeClaim, objects: ClusterObjects, plugins: frozenset[str]) -> set[Handle]:
    volume = objects.volumes.get(claim.volume_name) if claim.volume_name else None
    if volume is None:
        return _handle_by_class(claim, objects, plugins)
    if volume.csi_driver:
        return {(volume.csi_driver, volume.csi_handle)} if volume.csi_handle else set()
    handle = driver_of_volume(volume) if plugin_of(volume.legacy_kind) in plugins else None
    return set() if handle is None else {handle}


def _handle_by_class(claim: PersistentVolumeClaim, objects: ClusterObjects, plugins: frozenset[str]) -> set[Handle]:
    """The volume that will be provisioned for the claim, as (CSI driver of its storage class, `claim NAMESPACE/NAME`);
    empty if the class or its driver is unknown."""
    storage_class = objects.storage_classes.get(claim_class(claim))
    if storage_class is None:
        return set()
    provisioner: str | None = storage_class.provisioner
    if is_migratable_provisioner(storage_class.provisioner):
        provisioner = driver_of_provisioner(storage_class.provisioner) if storage_class.provisioner in plugins else None
    return {(provisioner, f"claim {claim.key}")} if provisioner else set()


def _must_be_installed(driver: str, csi_node: CSINode | None, objects: ClusterObjects) -> bool:
    """Whether the node lacks a driver that it must have."""
    known = objects.csi_drivers.get(driver)
    if known is None or not known.prevent_scheduling_if_missing:
        return False
    return csi_node is None or driver not in {installed.name for installed in csi_node.drivers}


def _attached_by_node(objects: ClusterObjects) -> Mapping[str, frozenset[Handle]]:
    attached: dict[str, set[Handle]] = {}
    for attachment in objects.attachments:
        volume = objects.volumes.get(attachment.volume_name) if attachment.volume_name is not None else None
        if attachment.attacher and volume is not None and volume.csi_driver:
            attached.setdefault(attachment.node_name, set()).add((attachment.attacher, volume.csi_handle))
    return {node: frozenset(handles) for node, handles in attached.items()}

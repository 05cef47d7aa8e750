"""In-tree disks in terms of the CSI drivers that replaced them.

Only what scheduling reads is translated: the driver, the volume's handle, and its topology. Source:
k8s.io/csi-translation-lib, v0.36, and isCSIMigrationOn in pkg/scheduler/framework/plugins/nodevolumelimits/utils.go
(v1.36).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from scheduler_core.model.labels import NodeSelector, NodeSelectorTerm, Requirement
from scheduler_core.model.pod import LegacyDisk
from scheduler_core.model.storage.volumes import CSINode, PersistentVolume
from scheduler_core.values import Value

Handle = tuple[str, str]
"""A pair: the name of the CSI driver, and the volume handle by which this driver identifies the volume."""

MIGRATED_PLUGINS_ANNOTATION: Final = "storage.alpha.kubernetes.io/migrated-plugins"

PORTWORX: Final = "kubernetes.io/portworx-volume"

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_BETA_ZONE, _BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


class Migration(Value):
    """`topology_key`: the node label that the driver uses instead of the zone label, or empty."""

    plugin: str
    driver: str
    topology_key: str = ""


_MIGRATIONS: Final = {
    "awsElasticBlockStore": Migration("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    "gcePersistentDisk": Migration("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"),
    "azureDisk": Migration("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    "cinder": Migration("kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"),
    "portworxVolume": Migration(PORTWORX, "pxd.portworx.com"),
}
_DRIVER_OF_PLUGIN: Final = {migration.plugin: migration.driver for migration in _MIGRATIONS.values()}
COUNTED_PLUGINS: Final = frozenset(_DRIVER_OF_PLUGIN)
_NEVER_COUNTED: Final = frozenset(
    {"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"}
)  # CSI drivers replaced these as well, but the scheduler does not count their volumes


def is_migratable_provisioner(provisioner: str) -> bool:
    """Whether it is an in-tree plugin that a CSI driver has replaced."""
    return provisioner in _DRIVER_OF_PLUGIN or provisioner in _NEVER_COUNTED


def driver_of_provisioner(provisioner: str) -> str | None:
    """None if the provisioner is not an in-tree plugin, or if the scheduler does not count its volumes."""
    return _DRIVER_OF_PLUGIN.get(provisioner)


def plugin_of(kind: str) -> str:
    """The in-tree plugin of this kind of disk, such as `kubernetes.io/aws-ebs`; "" if no CSI driver replaced it."""
    migration = _MIGRATIONS.get(kind)
    return "" if migration is None else migration.plugin


def plugins_migrated_on(csi_node: CSINode) -> frozenset[str]:
    return frozenset(csi_node.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "").split(","))


def migrated_disk(disk: LegacyDisk) -> Handle | None:
    """None if no CSI driver is known for this kind of disk, or if its name is missing or invalid."""
    return _handle(disk.kind, disk.identity, "UNSPECIFIED")


def driver_of_volume(volume: PersistentVolume) -> Handle | None:
    """As `migrated_disk`, for an in-tree volume."""
    zones = volume.labels.get(_BETA_ZONE) or volume.labels.get(_ZONE, "")
    return _handle(volume.legacy_kind, volume.legacy_identity, zones or "UNSPECIFIED")


def _handle(kind: str, identity: str, zones: str) -> Handle | None:
    migration = _MIGRATIONS.get(kind)
    if migration is None or not identity:
        return None
    if kind == "gcePersistentDisk":
        return migration.driver, f"zones/{zones}/disks/{identity}"  # the zone is part of a GCE disk's name
    if kind == "awsElasticBlockStore" and identity.startswith("aws://"):
        volume_id = identity.removeprefix("aws://").partition("/")[2].strip("/")
        return (migration.driver, volume_id) if re.fullmatch(r"vol-[^/]*", volume_id) else None
    return migration.driver, identity


# ---- topology ----


def required_nodes(volume: PersistentVolume, csi_node: CSINode | None) -> NodeSelector | None:
    """The volume's node affinity; with the labels of the CSI driver if the node of `csi_node` has migrated the in-tree
    plugin."""
    migration = _MIGRATIONS.get(volume.legacy_kind)
    if migration is None or not migration.topology_key or csi_node is None:
        return volume.node_affinity
    if migration.plugin not in plugins_migrated_on(csi_node):
        return volume.node_affinity
    return _translated(volume, migration.topology_key)


def _translated(volume: PersistentVolume, topology_key: str) -> NodeSelector | None:
    terms = volume.node_affinity.terms if volume.node_affinity is not None else ()
    is_beta = _uses_beta_labels(volume, terms)
    zone_label = _BETA_ZONE if is_beta else _ZONE
    if any(e.key == zone_label and e.values for term in terms for e in term.expressions):
        terms = tuple(_renamed(term, zone_label, topology_key) for term in terms)
    elif zones := sorted({zone.strip() for zone in volume.labels.get(zone_label, "").split("__")} - {""}):
        added = Requirement(topology_key, "In", tuple(zones))
        terms = tuple(replace(term, expressions=(*term.expressions, added)) for term in terms or (NodeSelectorTerm(),))
    if is_beta:
        terms = tuple(_renamed(term, _BETA_REGION, _REGION) for term in terms)
    if volume.node_affinity is None and not terms:
        return None
    return NodeSelector(terms)


def _uses_beta_labels(volume: PersistentVolume, terms: tuple[NodeSelectorTerm, ...]) -> bool:
    keys = {e.key for term in terms for e in term.expressions}
    for where in (keys, set(volume.labels)):
        if _ZONE in where:
            return False
        if _BETA_ZONE in where:
            return True
    return False


def _renamed(term: NodeSelectorTerm, old: str, new: str) -> NodeSelectorTerm:
    return replace(term, expressions=tuple(replace(e, key=new) if e.key == old else e for e in term.expressions))

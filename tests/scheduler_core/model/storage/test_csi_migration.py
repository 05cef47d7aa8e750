"""Tests the translation of in-tree disks into volumes of their CSI drivers."""

from dataclasses import replace

import pytest

from scheduler_core.model.labels import NodeSelector, NodeSelectorTerm, Requirement
from scheduler_core.model.pod import LegacyDisk
from scheduler_core.model.storage.csi_migration import (
    driver_of_provisioner,
    driver_of_volume,
    is_migratable_provisioner,
    migrated_disk,
    required_nodes,
)
from scheduler_core.model.storage.volumes import CSINode, PersistentVolume

ZONE, OLD_ZONE, REGION, OLD_REGION = (
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
)
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


@pytest.mark.parametrize(
    ("kind", "identity", "handle"),
    [
        ("awsElasticBlockStore", "vol-1", ("ebs.csi.aws.com", "vol-1")),
        ("awsElasticBlockStore", "aws://eu-1a/vol-1", ("ebs.csi.aws.com", "vol-1")),
        ("awsElasticBlockStore", "aws:///vol-1", ("ebs.csi.aws.com", "vol-1")),
        ("awsElasticBlockStore", "aws://eu-1a/snap-1", None),
        ("gcePersistentDisk", "disk", ("pd.csi.storage.gke.io", "zones/UNSPECIFIED/disks/disk")),
        ("azureDisk", "/subscriptions/x", ("disk.csi.azure.com", "/subscriptions/x")),
        ("cinder", "id", ("cinder.csi.openstack.org", "id")),
        ("portworxVolume", "id", ("pxd.portworx.com", "id")),
        ("vsphereVolume", "[ds] v", None),
        ("iscsi", "iqn", None),
    ],
)
def test_an_inline_disk_has_the_volume_handle_of_its_csi_driver(
    kind: str, identity: str, handle: tuple[str, str] | None
) -> None:
    assert migrated_disk(LegacyDisk(kind=kind, identity=identity)) == handle


def test_the_zone_is_part_of_a_gce_volumes_handle() -> None:
    volume = PersistentVolume(
        name="pv", legacy_kind="gcePersistentDisk", legacy_identity="disk", labels={ZONE: "b", OLD_ZONE: "a"}
    )
    assert driver_of_volume(volume) == ("pd.csi.storage.gke.io", "zones/a/disks/disk")
    assert driver_of_volume(replace(volume, labels={ZONE: "b"})) == ("pd.csi.storage.gke.io", "zones/b/disks/disk")
    assert driver_of_volume(PersistentVolume(name="pv")) is None


@pytest.mark.parametrize(
    ("provisioner", "is_migratable", "driver"),
    [
        ("kubernetes.io/aws-ebs", True, "ebs.csi.aws.com"),
        ("kubernetes.io/vsphere-volume", True, None),
        ("ebs.csi.aws.com", False, None),
        ("kubernetes.io/no-provisioner", False, None),
    ],
)
def test_an_in_tree_provisioner_maps_to_its_csi_driver(
    provisioner: str, is_migratable: bool, driver: str | None
) -> None:
    assert (is_migratable_provisioner(provisioner), driver_of_provisioner(provisioner)) == (is_migratable, driver)


def zones(key: str, *values: str) -> Requirement:
    return Requirement(key, "In", values)


def nodes(*terms: tuple[Requirement, ...]) -> NodeSelector:
    return NodeSelector(tuple(NodeSelectorTerm(expressions=term) for term in terms))


MIGRATED = CSINode(
    name="n", annotations={"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"}
)
EBS = PersistentVolume(name="pv", legacy_kind="awsElasticBlockStore", legacy_identity="vol-1")


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(EBS, None, id="a volume without labels gets no node affinity"),
        pytest.param(
            replace(EBS, labels={ZONE: "a__b"}),
            nodes((zones(EBS_ZONE, "a", "b"),)),
            id="the zone comes from the volume's labels",
        ),
        pytest.param(
            replace(EBS, labels={OLD_ZONE: "a"}),
            nodes((zones(EBS_ZONE, "a"),)),
            id="the zone comes from the volume's beta labels",
        ),
        pytest.param(
            replace(EBS, node_affinity=nodes((zones(ZONE, "a"),)), labels={ZONE: "b"}),
            nodes((zones(EBS_ZONE, "a"),)),
            id="the volume's node affinity overrides its labels",
        ),
        pytest.param(
            replace(
                EBS,
                node_affinity=nodes(
                    (zones(OLD_ZONE, "a"), zones(OLD_REGION, "r")),
                ),
            ),
            nodes((zones(EBS_ZONE, "a"), zones(REGION, "r"))),
            id="the beta region label is replaced by the current region label",
        ),
        pytest.param(
            replace(EBS, node_affinity=nodes((zones("disk", "ssd"),), (zones("x", "y"),)), labels={ZONE: "a"}),
            nodes((zones("disk", "ssd"), zones(EBS_ZONE, "a")), (zones("x", "y"), zones(EBS_ZONE, "a"))),
            id="the zone from the labels is added to every affinity term",
        ),
    ],
)
def test_a_migrated_volume_uses_the_topology_label_of_the_driver(
    volume: PersistentVolume, expected: NodeSelector | None
) -> None:
    assert required_nodes(volume, MIGRATED) == expected


@pytest.mark.parametrize(
    "csi_node",
    [
        None,
        CSINode(name="n"),
        CSINode(name="n", annotations={"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"}),
    ],
)
def test_a_volume_is_not_translated_for_a_node_without_csi_migration(csi_node: CSINode | None) -> None:
    as_it_is = nodes((zones(ZONE, "a"),))
    assert required_nodes(replace(EBS, node_affinity=as_it_is), csi_node) == as_it_is


def test_a_csi_volume_is_not_translated() -> None:
    as_it_is = nodes((zones(ZONE, "a"),))
    assert (
        required_nodes(PersistentVolume(name="pv", csi_driver="d", csi_handle="h", node_affinity=as_it_is), MIGRATED)
        == as_it_is
    )

"""Tests NodeVolumeLimits, which limits how many volumes of a driver are attached to a node."""

from typing import Any

import pytest

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.verdict import Verdict, VerdictCode, unresolvable, unschedulable
from scheduler_core.plugins.volume_limits import NodeVolumeLimits
from scheduler_core.testing.builders import a_node, a_pod
from tests.scheduler_core.plugins.asking import (
    SKIPPED,
    ask,
    claim,
    csi_node,
    csi_volume,
    refused,
    storage_class,
    using,
    volume,
)

PLUGIN = NodeVolumeLimits(KubeVersion.parse("1.36"))
FULL = "node(s) exceed max volume count"
N1 = a_node("n1").manifest
CLAIMS = [
    obj
    for index in range(4)
    for obj in (claim(f"c{index}", bound_to=f"pv{index}"), csi_volume(f"pv{index}", f"handle{index}"))
]


def pod(
    *claims: str, name: str = "pod", node: str | None = None, volumes: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    built = a_pod(name).with_field("spec.volumes", [*using(*claims), *(volumes or [])])
    return (built.with_field("spec.nodeName", node) if node else built).manifest


def attachment(volume_name: str, node: str = "n1") -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": f"a-{volume_name}-{node}"},
        "spec": {"attacher": "csi.example", "nodeName": node, "source": {"persistentVolumeName": volume_name}},
    }


def is_full(*objects: dict[str, Any], plugin: NodeVolumeLimits = PLUGIN) -> bool:
    found = refused(ask(plugin, N1, *CLAIMS, *objects))
    assert set(found.values()) <= {(FULL,)}
    return bool(found)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((csi_node("n1", limit=1), pod("c0")), False, id="the pod's only volume reaches the limit"),
        pytest.param(
            (csi_node("n1", limit=1), pod("c0", "c1")), True, id="the pod's two volumes exceed the limit of one"
        ),
        pytest.param(
            (csi_node("n1", limit=1), pod("c0"), pod("c1", name="o", node="n1")),
            True,
            id="the volume of another pod already reaches the limit",
        ),
        pytest.param(
            (csi_node("n1", limit=1), pod("c0"), pod("c0", name="o", node="n1")),
            False,
            id="another pod on the node already uses the volume",
        ),
        pytest.param(
            (csi_node("n1", limit=2), pod("c0"), pod("c1", name="o", node="n1"), pod("c1", name="p", node="n1")),
            False,
            id="a volume shared by two pods is counted once",
        ),
        pytest.param(
            (csi_node("n1", limit=1), pod("c0"), pod("gone", name="o", node="n1")),
            False,
            id="another pod's missing claim is not counted",
        ),
        pytest.param(
            (csi_node("n1", limit=1), pod("c0"), attachment("pv1")),
            True,
            id="an attached volume is counted even if no pod uses it",
        ),
        pytest.param(
            (csi_node("n1", limit=1), pod("c0"), attachment("pv1", "n2")),
            False,
            id="a volume attached to another node is not counted",
        ),
        pytest.param(
            (csi_node("n1", limit=2), pod("c0"), pod("c1", name="o", node="n1"), attachment("pv1")),
            False,
            id="a volume that is both used and attached is counted once",
        ),
        pytest.param((csi_node("n1"), pod("c0", "c1")), False, id="a CSINode without a limit"),
        pytest.param((csi_node("n1", "other.example", limit=0), pod("c0")), False, id="a limit of another driver"),
        pytest.param((csi_node("n1", limit=0), pod("c0")), True, id="a limit of zero"),
        pytest.param((pod("c0", "c1", "c2"),), False, id="a node without a CSINode"),
    ],
)
def test_each_volume_of_a_driver_is_counted_once(objects: tuple[dict[str, Any], ...], expected: bool) -> None:
    assert is_full(*objects) is expected


def test_an_unbound_claim_is_counted_for_the_provisioner_of_its_class() -> None:
    objects = (claim("new"), storage_class(provisioner="csi.example"), pod("new"))
    assert is_full(csi_node("n1", limit=1), pod("c0", name="o", node="n1"), *objects)
    assert not is_full(csi_node("n1", limit=2), pod("c0", name="o", node="n1"), *objects)


EBS = {"name": "disk", "awsElasticBlockStore": {"volumeID": "vol-9"}}
EBS_PV = volume("ebs", spec={"awsElasticBlockStore": {"volumeID": "aws://eu-1a/vol-1"}})


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((pod(volumes=[EBS]),), False, id="the pod's only in-tree disk reaches the limit"),
        pytest.param(
            (pod(volumes=[EBS]), claim("old", bound_to="ebs"), EBS_PV, pod("old", name="o", node="n1")),
            True,
            id="an inline disk and another disk behind a claim",
        ),
        pytest.param(
            (
                pod(volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}]),
                claim("old", bound_to="ebs"),
                EBS_PV,
                pod("old", name="o", node="n1"),
            ),
            False,
            id="an inline disk and the same disk behind a claim",
        ),
        pytest.param(
            (
                pod("new"),
                claim("new"),
                storage_class(provisioner="kubernetes.io/aws-ebs"),
                pod(name="o", node="n1", volumes=[EBS]),
            ),
            True,
            id="an unbound claim whose class has an in-tree provisioner",
        ),
    ],
)
def test_in_tree_disks_are_counted_for_the_csi_driver_that_replaced_them(
    objects: tuple[dict[str, Any], ...], expected: bool
) -> None:
    assert is_full(csi_node("n1", "ebs.csi.aws.com", limit=1), *objects) is expected


PORTWORX = {"name": "disk", "portworxVolume": {"volumeID": "7"}}


@pytest.mark.parametrize(
    ("version", "migrated", "expected"),
    [
        ("1.35", None, False),
        ("1.35", "kubernetes.io/gce-pd", False),
        ("1.35", "kubernetes.io/gce-pd,kubernetes.io/portworx-volume", True),
        ("1.36", None, True),
    ],
)
@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((pod(volumes=[PORTWORX]),), id="inline"),
        pytest.param(
            (pod("old"), claim("old", bound_to="px"), volume("px", spec={"portworxVolume": {"volumeID": "7"}})),
            id="bound",
        ),
        pytest.param(
            (pod("new"), claim("new"), storage_class(provisioner="kubernetes.io/portworx-volume")),
            id="to be provisioned",
        ),
    ],
)
def test_until_1_35_a_portworx_disk_is_counted_only_if_the_csi_node_names_its_plugin_as_migrated(
    version: str, migrated: str | None, expected: bool, objects: tuple[dict[str, Any], ...]
) -> None:
    node = csi_node("n1", "pxd.portworx.com", limit=0)
    if migrated is not None:
        node["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
    assert is_full(node, *objects, plugin=NodeVolumeLimits(KubeVersion.parse(version))) is expected


@pytest.mark.parametrize("version", ["1.32", "1.35", "1.37"])
def test_another_in_tree_disk_is_counted_on_a_node_that_names_no_migrated_plugin(version: str) -> None:
    node = csi_node("n1", "ebs.csi.aws.com", limit=0)
    assert is_full(node, pod(volumes=[EBS]), plugin=NodeVolumeLimits(KubeVersion.parse(version)))


def test_an_ephemeral_volume_is_counted_only_if_the_pod_owns_the_volumes_claim() -> None:
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    owned = claim(
        "pod-scratch",
        metadata={
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "default-pod", "controller": True}
            ]
        },
    )
    objects = (csi_node("n1", limit=0), storage_class(provisioner="csi.example"), pod(volumes=[scratch]))
    assert is_full(owned, *objects)
    stranger = ask(PLUGIN, N1, claim("pod-scratch"), *objects)["n1"]
    assert stranger == Verdict(
        VerdictCode.ERROR, ("PVC default/pod-scratch was not created for pod default/pod (pod is not owner)",)
    )


def test_a_node_is_refused_as_unresolvable_if_the_pods_volume_claim_does_not_exist() -> None:
    assert ask(PLUGIN, N1, pod("nowhere"))["n1"] == unresolvable(
        'looking up PVC default/nowhere: persistentvolumeclaim "nowhere" not found'
    )


@pytest.mark.parametrize(
    "volumes", [[], [{"name": "e", "emptyDir": {}}], [{"name": "c", "csi": {"driver": "csi.example"}}]]
)
def test_a_pod_without_attachable_volumes_is_skipped(volumes: list[dict[str, Any]]) -> None:
    assert ask(PLUGIN, N1, pod(volumes=volumes)) == SKIPPED


def driver(*, insists: bool) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example"},
        "spec": {"preventPodSchedulingIfMissing": insists},
    }


@pytest.mark.parametrize(
    ("version", "insists", "installed", "expected"),
    [
        ("1.37", True, "other.example", True),
        ("1.37", True, "csi.example", False),
        ("1.37", False, "other.example", False),
        ("1.36", True, "other.example", False),
    ],
)
def test_since_1_37_a_node_without_a_required_csi_driver_is_refused(
    version: str, insists: bool, installed: str, expected: bool
) -> None:
    verdict = ask(
        NodeVolumeLimits(KubeVersion.parse(version)),
        N1,
        *CLAIMS,
        driver(insists=insists),
        csi_node("n1", installed),
        pod("c0"),
    )["n1"]
    assert (verdict == unschedulable("csi.example CSI driver is not installed on the node")) is expected
    assert verdict.is_success is not expected


def test_of_several_missing_csi_drivers_the_refusal_names_the_first() -> None:
    others = [
        obj
        for name in ("b.example", "a.example")
        for obj in (
            claim(name, bound_to=f"pv-{name}"),
            volume(f"pv-{name}", spec={"csi": {"driver": name, "volumeHandle": "h"}}),
            driver(insists=True) | {"metadata": {"name": name}},
        )
    ]
    verdict = ask(NodeVolumeLimits(KubeVersion.parse("1.37")), N1, *others, pod("b.example", "a.example"))["n1"]
    assert verdict == unschedulable("a.example CSI driver is not installed on the node")

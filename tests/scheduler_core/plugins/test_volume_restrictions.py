"""Tests VolumeRestrictions, which refuses disks that pods on one node cannot share, and claims that only one pod may
use."""

from typing import Any

import pytest

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.verdict import unresolvable, unschedulable
from scheduler_core.plugins.volume_restrictions import VolumeRestrictions
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.testing.builders import a_node, a_pod
from tests.scheduler_core.plugins.asking import SKIPPED, ask, claim, refused, using

PLUGIN = VolumeRestrictions(KubeVersion.parse("1.36"))
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
NODES = (a_node("n1").manifest, a_node("n2").manifest)


def pod(*volumes: dict[str, Any], name: str = "pod", node: str | None = None) -> dict[str, Any]:
    built = a_pod(name).with_field("spec.volumes", [{"name": f"v{i}", **v} for i, v in enumerate(volumes)])
    return (built.with_field("spec.nodeName", node) if node else built).manifest


def gce(name: str = "disk", read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str = "vol", read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str = "iqn", read_only: bool = False) -> dict[str, Any]:
    return {"iscsi": {"iqn": iqn, "targetPortal": "p", "lun": 0, "readOnly": read_only}}


def rbd(*monitors: str, image: str = "i", pool: str | None = None, read_only: bool = False) -> dict[str, Any]:
    return {
        "rbd": {"monitors": list(monitors), "image": image, "readOnly": read_only, **({"pool": pool} if pool else {})}
    }


@pytest.mark.parametrize(
    ("mine", "theirs", "clashes"),
    [
        pytest.param(gce(), gce(), True, id="the same GCE disk, writable in both pods"),
        pytest.param(gce(read_only=True), gce(), True, id="the same GCE disk, writable in one pod"),
        pytest.param(gce(read_only=True), gce(read_only=True), False, id="the same GCE disk, read-only in both pods"),
        pytest.param(gce(), gce("other"), False, id="another GCE disk"),
        pytest.param(ebs(read_only=True), ebs(read_only=True), True, id="the same EBS volume, read-only in both pods"),
        pytest.param(ebs(), ebs("other"), False, id="another EBS volume"),
        pytest.param(iscsi(), iscsi(), True, id="the same iSCSI target, writable in both pods"),
        pytest.param(
            iscsi(read_only=True), iscsi(read_only=True), False, id="the same iSCSI target, read-only in both pods"
        ),
        pytest.param(iscsi(), iscsi("other"), False, id="another iSCSI target"),
        pytest.param(rbd("a", "b"), rbd("b", "c"), True, id="the same RBD image and a common monitor"),
        pytest.param(rbd("a"), rbd("c"), False, id="the same RBD image without a common monitor"),
        pytest.param(rbd("a"), rbd("a", image="other"), False, id="another RBD image"),
        pytest.param(rbd("a"), rbd("a", pool="other"), False, id="another RBD pool"),
        pytest.param(
            rbd("a", pool="rbd"), rbd("a"), True, id="the same RBD image, with the default pool named or omitted"
        ),
        pytest.param(
            rbd("a", read_only=True), rbd("a", read_only=True), False, id="the same RBD image, read-only in both pods"
        ),
        pytest.param(gce("x"), ebs("x"), False, id="a GCE disk and an EBS volume of the same name"),
    ],
)
def test_a_disk_in_use_on_a_node_refuses_only_that_node(
    mine: dict[str, Any], theirs: dict[str, Any], clashes: bool
) -> None:
    verdicts = ask(PLUGIN, *NODES, pod(mine), pod(theirs, name="other", node="n1"))
    assert refused(verdicts) == ({"n1": ("node(s) had no available disk",)} if clashes else {})
    assert not clashes or verdicts["n1"] == unschedulable("node(s) had no available disk")


def exclusive(name: str = "data") -> dict[str, Any]:
    return claim(name, spec={"accessModes": ["ReadWriteOncePod"]})


def holder(*claims: str, namespace: str = "default") -> dict[str, Any]:
    return (
        a_pod("holder", namespace).with_field("spec.volumes", using(*claims)).with_field("spec.nodeName", "n1").manifest
    )


def asking(*claims: str) -> dict[str, Any]:
    return a_pod().with_field("spec.volumes", using(*claims)).manifest


def test_preemption_may_help_a_pod_whose_read_write_once_pod_claim_is_in_use() -> None:
    verdicts = ask(PLUGIN, *NODES, exclusive(), asking("data"), holder("data"))
    assert set(verdicts.values()) == {unschedulable(IN_USE)}


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((exclusive(),), id="no pod uses the claim"),
        pytest.param((claim(), holder("data")), id="the claim is not ReadWriteOncePod"),
        pytest.param((exclusive(), exclusive("other"), holder("other")), id="another claim is in use"),
        pytest.param(
            (exclusive(), holder("data", namespace="elsewhere")),
            id="a claim of the same name in another namespace is in use",
        ),
    ],
)
def test_the_filter_is_skipped_if_no_other_pod_uses_a_read_write_once_pod_claim_of_the_pod(
    objects: tuple[dict[str, Any], ...],
) -> None:
    assert ask(PLUGIN, *NODES, asking("data"), *objects) == SKIPPED


def test_a_pod_without_volumes_is_skipped() -> None:
    assert ask(PLUGIN, *NODES, asking()) == SKIPPED


def test_a_pod_is_refused_as_unresolvable_if_its_volume_claim_does_not_exist() -> None:
    assert ask(PLUGIN, *NODES, asking("nowhere")) == unresolvable('persistentvolumeclaim "nowhere" not found')


def test_volume_restrictions_until_1_33_have_another_refusal_message() -> None:
    verdicts = ask(VolumeRestrictions(KubeVersion.parse("1.33")), *NODES, exclusive(), asking("data"), holder("data"))
    assert verdicts["n2"] == unschedulable(
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
    )


def test_a_volume_claim_becomes_free_if_preemption_removes_the_pod_that_uses_the_claim() -> None:
    snapshot = load_objects([*NODES, exclusive(), asking("data"), holder("data")])
    state, pod, other = CycleState(), snapshot.pod("default/pod"), snapshot.pod("default/holder")
    PLUGIN.pre_filter(state, pod, NodeList(snapshot))
    info = snapshot.node_info(0)
    answers = [PLUGIN.filter(state, pod, info).is_success]
    PLUGIN.remove_pod(state, pod, other, info.without_pod(other))
    answers.append(PLUGIN.filter(state, pod, info.without_pod(other)).is_success)
    PLUGIN.add_pod(state, pod, other, info)
    answers.append(PLUGIN.filter(state, pod, info).is_success)
    assert answers == [False, True, False]

"""Tests which PersistentVolumeClaims the volumes of a pod use."""

import pytest

from scheduler_core.model.pod import OwnerReference, Pod, PodSpec, PodVolume
from scheduler_core.model.storage.pod_claims import (
    ClaimUse,
    claim_class,
    claims_used,
    find_claim,
    ownership_problem,
    volume_class,
)
from scheduler_core.model.storage.volumes import PersistentVolume, PersistentVolumeClaim

POD = Pod(
    name="p",
    namespace="ns",
    uid="u",
    spec=PodSpec(
        volumes=(
            PodVolume(name="a", claim_name="data"),
            PodVolume(name="b", kind="emptyDir"),
            PodVolume(name="c", ephemeral=True),
            PodVolume(name="d", claim_name=""),
        )
    ),
)
CLAIM = PersistentVolumeClaim(name="p-c", namespace="ns", owner=OwnerReference("v1", "Pod", "p", "u"))


def test_the_claims_of_a_pod_have_the_order_of_its_volumes() -> None:
    assert list(claims_used(POD)) == [
        ClaimUse("data", is_ephemeral=False),
        ClaimUse("p-c", is_ephemeral=True),
        ClaimUse("", is_ephemeral=False),
    ]


def test_a_claim_is_looked_up_in_the_pods_namespace() -> None:
    assert find_claim(POD, "p-c", {"ns/p-c": CLAIM, "default/p-c": CLAIM}) is CLAIM
    assert find_claim(POD, "p-c", {"default/p-c": CLAIM}) is None


@pytest.mark.parametrize(
    ("claim", "is_its_own"),
    [
        (CLAIM, True),
        (PersistentVolumeClaim(name="p-c", namespace="ns"), False),
        (PersistentVolumeClaim(name="p-c", namespace="ns", owner=OwnerReference("v1", "Pod", "p", "older")), False),
    ],
)
def test_an_ephemeral_claim_must_be_owned_by_the_pod(claim: PersistentVolumeClaim, is_its_own: bool) -> None:
    assert ownership_problem(POD, claim) == (
        "" if is_its_own else "PVC ns/p-c was not created for pod ns/p (pod is not owner)"
    )


def test_the_storage_class_annotation_overrides_the_field() -> None:
    beta = {"volume.beta.kubernetes.io/storage-class": "old"}
    assert claim_class(PersistentVolumeClaim(name="c", namespace="n", class_name="new", annotations=beta)) == "old"
    assert claim_class(PersistentVolumeClaim(name="c", namespace="n")) == ""
    assert volume_class(PersistentVolume(name="v", class_name="new", annotations=beta)) == "old"
    assert volume_class(PersistentVolume(name="v", class_name="new")) == "new"

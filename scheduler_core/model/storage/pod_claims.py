"""Finds the claims that a pod's volumes use, and the storage class of a claim.

Source: component-helpers/storage (ephemeral, volume/pv_helpers.go), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from scheduler_core.model.pod import Pod
from scheduler_core.model.storage.volumes import PersistentVolume, PersistentVolumeClaim
from scheduler_core.values import Value

BETA_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


class ClaimUse(Value):
    """A claim that a pod uses, by its name in the pod's namespace. If `is_ephemeral` is true, the claim was made for
    one pod, and a pod that uses the claim must own it."""

    name: str
    is_ephemeral: bool


def claims_used(pod: Pod) -> Iterator[ClaimUse]:
    """Returns the claims of the pod's volumes, in the order of the volumes."""
    for volume in pod.spec.volumes:
        if volume.claim_name is not None:
            yield ClaimUse(volume.claim_name, is_ephemeral=False)
        elif volume.ephemeral:
            yield ClaimUse(f"{pod.name}-{volume.name}", is_ephemeral=True)


def find_claim(pod: Pod, name: str, claims: Mapping[str, PersistentVolumeClaim]) -> PersistentVolumeClaim | None:
    return claims.get(f"{pod.namespace}/{name}")


def ownership_problem(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Returns the reason why an ephemeral volume of the pod must not use this claim. The reason is empty if the claim
    was made for the pod."""
    if claim.namespace == pod.namespace and claim.owner is not None and claim.owner.uid == pod.uid:
        return ""
    return f"PVC {claim.namespace}/{claim.name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"


def claim_class(claim: PersistentVolumeClaim) -> str:
    """Returns the name of the claim's storage class, or an empty name if the claim has no class. The annotation
    volume.beta.kubernetes.io/storage-class takes precedence over the field."""
    return claim.annotations.get(BETA_CLASS_ANNOTATION, claim.class_name or "")


def volume_class(volume: PersistentVolume) -> str:
    return volume.annotations.get(BETA_CLASS_ANNOTATION, volume.class_name)

"""The claims that a pod's volumes use, and the storage class of a claim.

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
    """A claim by its name in the pod's namespace. If `is_ephemeral`, it was made for one pod, which must own it."""

    name: str
    is_ephemeral: bool


def claims_used(pod: Pod) -> Iterator[ClaimUse]:
    """In the order of the pod's volumes."""
    for volume in pod.spec.volumes:
        if volume.claim_name is not None:
            yield ClaimUse(volume.claim_name, is_ephemeral=False)
        elif volume.ephemeral:
            yield ClaimUse(f"{pod.name}-{volume.name}", is_ephemeral=True)


def find_claim(pod: Pod, name: str, claims: Mapping[str, PersistentVolumeClaim]) -> PersistentVolumeClaim | None:
    return claims.get(f"{pod.namespace}/{name}")


def ownership_problem(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Why an ephemeral volume of the pod must not use this claim; "" if the claim was made for the pod."""
    if claim.namespace == pod.namespace and claim.owner is not None and claim.owner.uid == pod.uid:
        return ""
    return f"PVC {claim.namespace}/{claim.name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"


def claim_class(claim: PersistentVolumeClaim) -> str:
    """ "" without a class. The annotation volume.beta.kubernetes.io/storage-class takes precedence over the field."""
    return claim.annotations.get(BETA_CLASS_ANNOTATION, claim.class_name or "")


def volume_class(volume: PersistentVolume) -> str:
    return volume.annotations.get(BETA_CLASS_ANNOTATION, volume.class_name)

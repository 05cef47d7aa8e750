"""The parts of a pod that tell which claims it mounts and whether its containers have started again."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import msgspec


class Present(msgspec.Struct, gc=False, frozen=True):
    """Something that need only exist."""


class ClaimedVolume(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    claim_name: str = ""


class Volume(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    name: str = ""
    empty_dir: Present | None = None
    persistent_volume_claim: ClaimedVolume | None = None
    ephemeral: Present | None = None


class Running(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    started_at: str | None = None


class ContainerState(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    running: Running | None = None


class ContainerStatus(
    msgspec.Struct, gc=False, frozen=True, rename={"container_id": "containerID", "restart_count": "restartCount"}
):
    name: str = ""
    container_id: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()


def claims(pod: str, volumes: Iterable[Volume]) -> tuple[str, ...]:
    """The PersistentVolumeClaims behind the volumes; a generic ephemeral volume's is named after the pod and the
    volume."""
    named = (each.persistent_volume_claim.claim_name for each in volumes if each.persistent_volume_claim is not None)
    return (*named, *(f"{pod}-{each.name}" for each in volumes if each.ephemeral is not None))


def checksum(uid: str, statuses: Iterable[ContainerStatus]) -> int:
    """Of the pod's containers as the kubelet last reported them; each restart of a container changes it. 0 without
    any."""
    started = [
        f"{each.name} {each.container_id} {each.restart_count} "
        f"{each.state.running.started_at if each.state.running is not None else ''}"
        for each in sorted(statuses, key=lambda each: each.name)
    ]
    return zlib.crc32("\n".join([uid, *started]).encode()) if started else 0

"""The kinds that kube-scheduler watches and scheduler_core reads."""

from __future__ import annotations

from careen.cluster.reflector.reflector import WatchedKind
from careen.cluster.snapshot_reader import ALWAYS, DEVICE_VERSIONS, DEVICES, VOLUMES
from careen.cluster.wire.answers import asked_for


def sources() -> tuple[WatchedKind, ...]:
    """In the order of their lists: nodes, pods, the others."""
    plain = [WatchedKind(kind=asked_for(path).kind, paths=(path,)) for path in (*ALWAYS, *VOLUMES)]
    devices = [tuple(path.format(version=version) for version in DEVICE_VERSIONS) for path in DEVICES]
    return (*plain, *(WatchedKind(kind=asked_for(paths[0]).kind, paths=paths) for paths in devices))

"""kube-scheduler's decisions as a library: a snapshot of a cluster and a pod in, the node and every reason out.

Nothing heavy is loaded here: what computes needs numpy and is imported when one of the names below is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler_core.cycle import CycleResult, Scheduler
    from scheduler_core.model.from_manifest import node_from_manifest, pod_from_manifest
    from scheduler_core.snapshot.snapshot import Snapshot

_HOME = {
    "CycleResult": "scheduler_core.cycle",
    "Scheduler": "scheduler_core.cycle",
    "Snapshot": "scheduler_core.snapshot.snapshot",
    "node_from_manifest": "scheduler_core.model.from_manifest",
    "pod_from_manifest": "scheduler_core.model.from_manifest",
}

__all__ = ["CycleResult", "Scheduler", "Snapshot", "node_from_manifest", "pod_from_manifest"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'scheduler_core' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)

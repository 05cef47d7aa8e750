"""kube-scheduler's decisions as a library: for a pod and a snapshot of a cluster, the chosen node, and why each other
node was not chosen.

Importing this package does not load numpy; the first use of a name that needs numpy does. Words: docs/glossary.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler_core.cache.cluster_cache import ClusterCache
    from scheduler_core.cache.events import Sync, UnusableEventError
    from scheduler_core.config.configuration import Configuration
    from scheduler_core.cycle import Scheduler
    from scheduler_core.cycle_result import CycleResult
    from scheduler_core.framework.binding import BindingCycle
    from scheduler_core.learning.search_estimate import SearchEstimate
    from scheduler_core.model.manifests.from_manifest import node_from_manifest, pod_from_manifest
    from scheduler_core.model.manifests.workload_from_manifest import workload_from_manifest
    from scheduler_core.queue.assembly import queue_for
    from scheduler_core.queue.failed_cycle import handle_failed_cycle
    from scheduler_core.queue.hints.changes import node_changes, pod_changes
    from scheduler_core.running.machine import Machine
    from scheduler_core.snapshot.loading import load_objects, load_pages
    from scheduler_core.snapshot.snapshot import Snapshot
    from scheduler_core.what_if.cheapest_mix import NodeOffer, cheapest_mix
    from scheduler_core.what_if.more_nodes import nodes_needed, with_more_nodes
    from scheduler_core.what_if.node_template import like_node, of_manifest
    from scheduler_core.what_if.removable_nodes import removable_nodes

__version__ = "0.1.0"

_HOME = {
    "BindingCycle": "scheduler_core.framework.binding",
    "ClusterCache": "scheduler_core.cache.cluster_cache",
    "Configuration": "scheduler_core.config.configuration",
    "CycleResult": "scheduler_core.cycle_result",
    "Machine": "scheduler_core.running.machine",
    "NodeOffer": "scheduler_core.what_if.cheapest_mix",
    "Scheduler": "scheduler_core.cycle",
    "SearchEstimate": "scheduler_core.learning.search_estimate",
    "Snapshot": "scheduler_core.snapshot.snapshot",
    "Sync": "scheduler_core.cache.events",
    "UnusableEventError": "scheduler_core.cache.events",
    "cheapest_mix": "scheduler_core.what_if.cheapest_mix",
    "handle_failed_cycle": "scheduler_core.queue.failed_cycle",
    "like_node": "scheduler_core.what_if.node_template",
    "load_objects": "scheduler_core.snapshot.loading",
    "load_pages": "scheduler_core.snapshot.loading",
    "node_changes": "scheduler_core.queue.hints.changes",
    "node_from_manifest": "scheduler_core.model.manifests.from_manifest",
    "nodes_needed": "scheduler_core.what_if.more_nodes",
    "of_manifest": "scheduler_core.what_if.node_template",
    "pod_changes": "scheduler_core.queue.hints.changes",
    "pod_from_manifest": "scheduler_core.model.manifests.from_manifest",
    "queue_for": "scheduler_core.queue.assembly",
    "removable_nodes": "scheduler_core.what_if.removable_nodes",
    "with_more_nodes": "scheduler_core.what_if.more_nodes",
    "workload_from_manifest": "scheduler_core.model.manifests.workload_from_manifest",
}

__all__ = [
    "BindingCycle",
    "ClusterCache",
    "Configuration",
    "CycleResult",
    "Machine",
    "NodeOffer",
    "Scheduler",
    "SearchEstimate",
    "Snapshot",
    "Sync",
    "UnusableEventError",
    "cheapest_mix",
    "handle_failed_cycle",
    "like_node",
    "load_objects",
    "load_pages",
    "node_changes",
    "node_from_manifest",
    "nodes_needed",
    "of_manifest",
    "pod_changes",
    "pod_from_manifest",
    "queue_for",
    "removable_nodes",
    "with_more_nodes",
    "workload_from_manifest",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'scheduler_core' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)

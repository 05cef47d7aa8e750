"""kube-scheduler's decisions as a library: for a pod and a snapshot of a cluster, the chosen node, and why each other
node was not chosen.

The names in `__all__` are the library's interface (docs/api has a page for each release). A name that goes warns for
one release before. Importing this package does not load numpy; the first use of a name that needs numpy does.
Words: docs/glossary.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING
from warnings import warn

if TYPE_CHECKING:
    from scheduler_core.cache.cluster_cache import ClusterCache
    from scheduler_core.cache.events import Sync, UnusableEventError
    from scheduler_core.config.configuration import Configuration
    from scheduler_core.config.fields import ConfigurationError
    from scheduler_core.config.kube_version import KubeVersion, UnsupportedKubeVersionError
    from scheduler_core.cycle import NoProfileError, Scheduler
    from scheduler_core.cycle_result import CycleResult
    from scheduler_core.framework.binding import BindingCycle
    from scheduler_core.framework.verdict import SUCCESS, Verdict, unresolvable, unschedulable
    from scheduler_core.learning.search_estimate import SearchEstimate
    from scheduler_core.model.manifests.error import ManifestError
    from scheduler_core.model.manifests.from_manifest import node_from_manifest, pod_from_manifest
    from scheduler_core.model.manifests.workload_from_manifest import workload_from_manifest
    from scheduler_core.model.node import Node
    from scheduler_core.model.pod import Pod
    from scheduler_core.queue.assembly import queue_for
    from scheduler_core.queue.failed_cycle import handle_failed_cycle
    from scheduler_core.queue.hints.changes import node_changes, pod_changes
    from scheduler_core.running.machine import Machine
    from scheduler_core.simulation.drain import simulate_drain
    from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
    from scheduler_core.simulation.rollout import Durations, simulate_rollout
    from scheduler_core.simulation.rollout_parts.rules import NodesAtOnce, Rules
    from scheduler_core.simulation.timeline import Obstacle, Timeline
    from scheduler_core.snapshot.dump import Dump, DumpWriter, Header, UnreadableDumpError, read_dump
    from scheduler_core.snapshot.loading import PageReader, load_objects, load_pages
    from scheduler_core.snapshot.pods.utilisation import Utilisation
    from scheduler_core.snapshot.snapshot import Snapshot, UnknownNodeError, UnknownPodError
    from scheduler_core.what_if.after_drain import after_drain
    from scheduler_core.what_if.cheapest_mix import NodeMix, NodeOffer, cheapest_mix
    from scheduler_core.what_if.more_nodes import MoreNodes, NodesNeeded, nodes_needed, with_more_nodes
    from scheduler_core.what_if.node_template import NodeTemplate, like_node, template_from_manifest
    from scheduler_core.what_if.removable_nodes import Removable, removable_nodes

__version__ = "0.1.0"

_HOME = {
    "BindingCycle": "scheduler_core.framework.binding",
    "ClusterCache": "scheduler_core.cache.cluster_cache",
    "Configuration": "scheduler_core.config.configuration",
    "ConfigurationError": "scheduler_core.config.fields",
    "CycleResult": "scheduler_core.cycle_result",
    "Dump": "scheduler_core.snapshot.dump",
    "DumpWriter": "scheduler_core.snapshot.dump",
    "Durations": "scheduler_core.simulation.rollout",
    "Forecast": "scheduler_core.simulation.forecast",
    "Header": "scheduler_core.snapshot.dump",
    "KubeVersion": "scheduler_core.config.kube_version",
    "Machine": "scheduler_core.running.machine",
    "ManifestError": "scheduler_core.model.manifests.error",
    "MoreNodes": "scheduler_core.what_if.more_nodes",
    "NoProfileError": "scheduler_core.cycle",
    "Node": "scheduler_core.model.node",
    "NodeMix": "scheduler_core.what_if.cheapest_mix",
    "NodeOffer": "scheduler_core.what_if.cheapest_mix",
    "NodeTemplate": "scheduler_core.what_if.node_template",
    "NodesAtOnce": "scheduler_core.simulation.rollout_parts.rules",
    "NodesNeeded": "scheduler_core.what_if.more_nodes",
    "Obstacle": "scheduler_core.simulation.timeline",
    "Outcome": "scheduler_core.simulation.forecast",
    "PageReader": "scheduler_core.snapshot.loading",
    "Pod": "scheduler_core.model.pod",
    "PodForecast": "scheduler_core.simulation.forecast",
    "Removable": "scheduler_core.what_if.removable_nodes",
    "Rules": "scheduler_core.simulation.rollout_parts.rules",
    "SUCCESS": "scheduler_core.framework.verdict",
    "Scheduler": "scheduler_core.cycle",
    "SearchEstimate": "scheduler_core.learning.search_estimate",
    "Snapshot": "scheduler_core.snapshot.snapshot",
    "Sync": "scheduler_core.cache.events",
    "Timeline": "scheduler_core.simulation.timeline",
    "UnknownNodeError": "scheduler_core.snapshot.snapshot",
    "UnknownPodError": "scheduler_core.snapshot.snapshot",
    "UnreadableDumpError": "scheduler_core.snapshot.dump",
    "UnsupportedKubeVersionError": "scheduler_core.config.kube_version",
    "UnusableEventError": "scheduler_core.cache.events",
    "Utilisation": "scheduler_core.snapshot.pods.utilisation",
    "Verdict": "scheduler_core.framework.verdict",
    "after_drain": "scheduler_core.what_if.after_drain",
    "cheapest_mix": "scheduler_core.what_if.cheapest_mix",
    "handle_failed_cycle": "scheduler_core.queue.failed_cycle",
    "like_node": "scheduler_core.what_if.node_template",
    "load_objects": "scheduler_core.snapshot.loading",
    "load_pages": "scheduler_core.snapshot.loading",
    "node_changes": "scheduler_core.queue.hints.changes",
    "node_from_manifest": "scheduler_core.model.manifests.from_manifest",
    "nodes_needed": "scheduler_core.what_if.more_nodes",
    "pod_changes": "scheduler_core.queue.hints.changes",
    "pod_from_manifest": "scheduler_core.model.manifests.from_manifest",
    "queue_for": "scheduler_core.queue.assembly",
    "read_dump": "scheduler_core.snapshot.dump",
    "removable_nodes": "scheduler_core.what_if.removable_nodes",
    "simulate_drain": "scheduler_core.simulation.drain",
    "simulate_rollout": "scheduler_core.simulation.rollout",
    "template_from_manifest": "scheduler_core.what_if.node_template",
    "unresolvable": "scheduler_core.framework.verdict",
    "unschedulable": "scheduler_core.framework.verdict",
    "with_more_nodes": "scheduler_core.what_if.more_nodes",
    "workload_from_manifest": "scheduler_core.model.manifests.workload_from_manifest",
}

# Old names: what replaces each.
_RENAMED = {"of_manifest": "template_from_manifest"}

__all__ = [
    "SUCCESS",
    "BindingCycle",
    "ClusterCache",
    "Configuration",
    "ConfigurationError",
    "CycleResult",
    "Dump",
    "DumpWriter",
    "Durations",
    "Forecast",
    "Header",
    "KubeVersion",
    "Machine",
    "ManifestError",
    "MoreNodes",
    "NoProfileError",
    "Node",
    "NodeMix",
    "NodeOffer",
    "NodeTemplate",
    "NodesAtOnce",
    "NodesNeeded",
    "Obstacle",
    "Outcome",
    "PageReader",
    "Pod",
    "PodForecast",
    "Removable",
    "Rules",
    "Scheduler",
    "SearchEstimate",
    "Snapshot",
    "Sync",
    "Timeline",
    "UnknownNodeError",
    "UnknownPodError",
    "UnreadableDumpError",
    "UnsupportedKubeVersionError",
    "UnusableEventError",
    "Utilisation",
    "Verdict",
    "after_drain",
    "cheapest_mix",
    "handle_failed_cycle",
    "like_node",
    "load_objects",
    "load_pages",
    "node_changes",
    "node_from_manifest",
    "nodes_needed",
    "pod_changes",
    "pod_from_manifest",
    "queue_for",
    "read_dump",
    "removable_nodes",
    "simulate_drain",
    "simulate_rollout",
    "template_from_manifest",
    "unresolvable",
    "unschedulable",
    "with_more_nodes",
    "workload_from_manifest",
]


def __dir__() -> list[str]:
    return ["__version__", *__all__]


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        text = f"scheduler_core.{name} is now scheduler_core.{_RENAMED[name]}; the next release has only the new name"
        warn(text, DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    if name not in _HOME:
        raise AttributeError(f"module 'scheduler_core' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)

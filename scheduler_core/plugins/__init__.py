"""The in-tree plugins: each name with its factory. default_profile.py lists those that run by default, in order.

A factory gets the plugin's arguments (typed, or None) and the Kubernetes release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduler_core.framework.plugin_set import Factory
from scheduler_core.model.manifests.from_manifest import node_affinity_from_manifest
from scheduler_core.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from scheduler_core.plugins.default_binder import DefaultBinder
from scheduler_core.plugins.default_preemption import DefaultPreemption
from scheduler_core.plugins.dynamic_resources import DynamicResources, ScoringDynamicResources
from scheduler_core.plugins.image_locality import ImageLocality
from scheduler_core.plugins.inter_pod_affinity import InterPodAffinity
from scheduler_core.plugins.node_affinity import NodeAffinity
from scheduler_core.plugins.node_declared_features import NodeDeclaredFeatures
from scheduler_core.plugins.node_name import NarrowingNodeName, NodeName
from scheduler_core.plugins.node_ports import NodePorts, NodePortsOfContainers
from scheduler_core.plugins.node_resources_fit import NodeResourcesFit
from scheduler_core.plugins.node_unschedulable import NodeUnschedulable
from scheduler_core.plugins.pod_topology_spread import PodTopologySpread
from scheduler_core.plugins.priority_sort import PrioritySort
from scheduler_core.plugins.scheduling_gates import SchedulingGates
from scheduler_core.plugins.taint_toleration import TaintToleration
from scheduler_core.plugins.volume_binding import VolumeBinding
from scheduler_core.plugins.volume_limits import NodeVolumeLimits
from scheduler_core.plugins.volume_restrictions import VolumeRestrictions
from scheduler_core.plugins.volume_zone import VolumeZone


def _node_affinity(args: Any, _version: Any) -> NodeAffinity:
    return NodeAffinity(node_affinity_from_manifest(args.added_affinity))


IN_TREE: Final[Mapping[str, Factory]] = {
    "SchedulingGates": lambda _args, _version: SchedulingGates(),
    "PrioritySort": lambda _args, _version: PrioritySort(),
    "NodeUnschedulable": lambda _args, _version: NodeUnschedulable(),
    "NodeName": lambda _args, version: NarrowingNodeName() if version.node_name_limits_the_search else NodeName(),
    "TaintToleration": lambda _args, version: TaintToleration(version),
    "NodeAffinity": _node_affinity,
    "NodePorts": lambda _args, version: NodePorts() if version.sidecar_host_ports_count else NodePortsOfContainers(),
    "NodeResourcesFit": NodeResourcesFit,
    "VolumeRestrictions": lambda _args, version: VolumeRestrictions(version),
    "NodeVolumeLimits": lambda _args, version: NodeVolumeLimits(version),
    "VolumeBinding": VolumeBinding,
    "VolumeZone": lambda _args, _version: VolumeZone(),
    "PodTopologySpread": lambda args, _version: PodTopologySpread.from_args(args),
    "InterPodAffinity": InterPodAffinity,
    "DynamicResources": lambda args, version: (
        ScoringDynamicResources(version, args) if version.dynamic_resources_score else DynamicResources(version, args)
    ),
    "DefaultPreemption": lambda args, version: DefaultPreemption(args, kube_version=version),
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "ImageLocality": lambda _args, version: ImageLocality(version),
    "DefaultBinder": lambda _args, _version: DefaultBinder(),
    "NodeDeclaredFeatures": lambda _args, _version: NodeDeclaredFeatures(),
}

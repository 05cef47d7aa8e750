"""The plugins that run by default, with their weights; comments give the reason for a position or weight.

The order within every extension point is the order of this list (pkg/scheduler/apis/config/v1/default_plugins.go,
v1.36).
"""

from __future__ import annotations

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_merge import EnabledPlugin


def default_plugins(kube_version: KubeVersion) -> tuple[EnabledPlugin, ...]:
    """What this release enables at the MultiPoint extension point."""
    return (
        EnabledPlugin(name="SchedulingGates"),  # before the queue: gated pods cost nothing
        EnabledPlugin(name="PrioritySort"),  # the queue's order
        *_node_rules(kube_version),  # the cheapest filters first: they read only the node …
        EnabledPlugin(
            name="TaintToleration", weight=3
        ),  # … administrators use soft taints to express preferences, so they weigh most
        EnabledPlugin(name="NodeAffinity", weight=2),  # the preferences of the pod's author weigh double
        EnabledPlugin(name="NodePorts"),
        EnabledPlugin(name="NodeResourcesFit", weight=1),
        EnabledPlugin(name="VolumeRestrictions"),  # then the filters that check the pod's volumes
        EnabledPlugin(name="NodeVolumeLimits"),
        EnabledPlugin(name="VolumeBinding"),
        EnabledPlugin(name="VolumeZone"),
        EnabledPlugin(name="PodTopologySpread", weight=2),  # other pods: the most expensive filters last
        EnabledPlugin(name="InterPodAffinity", weight=2),
        *_dynamic_resources(kube_version),  # before preemption: releasing a device does less harm than evicting
        EnabledPlugin(name="DefaultPreemption"),
        EnabledPlugin(name="NodeResourcesBalancedAllocation", weight=1),  # scores without a filter
        EnabledPlugin(name="ImageLocality", weight=1),
        EnabledPlugin(name="DefaultBinder"),
        *(
            (EnabledPlugin(name="NodeDeclaredFeatures"),) if kube_version.node_declared_features else ()
        ),  # appended by its feature gate
    )


def _node_rules(kube_version: KubeVersion) -> tuple[EnabledPlugin, ...]:
    unschedulable, node_name = EnabledPlugin(name="NodeUnschedulable"), EnabledPlugin(name="NodeName")
    is_first = kube_version.node_name_limits_the_search
    return (node_name, unschedulable) if is_first else (unschedulable, node_name)


def _dynamic_resources(kube_version: KubeVersion) -> tuple[EnabledPlugin, ...]:
    if not kube_version.dynamic_resources:
        return ()
    return (EnabledPlugin(name="DynamicResources", weight=2 if kube_version.dynamic_resources_score else 0),)

"""The queueing hints of every default plugin: which events may help a pod that it refused.

Separate from the plugins, because only the queue uses hints. A plugin's method `events`, if it has one, returns its own
hints instead. With neither, the queue assumes that every event may help.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler_core.config.configuration import Profile
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import NodeAffinityArgs
from scheduler_core.extenders.chain import EXTENDER_NAME
from scheduler_core.framework.extension_points import Plugin
from scheduler_core.framework.plugin_set import serves
from scheduler_core.model.requests import RequestRules
from scheduler_core.queue.events import EVERY_EVENT, Action, ClusterEvent, EventHint, Resource
from scheduler_core.queue.hints import itself, node_rules, other_pods, resources, storage
from scheduler_core.queue.waiting import RegisteredHints

# Only plugins that can refuse a pod, or hold it back, need events.
_REFUSING_POINTS = ("preEnqueue", "preFilter", "filter", "reserve", "permit")


def default_hints(
    profile: Profile, kube_version: KubeVersion, rules: RequestRules
) -> Mapping[str, tuple[EventHint, ...]]:
    affinity = profile.plugin_args("NodeAffinity", kube_version)
    assert isinstance(affinity, NodeAffinityArgs)
    return {
        "SchedulingGates": itself.SCHEDULING_GATES,
        "NodeUnschedulable": node_rules.NODE_UNSCHEDULABLE,
        "NodeName": node_rules.NODE_NAME,
        "TaintToleration": node_rules.TAINT_TOLERATION,
        "NodeAffinity": node_rules.node_affinity(affinity),
        "NodePorts": resources.node_ports(kube_version),
        "NodeResourcesFit": resources.node_resources_fit(kube_version, rules),
        "VolumeRestrictions": storage.VOLUME_RESTRICTIONS,
        "NodeVolumeLimits": storage.node_volume_limits(kube_version),
        "VolumeBinding": storage.VOLUME_BINDING,
        "VolumeZone": storage.VOLUME_ZONE,
        "PodTopologySpread": other_pods.pod_topology_spread(kube_version),
        "InterPodAffinity": other_pods.inter_pod_affinity(kube_version),
        "DynamicResources": itself.dynamic_resources(kube_version),
        "DefaultPreemption": itself.DEFAULT_PREEMPTION if kube_version.only_the_gating_plugin_is_heard else (),
        "NodeDeclaredFeatures": node_rules.NODE_DECLARED_FEATURES,
    }


def registered_hints(
    plugins: Iterable[Plugin],
    profile: Profile,
    kube_version: KubeVersion,
    rules: RequestRules,
    *,
    has_extenders: bool = False,
) -> RegisteredHints:
    """Each plugin's own `events`, or else its `default_hints`. With neither, and for every extender, every event
    helps. A plugin that registers new nodes also gets every change of taints."""
    table = default_hints(profile, kube_version, rules)
    found: dict[str, tuple[EventHint, ...]] = {EXTENDER_NAME: EVERY_EVENT} if has_extenders else {}
    for plugin in plugins:
        own = getattr(plugin, "events", None)
        if callable(own):
            found[plugin.name] = tuple(own())
        elif plugin.name in table:
            found[plugin.name] = table[plugin.name]
        elif any(serves(plugin, point) for point in _REFUSING_POINTS):
            found[plugin.name] = EVERY_EVENT
    return RegisteredHints(by_plugin={name: _with_taints(hints) for name, hints in found.items()})


def _with_taints(hints: tuple[EventHint, ...]) -> tuple[EventHint, ...]:
    """As kube-scheduler does, because a node is often added with taints that go a moment later
    (kubernetes/kubernetes#109437)."""
    actions = [hint.event.action for hint in hints if hint.event.resource is Resource.NODE]
    if any(action & Action.ADD for action in actions) and not any(a & Action.UPDATE_NODE_TAINT for a in actions):
        return (*hints, EventHint(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)))
    return hints

"""Whether kube-scheduler places pods in batches.

A batch consists of identical pods that directly follow each other within half a second. For its first pod, the
scheduler searches the nodes and keeps the other nodes that fit, sorted by score. For each later pod, it first asks
whether the pod fits on the previous pod's node. If not, the next node of the list is tried, without a search. If so,
the batch ends with a new search; since 1.37 that node gets a new score and its place in the list instead.

Pods are identical by a signature to which every plugin must contribute. The default profile has no batches:
PodTopologySpread signs no pod while it has default constraints. Sources: computeBatchablePlugins and SignPod in
pkg/scheduler/framework/runtime/framework.go, batch.go beside it, SignPod of the plugins, v1.36; batch.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.model.pod import Pod
from scheduler_core.plugins import IN_TREE

_POINTS: Final = ("preFilter", "filter", "preScore", "score")
# The plugins that do not sign every pod.
_REFUSES: Final[Mapping[str, Callable[[Any, Pod], bool]]] = {
    "PodTopologySpread": lambda plugin, pod: bool(plugin.defaults or pod.spec.topology_spread),
    "InterPodAffinity": lambda _, pod: bool(pod.spec.pod_affinity or pod.spec.pod_anti_affinity),
    "DynamicResources": lambda _, pod: bool(pod.spec.resource_claims),
}


def batches(scheduler: Scheduler, pod: Pod) -> bool:
    """False for a profile with an out-of-tree plugin, which is assumed to have no SignPod."""
    if scheduler.extenders or not scheduler.kube_version.opportunistic_batching:
        return False
    try:
        plugins = scheduler.runner(pod).plugins
    except NoProfileError:
        return False
    signers = {plugin.name: plugin for point in _POINTS for plugin in plugins.at(point)}
    return all(name in IN_TREE for name in signers) and not any(
        refuses(signers[name], pod) for name, refuses in _REFUSES.items() if name in signers
    )

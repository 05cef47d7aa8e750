"""Decides whether kube-scheduler places pods in batches. A batch consists of identical pods that directly follow each
other, all within half a second. For the first pod of a batch, the scheduler searches the nodes, and keeps the list of
the other nodes that fit, sorted by score. For each later pod, the scheduler first checks whether the pod fits on the
node of the previous pod. If the pod does not fit there, the scheduler tries the next node of the list, without a
search. If the pod fits there, the batch ends, and the scheduler searches the nodes again.

The scheduler recognizes identical pods by a signature, to which every plugin must contribute. The default profile has
no batches, because PodTopologySpread contributes to no signature while it has default constraints. Sources:
computeBatchablePlugins and SignPod in pkg/scheduler/framework/runtime/framework.go, batch.go in the same folder, and
SignPod of the plugins, v1.36.
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
    """Whether the scheduler may place pods like this one in batches. False if the profile has an out-of-tree plugin,
    because out-of-tree plugins are assumed to have no method SignPod."""
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

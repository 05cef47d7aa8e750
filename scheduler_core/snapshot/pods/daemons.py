"""The pods of a DaemonSet as its controller makes them: which nodes get one, and with which tolerations."""

from __future__ import annotations

from typing import Final

from scheduler_core.model.labels import NodeAffinityRules, NodeSelector, NodeSelectorTerm, OneNode, Requirement, chosen
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.taints import NO_EXECUTE, NO_SCHEDULE, Toleration, first_untolerated
from scheduler_core.values import replace_value

# What the DaemonSet controller adds to each pod (AddOrUpdateDaemonPodTolerations in pkg/controller/daemon/util, v1.36).
_TOLERATIONS: Final = (
    Toleration("node.kubernetes.io/not-ready", "Exists", "", NO_EXECUTE),
    Toleration("node.kubernetes.io/unreachable", "Exists", "", NO_EXECUTE),
    Toleration("node.kubernetes.io/disk-pressure", "Exists", "", NO_SCHEDULE),
    Toleration("node.kubernetes.io/memory-pressure", "Exists", "", NO_SCHEDULE),
    Toleration("node.kubernetes.io/pid-pressure", "Exists", "", NO_SCHEDULE),
    Toleration("node.kubernetes.io/unschedulable", "Exists", "", NO_SCHEDULE),
)
_HOST_NETWORK: Final = Toleration("node.kubernetes.io/network-unavailable", "Exists", "", NO_SCHEDULE)


def daemon_of(first: Pod) -> Pod:
    """The pod of no node yet, from the first one of the template: with the controller's tolerations."""
    more = (*_TOLERATIONS, _HOST_NETWORK) if first.spec.host_network else _TOLERATIONS
    spec = replace_value(first.spec, tolerations=(*first.spec.tolerations, *more))
    return replace_value(first, name=first.name.removesuffix("-0"), spec=spec)


def wants(daemon: Pod, node: Node) -> bool:
    """Whether the controller makes a pod for this node; free resources do not matter."""
    affinity = daemon.spec.node_affinity
    required = affinity.required if affinity else None
    fits = chosen(OneNode(node.labels, node.name), daemon.spec.node_selector, required)
    return fits and not first_untolerated(node.taints, daemon.spec.tolerations)


def pinned(daemon: Pod, node: Node) -> Pod:
    """The pending pod for this node, bound to it by an affinity."""
    affinity = daemon.spec.node_affinity
    only = NodeSelector((NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (node.name,)),)),))
    rules = NodeAffinityRules(required=only, preferred=affinity.preferred if affinity else ())
    return replace_value(
        daemon, name=f"{daemon.name}-{node.name}", spec=replace_value(daemon.spec, node_affinity=rules)
    )

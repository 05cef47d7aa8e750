"""Hints for pods refused because of a node's name, affinity, taints, cordon or features.

Source: isSchedulableAfter… in plugins/{nodeaffinity,tainttoleration,nodeunschedulable,nodename,nodedeclaredfeatures},
v1.36.
"""

from __future__ import annotations

from typing import Final

from scheduler_core.config.plugin_args import NodeAffinityArgs
from scheduler_core.model.labels import OneNode, chosen
from scheduler_core.model.manifests.from_manifest import node_affinity_from_manifest
from scheduler_core.model.node import UNSCHEDULABLE_TAINT_KEY, Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.taints import NO_SCHEDULE, Taint, first_untolerated, tolerated
from scheduler_core.queue.events import Action, ClusterEvent, EventHint, Resource
from scheduler_core.queue.queued_pod import identity

NODE_NAME: Final = (EventHint(ClusterEvent(Resource.NODE, Action.ADD)),)


def node_affinity(args: NodeAffinityArgs) -> tuple[EventHint, ...]:
    added = node_affinity_from_manifest(args.added_affinity)

    def helps(pod: Pod, old: Node | None, new: Node) -> bool:
        if added is not None and not chosen(OneNode(new.labels, new.name), (), added.required):
            return False
        return _is_wanted(pod, new) and (old is None or not _is_wanted(pod, old))

    return (EventHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL), helps),)


def _is_wanted(pod: Pod, node: Node) -> bool:
    required = None if pod.spec.node_affinity is None else pod.spec.node_affinity.required
    return chosen(OneNode(node.labels, node.name), pod.spec.node_selector, required)


def _taints_no_longer_matter(pod: Pod, old: Node | None, new: Node) -> bool:
    was_refused = old is None or first_untolerated(old.taints, pod.spec.tolerations) is not None
    return was_refused and first_untolerated(new.taints, pod.spec.tolerations) is None


def _is_the_pod_itself(pod: Pod, _old: Pod | None, new: Pod) -> bool:
    return identity(pod) == identity(new)


TAINT_TOLERATION: Final = (
    EventHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT), _taints_no_longer_matter),
    EventHint(ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION), _is_the_pod_itself),
)


def _is_open_now(_pod: Pod, old: Node | None, new: Node) -> bool:
    return not new.unschedulable and (old is None or old.unschedulable)


def _tolerates_a_cordon_now(pod: Pod, _old: Pod | None, new: Pod) -> bool:
    return identity(pod) == identity(new) and tolerated(
        Taint(UNSCHEDULABLE_TAINT_KEY, "", NO_SCHEDULE), new.spec.tolerations
    )


NODE_UNSCHEDULABLE: Final = (
    EventHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT), _is_open_now),
    EventHint(ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION), _tolerates_a_cordon_now),
)


def _declares_other_features(_pod: Pod, old: Node | None, new: Node) -> bool:
    return old is None or old.declared_features != new.declared_features


def _needs_other_features(pod: Pod, old: Pod, new: Pod) -> bool:
    return identity(pod) == identity(new) and _needs(old) != _needs(new)


def _needs(pod: Pod) -> tuple[bool, bool]:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(container.may_restart_all for container in containers), pod.spec.host_network and not pod.spec.host_users


NODE_DECLARED_FEATURES: Final = (
    EventHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE), _declares_other_features),
    EventHint(ClusterEvent(Resource.POD, Action.UPDATE), _needs_other_features),
)

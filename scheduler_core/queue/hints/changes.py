"""The events that an update of a pod or a node causes.

Source: PodSchedulingPropertiesChange and NodeSchedulingPropertiesChange in pkg/scheduler/framework/events.go, v1.36.
Node conditions are not read here, so a change of conditions alone causes no event.
"""

from __future__ import annotations

from typing import Final

from scheduler_core.arguments import expect
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.requests import RequestRules, running_requests
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from scheduler_core.queue.events import Action, ClusterEvent, Resource

_TODAYS_RULES: Final = RequestRules()


def pod_changes(old: Pod, new: Pod, rules: RequestRules = _TODAYS_RULES) -> tuple[ClusterEvent, ...]:
    """The events of a pod's update; if no specific event applies, the general update. Never empty."""
    if type(old) is not Pod or type(new) is not Pod:
        expect("old", old, Pod)
        expect("new", new, Pod)
    if type(rules) is not RequestRules:
        expect("rules", rules, RequestRules)
    resource = Resource.ASSIGNED_POD if new.node_name else Resource.UNSCHEDULED_POD
    actions = [
        action
        for action, happened in (
            (Action.UPDATE_POD_LABEL, dict(old.labels) != dict(new.labels)),
            (Action.UPDATE_POD_SCALE_DOWN, asks_for_less(old, new, rules)),
            (
                Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
                bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates,
            ),
            (Action.UPDATE_POD_TOLERATION, len(old.spec.tolerations) != len(new.spec.tolerations)),
            (Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, old.generated_claims != new.generated_claims),
        )
        if happened
    ]
    return tuple(ClusterEvent(resource, action) for action in actions or [Action.UPDATE])


def asks_for_less(old: Pod, new: Pod, rules: RequestRules) -> bool:
    """Whether the pod now requests less of some resource than before."""
    before, after = running_requests(old, rules), running_requests(new, rules)
    return any(before.amount(name) > after.amount(name) for name in (CPU, MEMORY, EPHEMERAL_STORAGE, *before.scalars))


def node_changes(old: Node, new: Node) -> tuple[ClusterEvent, ...]:
    """The events of a node's update; none if nothing changed that matters for scheduling.

    An uncordon is reported as a change of taints, as in the real scheduler.
    """
    if type(old) is not Node or type(new) is not Node:
        expect("old", old, Node)
        expect("new", new, Node)
    return tuple(
        ClusterEvent(Resource.NODE, action)
        for action, happened in (
            (Action.UPDATE_NODE_TAINT, old.unschedulable and not new.unschedulable),
            (Action.UPDATE_NODE_ALLOCATABLE, dict(old.allocatable) != dict(new.allocatable)),
            (Action.UPDATE_NODE_LABEL, dict(old.labels) != dict(new.labels)),
            (Action.UPDATE_NODE_TAINT, old.taints != new.taints),
            (Action.UPDATE_NODE_ANNOTATION, dict(old.annotations) != dict(new.annotations)),
            (Action.UPDATE_NODE_DECLARED_FEATURE, old.declared_features != new.declared_features),
        )
        if happened
    )

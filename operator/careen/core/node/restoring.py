"""The change of a Node that removes careen's marks: when the node goes back into service, and when it becomes Idle."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress
from careen.core.node import autoscalers, changed_labels, cordons, marks, own_taint
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace


class NodeChange(Value, kw_only=True):
    """What a patch changes on the Node besides careen's record. A field with its default value changes nothing."""

    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None
    send_before: float | None = None  # the agent must not send the patch after this uptime


NO_CHANGE = NodeChange()


def as_before(node: NodeView, progress: Progress, policy: Policy, besides: NodeChange = NO_CHANGE) -> NodeChange:
    """Back in service: the cordon, labels and autoscalers' annotations from before the drain. `besides` wins, except
    for its cordon."""
    before = changed_labels.before_the_drain(node, progress, policy.pre_reboot_labels)
    # Another client may have put back an older record.
    is_ours = progress.is_cordoned_by_us or cordons.is_cordon_proven(node)
    return replace(
        besides,
        labels={**before, **besides.labels},
        annotations={**autoscalers.taken_back(node.annotations), **besides.annotations},
        unschedulable=False if is_ours and node.unschedulable else None,
    )


def as_idle(node: NodeView, progress: Progress, policy: Policy) -> NodeChange:
    """Idle: no label, no soft taint, no record and no other annotation of a need."""
    return NodeChange(
        labels=dict.fromkeys(marks.LABELS),
        annotations={
            **{key: None for key in marks.gone_when_idle(policy) if key in node.annotations},
            **autoscalers.taken_back(node.annotations),
        },
        taints=own_taint.without_ours(node, progress, policy),
    )


def is_as_idle(node: NodeView, progress: Progress, policy: Policy) -> bool:
    """Whether `as_idle` has nothing to change."""
    change = as_idle(node, progress, policy)
    return not change.annotations and change.taints is None and not marks.LABELS & node.labels.keys()

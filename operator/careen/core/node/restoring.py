"""The change of a Node that restores what was there before careen's drain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from msgspec import field

from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress
from careen.core.node import autoscalers
from scheduler_core.values import Value


class NodeChange(Value, kw_only=True):
    """What a patch changes on the Node besides careen's record. A field with its default value changes nothing."""

    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None
    send_before: float | None = None  # the agent must not send the patch after this uptime


NO_CHANGE = NodeChange()


def as_before(node: NodeView, progress: Progress, policy: Policy, besides: NodeChange = NO_CHANGE) -> NodeChange:
    """The cordon, labels and autoscalers' annotations from before the drain, and `besides`, whose cordon is ignored."""
    return replace(
        besides,
        labels={**prior_labels(node, progress, policy), **besides.labels},
        annotations={**autoscalers.taken_back(node.annotations), **besides.annotations},
        unschedulable=prior_cordon(node, progress),
    )


def prior_cordon(node: NodeView, progress: Progress) -> bool | None:
    """False lifts careen's cordon; None changes nothing."""
    return False if progress.is_cordoned_by_us and node.unschedulable else None


def prior_labels(node: NodeView, progress: Progress, policy: Policy) -> dict[str, str | None]:
    """The values from before the drain of the labels that still have careen's values."""
    ours = policy.pre_reboot_labels
    return {
        key: prior
        for key, prior in progress.prior_labels.items()
        if key not in ours or node.labels.get(key) == ours[key]
    }


def annotations_of_a_need(policy: Policy) -> tuple[str, ...]:
    """The keys of the annotations that go when the node becomes Idle. On an idle Node, they are left from an earlier
    agent process."""
    kured = (keys.KURED_IN_PROGRESS,) if policy.annotate_nodes else ()
    return (*keys.OF_A_NEED, keys.RETRY, *kured)

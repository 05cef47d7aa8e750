"""Which pod a controller creates in place of an evicted one, when it does so, and which pods a drain leaves on their
node."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING

from scheduler_core.model.pod import Pod
from scheduler_core.values import replace_value

if TYPE_CHECKING:
    # Imported for types only: an agent needs the rules for pods, but not the modules that this import loads.
    from scheduler_core.snapshot.cluster_objects import ClusterObjects


class Recreation(Enum):
    """When a controller creates the replacement of an evicted pod. STAYS: a drain does not evict the pod."""

    STAYS = auto()  # the drain does not evict the pod: DaemonSet or static pod
    AT_ONCE = (
        auto()
    )  # its controller makes another while the old one still terminates (ReplicaSet, ReplicationController and others)
    MUCH_LATER = auto()  # a Job waits ten seconds after a pod has failed, and twice as long after each further one
    AFTER_IT_IS_GONE = auto()  # its replacement has the same name, so it waits until the old pod is gone (StatefulSet)
    NEVER = auto()  # no controller


_BY_KIND = {"StatefulSet": Recreation.AFTER_IT_IS_GONE, "Job": Recreation.MUCH_LATER}


def recreation_of(pod: Pod) -> Recreation:
    """A pod that its Node owns counts as a static pod, even without the mirror annotation."""
    if pod.is_mirror or (pod.owner and pod.owner.kind in ("DaemonSet", "Node")):
        return Recreation.STAYS
    if pod.owner is None:
        return Recreation.NEVER
    return _BY_KIND.get(pod.owner.kind, Recreation.AT_ONCE)


StaysBecause = Callable[[Pod], str]
"""A rule that decides which pods a drain leaves on their node: for such a pod it returns the reason, for other pods an
empty text."""


def moves_all(_pod: Pod) -> str:
    """The default of a drain: every pod moves except those that belong to the node, such as DaemonSet pods."""
    return ""


def why_it_stays(pod: Pod, rule: StaysBecause) -> str:
    """Why a drain with this rule leaves the pod on its node; "" if it evicts the pod."""
    if recreation_of(pod) is Recreation.STAYS:
        return "stays on the node through the reboot (DaemonSet or static pod)"
    return rule(pod)


BOUND = "returns to this node after each eviction: its owner's template names the node (spec.nodeName)"


def is_bound(objects: ClusterObjects, pod: Pod) -> bool:
    """Whether the pod template of the pod's owner names this node in spec.nodeName: each replacement runs here
    again, without a scheduler."""
    owner = pod.owner
    return (
        owner is not None
        and bool(pod.node_name)
        and objects.bound.get((owner.kind, pod.namespace, owner.name)) == pod.node_name
    )


def beside_the_bound(objects: ClusterObjects, rule: StaysBecause) -> StaysBecause:
    """The given rule, by which bound pods (`is_bound`) stay too."""
    if not objects.bound:
        return rule
    return lambda pod: rule(pod) or (BOUND if is_bound(objects, pod) else "")


def replacement_of(pod: Pod) -> Pod:
    """The pod that its controller would create: the same labels and spec, a new identity, no status.

    A StatefulSet's pod keeps its name. For a pod of an Indexed Job, the eviction adds one to the failures of its index.
    In-place resizes are lost, because controllers create pods from their template. Generated claims (ephemeral volumes,
    resource claim templates) get new names.
    """
    keeps_name = recreation_of(pod) is Recreation.AFTER_IT_IS_GONE
    return replace_value(
        pod,
        name=pod.name if keeps_name else f"{pod.name}~",  # "~" is in no API name, so it collides with none
        uid=f"{pod.uid}~",
        node_name="",
        nominated_node_name="",
        phase="Pending",
        terminating=False,
        start_time=None,
        is_ready=False,
        preempted_by_scheduler=False,
        resize=None,
        generated_claims=(),
        index_failures=pod.index_failures + 1,
    )


def ends_already(pod: Pod) -> bool:
    """Whether the pod already terminates, so that its controller replaces it without the drain. False for a
    StatefulSet's, whose replacement can only be created when the old pod is gone."""
    return pod.terminating and recreation_of(pod) not in (Recreation.STAYS, Recreation.AFTER_IT_IS_GONE)


def eviction_order(pod: Pod) -> tuple[bool, int, str, str]:
    """The order in which careen's agents evict: StatefulSets' pods last, and within both groups by priority, lowest
    first, then by namespace and name.

    The replacement of a StatefulSet's pod appears only when the old pod is gone, at an unknown time. Last, it appears
    after all other replacements.
    """
    return (recreation_of(pod) is Recreation.AFTER_IT_IS_GONE, pod.priority, pod.namespace, pod.name)

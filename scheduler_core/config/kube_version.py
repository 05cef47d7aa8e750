"""Each behaviour that changed between kube-scheduler releases, by name.

A plugin asks for a behaviour and never compares version numbers. Numbers such as #135231 are pull requests of
kubernetes/kubernetes. If a feature gate decides, its default in that release counts. Each minor release stands for its
newest patch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, Self

OLDEST = (1, 32)
NEWEST = (1, 37)

_SUPPORTED: Final = "the supported releases are 1.32 to 1.37"

TieBreak = Literal["random", "heap"]


class UnsupportedKubeVersionError(ValueError):
    """Not a Kubernetes release that this library reproduces; the message lists the supported releases."""


@dataclass(frozen=True, kw_only=True)
class KubeVersion:
    """One minor release of Kubernetes and the behaviour of its scheduler.

    1.32 to 1.37 are reproduced; each is compared with the real scheduler (`make conformance KUBE=1.34`).
    """

    major: int
    minor: int

    def __post_init__(self) -> None:
        release = (self.major, self.minor)
        if not (type(self.major) is type(self.minor) is int and OLDEST <= release <= NEWEST):
            raise UnsupportedKubeVersionError(f"Kubernetes {self} is not supported; {_SUPPORTED}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """ "1.36", "v1.36" or "v1.36.3"; the patch number is ignored.

        Raises UnsupportedKubeVersionError if the text is not a version, or if the release is outside 1.32 … 1.37.
        """
        if not isinstance(text, str):  # 1.40 as a number is 1.4
            raise UnsupportedKubeVersionError(
                f"the Kubernetes version is the {type(text).__name__} {text!r}; write it as a text like '1.36'"
            )
        match = re.fullmatch(r"v?([0-9]{1,4})\.([0-9]{1,4})(?:\.[0-9]+)?(?:[-+].*)?", text.strip())
        if match is None:
            raise UnsupportedKubeVersionError(f"{text!r} is not a Kubernetes version; write it like 1.36")
        release = (int(match[1]), int(match[2]))
        if not OLDEST <= release <= NEWEST:
            raise UnsupportedKubeVersionError(f"Kubernetes {text} is not supported; {_SUPPORTED}")
        return cls(major=release[0], minor=release[1])

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    def _since(self, minor: int) -> bool:
        return (self.major, self.minor) >= (1, minor)

    # ---- which node wins ----

    @cached_property
    def tie_break(self) -> TieBreak:
        """Among nodes with equal total scores: until 1.34 at random, since 1.35 by the heap order of the feasible nodes
        (#135231, see ties.py)."""
        return "heap" if self._since(35) else "random"

    @cached_property
    def shuffles_first_nodes(self) -> bool:
        """Gate WatchListClient of client-go, on since 1.35: a starting scheduler receives the existing nodes in random
        order, not by name."""
        return self._since(35)

    @cached_property
    def opportunistic_batching(self) -> bool:
        """Gate OpportunisticBatching, on since 1.35; see batching.py."""
        return self._since(35)

    @cached_property
    def batches_keep_the_last_node(self) -> bool:
        """Since 1.37: a batch goes on if the next pod fits on the last pod's node too; before, only if it does not."""
        return self._since(37)

    # ---- scores ----

    @cached_property
    def balanced_allocation_skips_best_effort(self) -> bool:
        """Since 1.33: NodeResourcesBalancedAllocation skips a pod without requests (#129138)."""
        return self._since(33)

    @cached_property
    def balanced_allocation_compares_without_pod(self) -> bool:
        """Since 1.36: NodeResourcesBalancedAllocation compares the balance with the pod and without it (#135573)."""
        return self._since(36)

    @cached_property
    def image_volumes_count(self) -> bool:
        """Since 1.36: ImageLocality counts images mounted as volumes."""
        return self._since(36)

    @cached_property
    def image_volumes_share_the_score(self) -> bool:
        """Since 1.37: ImageLocality divides by the number of containers and image volumes; before, by that of
        containers."""
        return self._since(37)

    @cached_property
    def storage_capacity_scoring(self) -> bool:
        """Gate StorageCapacityScoring, on since 1.37: VolumeBinding scores free capacity."""
        return self._since(37)

    # ---- refusals ----

    @cached_property
    def oversized_request_is_unresolvable(self) -> bool:
        """Since 1.34: for a request above the node's allocatable amount, NodeResourcesFit returns
        UnschedulableAndUnresolvable, so preemption does not try the node."""
        return self._since(34)

    @cached_property
    def taint_refusal_names_the_taint(self) -> bool:
        """Until 1.33: `node(s) had untolerated taint {key: value}`, later `node(s) had untolerated taint(s)` (#134740,
        backported to 1.34 by #135023)."""
        return not self._since(34)

    @cached_property
    def portworx_disks_need_an_annotation(self) -> bool:
        """Until 1.35: NodeVolumeLimits counts an in-tree disk of Portworx only on a node whose CSINode names the plugin
        as migrated."""
        return not self._since(36)

    @cached_property
    def sidecar_host_ports_count(self) -> bool:
        """Since 1.33: NodePorts counts the host ports of sidecars too."""
        return self._since(33)

    @cached_property
    def volume_affinity_refusal_says_conflict(self) -> bool:
        """Until 1.32: `node(s) had volume node affinity conflict`."""
        return not self._since(33)

    @cached_property
    def read_write_once_pod_refusal_names_the_node(self) -> bool:
        """Until 1.33: `node has pod using PersistentVolumeClaim with the same name …`."""
        return not self._since(34)

    @cached_property
    def negative_namespace_selector_matches_all(self) -> bool:
        """From 1.34 to 1.36: NotIn and DoesNotExist in the incoming pod's namespaceSelector match every namespace
        (regression of #132457)."""
        return self._since(34) and not self._since(37)

    @cached_property
    def node_name_limits_the_search(self) -> bool:
        """Since 1.37: NodeName's PreFilter leaves only the node of spec.nodeName, and NodeName runs before
        NodeUnschedulable."""
        return self._since(37)

    @cached_property
    def device_binding_conditions(self) -> bool:
        """Gate DRADeviceBindingConditions, on since 1.36: a claim whose device failed to become ready, or is not ready
        when the binding timeout has passed, refuses every node."""
        return self._since(36)

    @cached_property
    def claims_may_need_node_operations(self) -> bool:
        """Since 1.37: an allocation with skipNodeOperations needs a node that declares DRAOptionalNodeOperations."""
        return self._since(37)

    @cached_property
    def volume_limit_scaling(self) -> bool:
        """Gate VolumeLimitScaling, on since 1.37: a node that lacks the CSI driver of one of the pod's claims is
        refused."""
        return self._since(37)

    @cached_property
    def volume_attributes_class(self) -> bool:
        """Gate VolumeAttributesClass, on since 1.34: a volume matches only a claim with the same class."""
        return self._since(34)

    @cached_property
    def foreign_claim_refusal_has_capitals(self) -> bool:
        """Since 1.36: `was not created for Pod … (Pod is not owner)`."""
        return self._since(36)

    # ---- which plugins run ----

    @cached_property
    def dynamic_resources(self) -> bool:
        """Gate DynamicResourceAllocation, on since 1.34: DynamicResources runs, before DefaultPreemption."""
        return self._since(34)

    @cached_property
    def dynamic_resources_score(self) -> bool:
        """Since 1.35: DynamicResources also scores nodes, with weight 2."""
        return self._since(35)

    @cached_property
    def extended_resources_by_device_class(self) -> bool:
        """Gate DRAExtendedResource, on since 1.36: a DeviceClass may provide an extended resource that a node does not
        offer."""
        return self._since(36)

    @cached_property
    def node_declared_features(self) -> bool:
        """Gate NodeDeclaredFeatures, on since 1.36: the plugin NodeDeclaredFeatures runs."""
        return self._since(36)

    # ---- request sums ----

    @cached_property
    def status_resources_count(self) -> bool:
        """Gate InPlacePodVerticalScaling, on since 1.33: of a running pod counts the largest of the spec's requests,
        the actuated and the allocated resources."""
        return self._since(33)

    @cached_property
    def pod_level_resources(self) -> bool:
        """Gate PodLevelResources, on since 1.34: the pod's `spec.resources` replaces the sum over its containers."""
        return self._since(34)

    @cached_property
    def pod_level_resize(self) -> bool:
        """Gate InPlacePodLevelResourcesVerticalScaling, on since 1.36: pod-level resources can be resized too."""
        return self._since(36)

    @cached_property
    def whole_sums_are_compared(self) -> bool:
        """Since 1.37: of a running pod counts the largest of three sums over its containers (spec, allocated,
        actuated); before, each container's largest amount, and of init containers only those of sidecars."""
        return self._since(37)

    # ---- queue and preemption ----

    @cached_property
    def pops_from_backoff(self) -> bool:
        """Gate SchedulerPopFromBackoffQ, on since 1.33: with an empty active queue, a pod is popped before its back-off
        ends."""
        return self._since(33)

    @cached_property
    def gated_pods_are_nominated(self) -> bool:
        """Since 1.37: the queue counts the nominated node of a new pod that a PreEnqueue plugin holds back."""
        return self._since(37)

    @cached_property
    def gated_pods_are_flushed(self) -> bool:
        """Since 1.37: after five minutes without an event, PreEnqueue is asked again about a gated pod too."""
        return self._since(37)

    @cached_property
    def attempts_lengthen_backoff(self) -> bool:
        """Until 1.33: the back-off grows with every attempt; since 1.34 with refusals, or with consecutive errors."""
        return not self._since(34)

    @cached_property
    def only_the_gating_plugin_is_heard(self) -> bool:
        """Since 1.34: a gated pod moves only with events of the plugin that gates it; before, with those of any
        plugin that refused it, unless it has scheduling gates."""
        return self._since(34)

    @cached_property
    def missing_post_filter_clears_nomination(self) -> bool:
        """Since 1.35: a pod that no node can take, in a profile without PostFilter, loses its nominated node."""
        return self._since(35)

    @cached_property
    def nominated_pods_free_room(self) -> bool:
        """Since 1.33: the hints of NodeResourcesFit, NodePorts and NodeVolumeLimits requeue pods if a nominated pod is
        deleted too."""
        return self._since(33)

    @cached_property
    def nominated_pods_are_neighbours(self) -> bool:
        """Since 1.36: the hints of PodTopologySpread and InterPodAffinity count nominated pods as pods on a node."""
        return self._since(36)

    @cached_property
    def own_labels_requeue(self) -> bool:
        """Since 1.36: InterPodAffinity's hint requeues a pod whose own labels change."""
        return self._since(36)

    @cached_property
    def deleted_opponents_requeue(self) -> bool:
        """Since 1.36: InterPodAffinity's hint requeues a pod when one whose anti-affinity selects it is deleted."""
        return self._since(36)

    @cached_property
    def only_new_domains_requeue(self) -> bool:
        """Since 1.33: InterPodAffinity's hint requeues pods if a node changes its domain; before, at every change of
        labels of a node with the topology key."""
        return self._since(33)

    @cached_property
    def attachments_requeue_by_driver(self) -> bool:
        """Since 1.33: NodeVolumeLimits' hints look at the driver of a deleted VolumeAttachment and at the limits of a
        changed CSINode; before, every such deletion requeued pods, and no such change."""
        return self._since(33)

    @cached_property
    def deleted_claims_requeue(self) -> bool:
        """Since 1.37: DynamicResources' hint requeues pods when an allocated claim is deleted."""
        return self._since(37)

    @cached_property
    def one_anti_affinity_term_requeues(self) -> bool:
        """Since 1.37: InterPodAffinity's hint requeues a pod if the changed pod matches any of the anti-affinity terms;
        before, only if it matches all of them."""
        return self._since(37)

    @cached_property
    def async_preemption(self) -> bool:
        """Gate SchedulerAsyncPreemption, on since 1.33: a preempting pod does not enter the active queue while its
        victims are being deleted."""
        return self._since(33)

    @cached_property
    def preemption_is_announced(self) -> bool:
        """Since 1.37: the sentence of a pod that preempts names the node and the number of victims."""
        return self._since(37)

    @cached_property
    def device_post_filter_is_silent(self) -> bool:
        """Since 1.37: DynamicResources' PostFilter adds to the sentence only that it deallocated a claim."""
        return self._since(37)

    @cached_property
    def unstarted_victims_age_in_order(self) -> bool:
        """Since 1.37: of two victims that have not started, the one that the scheduler saw first on the node counts as
        older; before, the first of each comparison did."""
        return self._since(37)

    @cached_property
    def first_overdrawn_budget_ends_the_count(self) -> bool:
        """Since 1.37: a victim counts against the budgets only up to the first that it overdraws, in the order of a Go
        map; before, against all that select it."""
        return self._since(37)

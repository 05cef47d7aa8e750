"""Refuses nodes that cannot reach the devices already allocated to the pod's resource claims.

How devices are allocated is not reproduced: a pod gets the verdict *unknown* if one of its claims still needs an
allocation, or if it requests an extended resource that only a DeviceClass offers. Source:
pkg/scheduler/framework/plugins/dynamicresources, v1.36 and v1.37 (KEP-4381, KEP-5004, KEP-5007).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import field

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import DynamicResourcesArgs
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PostFilterResult, PreFilterResult, Scores
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, error, unknown, unresolvable, unschedulable
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod, PodResourceClaim
from scheduler_core.model.requests import RequestRules, incoming_requests
from scheduler_core.model.resources import is_extended
from scheduler_core.model.storage.devices import ResourceClaim
from scheduler_core.snapshot.cluster_objects import ClusterObjects
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.usage import Usage
from scheduler_core.values import Value

if TYPE_CHECKING:
    from scheduler_core.framework.failed_search import FailedSearch

_DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
_OPTIONAL_OPERATIONS: Final = "DRAOptionalNodeOperations"
_CANNOT_FIT: Final = unresolvable("cannot fit resource")
_NOT_ON_THIS_NODE: Final = unresolvable("resourceclaim not available on the node")
_LEFT_BEHIND: Final = unresolvable("cannot schedule extended resource claim")


class DevicesOfPod(Value):
    """The pod's resource claims, all of them allocated. `extended`: the extended resources that a DeviceClass would
    provide on nodes that do not offer them themselves; `others`: its further extended resources, if there are such.
    `has_leftover`: an earlier attempt that did not end made a claim for them; no node is tried until it is deleted."""

    claims: tuple[ResourceClaim, ...] = ()
    extended: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    has_leftover: bool = False


class DynamicResources(Value):
    """`clock`, in seconds since the epoch, tells whether the binding timeout of a device that is not ready has passed;
    without it, a pod with such a claim gets the verdict *unknown*."""

    kube_version: KubeVersion
    args: DynamicResourcesArgs = field(default_factory=DynamicResourcesArgs)
    clock: Callable[[], float] | None = None
    name: str = "DynamicResources"

    def pre_enqueue(self, pod: Pod) -> Verdict:
        """Keeps a pod out of the queue until the ResourceClaims from its templates are created."""
        for entry in pod.spec.resource_claims:
            found = _claim_name(pod, entry)
            if isinstance(found, Verdict):
                return found
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:
        state.write(DevicesOfPod())  # Written first: post_filter uses it to tell whether this point ran at all.
        objects = nodes.snapshot.objects
        claims: list[ResourceClaim] = []
        for entry in pod.spec.resource_claims:
            found = _find_claim(pod, entry, objects, capitals=self.kube_version.foreign_claim_refusal_has_capitals)
            if isinstance(found, Verdict):
                return PreFilterResult(found)
            if found is not None:
                claims.append(found)
        waiting = [claim for claim in claims if not claim.allocated]
        hopeless = next((problem for claim in waiting if (problem := _hopeless_request(claim, objects))), None)
        if hopeless is not None:
            return PreFilterResult(hopeless)
        extended, others = self._by_device_class(pod, objects)
        has_leftover = bool(extended) and any(_is_leftover(claim, pod) for claim in objects.resource_claims.values())
        if waiting and not has_leftover:
            return PreFilterResult(
                unknown(
                    f'resourceclaim "{waiting[0].name}" is not allocated yet, '
                    "and scheduler_core does not predict allocations"
                )
            )
        if not claims and not extended:
            return PreFilterResult(SKIP)
        state.write(DevicesOfPod(tuple(claims), extended, others, has_leftover))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002 -- the point's signature
        devices, node = state.read(DevicesOfPod), node_info.node
        if devices.has_leftover:
            return _LEFT_BEHIND
        if any(name not in node.allocatable for name in devices.others):
            return _CANNOT_FIT
        offered = next((name for name in devices.extended if not node.allocatable.get(name)), None)
        if offered is not None:
            return unknown(
                f'extended resource "{offered}" would be allocated through a device class, '
                "and scheduler_core does not predict allocations"
            )
        if not all(self._is_available(claim, node) for claim in devices.claims):
            return _NOT_ON_THIS_NODE
        return self._undecided(devices.claims) or SUCCESS

    def _is_available(self, claim: ResourceClaim, node: Node) -> bool:
        if claim.available_on is not None and not claim.available_on.matches(node.labels, node.name):
            return False
        if (
            self.kube_version.claims_may_need_node_operations
            and claim.skips_node_operations
            and _OPTIONAL_OPERATIONS not in node.declared_features
        ):
            return False
        if not self.kube_version.device_binding_conditions or claim.readiness == "ready":
            return True
        return claim.readiness == "waiting" and not self._is_overdue(claim)

    def _is_overdue(self, claim: ResourceClaim) -> bool:
        if claim.allocated_at is None or self.clock is None:
            return False
        return claim.allocated_at + self.args.binding_timeout_seconds < self.clock()

    def _undecided(self, claims: tuple[ResourceClaim, ...]) -> Verdict | None:
        if not self.kube_version.device_binding_conditions or self.clock is not None:
            return None
        waiting = next((c for c in claims if c.readiness == "waiting" and c.allocated_at is not None), None)
        return (
            None
            if waiting is None
            else unknown(
                f'resourceclaim "{waiting.name}" has a device that is not ready; pass Scheduler(clock=time.time)'
            )
        )

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:  # noqa: ARG002 -- the point's signature
        """Nothing to do: the devices of a pod that reaches this point are already allocated."""
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """`reserve` reserves nothing."""

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:  # noqa: ARG002 -- the point's signature
        """Does nothing. The real plugin adds the pod to the status of its claims; here the caller must."""
        return SUCCESS

    def post_filter(self, state: CycleState, pod: Pod, search: FailedSearch) -> PostFilterResult:
        """Only a message, before that of DefaultPreemption; never makes room for the pod.

        The real plugin deallocates a claim that no other pod uses: a later cycle may then allocate other devices to it.
        It deletes the claim that an earlier attempt made for extended resources.
        """
        devices = state.find(DevicesOfPod)
        if devices is None:
            return PostFilterResult(
                error("not found")
            )  # the real plugin's message if its PreFilter did not run, because another plugin refused the pod before
        silent = self.kube_version.device_post_filter_is_silent
        if not devices.claims and not devices.extended:
            return PostFilterResult(unschedulable(*(() if silent else ("no new claims to deallocate",))))
        if devices.has_leftover:  # no claim was looked at on any node
            return PostFilterResult(unschedulable("deletion of ResourceClaim completed"))
        refused = [
            search.nodes.snapshot.nodes[row]
            for each in search.diagnosis.rounds
            if each.plugin == self.name
            for row in search.diagnosis.searched[each.refused]
        ]
        if any(
            _is_free_to_give_up(claim, pod) and not all(self._is_available(claim, node) for node in refused)
            for claim in devices.claims
        ):
            return PostFilterResult(unschedulable("deallocation of ResourceClaim completed"))
        return PostFilterResult(unschedulable(*(() if silent else ("still not schedulable",))))

    def _by_device_class(self, pod: Pod, objects: ClusterObjects) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The extended resources that a DeviceClass provides and, if there are any, the others."""
        if not self.kube_version.extended_resources_by_device_class or not objects.device_classes:
            return (), ()
        requests: Mapping[str, int] = incoming_requests(pod.spec, RequestRules(status_resources=False)).scalars
        offered = {device_class.extended_resource_name for device_class in objects.device_classes.values()}
        wanted = [name for name, amount in requests.items() if amount and _is_extended(name)]
        provided = tuple(name for name in wanted if _is_offered(name, offered, objects))
        return provided, tuple(name for name in wanted if name not in provided) if provided else ()


def _is_extended(name: str) -> bool:
    return is_extended(name) or name.startswith(_DEVICE_CLASS_PREFIX)


def _is_offered(name: str, offered: set[str | None], objects: ClusterObjects) -> bool:
    if name.startswith(_DEVICE_CLASS_PREFIX):
        return name.removeprefix(_DEVICE_CLASS_PREFIX) in objects.device_classes
    return is_extended(name) and name in offered


def _find_claim(
    pod: Pod, entry: PodResourceClaim, objects: ClusterObjects, *, capitals: bool
) -> ResourceClaim | Verdict | None:
    """The ResourceClaim of an entry of spec.resourceClaims; None if the entry needs no claim; a refusal if the claim
    cannot be used."""
    name = _claim_name(pod, entry)
    if name is None or isinstance(name, Verdict):
        return name
    claim = objects.resource_claims.get(f"{pod.namespace}/{name}")
    if claim is None:
        return unresolvable(f'could not find ResourceClaim "{pod.namespace}/{name}"')
    if claim.terminating:
        return unresolvable(f'resourceclaim "{name}" is being deleted')
    if not entry.claim_name and claim.owner_uid != pod.uid:
        noun = "Pod" if capitals else "pod"
        return unresolvable(
            f"ResourceClaim {claim.namespace}/{claim.name} was not created for {noun} {pod.namespace}/{pod.name} "
            f"({noun} is not owner)"
        )
    return claim


def _hopeless_request(claim: ResourceClaim, objects: ClusterObjects) -> Verdict | None:
    """The refusal if no device can ever satisfy one of the claim's requests."""
    for request in claim.requests:
        if request.class_name is None:
            return unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
        if not request.class_name:
            return error(f"request {request.name}: unsupported request type")
        if request.class_name not in objects.device_classes:
            return unresolvable(f"request {request.name}: device class {request.class_name} does not exist")
    return None


def _claim_name(pod: Pod, entry: PodResourceClaim) -> str | Verdict | None:
    if entry.claim_name:
        return entry.claim_name
    if not entry.template_name:
        return unresolvable(
            f'pod "{pod.namespace}/{pod.name}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
        )
    generated = dict(pod.generated_claims)
    if entry.name not in generated:
        return unresolvable(f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet')
    return generated[entry.name]


def _is_leftover(claim: ResourceClaim, pod: Pod) -> bool:
    return claim.is_for_extended and bool(claim.requests) and bool(pod.uid) and claim.owner_uid == pod.uid


def _is_free_to_give_up(claim: ResourceClaim, pod: Pod) -> bool:
    return claim.reserved_for in ((), (pod.uid,))


class ScoringDynamicResources(DynamicResources):
    """DynamicResources since Kubernetes 1.35, which also scores nodes: the real plugin prefers a node that can provide
    an earlier alternative of a request's prioritized list (`firstAvailable`).

    Here every node gets 0. The real scores differ only for a pod whose list is not yet allocated; for it every node is
    *unknown*.
    """

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:  # noqa: ARG002
        state.read(DevicesOfPod)  # The real plugin ends the cycle if a profile disables its PreFilter.
        return 0

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores:  # noqa: ARG002
        state.read(DevicesOfPod)
        return np.zeros(len(nodes), dtype=np.int64)

    def usage_key(self, state: CycleState) -> Hashable:
        state.read(DevicesOfPod)
        return ()

    def score_usage(self, state: CycleState, nodes: NodeList, usage: Usage) -> Scores:  # noqa: ARG002
        return np.zeros(len(nodes), dtype=np.int64)

"""Refuses nodes that cannot reach the devices already allocated to the pod's resource claims.

How devices are allocated is not reproduced: a pod gets the verdict *unknown* if one of its claims still needs an
allocation, or if it requests an extended resource that only a DeviceClass offers. Source:
pkg/scheduler/framework/plugins/dynamicresources, v1.36 (KEP-4381, KEP-5004).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from scheduler_core.config.kube_version import KubeVersion
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
_NOT_ON_THIS_NODE: Final = unresolvable("resourceclaim not available on the node")


class DevicesOfPod(Value):
    """The pod's resource claims, all of them allocated. `extended`: the extended resources that a DeviceClass would
    provide on nodes that do not offer them themselves."""

    claims: tuple[ResourceClaim, ...] = ()
    extended: tuple[str, ...] = ()


class DynamicResources(Value):
    kube_version: KubeVersion
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
            found = _find_claim(pod, entry, objects)
            if isinstance(found, Verdict):
                return PreFilterResult(found)
            if found is not None:
                claims.append(found)
        waiting = next((claim for claim in claims if not claim.allocated), None)
        if waiting is not None:
            hopeless = next(
                (problem for claim in claims if not claim.allocated and (problem := _hopeless_request(claim, objects))),
                None,
            )
            return PreFilterResult(
                hopeless
                or unknown(
                    f'resourceclaim "{waiting.name}" is not allocated yet, '
                    "and scheduler_core does not predict allocations"
                )
            )
        extended = self._by_device_class(pod, objects)
        if not claims and not extended:
            return PreFilterResult(SKIP)
        state.write(DevicesOfPod(tuple(claims), extended))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002 -- the point's signature
        devices, node = state.read(DevicesOfPod), node_info.node
        offered = next((name for name in devices.extended if not node.allocatable.get(name)), None)
        if offered is not None:
            return unknown(
                f'extended resource "{offered}" would be allocated through a device class, '
                "and scheduler_core does not predict allocations"
            )
        return SUCCESS if all(_is_available(claim, node) for claim in devices.claims) else _NOT_ON_THIS_NODE

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
        """
        devices = state.find(DevicesOfPod)
        if devices is None:
            return PostFilterResult(
                error("not found")
            )  # the real plugin's message if its PreFilter did not run, because another plugin refused the pod before
        if not devices.claims and not devices.extended:
            return PostFilterResult(unschedulable("no new claims to deallocate"))
        refused = [
            search.nodes.snapshot.nodes[row]
            for each in search.diagnosis.rounds
            if each.plugin == self.name
            for row in search.diagnosis.searched[each.refused]
        ]
        if any(
            _is_free_to_give_up(claim, pod) and not all(_is_available(claim, node) for node in refused)
            for claim in devices.claims
        ):
            return PostFilterResult(unschedulable("deallocation of ResourceClaim completed"))
        return PostFilterResult(unschedulable("still not schedulable"))

    def _by_device_class(self, pod: Pod, objects: ClusterObjects) -> tuple[str, ...]:
        if not self.kube_version.extended_resources_by_device_class or not objects.device_classes:
            return ()
        requests: Mapping[str, int] = incoming_requests(pod.spec, RequestRules(status_resources=False)).scalars
        offered = {device_class.extended_resource_name for device_class in objects.device_classes.values()}
        return tuple(name for name, amount in requests.items() if amount and _is_offered(name, offered, objects))


def _is_offered(name: str, offered: set[str | None], objects: ClusterObjects) -> bool:
    if name.startswith(_DEVICE_CLASS_PREFIX):
        return name.removeprefix(_DEVICE_CLASS_PREFIX) in objects.device_classes
    return is_extended(name) and name in offered


def _find_claim(pod: Pod, entry: PodResourceClaim, objects: ClusterObjects) -> ResourceClaim | Verdict | None:
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
        return unresolvable(
            f"ResourceClaim {claim.namespace}/{claim.name} was not created for Pod {pod.namespace}/{pod.name} "
            "(Pod is not owner)"
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


def _is_available(claim: ResourceClaim, node: Node) -> bool:
    return claim.available_on is None or claim.available_on.matches(node.labels, node.name)


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

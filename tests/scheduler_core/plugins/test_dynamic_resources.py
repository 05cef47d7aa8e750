"""Tests DynamicResources: nodes must reach allocated devices. A claim that is not allocated makes the result
unknown."""

from typing import Any

import pytest

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.verdict import SUCCESS, VerdictCode, error, unknown, unresolvable
from scheduler_core.plugins.dynamic_resources import DynamicResources
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod
from tests.scheduler_core.plugins.asking import SKIPPED, ask, refused

NOW = KubeVersion.parse("1.36")
PLUGIN = DynamicResources(NOW)
A, B = a_node("a").labelled(zone="a").manifest, a_node("b").labelled(zone="b").manifest
POD = a_pod().with_field("spec.resourceClaims", [{"name": "gpu", "resourceClaimName": "gpu-1"}]).manifest
FROM_TEMPLATE = a_pod().with_field("spec.resourceClaims", [{"name": "gpu", "resourceClaimTemplateName": "t"}])
OWNED = {
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "default-pod", "controller": True}]
}


def claim(
    name: str = "gpu-1",
    *,
    zone: str | None = None,
    allocated: bool = True,
    reserved_for: tuple[str, ...] = (),
    requests: list[dict[str, Any]] | None = None,
    **meta: Any,
) -> dict[str, Any]:
    selector = (
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}
        if zone
        else None
    )
    allocation = {"nodeSelector": selector} if zone else {}
    status = (
        {
            "allocation": allocation,
            "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in reserved_for],
        }
        if allocated
        else {}
    )
    wanted = [{"name": "d", "exactly": {"deviceClassName": "gpu"}}] if requests is None else requests
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **meta},
        "spec": {"devices": {"requests": wanted}},
        "status": status,
    }


def device_class(name: str = "gpu", offers: str | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"extendedResourceName": offers} if offers else {},
    }


def test_an_allocated_claim_refuses_nodes_that_cannot_reach_its_devices() -> None:
    assert refused(ask(PLUGIN, POD, A, B, claim(zone="a"))) == {"b": ("resourceclaim not available on the node",)}


def test_a_claim_for_devices_that_every_node_can_reach_refuses_no_node() -> None:
    assert refused(ask(PLUGIN, POD, A, B, claim(reserved_for=("x", "y")))) == {}


def test_a_claim_that_is_not_allocated_makes_the_result_unknown() -> None:
    verdict = ask(PLUGIN, POD, A, claim(allocated=False), device_class())
    assert verdict == unknown(
        'resourceclaim "gpu-1" is not allocated yet, and scheduler_core does not predict allocations'
    )


@pytest.mark.parametrize(
    ("pod", "objects", "verdict"),
    [
        (POD, (), unresolvable('could not find ResourceClaim "default/gpu-1"')),
        (
            POD,
            (claim(deletionTimestamp="2026-01-01T00:00:00Z"),),
            unresolvable('resourceclaim "gpu-1" is being deleted'),
        ),
        (POD, (claim(allocated=False),), unresolvable("request d: device class gpu does not exist")),
        (
            POD,
            (
                claim(
                    allocated=False,
                    requests=[
                        {
                            "name": "d",
                            "firstAvailable": [
                                {"name": "best", "deviceClassName": "gpu"},
                                {"name": "second", "deviceClassName": "none"},
                            ],
                        }
                    ],
                ),
                device_class(),
            ),
            unresolvable("request d/second: device class none does not exist"),
        ),
        (
            POD,
            (claim(allocated=False, requests=[{"name": "d"}]),),
            unresolvable("resource claim default/gpu-1, request d: unknown request type"),
        ),
        (
            POD,
            (claim(allocated=False, requests=[{"name": "d", "exactly": {}}]),),
            error("request d: unsupported request type"),
        ),
        (FROM_TEMPLATE.manifest, (), unresolvable('pod "default/pod": ResourceClaim not created yet')),
        (
            FROM_TEMPLATE.with_field(
                "status.resourceClaimStatuses", [{"name": "gpu", "resourceClaimName": "gpu-1"}]
            ).manifest,
            (claim(),),
            unresolvable("ResourceClaim default/gpu-1 was not created for Pod default/pod (Pod is not owner)"),
        ),
        (
            a_pod().with_field("spec.resourceClaims", [{"name": "gpu"}]).manifest,
            (),
            unresolvable('pod "default/pod", spec.resourceClaim "gpu": none of the supported fields are set'),
        ),
    ],
)
def test_an_unusable_claim_refuses_the_pod(
    pod: dict[str, Any], objects: tuple[dict[str, Any], ...], verdict: Any
) -> None:
    assert ask(PLUGIN, pod, A, *objects) == verdict


def test_a_claim_generated_from_a_template_for_this_pod_is_used() -> None:
    pod = FROM_TEMPLATE.with_field(
        "status.resourceClaimStatuses", [{"name": "gpu", "resourceClaimName": "gpu-1"}]
    ).manifest
    assert refused(ask(PLUGIN, pod, A, B, claim(zone="b", **OWNED))) == {
        "a": ("resourceclaim not available on the node",)
    }


def test_a_claim_template_without_a_generated_claim_requires_nothing() -> None:
    pod = FROM_TEMPLATE.with_field("status.resourceClaimStatuses", [{"name": "gpu"}]).manifest
    assert ask(PLUGIN, pod, A) == SKIPPED


def test_a_pod_without_device_claims_is_skipped() -> None:
    assert ask(PLUGIN, a_pod().manifest, A, device_class()) == SKIPPED


WANTS_FPGA = a_pod().with_container({"name": "c", "resources": {"requests": {"example.com/fpga": "1"}}}).manifest
HAS_FPGA = a_node("has").offering_also({"example.com/fpga": "2"}).manifest


@pytest.mark.parametrize("offers", ["example.com/fpga", "example.com/other", None])
def test_the_result_is_unknown_for_nodes_where_only_a_device_class_offers_the_resource(
    offers: str | None,
) -> None:
    answer = ask(PLUGIN, WANTS_FPGA, A, HAS_FPGA, device_class(offers=offers))
    if offers == "example.com/fpga":
        assert answer == {
            "a": unknown(
                'extended resource "example.com/fpga" would be allocated through a device class, '
                "and scheduler_core does not predict allocations"
            ),
            "has": SUCCESS,
        }
    else:
        assert answer == SKIPPED


def test_a_pod_can_request_a_device_class_by_its_implicit_resource_name() -> None:
    pod = (
        a_pod()
        .with_container({"name": "c", "resources": {"requests": {"deviceclass.resource.kubernetes.io/gpu": "1"}}})
        .manifest
    )
    assert ask(PLUGIN, pod, A, device_class())["a"].code is VerdictCode.UNKNOWN


def leftover(uid: str = "default-pod", says: str = "true", requests: list[dict[str, Any]] | None = None) -> Any:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": uid, "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": says}
    return claim("left", allocated=False, requests=requests, annotations=annotations, ownerReferences=[owner])


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        pytest.param(leftover(), unresolvable("cannot schedule extended resource claim"), id="of this pod"),
        pytest.param(leftover("other"), SUCCESS, id="of another pod"),
        pytest.param(leftover(says="false"), SUCCESS, id="a claim of the user"),
        pytest.param(leftover(requests=[]), SUCCESS, id="without requests"),
    ],
)
def test_a_claim_that_an_earlier_attempt_made_for_extended_resources_refuses_every_node(
    left: Any, expected: Any
) -> None:
    answer = ask(PLUGIN, WANTS_FPGA, HAS_FPGA, device_class(offers="example.com/fpga"), left)
    assert answer == {"has": expected}


def test_such_a_claim_is_deleted_before_the_next_attempt() -> None:
    snapshot = load_objects([HAS_FPGA, WANTS_FPGA, device_class(offers="example.com/fpga"), leftover()])
    for version in ("1.36", "1.37"):
        sentence = Scheduler(kube_version=version).schedule(snapshot, snapshot.pod("default/pod")).sentence
        assert "cannot schedule extended resource claim. deletion of ResourceClaim completed, preemption: " in sentence


def test_before_1_36_device_classes_offered_no_extended_resources() -> None:
    assert (
        ask(DynamicResources(KubeVersion.parse("1.35")), WANTS_FPGA, A, device_class(offers="example.com/fpga"))
        == SKIPPED
    )


# ---- at the queue's door ----


def test_a_pod_stays_out_of_the_queue_until_its_claims_are_created() -> None:
    assert PLUGIN.pre_enqueue(FROM_TEMPLATE.build()) == unresolvable('pod "default/pod": ResourceClaim not created yet')
    assert (
        PLUGIN.pre_enqueue(
            FROM_TEMPLATE.with_field(
                "status.resourceClaimStatuses", [{"name": "gpu", "resourceClaimName": "x"}]
            ).build()
        )
        == SUCCESS
    )


# ---- its sentence ----


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        pytest.param(
            (a_pod().with_field("spec.nodeSelector", {"no": "where"}).manifest,),
            "no new claims to deallocate, preemption: ",
            id="a pod without claims",
        ),
        pytest.param(
            (POD, claim(zone="c")),
            "deallocation of ResourceClaim completed, preemption: ",
            id="a claim that no pod has reserved, for devices that no node can reach",
        ),
        pytest.param(
            (POD, claim(zone="c", reserved_for=("default-pod",))),
            "deallocation of ResourceClaim completed, preemption: ",
            id="a claim reserved for this pod only",
        ),
        pytest.param(
            (POD, claim(zone="c", reserved_for=("x",))),
            "still not schedulable, preemption: ",
            id="a claim reserved for another pod",
        ),
        pytest.param((POD,), "no new claims to deallocate, preemption: ", id="a pod whose claim does not exist"),
    ],
)
def test_the_message_reports_whether_claims_would_be_deallocated(
    objects: tuple[dict[str, Any], ...], said: str
) -> None:
    snapshot = load_objects([A, B, *objects])
    sentence = Scheduler().schedule(snapshot, snapshot.pod("default/pod")).sentence
    assert f". {said}0/2 nodes are available: " in sentence


def test_if_another_plugin_refuses_the_pod_in_prefilter_the_message_ends_with_not_found() -> None:
    """The last two words are the message of DynamicResources, whose own PreFilter did not run."""
    pod = (
        a_pod().with_field("spec.volumes", [{"name": "v", "persistentVolumeClaim": {"claimName": "nowhere"}}]).manifest
    )
    snapshot = load_objects([A, pod])
    assert (
        Scheduler().schedule(snapshot, snapshot.pod("default/pod")).sentence
        == '0/1 nodes are available: persistentvolumeclaim "nowhere" not found. not found'
    )


def test_the_result_is_unknown_for_a_pod_whose_claim_must_be_allocated_first() -> None:
    snapshot = load_objects([A, POD, claim(allocated=False), device_class()])
    result = Scheduler().schedule(snapshot, snapshot.pod("default/pod"))
    assert (result.node, result.unknown) == (
        None,
        'resourceclaim "gpu-1" is not allocated yet, and scheduler_core does not predict allocations',
    )

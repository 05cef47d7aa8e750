"""Tests what one release of kube-scheduler decides or says otherwise than the one before it, above all 1.37."""

from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.preemption.victims import VictimRules, split_by_budget
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_budget, a_node, a_pod

NODE = a_node("n1").offering(cpu="4", memory="8Gi", pods="10")
OLD, NEW = "1.36", "1.37"


def cycle(version: str, pod: Any, *objects: dict[str, Any], nodes: Any = (NODE,), **settings: Any) -> CycleResult:
    snapshot = load_objects([*(n.manifest for n in nodes), *objects, pod.manifest])
    assert not snapshot.problems, snapshot.problems
    return Scheduler(kube_version=version, **settings).schedule(snapshot, snapshot.pod("default/new"))


def wanting(cpu: str = "1") -> Any:
    return a_pod("new").requesting(cpu=cpu).with_priority(100)


def running(name: str, cpu: str = "1", **status: Any) -> Any:
    return a_pod(name).requesting(cpu=cpu).on("n1").with_field("status", {"phase": "Running", **status})


def requested(version: str, pod: Any) -> int:
    """The millicores that the running pod takes from its node."""
    snapshot = load_objects([NODE.manifest, pod.manifest])
    return snapshot.node_info(0, Scheduler(kube_version=version).rules).requested["cpu"]


# ---- requests ----


def container(name: str, spec: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": spec}}}


def reported(name: str, allocated: str | None, actuated: str | None) -> dict[str, Any]:
    return {
        "name": name,
        **({"allocatedResources": {"cpu": allocated}} if allocated else {}),
        **({"resources": {"requests": {"cpu": actuated}}} if actuated else {}),
    }


@pytest.mark.parametrize(
    ("pod", "until_1_36", "since_1_37"),
    [
        pytest.param(
            a_pod("p")
            .with_field("spec.containers", [container("a", "3"), container("b", "1")])
            .with_field("status.containerStatuses", [reported("a", "1", "1"), reported("b", "3", "3")]),
            6000,
            4000,
            id="one container grows while another shrinks: the sums count, not each container's largest",
        ),
        pytest.param(
            a_pod("p")
            .with_field("spec.containers", [container("a", "1")])
            .with_field("spec.initContainers", [container("i", "1")])
            .with_field("status.initContainerStatuses", [reported("i", "3", "3")]),
            1000,
            3000,
            id="the status of an init container counts",
        ),
        pytest.param(
            a_pod("p")
            .with_field("spec.containers", [container("a", "1")])
            .with_field("status.containerStatuses", [reported("a", "2", None)]),
            1000,
            2000,
            id="allocated resources count without actuated ones",
        ),
        pytest.param(
            a_pod("p")
            .with_field("spec.containers", [container("a", "1")])
            .with_field("spec.overhead", {"cpu": "500m"})
            .with_field(
                "status", {"allocatedResources": {"cpu": "1500m"}, "resources": {"requests": {"cpu": "1500m"}}}
            ),
            1500,
            2000,
            id="the overhead counts twice if the status has pod-level resources",
        ),
        pytest.param(
            a_pod("p")
            .with_field("spec.containers", [container("a", "1")])
            .with_field("status.conditions", [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]),
            1000,
            0,
            id="an infeasible resize leaves only what the status reports",
        ),
    ],
)
def test_of_a_running_pod_the_largest_of_three_sums_counts_since_1_37(
    pod: Any, until_1_36: int, since_1_37: int
) -> None:
    pod = pod.on("n1")
    assert (requested("1.36", pod), requested("1.37", pod)) == (until_1_36, since_1_37)


# ---- search and scores ----


def test_since_1_37_only_the_node_of_the_spec_is_searched() -> None:
    nodes = (NODE, a_node("n2").offering(cpu="4", pods="10"))
    pod = wanting("8").with_field("spec.nodeName", "n1")

    def refusal_of_n2(version: str) -> str:
        snapshot = load_objects([n.manifest for n in nodes])
        incoming = load_objects([n.manifest for n in nodes] + [pod.manifest]).pod("default/new")
        return " ".join(Scheduler(kube_version=version).schedule(snapshot, incoming).statuses["n2"].reasons)

    assert refusal_of_n2("1.36") == "node(s) didn't match the requested node name"
    assert refusal_of_n2("1.37") == "node(s) didn't satisfy plugin(s) [NodeName]"


def test_image_volumes_share_the_score_since_1_37() -> None:
    size = 500 * 2**20
    holder = NODE.with_field("status.images", [{"names": ["app:v1"], "sizeBytes": size}])
    pod = (
        a_pod("new")
        .with_field("spec.containers", [{"name": "c", "image": "app:v1"}])
        .with_field("spec.volumes", [{"name": "v", "image": {"reference": "data:v1"}}])
    )

    def score(version: str) -> int:
        table = cycle(version, pod, nodes=(holder, a_node("n2").offering(cpu="4", memory="8Gi", pods="10"))).table
        assert table is not None
        return int(table.by_plugin["ImageLocality"][0])

    # (250 - 23) of (1000 - 23) MiB, then of (2000 - 23).
    assert (score("1.36"), score("1.37")) == (23, 11)


# ---- preemption ----


def test_since_1_37_the_sentence_says_whom_preemption_evicts() -> None:
    victim = running("a", "4").manifest
    assert cycle("1.36", wanting(), victim).sentence == "0/1 nodes are available: 1 Insufficient cpu."
    assert cycle("1.37", wanting(), victim).sentence == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement for pod on node n1, "
        "preempting 1 victims"
    )


def test_since_1_37_a_pod_without_claims_gets_no_word_about_them() -> None:
    assert "no new claims to deallocate, " in cycle("1.36", wanting("8")).sentence
    assert cycle("1.37", wanting("8")).sentence == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
        "1 Preemption is not helpful for scheduling."
    )


def test_of_victims_that_have_not_started_the_first_on_the_node_is_spared_since_1_37() -> None:
    pods = [running(name, "2").manifest for name in ("a", "b")]

    def victims(version: str) -> tuple[str, ...]:
        nomination = cycle(version, wanting("2"), *pods).preemption
        assert nomination is not None
        return nomination.victims

    assert (victims("1.36"), victims("1.37")) == (("default/a",), ("default/b",))


def test_a_victim_stops_counting_at_the_first_budget_that_it_overdraws_since_1_37() -> None:
    """The first victim overdraws `none`; since 1.37 it leaves `one` to the second."""
    pods = [running(n, "4").with_field("metadata.labels", {"app": a}).manifest for n, a in (("a", "x"), ("b", "y"))]
    budgets = [
        a_budget("none").selecting(app="x").allowing(0).manifest,
        a_budget("one")
        .with_field("spec.selector", {"matchExpressions": [{"key": "app", "operator": "Exists"}]})
        .allowing(1)
        .manifest,
    ]
    snapshot = load_objects([NODE.manifest, *pods, *budgets])
    victims = [snapshot.pod("default/a"), snapshot.pod("default/b")]

    def violating(version: str) -> list[str]:
        stops = Scheduler(kube_version=version).kube_version.first_overdrawn_budget_ends_the_count
        found, _ = split_by_budget(victims, snapshot.objects.budgets, VictimRules(stops_at_overdrawn=stops))
        return [pod.name for pod in found]

    assert (violating("1.36"), violating("1.37")) == (["a", "b"], ["a"])


# ---- devices ----


def claimed(conditions: list[dict[str, str]] | None, *, operations: bool = True) -> dict[str, Any]:
    device = {"driver": "d", "pool": "p", "device": "gpu0"}
    needs = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
    skipping = {} if operations else {"skipNodeOperations": ["NodePrepareResources"]}
    result = {**device, **({} if conditions is None else needs), **skipping}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "default", "uid": "u"},
        "spec": {"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}, "allocationTimestamp": "1970-01-01T00:16:40Z"},
            "devices": [{**device, "conditions": conditions}] if conditions else [],
        },
    }


USES_CLAIM = a_pod("new").with_field("spec.resourceClaims", [{"name": "gpu", "resourceClaimName": "gpu"}])
UNAVAILABLE = "resourceclaim not available on the node"


@pytest.mark.parametrize(
    ("conditions", "now", "refusal"),
    [
        (None, 0, ""),
        ([{"type": "Ready", "status": "True"}], 1e9, ""),
        ([{"type": "Ready", "status": "True"}, {"type": "Broken", "status": "True"}], 0, UNAVAILABLE),
        ([{"type": "Ready", "status": "False"}], 1600, ""),
        ([{"type": "Ready", "status": "False"}], 1601, UNAVAILABLE),
        ([], 1601, UNAVAILABLE),
    ],
)
def test_since_1_36_a_device_must_be_ready_600_seconds_after_its_allocation(
    conditions: list[dict[str, str]] | None, now: float, refusal: str
) -> None:
    found = cycle("1.36", USES_CLAIM, claimed(conditions), clock=lambda: now)
    assert " ".join(found.statuses["n1"].reasons) == refusal
    assert cycle("1.35", USES_CLAIM, claimed(conditions), clock=lambda: now).node == "n1"


@pytest.mark.parametrize(("version", "refusal"), [("1.36", ""), ("1.37", UNAVAILABLE)])
def test_since_1_37_a_device_without_node_operations_needs_a_node_that_declares_the_feature(
    version: str, refusal: str
) -> None:
    found = cycle(version, USES_CLAIM, claimed(None, operations=False))
    assert " ".join(found.statuses["n1"].reasons) == refusal
    declaring = NODE.with_field("status.declaredFeatures", ["DRAOptionalNodeOperations"])
    assert cycle(version, USES_CLAIM, claimed(None, operations=False), nodes=(declaring,)).node == "n1"


def test_another_extended_resource_that_the_node_lacks_refuses_a_pod_whose_gpu_a_device_class_offers() -> None:
    """NodeResourcesFit ignores the resource, so DynamicResources refuses the node."""
    configuration = Configuration.from_mapping(
        {
            "profiles": [
                {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResourceGroups": ["example.com"]}}]}
            ]
        }
    )
    pod = a_pod("new").with_field(
        "spec.containers",
        [{"name": "c", "resources": {"requests": {"example.com/gpu": "1", "example.com/fpga": "1"}}}],
    )
    offered = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": "example.com/gpu"},
    }
    holder = NODE.offering_also({"example.com/gpu": "1"})
    found = cycle("1.36", pod, offered, nodes=(holder,), configuration=configuration)
    assert " ".join(found.statuses["n1"].reasons) == "cannot fit resource"


@pytest.mark.parametrize(
    ("version", "words"),
    [("1.35", "for pod default/new (pod is not owner)"), ("1.36", "for Pod default/new (Pod is not owner)")],
)
def test_since_1_36_the_refusal_of_a_foreign_claim_has_capitals(version: str, words: str) -> None:
    pod = a_pod("new").with_field("spec.resourceClaims", [{"name": "gpu", "resourceClaimTemplateName": "t"}])
    pod = pod.with_field("status.resourceClaimStatuses", [{"name": "gpu", "resourceClaimName": "gpu"}])
    assert f"ResourceClaim default/gpu was not created {words}" in cycle(version, pod, claimed(None)).sentence


def test_without_a_clock_a_claim_whose_device_is_not_ready_makes_the_result_unknown() -> None:
    found = cycle("1.36", USES_CLAIM, claimed([]))
    words = 'resourceclaim "gpu" has a device that is not ready; pass Scheduler(clock=time.time)'
    assert found.statuses["n1"].reasons == (words,)


@pytest.mark.parametrize(("version", "node"), [("1.32", "n1"), ("1.33", None)])
def test_until_1_32_the_host_ports_of_sidecars_do_not_count(version: str, node: str | None) -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 80}]}
    holder = a_pod("p").with_field("spec.initContainers", [sidecar]).on("n1").manifest
    assert cycle(version, a_pod("new").with_host_port(80), holder).node == node
    taken = a_pod("p").with_host_port(80).on("n1").manifest
    assert cycle(version, a_pod("new").with_host_port(80), taken).node is None

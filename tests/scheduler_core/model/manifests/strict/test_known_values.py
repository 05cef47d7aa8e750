"""Values that no API server accepts are refused, at every depth, with the field and what is wrong."""

from __future__ import annotations

from typing import Any, cast

import pytest

from scheduler_core import Snapshot, load_objects, node_from_manifest, pod_from_manifest, workload_from_manifest
from scheduler_core.model.manifests.error import ManifestError


def a_pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [], **spec}}


def near(term: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def on_nodes(requirement: dict[str, Any]) -> dict[str, Any]:
    terms = [{"matchExpressions": [requirement]}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def asking(**resources: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": resources}]}


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
TERM = {"topologyKey": "zone", "labelSelector": {}}


def preferring(**written: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [written]}}}


@pytest.mark.parametrize(
    ("spec", "field", "told"),
    [
        ({"tolerations": [{"key": "a", "effect": "noSchedule"}]}, "spec.tolerations[0].effect", "'noSchedule' is none"),
        ({"tolerations": [{"key": "a", "operator": "Is"}]}, "spec.tolerations[0].operator", "none of Exists, Equal"),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            "spec.tolerations[0].value",
            "Exists takes none",
        ),
        (asking(requests={"cpu": "-1"}), "spec.containers[0].resources.requests.cpu", "'-1' is negative"),
        (asking(limits={"memory": -1}), "spec.containers[0].resources.limits.memory", "-1 is negative"),
        ({"overhead": {"cpu": "-1m"}}, "spec.overhead.cpu", "'-1m' is negative"),
        (on_nodes({"key": "a", "operator": "Equals"}), "operator", "'Equals' is none of In, NotIn"),
        (on_nodes({"operator": "Exists"}), "key", "is missing"),
        (on_nodes({"key": "a", "operator": "In"}), "values", "In needs at least one"),
        (on_nodes({"key": "a", "operator": "Exists", "values": ["b"]}), "values", "Exists takes none"),
        (on_nodes({"key": "a", "operator": "Gt", "values": ["x"]}), "values", "Gt needs one whole number"),
        (
            near({**TERM, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}),
            "labelSelector.matchExpressions[0].operator",
            "'Gt' is none of In, NotIn, Exists, DoesNotExist",
        ),
        (preferring(podAffinityTerm=TERM), "weight", "is missing"),
        (preferring(podAffinityTerm=TERM, weight=101), "weight", "101 is not between 1 and 100"),
        ({"topologySpreadConstraints": [{**SPREAD, "maxSkew": 0}]}, "maxSkew", "0 is not between 1"),
        ({"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "Never"}]}, "whenUnsatisfiable", "'Never' is"),
        ({"topologySpreadConstraints": [{**SPREAD, "topologyKey": ""}]}, "topologyKey", "is missing"),
        ({"topologySpreadConstraints": [{**SPREAD, "nodeTaintsPolicy": "honor"}]}, "nodeTaintsPolicy", "none of Honor"),
        ({"preemptionPolicy": "never"}, "spec.preemptionPolicy", "none of PreemptLowerPriority, Never"),
        (
            {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 70000}]}]},
            "spec.containers[0].ports[0].hostPort",
            "70000 is not between 0 and 65535",
        ),
    ],
)
def test_a_value_that_no_api_server_accepts_is_refused(spec: dict[str, Any], field: str, told: str) -> None:
    with pytest.raises(ManifestError) as caught:
        pod_from_manifest(a_pod(**spec))
    assert caught.value.field.endswith(field)
    assert told in caught.value.problem
    assert caught.value.problem.endswith("(strict=False accepts it)")
    assert pod_from_manifest(a_pod(**spec), strict=False).name == "p"
    problem = Snapshot.from_manifests(a_pod(**spec)).problems[0]  # a limit is the request too when none is written
    assert problem.field.replace("requests", "limits") == caught.value.field.replace("requests", "limits")
    counted = load_objects([a_pod(**spec)])  # an API server, or a recorded case, had it
    assert [pod.name for pod in counted.pending] == ["p"]
    assert str(counted.problems[0]).endswith("the object counts as it is")


@pytest.mark.parametrize(
    "spec",
    [
        {"tolerations": [{"operator": "Exists"}, {"key": "a"}, {"key": "a", "value": "b", "effect": "NoExecute"}]},
        {"tolerations": [{"key": "a", "operator": "Gt", "value": "4", "effect": ""}]},
        asking(requests={"cpu": 0, "memory": "1Gi"}, limits={"cpu": "1", "memory": "1024Mi"}),
        on_nodes({"key": "a", "operator": "Lt", "values": ["-4"]}),
        preferring(podAffinityTerm=TERM, weight=100),
        {"topologySpreadConstraints": [{**SPREAD, "minDomains": 2, "nodeAffinityPolicy": "Ignore"}]},
        {"containers": [{"name": "c", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 0}]}]},
    ],
)
def test_values_that_an_api_server_accepts_are_read(spec: dict[str, Any]) -> None:
    assert pod_from_manifest(a_pod(**spec)).name == "p"


def test_nodes_and_templates_are_checked_too() -> None:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}
    with pytest.raises(ManifestError, match=r"spec\.taints\[0\]\.effect: 'noSchedule' is none of"):
        node_from_manifest({**node, "spec": {"taints": [{"key": "a", "effect": "noSchedule"}]}})
    with pytest.raises(ManifestError, match=r"status\.allocatable\.cpu: '-4' is negative"):
        node_from_manifest({**node, "status": {"allocatable": {"cpu": "-4"}}})
    deployment = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d"}}
    with pytest.raises(ManifestError, match=r"spec\.template\.spec\.tolerations\[0\]\.effect"):
        workload_from_manifest(
            {**deployment, "spec": {"template": {"spec": a_pod(tolerations=[{"key": "a", "effect": "no"}])["spec"]}}}
        )


@pytest.mark.parametrize(("amount", "kind"), [(True, "bool"), (None, "null"), (["1"], "array"), ({}, "object")])
def test_an_amount_of_the_wrong_type_is_named_by_its_resource(amount: Any, kind: str) -> None:
    with pytest.raises(ManifestError) as caught:
        pod_from_manifest(a_pod(**asking(requests={"memory": "1Gi", "cpu": amount})))
    assert caught.value.field == "spec.containers[0].resources.requests.cpu"
    assert caught.value.problem.endswith(f"got `{kind}`")


def test_two_manifests_of_one_name_are_a_problem() -> None:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}
    found = Snapshot.from_manifests([node, {**node, "spec": {"unschedulable": True}}, a_pod(), a_pod(priority=7)])
    assert (found.nodes[0].unschedulable, [pod.priority for pod in found.pending]) == (True, [7])
    assert list(map(str, found.problems)) == [
        "object n: metadata.name: a second Node of this name; the last one counts",
        "object p: metadata.name: a second Pod of this name; the last one counts",
    ]


def test_a_node_that_no_api_server_has_seen_allocates_its_capacity() -> None:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}
    found = Snapshot.from_manifests({**node, "status": {"capacity": {"cpu": "4", "pods": "10"}}})
    assert found.nodes[0].allocatable == {"cpu": 4000, "pods": 10}


def of_kind(kind: str, api_version: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": api_version, "metadata": {"name": "x"}, **more}


@pytest.mark.parametrize(
    ("manifest", "field", "told"),
    [
        (
            of_kind("PodDisruptionBudget", "policy/v1", spec={"maxUnavailable": "30 %"}),
            "maxUnavailable",
            "a share such",
        ),
        (of_kind("PodDisruptionBudget", "policy/v1", spec={"minAvailable": -1}), "minAvailable", "-1 is neither"),
        (
            of_kind("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1, "maxUnavailable": 1}),
            "maxUnavailable",
            "either this or minAvailable",
        ),
        (of_kind("PodDisruptionBudget", "policy/v1", status={"expectedPods": -3}), "expectedPods", "-3 is not between"),
        (of_kind("PersistentVolumeClaim", "v1", spec={"accessModes": ["RWO"]}), "accessModes", "'RWO' is none of"),
        (of_kind("PersistentVolume", "v1", spec={"capacity": {"storage": "-1"}}), "capacity.storage", "is negative"),
        (of_kind("StorageClass", "storage.k8s.io/v1"), "provisioner", "is missing"),
        (
            of_kind("StorageClass", "storage.k8s.io/v1", provisioner="p", volumeBindingMode="Later"),
            "volumeBindingMode",
            "'Later' is none of",
        ),
        (
            of_kind(
                "ResourceClaim",
                "resource.k8s.io/v1",
                spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g", "count": 0}}]}},
            ),
            "spec.devices.requests[0].exactly.count",
            "0 is not between 1",
        ),
        (of_kind("PriorityClass", "scheduling.k8s.io/v1", value="7"), "value", "a whole number of 32 bits, got '7'"),
        (of_kind("PodDisruptionBudget", "apps/v1"), "apiVersion", "'apps/v1' has no PodDisruptionBudget: expected"),
        (of_kind("Pod", "apps/v1", spec={}), "apiVersion", "'apps/v1' has no Pod"),
        (of_kind("Deploymnet", "apps/v1"), "kind", "did you mean Deployment?"),
        (of_kind(cast("Any", ["Pod"]), "v1"), "kind", "an object needs a kind"),
    ],
)
def test_an_object_of_any_kind_is_left_out_with_the_field(manifest: dict[str, Any], field: str, told: str) -> None:
    (problem,) = Snapshot.from_manifests(manifest).problems
    assert problem.field.endswith(field)
    assert told in problem.problem


def test_kinds_of_other_apis_are_none_of_the_schedulers() -> None:
    foreign = [
        of_kind("StatefulSet", "apps.kruise.io/v1"),
        of_kind("Pods", "metrics.k8s.io/v1"),
        of_kind("Secret", "v1"),
    ]
    assert load_objects(foreign).problems == ()


def test_a_second_node_of_one_name_is_told() -> None:
    found = load_objects([of_kind("Node", "v1"), of_kind("Node", "v1")])
    assert [str(each) for each in found.problems] == [
        "object x: metadata.name: a second Node of this name; the last one counts"
    ]

"""The table of known fields, and what unknown fields and kinds are answered."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core import load_objects, node_from_manifest, pod_from_manifest
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.from_manifest import budget_from_manifest
from scheduler_core.model.manifests.strict.known_fields import TABLE, first_mistake
from tests.scheduler_core.model.manifests.strict.api_fields import api_fields, as_table


def a_pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [], **spec}}


def refusal(manifest: Any) -> str:
    with pytest.raises(ManifestError) as caught:
        pod_from_manifest(manifest)
    return str(caught.value)


def test_the_table_has_the_fields_of_the_installed_client_and_those_of_earlier_releases() -> None:
    assert as_table(api_fields()) == TABLE.strip(), "python -m tests.scheduler_core.model.manifests.strict.api_fields"


@pytest.mark.parametrize(
    ("spec", "path", "meant"),
    [
        ({"nodeSelecter": {"gpu": "yes"}}, "spec.nodeSelecter", "nodeSelector"),
        ({"containers": [{"name": "a"}, {"resource": {}}]}, "spec.containers[1].resource", "resources"),
        ({"affinity": {"podAffinity": {"required": []}}}, "spec.affinity.podAffinity.required", ""),
        ({"node_name": None}, "spec.node_name", "nodeName"),
    ],
)
def test_an_unknown_field_is_refused_with_its_path_and_the_nearest_field(
    spec: dict[str, Any], path: str, meant: str
) -> None:
    told = refusal(a_pod(**spec))
    assert told.startswith(f"Pod p: {path}: no release from 1.32 to 1.37 has this field")
    assert ("did you mean" in told) is bool(meant)
    assert f"did you mean {meant}?" in told or not meant
    assert pod_from_manifest(a_pod(**spec), strict=False).name == "p"


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"any": "key"}, "overhead": {"any": "1"}},
        {"containers": [{"name": "c", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}]},
        {"securityContext": None, "workloadRef": {"name": "w"}, "schedulingGroup": {}},
        {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"items": [{"key": "k", "path": "p"}]}}]}}]},
    ],
)
def test_fields_that_scheduling_does_not_read_are_accepted(spec: dict[str, Any]) -> None:
    assert pod_from_manifest(a_pod(**spec)).name == "p"


def test_every_kind_that_scheduling_reads_has_a_table() -> None:
    for kind in ("Node", "Service", "Job", "ResourceClaim", "DeviceClass", "CSIStorageCapacity", "VolumeAttachment"):
        assert first_mistake(kind, {"apiVersion": "v1", "kind": kind, "metadata": {"name": "n"}}) is None
        assert first_mistake(kind, {"metadatum": {}}) is not None


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        (
            {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": {}}},
            "Pod d: kind: expected a Pod, got a Deployment: pass a Pod with the metadata and the spec of its template",
        ),
        (
            {"kind": "PodList", "metadata": {"name": "many"}},
            "Pod many: kind: expected a Pod, got a PodList: pass its items one by one, or [the list] to load_objects",
        ),
        ({"kind": "Node", "metadata": {"name": "n"}}, "Pod n: kind: expected a Pod, got a Node"),
        (
            {"kind": "Pod", "apiVersion": "apps/v1", "metadata": {"name": "n"}},
            "Pod n: apiVersion: 'apps/v1' has no Pod: expected 'v1'",
        ),
        ("kind: Pod", "Pod without a name: expected a mapping with the fields of a Pod, got a text: parse it first"),
        ([a_pod()], "Pod without a name: expected a mapping with the fields of a Pod, got a list"),
        ({"spec": {}}, "Pod without a name: metadata.name: an object needs a name"),
    ],
)
def test_a_manifest_that_is_no_pod_is_refused(manifest: Any, told: str) -> None:
    assert refusal(manifest) == told


def test_nodes_and_budgets_are_as_strict() -> None:
    with pytest.raises(ManifestError, match="Node n: kind: expected a Node, got a Pod"):
        node_from_manifest({"kind": "Pod", "metadata": {"name": "n"}})
    with pytest.raises(ManifestError, match=r"Node n: status.alocatable: .* did you mean allocatable"):
        node_from_manifest({"metadata": {"name": "n"}, "status": {"alocatable": {}}})
    with pytest.raises(ManifestError, match=r"PodDisruptionBudget b: spec.maxUnavailabel: "):
        budget_from_manifest({"metadata": {"name": "b"}, "spec": {"maxUnavailabel": 1}})


def test_an_object_with_an_unknown_field_is_left_out_of_a_snapshot_and_named() -> None:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "spec": {"taint": []}}
    strict, lenient = load_objects([node]), load_objects([node], strict=False)
    assert (len(strict.nodes), len(lenient.nodes), lenient.problems) == (0, 1, ())
    assert [each.field for each in strict.problems] == ["spec.taint"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "List", "items": []}, "got one List: pass \\[it\\]"),
        (b"{}", "got a text: .* load_pages"),
        ("[]", "got a text"),
    ],
)
def test_a_single_object_or_a_text_is_not_loaded_as_several(given: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        load_objects(given)


def test_objects_that_are_none_are_named_as_problems() -> None:
    given: Any = ["Pod", {"kind": "nodes", "metadata": {"name": "n"}}, {"kind": "List", "items": [3]}]
    assert [str(each) for each in load_objects(given).problems] == [
        "object without a name: expected a mapping, got a str",
        "object n: kind: 'nodes' is not a kind; did you mean Node?",
        "object without a name: expected a mapping, got a int",
    ]
    assert load_objects([{"kind": "ConfigMap", "metadata": {"name": "c"}}]).problems == ()

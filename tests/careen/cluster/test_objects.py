"""Tests how API objects become the values that decisions use: which fields may be missing, and which value a missing
field gets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from careen.cluster import objects
from careen.core.facts.observation import NodeView, PodView, Taint
from careen.core.facts.progress import OwnerHealth


def written(**fields: Any) -> dict[str, Any]:
    """Return the object with the fields that a server always sends."""
    metadata = {"uid": "u", "resourceVersion": "5", **fields.pop("metadata")}
    return {"spec": {}, "status": {}, **fields, "metadata": metadata}


def node_of(**fields: Any) -> NodeView:
    return objects.node_view(msgspec.convert(written(**fields), objects.Node))


def pod_of(**fields: Any) -> PodView:
    return objects.pod_view(msgspec.convert(written(**fields), objects.Pod, strict=False))


def test_a_complete_node_is_read() -> None:
    assert node_of(
        metadata={"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"a": "1"}, "annotations": {"b": "2"}},
        spec={
            "unschedulable": True,
            "taints": [{"key": "k", "effect": "NoSchedule", "value": "v", "timeAdded": "2026-03-04T12:00:00Z"}],
        },
        status={
            "conditions": [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": "True"}],
            "nodeInfo": {"bootID": "b1"},
        },
    ) == NodeView(
        name="n1",
        uid="u",
        resource_version="7",
        labels={"a": "1"},
        annotations={"b": "2"},
        unschedulable=True,
        ready=True,
        boot_id="b1",
        taints=(Taint(key="k", effect="NoSchedule", value="v", time_added="2026-03-04T12:00:00Z"),),
    )


@pytest.mark.parametrize(
    "conditions",
    [None, [], [{"type": "Ready", "status": "Unknown"}], [{"type": "Ready", "status": "False"}]],
    ids=[
        "no list of conditions",
        "an empty list of conditions",
        "the Ready condition is Unknown",
        "the Ready condition is False",
    ],
)
def test_a_node_is_ready_only_if_its_ready_condition_is_true(conditions: list[dict[str, str]] | None) -> None:
    assert not node_of(metadata={"name": "n1"}, status={"conditions": conditions}).ready


def test_a_node_object_with_only_a_name_has_no_labels_taints_or_boot_id() -> None:
    bare = node_of(metadata={"name": "n1"})
    assert (dict(bare.labels), dict(bare.annotations), bare.taints, bare.unschedulable, bare.boot_id) == (
        {},
        {},
        (),
        False,
        "",
    )


def managed(manager: str, *fields: str, subresource: str = "", **more: Any) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "subresource": subresource,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {f"f:{name}": {} for name in fields}},
        **more,
    }


@pytest.mark.parametrize(
    ("entries", "cordoned_by"),
    [
        ([managed("careen-agent", "unschedulable", "taints"), managed("kubelet", "podCIDR")], ("careen-agent",)),
        ([managed("kubectl-cordon", "unschedulable"), managed("careen-agent", "taints")], ("kubectl-cordon",)),
        (
            [managed("careen-agent", "unschedulable"), managed("argo", "unschedulable", operation="Apply")],
            ("argo", "careen-agent"),
        ),
        ([managed("careen-agent", "unschedulable"), managed("careen-agent", "unschedulable")], ("careen-agent",)),
        ([managed("kubelet", "unschedulable", subresource="status")], ()),
        (
            [
                managed("x") | {"fieldsV1": {"f:spec": 1}},
                managed("y") | {"fieldsV1": {"f:metadata": {"f:unschedulable": {}}}},
            ],
            (),
        ),
        ([{}], ()),
        ([], ()),
        (None, ()),
    ],
)
def test_the_author_of_a_cordon_is_read_from_managed_fields(
    entries: list[dict[str, Any]] | None, cordoned_by: tuple[str, ...]
) -> None:
    def seen(*, unschedulable: bool) -> NodeView:
        node = written(metadata={"name": "n1", "managedFields": entries}, spec={"unschedulable": unschedulable})
        return objects.node_view(msgspec.json.decode(msgspec.json.encode(node), type=objects.ManagedNode))

    assert seen(unschedulable=True).cordoned_by == cordoned_by
    assert seen(unschedulable=False).cordoned_by == ()


def test_the_last_author_of_the_taints_is_read_from_managed_fields() -> None:
    entries = [
        managed("careen-taint", "taints"),
        managed("kubelet", "podCIDR"),
        managed("careen-agent", "unschedulable"),
    ]
    node = written(
        metadata={"name": "n1", "managedFields": entries}, spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}
    )
    view = objects.node_view(msgspec.json.decode(msgspec.json.encode(node), type=objects.ManagedNode))
    assert (view.tainted_by, view.cordoned_by) == (("careen-taint",), ())
    assert (
        objects.node_view(
            msgspec.json.decode(msgspec.json.encode({**node, "spec": {}}), type=objects.ManagedNode)
        ).tainted_by
        == ()
    )


def test_a_node_from_a_list_does_not_show_who_cordoned_the_node() -> None:
    """The field managedFields names the author of a cordon, but makes up half of each Node. So the list of Nodes leaves
    managedFields out. No decision needs the authors of the cordons of other nodes."""
    node = written(
        metadata={"name": "n1", "managedFields": [managed("careen-agent", "unschedulable")]},
        spec={"unschedulable": True},
    )
    assert objects.node_view(msgspec.json.decode(msgspec.json.encode(node), type=objects.Node)).cordoned_by == ()


def test_a_list_of_nodes_keeps_only_annotations_of_reboot_coordinators() -> None:
    annotations = {"careen.dev/phase": "Waiting", "weave.works/kured-reboot-in-progress": "x", "example.com/large": "y"}
    node = msgspec.convert(written(metadata={"name": "n1", "annotations": annotations}), objects.Node)
    assert dict(objects.node_view(node, all_annotations=False).annotations) == {
        "careen.dev/phase": "Waiting",
        "weave.works/kured-reboot-in-progress": "x",
    }


def test_the_owner_of_a_pod_is_its_controller() -> None:
    owners = [
        {"kind": "Node", "name": "n1", "uid": "1"},
        {"kind": "ReplicaSet", "name": "web", "uid": "2", "controller": True},
    ]
    pod = pod_of(metadata={"name": "p", "namespace": "shop", "ownerReferences": owners})
    assert (pod.owner_kind, pod.owner_name, pod.owner_uid) == ("ReplicaSet", "web", "2")
    assert pod_of(metadata={"name": "p", "ownerReferences": owners[:1]}).owner_kind == ""


def test_a_pod_is_read_as_static_and_terminating_and_with_an_empty_dir() -> None:
    pod = pod_of(
        metadata={
            "name": "p",
            "namespace": "shop",
            "uid": "u",
            "annotations": {"kubernetes.io/config.mirror": "h"},
            "deletionTimestamp": "2026-03-04T12:00:00Z",
            "deletionGracePeriodSeconds": 30,
        },
        spec={"priority": 5, "volumes": [{"name": "a"}, {"name": "b", "emptyDir": {}}]},
        status={"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
    )
    assert (pod.is_mirror, pod.has_empty_dir, pod.is_ready, pod.priority) == (True, True, False, 5)
    assert (pod.is_terminating, pod.deletion_timestamp, pod.deletion_grace_seconds) == (
        True,
        datetime(2026, 3, 4, 12, tzinfo=UTC),
        30.0,
    )


@pytest.mark.parametrize(
    ("kind", "spec", "status", "replicas", "ready"),
    [
        ("ReplicaSet", {"replicas": 3}, {"readyReplicas": 2}, 3, 2),
        ("ReplicaSet", {}, {}, 1, 0),
        ("StatefulSet", {"replicas": 0}, {}, 0, 0),
        ("Job", {"parallelism": 4}, {"ready": 1}, 4, 1),
        ("Job", {}, {}, 1, 0),
    ],
    ids=[
        "two of three replicas are ready",
        "the default number of replicas is one",
        "a StatefulSet is scaled to zero",
        "one of four pods of a Job is ready",
        "the default parallelism of a Job is one",
    ],
)
def test_the_desired_and_ready_replicas_of_a_controller_are_read(
    kind: str, spec: dict[str, int], status: dict[str, int], replicas: int, ready: int
) -> None:
    workload = msgspec.convert(
        written(metadata={"name": "w", "namespace": "shop", "generation": 2}, spec=spec, status=status),
        objects.Workload,
    )
    assert objects.owner_health(kind, workload) == OwnerHealth(
        kind=kind, namespace="shop", name="w", uid="u", generation=2, replicas=replicas, ready=ready
    )

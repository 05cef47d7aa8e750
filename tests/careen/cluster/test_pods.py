"""Tests how careen lists a node's pods and reads the health of their owners, such as ReplicaSets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from careen.cluster.pods import Owner, list_pods_on, owners_of, read_controller, read_owners
from careen.cluster.wire.errors import NotServed, UnreadableAnswer
from careen.core.drain.drain_plan import plan
from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import PodView
from careen.core.facts.policy import DrainPolicy
from careen.core.facts.progress import OwnerHealth
from tests.careen.cluster.conftest import Cluster
from tests.careen.virtual_shell import START, Scripted, a_list, an_object, answer, api_on, methods


def controller(kind: str, name: str) -> dict[str, Any]:
    return {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Other", "name": "not-the-controller", "uid": "u0"},
            {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True},
        ]
    }


def put_workload(
    cluster: Cluster,
    kind: str,
    name: str,
    *,
    namespace: str = "shop",
    replicas: int | None = 3,
    ready: int | None = 2,
    generation: int = 4,
) -> None:
    group = {"ReplicationController": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    wants, has = ("parallelism", "ready") if kind == "Job" else ("replicas", "readyReplicas")
    cluster.server.seed(
        {
            "apiVersion": group,
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "generation": generation},
            "spec": {} if replicas is None else {wants: replicas},
            "status": {} if ready is None else {has: ready},
        }
    )


async def test_the_pods_of_a_node_are_listed_from_all_namespaces(cluster: Cluster) -> None:
    cluster.put_pod("a", "n1")
    cluster.put_pod("b", "n2")
    cluster.put_pod("c", "n1", namespace="kube-system")
    assert [pod.title for pod in await list_pods_on(cluster.api, "n1")] == ["kube-system/c", "shop/a"]
    assert cluster.wire.asked[0].query["fieldSelector"] == "spec.nodeName=n1"


async def test_a_list_with_a_pod_of_another_node_is_an_error() -> None:
    """A proxy may drop the field selector of the list request. If the agent accepted such a list, it would evict the
    pods of the whole cluster."""
    written = [
        {"metadata": {"namespace": "shop", "name": name}, "spec": {"nodeName": node}}
        for name, node in (("a", "n1"), ("b", "n2"))
    ]
    with pytest.raises(UnreadableAnswer, match="the answer has a pod on n2, which the request does not select"):
        await list_pods_on(api_on(Scripted(answer(200, a_list("Pod", *written)))), "n1")


async def test_an_unusable_answer_about_a_pods_owner_raises_an_error() -> None:
    for nothing in ({}, {"items": None}, an_object("ReplicaSet", "other", namespace="shop")):
        with pytest.raises(UnreadableAnswer):
            await read_owners(api_on(Scripted(*[answer(200, nothing)] * 50)), [Owner("ReplicaSet", "shop", "web")])
    with pytest.raises(NotServed):
        await read_owners(api_on(Scripted(answer(404, b"no such page"))), [Owner("ReplicaSet", "shop", "web")])


async def test_a_pods_controller_is_read(cluster: Cluster) -> None:
    cluster.server.seed(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "namespace": "shop", **controller("DaemonSet", "agents")},
            "spec": {},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "shop"}, "spec": {}},
    )
    assert await read_controller(cluster.api, "shop", "a") == Owner("DaemonSet", "shop", "agents")
    assert await read_controller(cluster.api, "shop", "b") is None
    assert await read_controller(cluster.api, "shop", "gone") is None


async def test_a_pod_is_read_with_the_fields_that_a_drain_needs() -> None:
    written = {
        "metadata": {
            "namespace": "shop",
            "name": "a",
            "uid": "u1",
            "labels": {"app": "db"},
            "annotations": {"kubernetes.io/config.mirror": "x"},
            **controller("ReplicaSet", "rs"),
            "creationTimestamp": "2026-03-04T11:00:00Z",
            "deletionTimestamp": "2026-03-04T12:00:30Z",
            "deletionGracePeriodSeconds": 30,
        },
        "spec": {"nodeName": "n1", "priority": 7, "volumes": [{"name": "v", "emptyDir": {}}]},
        "status": {"phase": "Pending", "conditions": []},
    }
    (pod,) = await list_pods_on(api_on(Scripted(answer(200, a_list("Pod", written)))), "n1")
    assert pod == PodView(
        namespace="shop",
        name="a",
        uid="u1",
        labels={"app": "db"},
        annotations={"kubernetes.io/config.mirror": "x"},
        phase="Pending",
        owner_kind="ReplicaSet",
        owner_name="rs",
        owner_uid="uid-rs",
        owner_api_version="apps/v1",
        is_mirror=True,
        has_empty_dir=True,
        is_ready=False,
        priority=7,
        deletion_timestamp=datetime(2026, 3, 4, 12, 0, 30, tzinfo=UTC),
        deletion_grace_seconds=30,
        created_at=datetime(2026, 3, 4, 11, 0, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("end", "grace"),
    [
        ("2311-05-01T00:00:00Z", 2**63 - 1),
        ("0001-01-01T00:00:00+23:59", -5),
        ("9999-12-31T23:59:59-23:59", 10**300),
        ("2026-03-04T12:00:30", 30),
    ],
)
async def test_a_pod_with_a_deletion_time_in_the_far_future_is_terminating(end: str, grace: int) -> None:
    """The deletion time includes the pod's grace period. The creator of the pod chooses the grace period, up to 2⁶³
    seconds.
    """
    written = {
        "metadata": {
            "namespace": "shop",
            "name": "a",
            "creationTimestamp": end,
            "deletionTimestamp": end,
            "deletionGracePeriodSeconds": grace,
        },
        "spec": {"nodeName": "n1"},
    }
    (pod,) = await list_pods_on(api_on(Scripted(answer(200, a_list("Pod", written)))), "n1")
    assert pod.is_terminating
    assert plan(
        (pod,), DrainPolicy(skip_wait_for_delete_seconds=60.0), Memory(), uptime=0.0, now=START, cordoned_at=START
    ).left == (pod,)


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Equal", "value": "x"}, False),
        ({"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, False),
        ({"operator": "Equal"}, False),
    ],
)
async def test_a_pod_tolerates_a_cordon_if_its_tolerations_match_as_in_the_scheduler(
    toleration: dict[str, str], tolerates: bool
) -> None:
    written = {
        "metadata": {"namespace": "shop", "name": "a"},
        "spec": {"nodeName": "n1", "tolerations": [{"key": "other"}, toleration]},
    }
    (pod,) = await list_pods_on(api_on(Scripted(answer(200, a_list("Pod", written)))), "n1")
    assert pod.tolerates_cordon is tolerates


def managed(manager: str, *spec: str, subresource: str = "") -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "fieldsV1": {"f:spec": {field: {} for field in spec}},
        **({"subresource": subresource} if subresource else {}),
    }


@pytest.mark.parametrize(
    ("told", "came_bound"),
    [
        pytest.param(
            [managed("kube-controller-manager", "f:containers"), managed("kubelet", subresource="status")],
            False,
            id="a scheduler chose the node",
        ),
        pytest.param(
            [managed("kube-controller-manager", "f:containers", "f:nodeName")],
            True,
            id="the pod's controller chose the node",
        ),
        pytest.param(
            [managed("kubelet", "f:nodeName", subresource="status")],
            False,
            id="`spec.nodeName` was written only through the subresource `status`",
        ),
        pytest.param([], None, id="the managed fields are empty"),
        pytest.param(None, None, id="the managed fields are missing"),
        pytest.param(
            [{"manager": "odd", "fieldsV1": {"f:spec": 7}}],
            False,
            id="the managed fields are unreadable",
        ),
    ],
)
async def test_managed_fields_show_whether_a_pod_was_created_with_a_node_name(
    told: Any, came_bound: bool | None
) -> None:
    written = {"metadata": {"namespace": "shop", "name": "a", "managedFields": told}, "spec": {"nodeName": "n1"}}
    (pod,) = await list_pods_on(api_on(Scripted(answer(200, a_list("Pod", written)))), "n1")
    assert pod.came_bound is came_bound


@pytest.mark.parametrize(
    ("rules", "spreads"),
    [
        pytest.param(
            [("kubernetes.io/hostname", "DoNotSchedule"), (keys.ZONE, "DoNotSchedule")],
            True,
            id="a required spread over zones",
        ),
        pytest.param([(keys.ZONE, "ScheduleAnyway")], False, id="a preferred spread over zones"),
        pytest.param([("kubernetes.io/hostname", "DoNotSchedule")], False, id="a required spread over nodes"),
        pytest.param([], False, id="no spread constraint"),
    ],
)
async def test_a_pod_spreads_over_zones_only_if_a_constraint_requires_it(
    rules: list[tuple[str, str]], spreads: bool
) -> None:
    constraints = [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action} for key, action in rules]
    spec = {"nodeName": "n1", **({"topologySpreadConstraints": constraints} if rules else {})}
    written = {"metadata": {"namespace": "shop", "name": "a"}, "spec": spec}
    (pod,) = await list_pods_on(api_on(Scripted(answer(200, a_list("Pod", written)))), "n1")
    assert pod.spreads_over_zones is spreads


@pytest.mark.parametrize("constraint", [{}, {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": None}])
async def test_an_incomplete_topology_spread_constraint_is_ignored(constraint: dict[str, Any]) -> None:
    spec = {"nodeName": "n1", "topologySpreadConstraints": [constraint]}
    written = {"metadata": {"namespace": "shop", "name": "a"}, "spec": spec}
    (pod,) = await list_pods_on(api_on(Scripted(answer(200, a_list("Pod", written)))), "n1")
    assert pod.spreads_over_zones is False


async def test_the_node_name_in_an_owners_pod_template_is_read(cluster: Cluster) -> None:
    cluster.server.seed(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "pinned", "namespace": "shop"},
            "spec": {"template": {"spec": {"nodeName": "n1"}}},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "free", "namespace": "shop"},
            "spec": {"template": {"spec": {}}},
        },
    )
    found = await read_owners(cluster.api, [Owner("ReplicaSet", "shop", "pinned"), Owner("Job", "shop", "free")])
    assert [(owner.name, owner.bound_to) for owner in found] == [("free", ""), ("pinned", "n1")]


async def test_a_bare_pod_has_no_owner_and_no_empty_dir(cluster: Cluster) -> None:
    cluster.put_pod("a", spec={"volumes": [{"name": "v", "configMap": {"name": "c"}}]})
    (pod,) = await list_pods_on(cluster.api, "n1")
    assert (pod.owner_kind, pod.has_empty_dir, pod.is_mirror, pod.is_ready, pod.is_terminating) == (
        "",
        False,
        False,
        True,
        False,
    )


async def test_only_controllers_with_a_number_of_replicas_are_read_as_owners(cluster: Cluster) -> None:
    for name, kind in (("a", "ReplicaSet"), ("b", "ReplicaSet"), ("c", "DaemonSet"), ("d", "Node"), ("e", "Job")):
        cluster.put_pod(name, metadata=controller(kind, "web" if kind == "ReplicaSet" else name))
    cluster.put_pod("f")
    assert owners_of(await list_pods_on(cluster.api, "n1")) == {
        Owner("ReplicaSet", "shop", "web"),
        Owner("Job", "shop", "e"),
    }


async def test_the_health_of_each_kind_of_owner_is_read(cluster: Cluster) -> None:
    for kind in ("ReplicaSet", "StatefulSet", "ReplicationController", "Job"):
        put_workload(cluster, kind, f"a-{kind.lower()}")
    put_workload(cluster, "StatefulSet", "bare", replicas=None, ready=None)
    owners = [
        Owner(kind, "shop", f"a-{kind.lower()}")
        for kind in ("Job", "ReplicaSet", "ReplicationController", "StatefulSet")
    ] + [Owner("StatefulSet", "shop", "bare")]
    assert await read_owners(cluster.api, owners) == (
        *(
            OwnerHealth(
                kind=owner.kind,
                namespace="shop",
                name=owner.name,
                uid=f"uid-{owner.name}",
                generation=4,
                replicas=3,
                ready=2,
            )
            for owner in owners[:4]
        ),
        OwnerHealth(
            kind="StatefulSet", namespace="shop", name="bare", uid="uid-bare", generation=4, replicas=1, ready=0
        ),
    )


async def test_a_missing_owner_and_an_owner_of_unknown_kind_are_left_out(cluster: Cluster) -> None:
    assert await read_owners(cluster.api, [Owner("ReplicaSet", "shop", "gone"), Owner("Rocket", "shop", "r")]) == ()
    assert methods(cluster.wire.asked) == ["GET /apis/apps/v1/namespaces/shop/replicasets/gone"]


async def test_an_owner_that_is_being_deleted_is_left_out(cluster: Cluster) -> None:
    put_workload(cluster, "ReplicaSet", "ends")
    ends = cluster.server.get("replicasets", "ends", "shop")
    metadata = {**ends["metadata"], "deletionTimestamp": "2026-03-04T12:00:00Z", "finalizers": ["foregroundDeletion"]}
    api = api_on(Scripted(answer(200, {**ends, "metadata": metadata})))
    assert await read_owners(api, [Owner("ReplicaSet", "shop", "ends")]) == ()


async def test_many_owners_of_one_namespace_are_read_with_one_list(cluster: Cluster) -> None:
    for number in range(5):
        put_workload(cluster, "ReplicaSet", f"rs{number}")
    put_workload(cluster, "ReplicaSet", "rs1", namespace="other")
    owners = [Owner("ReplicaSet", "shop", f"rs{number}") for number in (0, 2, 4)]
    assert [health.name for health in await read_owners(cluster.api, owners)] == ["rs0", "rs2", "rs4"]
    assert methods(cluster.wire.asked) == ["GET /apis/apps/v1/namespaces/shop/replicasets"]


async def test_no_request_is_sent_for_an_empty_list_of_owners(cluster: Cluster) -> None:
    assert await read_owners(cluster.api, []) == ()
    assert cluster.wire.asked == []

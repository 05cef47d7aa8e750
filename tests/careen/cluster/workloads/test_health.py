"""How healthy the workloads of displaced pods are, by their pods."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from careen.cluster.pods import list_pods_on
from careen.cluster.workloads.health import read_again, read_foreign, read_now
from careen.core.drain import baseline
from careen.core.facts.progress import OwnerHealth
from scheduler_core.values import replace_value as replace
from tests.careen.cluster.conftest import Cluster
from tests.careen.core.builders import an_owner

CORDONED = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
EARLIER, LATER = "2026-03-04T10:00:00Z", "2026-03-04T12:01:00Z"
WEB = an_owner("web-1", uid="uid-web-1", parent="uid-web", selector="pod-template-hash=1")
DB = an_owner("db", kind="StatefulSet", uid="uid-db", selector="app=db")
KAFKA = an_owner("kafka", kind="StrimziPodSet", uid="uid-kafka", generation=0, selector="app=kafka")


def put(
    cluster: Cluster, name: str, *, replicas: int, kind: str = "ReplicaSet", parent: str = "", made: str = EARLIER
) -> None:
    """A workload. Its own status says that all its pods are ready: careen must not believe that."""
    hash_of = name.partition("-")[2]
    owner = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": parent, "controller": True}]
    labels = {"pod-template-hash": hash_of} if hash_of else {"app": name}
    cluster.server.seed(
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": "shop",
                "uid": f"uid-{name}",
                "creationTimestamp": made,
                **({"ownerReferences": owner} if parent else {}),
            },
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}},
            "status": {"replicas": replicas, "readyReplicas": replicas},
        }
    )


def pods(cluster: Cluster, owner: str, ready: int, unready: int = 0, *, ending: int = 0, **more: Any) -> None:
    kind = more.pop("kind", "ReplicaSet")
    hash_of = owner.partition("-")[2]
    for number in range(ready + unready + ending):
        is_ready = number < ready or number >= ready + unready
        ends = {"deletionTimestamp": LATER, "finalizers": ["x/y"]} if number >= ready + unready else {}
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
        cluster.put_pod(
            f"{owner}-{number}",
            metadata={
                "labels": {"app": owner, **({"pod-template-hash": hash_of} if hash_of else {})},
                "ownerReferences": [{**reference, **more.get("reference", {})}],
                **ends,
            },
            status={"conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}]},
            spec=more.get("spec", {}),
        )


async def ailing(cluster: Cluster, *rows: OwnerHealth) -> list[tuple[str, int, int]]:
    now = await read_again(cluster.api, rows, since=CORDONED)
    return [(row.name, have, need) for row, have, need in baseline.worse(rows, now)]


async def test_a_controller_that_was_cut_off_cannot_make_its_workload_seem_healthy(cluster: Cluster) -> None:
    """Its status still says three of three, from before the evictions."""
    put(cluster, "db", kind="StatefulSet", replicas=3)
    pods(cluster, "db", ready=1, unready=1, ending=1, kind="StatefulSet")
    assert await ailing(cluster, DB) == [("db", 1, 3)]


async def test_healthy_workloads_cost_one_list_of_pods_for_each_label_that_selects_them(cluster: Cluster) -> None:
    other = an_owner("api-2", uid="uid-api-2", selector="pod-template-hash=2")
    for name in ("web-1", "api-2"):
        put(cluster, name, replicas=3)
        pods(cluster, name, ready=3)
    assert await ailing(cluster, WEB, other) == []
    assert [(each.path, each.query["labelSelector"]) for each in cluster.wire.asked] == [
        ("/api/v1/namespaces/shop/pods", "pod-template-hash in (1,2)")
    ]


async def test_a_workload_whose_replacements_are_on_their_way_is_not_read_itself(cluster: Cluster) -> None:
    put(cluster, "web-1", replicas=3)
    pods(cluster, "web-1", ready=2, unready=1)
    assert await ailing(cluster, WEB) == [("web-1", 2, 3)]
    assert len(cluster.wire.asked) == 1


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param((0, 0, 0), (3, 0, 3), [("web-1", 0, 3)], id="a bad roll-out"),
        pytest.param((0, 0, 0), (3, 3, 0), [], id="a good roll-out"),
        pytest.param((1, 1, 0), (3, 2, 1), [], id="a roll-out in progress with as many ready pods"),
        pytest.param((2, 2, 0), (1, 0, 1), [("web-1", 2, 3)], id="a roll-out that is stuck with fewer ready pods"),
        pytest.param((1, 1, 0), (0, 0, 0), [], id="scaled down"),
        pytest.param((0, 0, 0), (0, 0, 0), [], id="scaled to zero"),
    ],
)
async def test_all_replicasets_of_one_deployment_count_together(
    cluster: Cluster, old: tuple[int, int, int], new: tuple[int, int, int], expected: list[tuple[str, int, int]]
) -> None:
    """For each ReplicaSet: the wanted, the ready and the unready pods."""
    for name, (replicas, ready, unready) in (("web-1", old), ("web-2", new)):
        put(cluster, name, replicas=replicas, parent="uid-web", made=LATER)
        pods(cluster, name, ready, unready)
    put(cluster, "other-3", replicas=3, parent="uid-other", made=LATER)
    assert await ailing(cluster, WEB) == expected


async def test_a_deployment_whose_old_replicaset_is_gone_is_found_by_its_uid(cluster: Cluster) -> None:
    put(cluster, "web-2", replicas=3, parent="uid-web", made=LATER)
    pods(cluster, "web-2", ready=1, unready=2)
    assert await ailing(cluster, WEB) == [("web-1", 1, 3)]


async def test_a_deleted_workload_is_dropped(cluster: Cluster) -> None:
    put(cluster, "other-3", replicas=3, parent="uid-other", made=LATER)
    assert await ailing(cluster, WEB, DB) == []


@pytest.mark.parametrize(("made", "expected"), [(LATER, [("db", 0, 3)]), (EARLIER, [])])
async def test_a_workload_without_parent_is_joined_by_the_one_created_in_its_place(
    cluster: Cluster, made: str, expected: list[tuple[str, int, int]]
) -> None:
    """A tool that makes no Deployment replaces one workload by another."""
    put(cluster, "db", kind="StatefulSet", replicas=0)
    put(cluster, "store", kind="StatefulSet", replicas=3, made=made)
    assert await ailing(cluster, DB) == expected


async def test_a_statefulset_counts_the_pods_of_all_its_revisions(cluster: Cluster) -> None:
    """With a partition some pods keep the old revision for good."""
    put(cluster, "db", kind="StatefulSet", replicas=3)
    pods(cluster, "db", ready=3, kind="StatefulSet")
    assert await ailing(cluster, DB) == []


async def test_the_pods_of_an_owner_of_an_unknown_kind_are_counted_by_its_uid(cluster: Cluster) -> None:
    reference = {"apiVersion": "core.strimzi.io/v1beta2"}
    pods(cluster, "kafka", ready=2, unready=1, kind="StrimziPodSet", reference=reference)
    found = await read_foreign(cluster.api, await list_pods_on(cluster.api, "n1"))
    assert found == (
        OwnerHealth(
            kind="StrimziPodSet",
            namespace="shop",
            name="kafka",
            uid="uid-kafka",
            generation=0,
            replicas=3,
            ready=2,
            selector="app=kafka",
        ),
    )
    assert await ailing(cluster, KAFKA) == [("kafka", 2, 3)]
    assert await ailing(cluster, *found) == []


async def test_pods_of_an_unknown_owner_are_found_without_the_labels_that_they_had(cluster: Cluster) -> None:
    pods(cluster, "kafka", ready=3, kind="StrimziPodSet")
    assert await ailing(cluster, an_owner("kafka", kind="StrimziPodSet", uid="uid-kafka", selector="app=old")) == []


async def test_a_missing_pod_of_a_statefulset_of_another_api_group_is_missed(cluster: Cluster) -> None:
    pods(cluster, "db", ready=2, kind="StatefulSet", reference={"apiVersion": "apps.kruise.io/v1beta1"})
    (row,) = await read_now(cluster.api, await list_pods_on(cluster.api, "n1"))
    assert row.kind == "StatefulSet.apps.kruise.io"
    assert await ailing(cluster, replace(row, replicas=3, ready=3)) == [("db", 2, 3)]


@pytest.mark.parametrize(
    ("kind", "api", "spec", "counts"),
    [
        ("StrimziPodSet", "core.strimzi.io/v1beta2", {}, True),
        ("CloneSet", "apps.kruise.io/v1alpha1", {}, True),
        ("StatefulSet", "apps.kruise.io/v1beta1", {}, True),
        ("TaskRun", "tekton.dev/v1", {"restartPolicy": "Never"}, False),
        ("StatefulSet", "apps/v1", {}, False),
        ("ReplicationController", "v1", {}, False),
        ("Job", "batch/v1", {}, False),
    ],
)
async def test_a_pod_of_an_unknown_owner_counts_unless_it_only_does_a_piece_of_work(
    cluster: Cluster, kind: str, api: str, spec: dict[str, Any], counts: bool
) -> None:
    pods(cluster, "a", ready=1, kind=kind, reference={"apiVersion": api}, spec=spec)
    assert bool(await read_foreign(cluster.api, await list_pods_on(cluster.api, "n1"))) is counts


async def test_a_row_of_an_earlier_release_has_no_selector_and_costs_a_list_of_the_namespace(cluster: Cluster) -> None:
    put(cluster, "web-1", replicas=3)
    pods(cluster, "web-1", ready=2, unready=1)
    assert await ailing(cluster, an_owner("web-1", uid="uid-web-1")) == [("web-1", 2, 3)]
    assert "labelSelector" not in cluster.wire.asked[0].query


@pytest.mark.parametrize(
    ("said", "ready", "requests"),
    [
        pytest.param(3, 3, 1, id="a workload that is whole by its status is not counted"),
        pytest.param(1, 3, 2, id="its status is from before its pods became ready"),
    ],
)
async def test_the_baseline_does_not_begin_with_an_old_bad_status(
    cluster: Cluster, said: int, ready: int, requests: int
) -> None:
    put(cluster, "web-1", replicas=3)
    pods(cluster, "web-1", ready=3)
    here = await list_pods_on(cluster.api, "n1")
    stored = cluster.server.get("replicasets", "web-1", "shop")
    assert stored is not None
    cluster.server.seed({**stored, "status": {"replicas": 3, "readyReplicas": said}})
    cluster.wire.asked.clear()
    (row,) = await read_now(cluster.api, here)
    assert (row.name, row.ready) == ("web-1", ready)
    assert len(cluster.wire.asked) == requests

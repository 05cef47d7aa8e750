from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.from_manifest import (
    PodReader,
    budget_from_manifest,
    node_affinity_from_manifest,
    node_from_manifest,
    pod_from_manifest,
)
from scheduler_core.model.node import NodeImage
from scheduler_core.model.pod import HostPort, OwnerReference
from scheduler_core.model.taints import Taint, Toleration
from scheduler_core.testing.builders import a_budget, a_node, a_pod


def test_a_pod_is_read_from_its_manifest() -> None:
    pod = (
        a_pod("web-1", "shop")
        .labelled(app="web")
        .on("n1")
        .owned_by("ReplicaSet", "web")
        .with_priority(7)
        .tolerating({"key": "a", "operator": "Exists"})
        .with_field("status.startTime", "2026-01-01T00:00:10Z")
        .with_field("status.nominatedNodeName", "n2")
        .build()
    )
    assert (pod.key, pod.uid, pod.labels, pod.node_name, pod.nominated_node_name) == (
        "shop/web-1",
        "shop-web-1",
        {"app": "web"},
        "n1",
        "n2",
    )
    assert pod.owner == OwnerReference("apps/v1", "ReplicaSet", "web", "ReplicaSet-web")
    assert (pod.priority, pod.spec.tolerations, pod.start_time) == (7, (Toleration("a", "Exists"),), 1767225610.0)
    assert not pod.terminating
    assert a_pod().terminating().build().terminating


def test_a_minimal_pod_gets_the_defaults_of_the_scheduler() -> None:
    pod = pod_from_manifest({"metadata": {"name": "p"}, "spec": {}})
    assert (pod.namespace, pod.phase, pod.spec.scheduler_name, pod.priority, pod.owner, pod.start_time) == (
        "default",
        "Pending",
        "default-scheduler",
        0,
        None,
        None,
    )


def test_null_fields_are_read_as_absent() -> None:
    pod = pod_from_manifest(
        {
            "metadata": {"name": "p", "labels": None, "ownerReferences": None},
            "spec": {
                "containers": [{"name": "c", "resources": None, "ports": None}],
                "affinity": None,
                "volumes": None,
                "nodeSelector": None,
            },
            "status": None,
        }
    )
    assert (pod.labels, pod.spec.volumes, pod.spec.node_selector) == ({}, (), ())


def test_an_affinity_term_without_namespaces_means_the_pods_own_namespace() -> None:
    own = a_pod(namespace="shop").away_from("zone", {"app": "x"}).build().spec.pod_anti_affinity.required[0]
    named = (
        a_pod(namespace="shop")
        .away_from("zone", {"app": "x"}, namespaces=["ops"])
        .build()
        .spec.pod_anti_affinity.required[0]
    )
    selected = (
        a_pod(namespace="shop")
        .away_from("zone", {"app": "x"}, namespaceSelector={})
        .build()
        .spec.pod_anti_affinity.required[0]
    )
    assert (own.namespaces, named.namespaces, selected.namespaces) == (
        frozenset({"shop"}),
        frozenset({"ops"}),
        frozenset(),
    )
    assert selected.namespace_selector.is_empty


def test_pods_of_one_template_share_one_spec() -> None:
    import msgspec

    from scheduler_core.model.manifests.wire import WirePod

    reader = PodReader()

    def read(name: str, node: str, image: str) -> Any:
        token = {"name": f"kube-api-access-{name}", "projected": {}}
        manifest = (
            a_pod(name)
            .with_container({"name": "c", "image": image})
            .on(node)
            .with_field("spec.volumes", [token])
            .manifest
        )
        return reader.pod(msgspec.convert(manifest, WirePod))

    one, two, three = read("a", "n1", "web:1"), read("b", "n2", "web:1"), read("c", "n1", "web:2")
    assert one.spec is two.spec
    assert one.spec is not three.spec
    assert one.labels == two.labels


def test_a_status_equal_to_the_spec_is_not_a_resize() -> None:
    same = [{"name": "main", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}]
    other = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    assert a_pod().requesting(cpu="1").with_field("status.containerStatuses", same).build().resize is None
    assert a_pod().requesting(cpu="1").with_field("status.containerStatuses", other).build().resize is not None


def test_a_node_is_read_from_its_manifest() -> None:
    node = (
        a_node("n1")
        .in_zone("a")
        .tainted("dedicated", "db")
        .cordoned()
        .with_image("web:1", "web@sha256:0", size_bytes=5)
        .offering_also({"cpu": "1500m", "example.com/gpu": "2", "bananas": "1"})
        .build()
    )
    assert node.labels == {"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a"}
    assert (node.taints, node.unschedulable) == ((Taint("dedicated", "db", "NoSchedule"),), True)
    assert node.allocatable == {"cpu": 1500, "memory": 8 * 2**30, "pods": 110, "example.com/gpu": 2}
    assert node.images == (NodeImage(("web:1", "web@sha256:0"), 5),)


def test_a_cordon_sets_the_field_and_the_taint_and_an_uncordon_removes_both() -> None:
    node = a_node().tainted("other").build()
    cordoned = node.cordoned()
    assert cordoned.unschedulable
    assert cordoned.taints == (
        Taint("other", "", "NoSchedule"),
        Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),
    )
    assert cordoned.cordoned() == cordoned
    assert node.cordoned(with_taint=False).taints == node.taints
    assert cordoned.uncordoned() == node


def test_the_host_ports_of_init_containers_are_ignored_except_for_sidecars() -> None:
    port = {"containerPort": 1, "hostPort": 80}
    pod = (
        a_pod()
        .with_host_port(90)
        .with_field(
            "spec.initContainers",
            [{"name": "i", "ports": [port]}, {"name": "s", "ports": [port], "restartPolicy": "Always"}],
        )
        .build()
    )
    assert pod.spec.host_ports == (HostPort("0.0.0.0", "TCP", 90), HostPort("0.0.0.0", "TCP", 80))


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        (HostPort("0.0.0.0", "TCP", 80), HostPort("127.0.0.1", "TCP", 80), True),
        (HostPort("127.0.0.1", "TCP", 80), HostPort("127.0.0.2", "TCP", 80), False),
        (HostPort("127.0.0.1", "TCP", 80), HostPort("127.0.0.1", "TCP", 80), True),
        (HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "UDP", 80), False),
        (HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "TCP", 81), False),
        (HostPort("::", "TCP", 80), HostPort("127.0.0.1", "TCP", 80), False),
        (HostPort("::", "TCP", 80), HostPort("0.0.0.0", "TCP", 80), True),
    ],
)
def test_host_ports_conflict_by_address_protocol_and_port(one: HostPort, other: HostPort, clash: bool) -> None:
    assert one.conflicts_with(other) is clash
    assert other.conflicts_with(one) is clash


def test_a_budget_is_read_from_its_manifest() -> None:
    budget = a_budget("b", "shop").selecting(app="web").allowing(2).with_field("spec.maxUnavailable", 1).build()
    assert (budget.key, budget.disruptions_allowed, budget.max_unavailable, budget.min_available) == (
        "shop/b",
        2,
        "1",
        None,
    )
    assert budget.selector.matches({"app": "web"})
    assert budget_from_manifest({"metadata": {"name": "x"}}).selector.requirements is None


def test_an_empty_added_affinity_is_read_as_none() -> None:
    assert node_affinity_from_manifest(None) is None


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (
            {
                "metadata": {"name": "p", "namespace": "shop"},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1x"}}}]},
            },
            "Pod shop/p: spec.containers[0].resources.requests.cpu: '1x' is not a quantity",
        ),
        (
            {"metadata": {"name": "p", "labels": {"a": 1}}, "spec": {}},
            "Pod p: metadata.labels.a: Expected `str`, got `int`",
        ),
        (
            {"metadata": {"name": "p"}, "spec": {"priority": "high"}},
            "Pod p: spec.priority: Expected `int | null`, got `str`",
        ),
        ({"spec": {"containers": 7}}, "Pod without a name: spec.containers"),
        (
            {"metadata": {"name": "p"}, "spec": {}, "status": {"startTime": "yesterday"}},
            "Pod p: status.startTime: 'yesterday' is not a time",
        ),
    ],
)
def test_the_error_about_an_unreadable_pod_names_the_field_that_cannot_be_read(
    manifest: dict[str, Any], message: str
) -> None:
    with pytest.raises(ManifestError) as refused:
        pod_from_manifest(manifest)
    assert str(refused.value).startswith(message)


def test_the_error_about_an_unreadable_node_names_the_field_that_cannot_be_read() -> None:
    with pytest.raises(ManifestError, match=r"^Node n: status\.allocatable\.memory: 'lots' is not a quantity"):
        node_from_manifest(a_node("n").offering(memory="lots").manifest)

"""Tests the embedded API server with the official Python client: everything on which a real client relies."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

from drydock.server.testing import RunningServer
from tests.patience import growing, wait_until

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture
def core(server: RunningServer) -> Iterator[client.CoreV1Api]:
    with client.ApiClient(configuration(server)) as api_client:
        yield client.CoreV1Api(api_client)


def configuration(server: RunningServer) -> client.Configuration:
    made = client.Configuration(host=server.url)
    made.retries = False
    return made


def a_node(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def a_pod(name: str, node: str = "", **labels: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "app:1"}]}
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": spec,
    }


def a_budget(name: str, minimum: int, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": labels}},
    }


def a_daemon_set(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "agent:1"}]},
            },
        },
    }


def refusal(action: Any, *arguments: Any, **named: Any) -> tuple[int, str]:
    with pytest.raises(ApiException) as caught:
        action(*arguments, **named)
    return caught.value.status, json.loads(caught.value.body)["reason"]


def raw(
    server: RunningServer,
    method: str,
    path: str,
    body: Any = None,
    content_type: str = "application/json",
    **headers: str,
) -> tuple[int, Any, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        server.url + path, data=data, method=method, headers={"Content-Type": content_type, **headers}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read() or b"null"), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), error.headers


# Creating and reading --------------------------------------------------------------------------------------------


def test_a_created_object_gets_uid_resource_version_and_creation_time(core: client.CoreV1Api) -> None:
    first, second = core.create_node(a_node("n1")), core.create_node(a_node("n2"))
    assert first.metadata.uid
    assert first.metadata.uid != second.metadata.uid
    assert first.metadata.creation_timestamp is not None
    assert int(second.metadata.resource_version) == int(first.metadata.resource_version) + 1


def test_creating_an_existing_name_is_a_conflict(core: client.CoreV1Api) -> None:
    core.create_node(a_node("n1"))
    assert refusal(core.create_node, a_node("n1")) == (409, "AlreadyExists")


def test_pods_budgets_and_daemon_sets_are_created_with_the_servers_defaults(core: client.CoreV1Api) -> None:
    api_client = core.api_client
    core.create_node(a_node("n1"))
    bound, unbound = (
        core.create_namespaced_pod("default", a_pod("p1", "n1")),
        core.create_namespaced_pod("default", a_pod("p2")),
    )
    budget = client.PolicyV1Api(api_client).create_namespaced_pod_disruption_budget(
        "default", a_budget("b", 1, app="web")
    )
    daemons = client.AppsV1Api(api_client).create_namespaced_daemon_set("default", a_daemon_set("agent"))
    assert (bound.spec.node_name, unbound.spec.node_name) == ("n1", None)
    assert (
        bound.status.phase,
        bound.spec.termination_grace_period_seconds,
        bound.spec.scheduler_name,
        bound.spec.priority,
    ) == ("Pending", 30, "default-scheduler", 0)
    assert (budget.metadata.generation, daemons.metadata.generation, daemons.spec.update_strategy.type) == (
        1,
        1,
        "RollingUpdate",
    )


def test_reading_a_missing_object_gets_a_404(core: client.CoreV1Api) -> None:
    assert refusal(core.read_node, "nobody") == (404, "NotFound")


def test_a_created_pod_loses_its_status_and_a_created_node_keeps_it(core: client.CoreV1Api) -> None:
    pod = core.create_namespaced_pod("default", {**a_pod("p1"), "status": {"phase": "Running"}})
    node = core.create_node({**a_node("n1"), "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    assert pod.status.phase == "Pending"
    assert node.status.conditions[0].status == "True"


def test_an_object_in_a_namespace_that_does_not_exist_is_refused(core: client.CoreV1Api) -> None:
    pod = a_pod("p1")
    pod["metadata"]["namespace"] = "nowhere"
    assert refusal(core.create_namespaced_pod, "nowhere", pod) == (404, "NotFound")


def test_generate_name_creates_distinct_names(core: client.CoreV1Api) -> None:
    pod = a_pod("")
    pod["metadata"] = {"generateName": "web-"}
    names = [core.create_namespaced_pod("default", pod).metadata.name for _ in range(2)]
    assert all(name.startswith("web-") and len(name) == 9 for name in names)
    assert names[0] != names[1]


def test_a_dry_run_of_a_create_answers_normally_and_stores_nothing(core: client.CoreV1Api) -> None:
    assert core.create_node(a_node("n1"), dry_run="All").metadata.name == "n1"
    assert refusal(core.read_node, "n1") == (404, "NotFound")


# Lists -----------------------------------------------------------------------------------------------------------


def test_a_list_has_its_kind_and_a_resource_version_for_a_watch(core: client.CoreV1Api) -> None:
    core.create_node(a_node("n1"))
    nodes = core.list_node()
    assert (nodes.kind, [n.metadata.name for n in nodes.items]) == ("NodeList", ["n1"])
    assert int(nodes.metadata.resource_version) >= int(nodes.items[0].metadata.resource_version)


def test_items_of_a_list_have_no_kind_as_on_the_real_server(server: RunningServer) -> None:
    server.seed(a_node("n1"))
    _, body, _ = raw(server, "GET", "/api/v1/nodes")
    assert "kind" not in body["items"][0]
    assert "apiVersion" not in body["items"][0]
    assert raw(server, "GET", "/api/v1/nodes/n1")[1]["kind"] == "Node"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("zone=a", ["n1"]),
        ("zone!=a", ["n2", "n3"]),
        ("zone in (a,b)", ["n1", "n2"]),
        ("zone notin (a)", ["n2", "n3"]),
        ("zone", ["n1", "n2"]),
        ("!zone", ["n3"]),
        ("zone,zone!=b", ["n1"]),
    ],
)
def test_label_selectors_filter_a_list(core: client.CoreV1Api, selector: str, expected: list[str]) -> None:
    for node in (a_node("n1", zone="a"), a_node("n2", zone="b"), a_node("n3")):
        core.create_node(node)
    assert [n.metadata.name for n in core.list_node(label_selector=selector).items] == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=n1", ["p1"]),
        ("spec.nodeName=", ["p3"]),
        ("metadata.name=p2", ["p2"]),
        ("status.phase!=Pending", []),
        ("metadata.namespace=default,spec.nodeName!=n1", ["p2", "p3"]),
    ],
)
def test_field_selectors_filter_a_list(core: client.CoreV1Api, selector: str, expected: list[str]) -> None:
    for pod in (a_pod("p1", "n1"), a_pod("p2", "n2"), a_pod("p3")):
        core.create_namespaced_pod("default", pod)
    assert [p.metadata.name for p in core.list_pod_for_all_namespaces(field_selector=selector).items] == expected


def test_an_unsupported_field_selector_is_refused(core: client.CoreV1Api) -> None:
    assert refusal(core.list_node, field_selector="spec.podCIDR=x") == (400, "BadRequest")


def test_all_pages_of_a_list_show_the_state_of_the_same_resource_version(core: client.CoreV1Api) -> None:
    for name in ("n1", "n2", "n3", "n4", "n5"):
        core.create_node(a_node(name))
    first = core.list_node(limit=2)
    core.delete_node("n4")
    core.create_node(a_node("n3b"))
    rest = core.list_node(limit=10, _continue=first.metadata._continue)
    assert [n.metadata.name for n in first.items + rest.items] == ["n1", "n2", "n3", "n4", "n5"]
    assert (first.metadata.remaining_item_count, rest.metadata._continue) == (3, None)
    assert first.metadata.resource_version == rest.metadata.resource_version


def test_a_continue_token_older_than_the_history_gets_a_410(core: client.CoreV1Api, server: RunningServer) -> None:
    for name in ("n1", "n2", "n3"):
        core.create_node(a_node(name))
    token = core.list_node(limit=1).metadata._continue
    core.create_node(a_node("n4"))
    server.store.forget_history()
    assert refusal(core.list_node, limit=1, _continue=token) == (410, "Expired")


# Changing --------------------------------------------------------------------------------------------------------


def test_a_merge_patch_sets_fields_and_removes_fields_with_null(core: client.CoreV1Api) -> None:
    core.create_node(a_node("n1", keep="1", drop="1"))
    patched = core.patch_node("n1", {"metadata": {"labels": {"drop": None, "new": "1"}}}, _content_type=MERGE)
    assert patched.metadata.labels == {"keep": "1", "new": "1"}


def test_a_json_patch_whose_test_fails_changes_nothing(core: client.CoreV1Api) -> None:
    core.create_node(a_node("n1", zone="a"))
    core.patch_node("n1", [{"op": "add", "path": "/metadata/labels/x", "value": "1"}])
    assert refusal(
        core.patch_node,
        "n1",
        [
            {"op": "test", "path": "/metadata/labels/zone", "value": "b"},
            {"op": "remove", "path": "/metadata/labels/zone"},
        ],
    ) == (422, "Invalid")
    assert core.read_node("n1").metadata.labels == {"zone": "a", "x": "1"}


def test_a_strategic_merge_patch_keeps_conditions_that_it_does_not_contain(core: client.CoreV1Api) -> None:
    core.create_node(
        {
            **a_node("n1"),
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]
            },
        }
    )
    patched = core.patch_node_status("n1", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    assert {c.type: c.status for c in patched.status.conditions} == {"Ready": "False", "DiskPressure": "False"}


def test_a_strategic_merge_patch_replaces_the_whole_list_of_taints(core: client.CoreV1Api) -> None:
    core.create_node({**a_node("n1"), "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    patched = core.patch_node("n1", {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}})
    assert [t.key for t in patched.spec.taints] == ["b"]


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC])
def test_a_patch_with_an_old_resource_version_is_a_conflict(core: client.CoreV1Api, content_type: str) -> None:
    old = core.create_node(a_node("n1")).metadata.resource_version
    core.patch_node("n1", {"metadata": {"labels": {"x": "1"}}})
    stale = {"metadata": {"resourceVersion": old, "labels": {"y": "1"}}}
    assert refusal(core.patch_node, "n1", stale, _content_type=content_type) == (409, "Conflict")


def test_a_put_replaces_the_object_and_a_stale_put_is_a_conflict(core: client.CoreV1Api) -> None:
    first = core.create_node(a_node("n1", zone="a", disk="ssd")).metadata.resource_version
    body = a_node("n1", zone="b")
    body["metadata"]["resourceVersion"] = first
    assert core.replace_node("n1", body).metadata.labels == {"zone": "b"}
    assert refusal(core.replace_node, "n1", body) == (409, "Conflict")


def test_a_patch_that_changes_nothing_keeps_the_resource_version(core: client.CoreV1Api) -> None:
    first = core.create_node(a_node("n1")).metadata.resource_version
    second = core.patch_node("n1", {"metadata": {"labels": {"x": "1"}}}).metadata.resource_version
    third = core.patch_node("n1", {"metadata": {"labels": {"x": "1"}}}).metadata.resource_version
    assert first != second == third


def test_the_status_changes_only_through_the_status_subresource(core: client.CoreV1Api) -> None:
    core.create_node(a_node("n1"))
    core.patch_node_status("n1", {"status": {"phase": "true"}, "spec": {"unschedulable": True}}, _content_type=MERGE)
    core.patch_node("n1", {"status": {"phase": "a lie"}, "metadata": {"labels": {"x": "1"}}}, _content_type=MERGE)
    node = core.read_node("n1")
    assert (node.status.phase, node.spec.unschedulable, node.metadata.labels) == ("true", None, {"x": "1"})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"labels": {"x": "two words"}}}, "metadata.labels"),
        ({"metadata": {"labels": {"x": 1}}}, "metadata.labels"),
        ({"metadata": {"annotations": {"x": {"no": "string"}}}}, "metadata.annotations[x]"),
        (
            {
                "spec": {
                    "taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "v"}]
                }
            },
            "spec.taints[1]",
        ),
        ({"spec": {"taints": [{"key": "a", "effect": "Sometimes"}]}}, "spec.taints[0].effect"),
    ],
)
def test_the_refusal_of_an_invalid_object_contains_the_path_of_the_field(
    server: RunningServer, change: dict[str, Any], field: str
) -> None:
    server.seed(a_node("n1"))
    code, body, _ = raw(server, "PATCH", "/api/v1/nodes/n1", change, MERGE)
    assert (code, body["details"]["causes"][0]["field"]) == (422, field)


def test_an_update_cannot_move_a_bound_pod_to_another_node(server: RunningServer) -> None:
    server.seed(a_pod("p1", "n1"))
    code, body, _ = raw(server, "PATCH", "/api/v1/namespaces/default/pods/p1", {"spec": {"nodeName": "n2"}}, MERGE)
    assert (code, body["details"]["causes"][0]["field"]) == (422, "spec.nodeName")


def test_only_a_change_of_the_spec_increases_the_generation(core: client.CoreV1Api) -> None:
    apps = client.AppsV1Api(core.api_client)
    apps.create_namespaced_daemon_set("default", a_daemon_set("agent"))
    labelled = apps.patch_namespaced_daemon_set("agent", "default", {"metadata": {"annotations": {"lock": "x"}}})
    respecified = apps.patch_namespaced_daemon_set("agent", "default", {"spec": {"minReadySeconds": 5}})
    assert (labelled.metadata.generation, respecified.metadata.generation) == (1, 2)


def test_twelve_concurrent_writers_get_the_lock_one_at_a_time(server: RunningServer) -> None:
    """Each writer replaces the DaemonSet and sends the resourceVersion that it has read. If the version is old, the
    server answers with a conflict. The correctness of careen's lock depends on these conflicts.
    """
    server.seed(a_daemon_set("agent"))
    path = "/apis/apps/v1/namespaces/default/daemonsets/agent"
    inside: list[str] = []
    most: list[int] = []

    def contend(name: str) -> None:
        while True:
            _, found, _ = raw(server, "GET", path)
            if found["metadata"].get("annotations", {}).get("lock"):
                time.sleep(0.002)
                continue
            found["metadata"].setdefault("annotations", {})["lock"] = name
            code, held, _ = raw(server, "PUT", path, found)
            if code == 409:
                continue
            inside.append(name)
            most.append(len(inside))
            inside.remove(name)
            held["metadata"]["annotations"]["lock"] = ""
            assert raw(server, "PUT", path, held)[0] == 200
            return

    threads = [threading.Thread(target=contend, args=(f"c{i}",)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 12


# Pods: evictions, bindings, deletion -----------------------------------------------------------------------------


def evict(core: client.CoreV1Api, name: str, **options: Any) -> None:
    body = client.V1Eviction(
        metadata=client.V1ObjectMeta(name=name, namespace="default"), delete_options=client.V1DeleteOptions(**options)
    )
    core.create_namespaced_pod_eviction(name, "default", body)


def running_pod(name: str, node: str = "n1", **labels: str) -> dict[str, Any]:
    return {
        **a_pod(name, node, **labels),
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def test_an_evicted_pod_is_removed_when_its_kubelet_confirms_its_end(
    core: client.CoreV1Api, server: RunningServer
) -> None:
    server.seed(running_pod("p1"))
    evict(core, "p1")
    wait_until(lambda: server.get("pods", "p1") is None)


def test_an_eviction_that_a_budget_refuses_gets_a_429_with_the_cause(
    core: client.CoreV1Api, server: RunningServer
) -> None:
    server.seed(
        running_pod("p1", app="web"),
        {
            **a_budget("web", 1, app="web"),
            "status": {"disruptionsAllowed": 0, "desiredHealthy": 1, "currentHealthy": 1},
        },
    )
    with pytest.raises(ApiException) as caught:
        evict(core, "p1")
    body = json.loads(caught.value.body)
    assert (caught.value.status, body["reason"], caught.value.headers.get("Retry-After")) == (
        429,
        "TooManyRequests",
        None,
    )
    assert body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert body["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": "The disruption budget web needs 1 healthy pods and has 1 currently"}
    ]


def test_an_eviction_under_a_budget_without_status_gets_a_429_with_retry_after(
    core: client.CoreV1Api, server: RunningServer
) -> None:
    server.seed(running_pod("p1", app="web"))
    client.PolicyV1Api(core.api_client).create_namespaced_pod_disruption_budget(
        "default", a_budget("web", 1, app="web")
    )
    with pytest.raises(ApiException) as caught:
        evict(core, "p1")
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (429, "10")


def test_an_eviction_with_another_uid_evicts_nothing(core: client.CoreV1Api, server: RunningServer) -> None:
    server.seed(running_pod("p1"))
    with pytest.raises(ApiException) as caught:
        evict(core, "p1", preconditions=client.V1Preconditions(uid="another"))
    assert caught.value.status == 409
    assert "deletionTimestamp" not in (server.get("pods", "p1") or {})["metadata"]


def test_a_dry_run_eviction_checks_the_budget_and_changes_nothing(
    core: client.CoreV1Api, server: RunningServer
) -> None:
    status = {"disruptionsAllowed": 1, "desiredHealthy": 1, "currentHealthy": 2, "expectedPods": 2}
    server.seed(running_pod("p1", app="web"), {**a_budget("web", 1, app="web"), "status": status})
    before = server.store.version
    evict(core, "p1", dry_run=["All"])
    assert server.store.version == before
    assert (server.get("poddisruptionbudgets", "web") or {})["status"] == status


def test_a_pod_deleted_with_grace_period_zero_is_removed_without_its_kubelet() -> None:
    from drydock.server.testing import server_in_thread

    with server_in_thread(pod_stop_seconds=None) as server, client.ApiClient(configuration(server)) as api_client:
        core = client.CoreV1Api(api_client)
        server.seed(running_pod("p1"))
        going = core.delete_namespaced_pod("p1", "default", grace_period_seconds=7)
        assert (going.metadata.deletion_grace_period_seconds, going.metadata.deletion_timestamp is not None) == (
            7,
            True,
        )
        core.delete_namespaced_pod("p1", "default", grace_period_seconds=0)
        assert refusal(core.read_namespaced_pod, "p1", "default") == (404, "NotFound")


def test_a_pod_can_be_bound_only_once(core: client.CoreV1Api, server: RunningServer) -> None:
    core.create_namespaced_pod("default", a_pod("p1"))
    path = "/api/v1/namespaces/default/pods/p1/binding"
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p1"}, "target": {"kind": "Node", "name": "n1"}}
    assert raw(server, "POST", path, body)[0] == 201
    assert core.read_namespaced_pod("p1", "default").spec.node_name == "n1"
    assert raw(server, "POST", path, body)[0] == 409


def test_an_object_stays_until_its_finalizer_is_removed(core: client.CoreV1Api) -> None:
    node = a_node("n1")
    node["metadata"]["finalizers"] = ["example.com/wait"]
    core.create_node(node)
    core.delete_node("n1")
    assert core.read_node("n1").metadata.deletion_timestamp is not None
    core.patch_node("n1", {"metadata": {"finalizers": None}}, _content_type=MERGE)
    assert refusal(core.read_node, "n1") == (404, "NotFound")


def test_a_delete_with_the_uid_of_an_older_object_deletes_nothing(core: client.CoreV1Api) -> None:
    core.create_node(a_node("n1"))
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="its predecessor"))
    assert refusal(core.delete_node, "n1", body=options) == (409, "Conflict")
    core.delete_node("n1")
    assert refusal(core.read_node, "n1") == (404, "NotFound")


def test_an_event_of_one_api_group_can_be_read_in_the_other_group(
    core: client.CoreV1Api, server: RunningServer
) -> None:
    event = {
        "metadata": {"name": "e1", "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": "n1"},
        "reason": "Rebooting",
        "message": "now",
        "type": "Normal",
    }
    core.create_namespaced_event("default", event)
    _, body, _ = raw(server, "GET", "/apis/events.k8s.io/v1/namespaces/default/events/e1")
    assert (body["apiVersion"], body["note"], body["regarding"]["name"]) == ("events.k8s.io/v1", "now", "n1")
    assert (
        raw(server, "POST", "/apis/events.k8s.io/v1/namespaces/default/events", {**body, "metadata": {"name": "e2"}})[0]
        == 201
    )
    assert core.read_namespaced_event("e2", "default").message == "now"


def test_the_scale_subresource_reads_and_writes_the_replica_count(core: client.CoreV1Api) -> None:
    apps = client.AppsV1Api(core.api_client)
    workload = a_daemon_set("web")
    apps.create_namespaced_deployment("default", {**workload, "kind": "Deployment"})
    apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 4}})
    assert (
        apps.read_namespaced_deployment_scale("web", "default").spec.replicas,
        apps.read_namespaced_deployment("web", "default").spec.replicas,
    ) == (4, 4)


# Watches ---------------------------------------------------------------------------------------------------------


def watched(core: client.CoreV1Api, count: int, **options: Any) -> list[tuple[str, str]]:
    stream = watch.Watch()
    seen = []
    for event in stream.stream(core.list_node, timeout_seconds=3000, _request_timeout=3000, **options):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == count:
            stream.stop()
    return seen


def test_a_watch_without_a_resource_version_sends_existing_objects_first(core: client.CoreV1Api) -> None:
    core.create_node(a_node("n1"))
    threading.Timer(0.1, lambda: core.patch_node("n1", {"metadata": {"labels": {"x": "1"}}})).start()
    assert watched(core, 2) == [("ADDED", "n1"), ("MODIFIED", "n1")]


def test_a_watch_resumes_after_the_given_resource_version(core: client.CoreV1Api) -> None:
    core.create_node(a_node("n1"))
    version = core.list_node().metadata.resource_version
    core.create_node(a_node("n2"))
    core.delete_node("n1")
    assert watched(core, 2, resource_version=version) == [("ADDED", "n2"), ("DELETED", "n1")]


def test_a_watch_reports_a_deletion_if_an_object_no_longer_matches_the_selector(core: client.CoreV1Api) -> None:
    version = core.list_node().metadata.resource_version
    core.create_node(a_node("n1", zone="a"))
    core.create_node(a_node("n2", zone="a"))
    core.patch_node("n2", {"metadata": {"labels": {"zone": "b"}}})
    core.patch_node("n1", {"metadata": {"labels": {"zone": "b"}}})
    assert watched(core, 1, resource_version=version, field_selector="metadata.name=n2") == [("ADDED", "n2")]
    assert watched(core, 4, resource_version=version, label_selector="zone=a") == [
        ("ADDED", "n1"),
        ("ADDED", "n2"),
        ("DELETED", "n2"),
        ("DELETED", "n1"),
    ]


def lines_of_watch(server: RunningServer, query: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{server.url}/api/v1/nodes?watch=true&{query}") as answer:
        return [json.loads(line) for line in answer]


def test_a_watch_ends_at_its_timeout_with_a_bookmark(server: RunningServer) -> None:
    server.seed(a_node("n1"))
    for seconds in growing(1):
        lines = lines_of_watch(
            server, f"timeoutSeconds={seconds:.0f}&allowWatchBookmarks=true&resourceVersion={server.store.version}"
        )
        if len(lines) >= 3:
            break
    assert {line["type"] for line in lines} == {"BOOKMARK"}
    assert len(lines) >= 3
    assert lines[-1]["object"]["metadata"]["resourceVersion"] == str(server.store.version)


def test_a_watch_from_a_forgotten_resource_version_gets_a_410_event(server: RunningServer) -> None:
    server.seed(a_node("n1"), a_node("n2"))
    server.store.forget_history()
    (line,) = lines_of_watch(server, "resourceVersion=1")
    assert (line["type"], line["object"]["code"], line["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_a_streaming_list_ends_with_an_annotated_bookmark(server: RunningServer) -> None:
    server.seed(a_node("n1"))
    lines = lines_of_watch(
        server, "sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersionMatch=NotOlderThan"
    )
    assert [line["type"] for line in lines[:2]] == ["ADDED", "BOOKMARK"]
    assert lines[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


# Discovery, rights and other responses ---------------------------------------------------------------------------


def test_discovery_lists_all_kinds_and_the_eviction_subresource(server: RunningServer) -> None:
    assert raw(server, "GET", "/api")[1]["versions"] == ["v1"]
    assert "apps" in [g["name"] for g in raw(server, "GET", "/apis")[1]["groups"]]
    rows = {r["name"]: r for r in raw(server, "GET", "/api/v1")[1]["resources"]}
    assert (rows["nodes"]["namespaced"], rows["pods/eviction"]["kind"], rows["pods/eviction"]["group"]) == (
        False,
        "Eviction",
        "policy",
    )
    assert raw(server, "GET", "/version")[1]["major"] == "1"


def test_access_reviews_and_requests_are_decided_by_the_users_rights(server: RunningServer) -> None:
    server.api.authorizer = lambda user, verb, _group, resource, _namespace, _name: (
        (user, verb, resource) != ("agent", "list", "nodes")
    )
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "list", "resource": "nodes"}},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert raw(server, "POST", path, review, Authorization="Bearer agent")[1]["status"]["allowed"] is False
    assert raw(server, "POST", path, review, Authorization="Bearer person")[1]["status"]["allowed"] is True
    code, body, _ = raw(server, "GET", "/api/v1/nodes", Authorization="Bearer agent")
    assert (code, body["message"]) == (
        403,
        'nodes is forbidden: User "agent" cannot list resource "nodes" in API group "" at the cluster scope',
    )


def test_unknown_tokens_are_refused_if_the_server_has_a_list_of_tokens(server: RunningServer) -> None:
    server.api.users = {"s3cret": "admin"}
    assert raw(server, "GET", "/api/v1/nodes", Authorization="Bearer s3cret")[0] == 200
    assert raw(server, "GET", "/api/v1/nodes", Authorization="Bearer other")[0] == 401


def test_responses_contain_the_date_of_the_servers_clock_even_if_the_clock_is_wrong(server: RunningServer) -> None:
    right = parsedate_to_datetime(raw(server, "GET", "/api/v1/nodes")[2]["Date"])
    server.api.date_offset = timedelta(days=10)
    wrong = parsedate_to_datetime(raw(server, "GET", "/api/v1/nodes/nobody")[2]["Date"])
    assert timedelta(days=9) < wrong - right < timedelta(days=11)


@pytest.mark.parametrize(
    "path", ["/api/v1/unicorns", "/apis/apps/v2/deployments", "/api/v1/nodes/n1/unknown", "/nothing"]
)
def test_an_unknown_path_gets_a_404(server: RunningServer, path: str) -> None:
    assert raw(server, "GET", path)[0] == 404


def test_each_entry_of_the_audit_log_has_the_user_the_request_and_the_status_code(server: RunningServer) -> None:
    server.seed(a_node("n1"))
    raw(server, "PATCH", "/api/v1/nodes/n1/status?dryRun=All", {}, MERGE, Authorization="Bearer agent-n1")
    raw(server, "GET", "/api/v1/nodes/n2")
    wrote, read = server.api.requests
    assert (wrote.user, wrote.verb, wrote.resource, wrote.subresource, wrote.name, wrote.code, wrote.dry_run) == (
        "agent-n1",
        "patch",
        "nodes",
        "status",
        "n1",
        200,
        True,
    )
    assert (read.user, read.verb, read.name, read.code) == ("system:anonymous", "get", "n2", 404)


def test_an_api_server_that_is_down_closes_connections(server: RunningServer) -> None:
    server.api.is_down = True
    with pytest.raises((ConnectionError, urllib.error.URLError)):
        raw(server, "GET", "/api/v1/nodes")
    server.api.is_down = False
    assert raw(server, "GET", "/api/v1/nodes")[0] == 200


def test_kubectl_gets_a_table_if_it_requests_a_table(server: RunningServer) -> None:
    server.seed(
        {
            **a_node("n1"),
            "spec": {"unschedulable": True},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.36.0"}},
        }
    )
    _, table, _ = raw(
        server, "GET", "/api/v1/nodes", Accept="application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    )
    assert (table["kind"], [c["name"] for c in table["columnDefinitions"] if not c["priority"]]) == (
        "Table",
        ["Name", "Status", "Roles", "Age", "Version"],
    )
    assert table["rows"][0]["cells"][:3] == ["n1", "Ready,SchedulingDisabled", "<none>"]

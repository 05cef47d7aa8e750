"""Tests that a response with status 200 and without content is an error for each read and each write. Such a response
is never read as an empty cluster."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.cluster import access, objects
from careen.cluster.foreign import DAEMONSETS, find_foreign
from careen.cluster.lock_store import LockStore
from careen.cluster.nodes import list_nodes, patch_node, read_node
from careen.cluster.pods import list_pods_on, places_of, read_controller
from careen.cluster.snapshot_reader import ALWAYS, DEVICE_VERSIONS, DEVICES, VOLUMES, server_version
from careen.cluster.whole_cluster import read_cluster
from careen.cluster.wire.answers import KINDS, RequestedObject, asked_for, is_evicted, the_object, the_page, the_review
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError, UnreadableAnswer
from careen.cluster.wire.writes import StillUnclear
from careen.core.actions import PatchNode, WriteLock
from drydock.server.kinds.resources import resource_named
from tests.careen.virtual_shell import START, Scripted, a_list, an_object, answer, api_on

CONFIG_MAP = "/api/v1/namespaces/careen/configmaps/careen"
NOTHING: dict[str, Any] = {
    "an empty object": {},
    "a Status": {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 200},
    "no items": {"items": None},
    "a login": {"error": "login_required", "data": {}, "status": {"allowed": True}},
    "a page": b"<html>please log in</html>",
}


def lock(api: ClusterApi) -> LockStore:
    return LockStore(api, namespace="careen", name="careen", annotation="lock")


READERS: dict[str, Callable[[ClusterApi], Awaitable[object]]] = {
    "a Node": lambda api: read_node(api, "n1"),
    "all Nodes": list_nodes,
    "the waiting Nodes": lambda api: list_nodes(api, reboot_label=("ready",)),
    "the node's pods": lambda api: list_pods_on(api, "n1"),
    "the lock": lambda api: lock(api).read(),
    "the settings": lambda api: api.get(CONFIG_MAP, objects.ConfigMap),
    "a pod's controller": lambda api: read_controller(api, "shop", "a"),
    "where pods landed": lambda api: places_of(api, "shop", ["u1"], since=START),
    "other coordinators": lambda api: find_foreign(api, namespace="careen", name="careen"),
    "our rights": lambda api: access.missing_rights(api, access.FORECAST_RIGHTS),
    "the lists for a forecast": read_cluster,
    "the server's release": server_version,
}


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING.keys())
@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
async def test_a_read_whose_answer_is_not_the_object_raises_an_error(
    read: Callable[[ClusterApi], Awaitable[object]], nothing: Any
) -> None:
    with pytest.raises(UnreadableAnswer):
        await read(api_on(Scripted(*[answer(200, nothing)] * 50)))


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING.keys())
async def test_the_outcome_of_a_node_patch_with_an_unusable_answer_is_unclear(nothing: Any) -> None:
    server = Scripted(*[answer(200, nothing)] * 50)
    assert isinstance(
        await patch_node(api_on(server), "n1", PatchNode(purpose="", resource_version="5", taints=())), StillUnclear
    )
    assert [request.method for request in server.asked].count("PATCH") == 1


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING.keys())
async def test_the_outcome_of_a_lock_write_with_an_unusable_answer_is_unclear(nothing: Any) -> None:
    server = Scripted(*[answer(200, nothing)] * 50)
    wanted = WriteLock(purpose="", content=None, expected_resource_version="5", daemonset_uid="u")
    assert isinstance(await lock(api_on(server)).write(wanted), StillUnclear)
    assert [request.method for request in server.asked].count("PATCH") == 1


async def test_a_list_of_waiting_nodes_that_contains_an_idle_node_raises_an_error() -> None:
    waits, idle = (
        {"metadata": {"name": name, "labels": labels}}
        for name, labels in (("n1", {"careen.dev/reboot": "ready"}), ("n2", {}))
    )
    with pytest.raises(UnreadableAnswer, match="Node n2"):
        await list_nodes(api_on(Scripted(answer(200, a_list("Node", waits, idle)))), reboot_label=("ready",))


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/api/v1/nodes", RequestedObject("v1", "Node", "", "")),
        ("/api/v1/nodes/n%2F1", RequestedObject("v1", "Node", "", "n/1")),
        ("/api/v1/namespaces", RequestedObject("v1", "Namespace", "", "")),
        ("/api/v1/namespaces/shop", RequestedObject("v1", "Namespace", "", "shop")),
        ("/api/v1/namespaces/shop/pods/a", RequestedObject("v1", "Pod", "shop", "a")),
        (
            "/apis/apps/v1/namespaces/careen/daemonsets/careen",
            RequestedObject("apps/v1", "DaemonSet", "careen", "careen"),
        ),
    ],
)
def test_the_path_of_a_request_determines_the_kind_of_its_answer(path: str, asked: RequestedObject) -> None:
    assert asked_for(path) == asked


@pytest.mark.parametrize(
    "path",
    [
        *ALWAYS,
        *VOLUMES,
        DAEMONSETS,
        access.RULES,
        access.REVIEWS,
        *(each.format(version=version) for each in DEVICES for version in DEVICE_VERSIONS),
    ],
)
def test_every_path_that_careen_requests_has_an_expected_kind_of_answer(path: str) -> None:
    assert asked_for(path).kind


@pytest.mark.parametrize(
    ("plural", "kind"), [(plural, kind) for plural, kind in KINDS.items() if not plural.startswith("selfsubject")]
)
def test_the_expected_kind_of_each_resource_equals_the_kind_in_the_api_server(plural: str, kind: str) -> None:
    assert resource_named(plural).kind == kind


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["Node", "NodeList", "Status", "Success", "n1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "kind",
                    "apiVersion",
                    "metadata",
                    "name",
                    "uid",
                    "resourceVersion",
                    "items",
                    "continue",
                    "status",
                    "code",
                ]
            )
            | st.text(max_size=5),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


# In the name of this test, an answer is the body of a response of the API server. Each of the four functions below
# either accepts the body or raises `UnreadableAnswer`. No body causes another error. An answer is called unclear if a
# function raises `UnreadableAnswer`, because the answer does not show whether the server carried out the request.
@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")))
def test_any_answer_is_either_accepted_or_unclear(body: bytes) -> None:
    for believe in (
        lambda: the_object(body, "/api/v1/nodes/n1", objects.ManagedNode, ""),
        lambda: the_page(body, "/api/v1/nodes", ""),
        lambda: the_review(body, access.REVIEWS, objects.ObjectHead, ""),
        lambda: is_evicted(body, ""),
    ):
        try:
            believe()
        except ClusterError as error:
            assert isinstance(error, UnreadableAnswer)  # noqa: PT017 - either outcome is right


def test_a_complete_node_is_an_accepted_answer() -> None:
    body = json.dumps(an_object("Node", "n1", apiVersion="v1", spec={"unschedulable": True})).encode()
    assert the_object(body, "/api/v1/nodes/n1", objects.ManagedNode, "").spec.unschedulable


META = {"name": "x", "namespace": "careen", "uid": "u", "resourceVersion": "5"}
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
COUNTS = {"desiredNumberScheduled": 1, "currentNumberScheduled": 1, "numberMisscheduled": 0}
NODE = {
    "kind": "Node",
    "metadata": {
        **META,
        "ownerReferences": [{"kind": "A", "name": "b", "uid": "c"}],
    },
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
POD = {"kind": "Pod", "metadata": META, "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
DAEMONSET = {"kind": "DaemonSet", "metadata": META, "spec": {"template": TEMPLATE}, "status": COUNTS}
REPLICAS = {"kind": "ReplicaSet", "metadata": META, "spec": {"template": {"spec": {}}}, "status": {}}
WHOLE: dict[str, tuple[str, type[Any], dict[str, Any], list[str]]] = {
    "a Node": (
        "/api/v1/nodes/x",
        objects.ManagedNode,
        NODE,
        [
            "metadata",
            "spec",
            "status",
            "metadata.name",
            "metadata.uid",
            "metadata.resourceVersion",
            "metadata.ownerReferences.0.uid",
            "spec.taints.0.key",
            "spec.taints.0.effect",
            "status.conditions.0.type",
            "status.conditions.0.status",
        ],
    ),
    "a Pod": (
        "/api/v1/namespaces/careen/pods/x",
        objects.ManagedPod,
        POD,
        ["spec", "status", "metadata.namespace", "status.conditions.0.status"],
    ),
    "a DaemonSet": (
        "/apis/apps/v1/namespaces/careen/daemonsets/x",
        objects.DaemonSet,
        DAEMONSET,
        ["spec", "spec.template", "spec.template.spec", "spec.template.spec.containers", "status"]
        + [f"status.{name}" for name in COUNTS],
    ),
    "the lock": (
        "/apis/apps/v1/namespaces/careen/daemonsets/x",
        objects.LockObject,
        DAEMONSET,
        ["metadata.uid", "status", "status.desiredNumberScheduled"],
    ),
    "a workload": (
        "/apis/apps/v1/namespaces/careen/replicasets/x",
        objects.Workload,
        REPLICAS,
        ["spec", "spec.template.spec", "status"],
    ),
    "the settings": (
        "/api/v1/namespaces/careen/configmaps/x",
        objects.ConfigMap,
        {"kind": "ConfigMap", "metadata": META},
        ["metadata.name"],
    ),
}


def without(value: Any, path: str) -> Any:
    """Return a copy of the object without the field at this path."""
    first, _, rest = path.partition(".")
    if isinstance(value, list):
        return [without(each, rest) if place == int(first) else each for place, each in enumerate(value)]
    if rest:
        return {**value, first: without(value[first], rest)}
    return {key: each for key, each in value.items() if key != first}


def test_a_copy_without_one_field_keeps_all_other_fields() -> None:
    assert without({"a": [{"b": 1, "c": 2}]}, "a.0.b") == {"a": [{"c": 2}]}


@pytest.mark.parametrize(("path", "kind", "whole", "_needed"), WHOLE.values(), ids=WHOLE.keys())
def test_an_answer_with_every_required_field_is_accepted(
    path: str, kind: type[Any], whole: dict[str, Any], _needed: list[str]
) -> None:
    assert the_object(json.dumps(whole).encode(), path, kind, "").metadata.uid == "u"


@pytest.mark.parametrize(("what", "field"), [(what, field) for what, (*_, needed) in WHOLE.items() for field in needed])
def test_an_answer_without_a_required_field_raises_an_error(what: str, field: str) -> None:
    path, kind, whole, _ = WHOLE[what]
    with pytest.raises(UnreadableAnswer):
        the_object(json.dumps(without(whole, field)).encode(), path, kind, "")


@pytest.mark.parametrize("field", ["spec", "status"])
async def test_a_list_with_one_incomplete_item_raises_an_error(field: str) -> None:
    """For example, a proxy has removed the spec of one Node. Without the error, this Node would seem to have no taints
    and no cordon."""
    page = a_list("Node", {"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}})
    page["items"][1] = without(page["items"][1], field)
    with pytest.raises(UnreadableAnswer):
        await list_nodes(api_on(Scripted(*[answer(200, page)] * 50)))

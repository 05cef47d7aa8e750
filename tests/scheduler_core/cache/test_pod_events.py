"""An event of a pod as text, which the cache reads in another way, says what the same event says as a mapping."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler_core import ClusterCache
from scheduler_core.testing.builders import a_node, a_pod

Json = dict[str, Any]
GOOD: Json = a_pod("web").manifest
CONTAINER = GOOD["spec"]["containers"][0]


def pod(spec: Any = None, name: str = "web", **parts: Any) -> Json:
    meta = {**GOOD["metadata"], "name": name, "uid": name, "resourceVersion": "7"}
    spec = {**GOOD["spec"], "nodeName": "n1"} if spec is None else spec
    return {**GOOD, "metadata": meta, "spec": spec, "status": {"phase": "Running"}, **parts}


def state_of(*events: Any) -> Any:
    cache = ClusterCache()
    cache.apply({"type": "ADDED", "object": a_node("n1").manifest})
    for event in events:
        cache.apply(event)
    snapshot = cache.snapshot()
    pods = sorted((*snapshot.placed_pods, *snapshot.pending, *snapshot.orphans), key=lambda each: each.key)
    told = [(each.key, each.uid, each.node_name, each.phase, dict(each.labels), each.spec.containers) for each in pods]
    return (
        told,
        [(each.key, each.field, each.problem) for each in snapshot.problems],
        cache.version("Pod", "default/web"),
    )


@pytest.mark.parametrize(
    "manifest",
    [
        pod(),
        pod({}),
        pod({"nodeName": ""}),
        pod({"containers": [], "nodeName": "n1", "nodeSelector": {"nodeName": "elsewhere"}}),
        pod({"containers": [], "affinity": {"nodeName": "n2"}}),
        pod({"nodeName": 'n"1'}),
        pod({"nodeName": "n\\1"}),
        pod({"nodeName": 1}),
        pod({"containers": "none"}),
        pod({"containers": [{**CONTAINER, "name": 5}]}),
        pod({"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "much"}}}]}),
        pod(name=""),
        pod(status={"phase": "Running", "startTime": "yesterday"}),
        pod(status={"phase": 3}),
        pod(kind="Podling"),
        pod(apiVersion="metrics.k8s.io/v1beta1"),
        {**pod(), "spec": None},
    ],
)
def test_an_event_as_text_says_the_same_as_the_mapping(manifest: Json) -> None:
    other = {**pod(name="other"), "spec": manifest["spec"]}
    events = [{"type": "ADDED", "object": each} for each in (manifest, other, manifest)]
    lines = [json.dumps(each, separators=(",", ":")).encode() for each in events]
    assert state_of(*lines) == state_of(*events)


def test_pods_of_one_template_share_their_spec_although_they_are_on_different_nodes() -> None:
    cache = ClusterCache()
    for number, spec in enumerate(({"nodeName": "n1"}, {"nodeName": "n2"}, {})):
        event = {"type": "ADDED", "object": pod({**GOOD["spec"], **spec}, f"p{number}")}
        cache.apply(json.dumps(event, separators=(",", ":")).encode())
    one, two, three = (cache.find("Pod", f"default/p{number}") for number in range(3))
    assert one.spec is two.spec is three.spec
    assert [each.node_name for each in (one, two, three)] == ["n1", "n2", ""]

"""Tests which pods a workload creates, and that default spreading counts them together."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from scheduler_core import Scheduler, load_objects
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.workload_from_manifest import workload_from_manifest
from scheduler_core.testing.builders import a_node, manifests

Json = dict[str, Any]
POD: Json = {
    "metadata": {"labels": {"app": "s"}},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}}]},
}


def workload(kind: str, **spec: Any) -> Json:
    return {"kind": kind, "metadata": {"name": "s", "namespace": "d"}, "spec": {"template": POD, **spec}}


@pytest.mark.parametrize(
    ("manifest", "owner", "number"),
    [
        (workload("Deployment", replicas=3), "ReplicaSet", 3),
        (workload("StatefulSet", replicas=2), "StatefulSet", 2),
        (workload("DaemonSet"), "DaemonSet", 1),
        (workload("Job", parallelism=4), "Job", 4),
        ({**workload("CronJob"), "spec": {"jobTemplate": {"spec": {"template": POD, "parallelism": 2}}}}, "Job", 2),
    ],
    ids=["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"],
)
def test_the_pods_of_a_workload_have_its_controller(manifest: Json, owner: str, number: int) -> None:
    pods = workload_from_manifest(manifest).pods
    assert [pod.key for pod in pods] == [f"d/s-{each}" for each in range(number)]
    assert {pod.owner.kind for pod in pods if pod.owner} == {owner}


def test_a_deployment_spreads_as_its_real_pods_would() -> None:
    zones = [
        a_node(name).in_zone(name[-1]).offering(cpu=cpu, memory="64Gi")
        for name, cpu in (("n-a", "64"), ("n-b", "16"), ("n-c", "16"))
    ]
    made = workload_from_manifest(workload("Deployment", replicas=12, selector={"matchLabels": {"app": "s"}}))
    snapshot, landed = load_objects([*manifests(*zones), *made.objects]), Counter[str | None]()
    for pod in made.pods:
        node = Scheduler().schedule(snapshot, pod).node
        landed[node] += 1
        snapshot = snapshot.with_pod_placed(pod, node or "")
    assert landed == {"n-a": 4, "n-b": 4, "n-c": 4}


def test_another_kind_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"expected one of .* got 'Service'"):
        workload_from_manifest({"kind": "Service", "metadata": {"name": "s"}})

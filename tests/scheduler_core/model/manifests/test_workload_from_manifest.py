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


def test_a_missing_selector_selects_the_pods_of_the_template() -> None:
    (controller,) = workload_from_manifest(workload("Deployment")).objects
    assert controller["spec"]["selector"] == {"matchLabels": {"app": "s"}}


def test_each_pod_of_a_stateful_set_gets_its_own_claim() -> None:
    templates = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}]
    made = workload_from_manifest(workload("StatefulSet", replicas=2, volumeClaimTemplates=templates))
    assert [[volume.claim_name for volume in pod.spec.volumes] for pod in made.pods] == [["data-s-0"], ["data-s-1"]]
    assert [pod.labels["statefulset.kubernetes.io/pod-name"] for pod in made.pods] == ["s-0", "s-1"]
    assert [each["metadata"]["name"] for each in made.objects] == ["s", "data-s-0", "data-s-1"]
    assert load_objects(made.objects).problems == ()


def test_a_job_runs_no_more_pods_than_it_must_complete() -> None:
    assert len(workload_from_manifest(workload("Job", parallelism=5, completions=3)).pods) == 3


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        (workload("Deployment", replicas="3"), "Deployment d/s: spec.replicas: Expected `int | null`, got `str`"),
        (workload("Deployment", replicas=-1), "Deployment d/s: spec.replicas: -1 is no number of pods: expected 0 to"),
        (workload("Deployment", replica=3), "Deployment d/s: spec.replica: no release from 1.32 to 1.37 has this"),
        (workload("Deployment", template=None), "Deployment d/s: spec.template: a workload needs a template of its"),
        ({**workload("Job"), "spec": [1]}, "Job d/s: spec: Expected `object | null`, got `array`"),
        ({**workload("Job"), "apiVersion": "v1"}, "Job d/s: apiVersion: 'v1' has no Job: expected 'batch/v1'"),
        ({"kind": "Job", "spec": {}}, "Job without a name: metadata.name: an object needs a name"),
        (
            workload("StatefulSet", selector={"matchLabels": {"app": "x"}}),
            "StatefulSet d/s: spec.selector: does not match the labels of the template: {'app': 's'}",
        ),
        (
            {
                **workload("CronJob"),
                "spec": {
                    "jobTemplate": {
                        "spec": {"template": {"spec": {"containers": [{"name": "c"}], "overhead": {"cpu": "x"}}}}
                    }
                },
            },
            "CronJob d/s: spec.jobTemplate.spec.template.spec.overhead.cpu: 'x' is not a quantity",
        ),
    ],
)
def test_the_error_about_a_malformed_workload_names_the_field(manifest: Json, told: str) -> None:
    with pytest.raises(ManifestError) as refused:
        workload_from_manifest(manifest)
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize("count", [-1, True, 2.0, "3", 10**9])
def test_a_count_that_is_no_number_of_pods_is_refused(count: Any) -> None:
    with pytest.raises(ValueError, match="expected a whole number from 0 to 150000"):
        workload_from_manifest(workload("Job"), count=count)


def test_another_kind_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"expected one of .* got 'Service'"):
        workload_from_manifest({"kind": "Service", "metadata": {"name": "s"}})

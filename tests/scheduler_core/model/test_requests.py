from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.model.manifests.from_manifest import pod_from_manifest
from scheduler_core.model.pod import Pod
from scheduler_core.model.requests import (
    CURRENT_RULES,
    RequestRules,
    Requests,
    incoming_requests,
    running_requests,
    scored_requests,
)
from scheduler_core.model.resources import is_counted, is_extended, is_scalar

MI = 2**20


def container(name: str = "c", cpu: str | None = None, memory: str | None = None, **more: Any) -> dict[str, Any]:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    return {"name": name, "resources": {"requests": {**requests, **more.pop("also", {})}}, **more}


def pod(
    *containers: dict[str, Any],
    init: list[dict[str, Any]] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    return pod_from_manifest(
        {
            "metadata": {"name": "p"},
            "spec": {"containers": list(containers), "initContainers": init or [], **spec},
            "status": status or {},
        }
    )


def cpu_and_memory(requests: Requests) -> tuple[int, int]:
    return requests.cpu, requests.memory // MI


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (pod(container(cpu="100m", memory="1Mi"), container("d", cpu="200m", memory="2Mi")), (300, 3)),
        (pod(container(cpu="100m"), init=[container("i", cpu="500m"), container("j", cpu="400m")]), (500, 0)),
        (pod(container(cpu="100m"), init=[container("i", cpu="50m", **SIDECAR)]), (150, 0)),
        (pod(container(cpu="100m"), init=[container("i", cpu="50m", **SIDECAR), container("j", cpu="200m")]), (250, 0)),
        (pod(container(cpu="100m"), init=[container("j", cpu="200m"), container("i", cpu="50m", **SIDECAR)]), (200, 0)),
        (pod(container(cpu="100m"), overhead={"cpu": "10m", "memory": "4Mi"}), (110, 4)),
        (pod(container(cpu="100m"), resources={"requests": {"cpu": "1"}}), (1000, 0)),
        (pod(container(cpu="2"), resources={"requests": {"cpu": "1"}}, overhead={"cpu": "10m"}), (1010, 0)),
        (pod(container(cpu="1m", memory="1Mi"), resources={"requests": {"memory": "8Mi"}}), (1, 8)),
        (pod(container(cpu="100u"), container("d", cpu="900u")), (1, 0)),
        (pod(container(cpu="100u"), container("d", cpu="901u")), (2, 0)),
        (pod(), (0, 0)),
    ],
    ids=[
        "the requests of all containers are added up",
        "the largest init container is used if it needs more than the containers",
        "a sidecar's request is added",
        "a sidecar runs beside later init containers",
        "a sidecar does not run beside earlier init containers",
        "the overhead of the pod is added",
        "a pod-level request replaces the sum of the containers",
        "overhead is added to a pod-level request",
        "a pod-level memory request does not replace the cpu request of a container",
        "the sum is rounded, not the single requests",
        "a fraction of a millicore is rounded up",
        "a pod without resource requests needs nothing",
    ],
)
def test_a_pods_request_is_computed_as_in_kubernetes(what: Pod, expected: tuple[int, int]) -> None:
    assert cpu_and_memory(incoming_requests(what.spec, CURRENT_RULES)) == expected


@pytest.mark.parametrize(
    ("what", "cpu", "memory_mi"),
    [
        (pod(container()), 100, 200),
        (pod(container(), container("d")), 200, 400),
        (pod(container(cpu="0")), 0, 200),
        (pod(container(cpu="1", memory="1Mi")), 1000, 1),
        (pod(container(cpu="10m", memory="1Mi"), init=[container("i")]), 100, 200),
        (pod(container(), resources={"requests": {"cpu": "1"}}), 1000, 200),
        (pod(container(), resources={"requests": {"cpu": "1", "memory": "3Mi"}}), 1000, 3),
    ],
    ids=[
        "a container without requests",
        "every container without requests",
        "an explicit zero is kept",
        "explicit requests are kept",
        "an init container without requests gets the defaults too",
        "a pod-level cpu request does not replace the default memory request of a container",
        "pod-level requests replace the defaults of cpu and memory",
    ],
)
def test_scores_use_default_requests_for_containers_without_requests(what: Pod, cpu: int, memory_mi: int) -> None:
    requests = incoming_requests(what.spec, CURRENT_RULES)
    assert (requests.nonzero_cpu, requests.nonzero_memory) == (cpu, memory_mi * MI)


def test_the_fit_score_of_an_incoming_pod_ignores_pod_level_requests() -> None:
    """kube-scheduler computes the score of NodeResourcesFit without its feature gates, so without pod-level requests
    (noderesources/fit.go)."""
    what = pod(container(cpu="100m", memory="1Mi"), resources={"requests": {"cpu": "4"}})
    assert scored_requests(what.spec)["cpu"] == 100


RESIZED = {
    "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}]
}


@pytest.mark.parametrize(
    ("status", "rules", "cpu"),
    [
        (RESIZED, CURRENT_RULES, 3000),
        (RESIZED, RequestRules(status_resources=False), 1000),
        ({"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}, CURRENT_RULES, 1000),
        (
            {
                "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}],
                "conditions": [{"type": "PodResizePending", "reason": "Infeasible", "status": "True"}],
            },
            CURRENT_RULES,
            500,
        ),
        (
            {
                "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}],
                "conditions": [{"type": "PodResizePending", "reason": "Deferred", "status": "True"}],
            },
            CURRENT_RULES,
            1000,
        ),
        ({"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "9"}}]}, CURRENT_RULES, 1000),
        ({"containerStatuses": [{"name": "another", "resources": {"requests": {"cpu": "9"}}}]}, CURRENT_RULES, 1000),
    ],
    ids=[
        "the largest of the requested, actual and allocated amounts is used",
        "without the feature gate, only the spec is used",
        "a smaller amount in the status does not lower the request",
        "an infeasible resize is ignored",
        "a deferred resize is taken into account",
        "a status without resources is ignored",
        "the status of an unknown container is ignored",
    ],
)
def test_the_request_of_a_running_pod_follows_its_resize(status: dict[str, Any], rules: RequestRules, cpu: int) -> None:
    what = pod(container(cpu="1"), status=status)
    assert running_requests(what, rules).cpu == cpu
    assert incoming_requests(what.spec, rules).cpu == 1000


def test_pod_level_requests_follow_their_feature_gates() -> None:
    what = pod(
        container(cpu="1"),
        resources={"requests": {"cpu": "4"}},
        status={"resources": {"requests": {"cpu": "6"}}, "allocatedResources": {"cpu": "5"}},
    )
    assert running_requests(what, CURRENT_RULES).cpu == 6000
    assert running_requests(what, RequestRules(pod_level_resize=False)).cpu == 4000
    assert running_requests(what, RequestRules(pod_level=False)).cpu == 1000


def test_an_unknown_resource_name_without_a_prefix_is_ignored() -> None:
    amounts = {
        "example.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
        "attachable-volumes-x": "1",
        "batch.kubernetes.io/slot": "1",
        "bananas": "3",
        "requests.cpu/x": "1",
    }
    requests = incoming_requests(pod(container(also=amounts)).spec, CURRENT_RULES)
    assert requests.scalars == {
        "attachable-volumes-x": 1,
        "batch.kubernetes.io/slot": 1,
        "example.com/gpu": 2,
        "hugepages-2Mi": 4 * MI,
    }
    assert requests.amount("example.com/gpu") == 2
    assert requests.amount("bananas") == 0


@pytest.mark.parametrize(
    ("name", "extended", "scalar", "counted"),
    [
        ("cpu", False, False, True),
        ("example.com/gpu", True, True, True),
        ("hugepages-1Gi", False, True, True),
        ("kubernetes.io/x", False, True, True),
        ("pods", False, False, False),
        ("requests.a/b", False, False, False),
        ("a/b/c", False, False, False),
    ],
)
def test_resource_names_are_classified_as_in_kubernetes(name: str, extended: bool, scalar: bool, counted: bool) -> None:
    assert (is_extended(name), is_scalar(name), is_counted(name)) == (extended, scalar, counted)

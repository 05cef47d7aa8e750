"""Tests the reading of Jobs from manifests."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.model.job import FailureRule, Job
from scheduler_core.snapshot.loading import load_objects


def read(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Job:
    meta = {"name": "work", "namespace": "shop", "uid": "u"}
    snapshot = load_objects(
        [{"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec, "status": status or {}}]
    )
    assert snapshot.problems == ()
    return snapshot.objects.jobs["shop/work"]


def test_absent_fields_of_a_job_get_the_defaults_of_the_api_server() -> None:
    assert read({}) == Job(namespace="shop", name="work", uid="u", parallelism=1, completions=1, backoff_limit=6)
    assert read({"parallelism": 3}).completions is None
    assert read({"backoffLimitPerIndex": 1}).backoff_limit == 2**31 - 1


def test_the_model_reads_all_job_fields_that_decide_whether_a_pod_is_replaced() -> None:
    rules = [
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
        {
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget"}, {"type": "ConfigIssue", "status": "False"}],
        },
    ]
    spec = {
        "parallelism": 2,
        "completions": 5,
        "backoffLimit": 0,
        "backoffLimitPerIndex": 2,
        "maxFailedIndexes": 3,
        "suspend": True,
        "managedBy": "kueue.x-k8s.io/multikueue",
        "podFailurePolicy": {"rules": rules},
        "template": {"spec": {"nodeName": "n1"}},
    }
    status = {
        "failed": 4,
        "failedIndexes": "1,3-5,7",
        "succeeded": 1,
        "conditions": [{"type": "Failed", "status": "True"}],
    }
    assert read(spec, status) == Job(
        namespace="shop",
        name="work",
        uid="u",
        parallelism=2,
        completions=5,
        backoff_limit=0,
        backoff_limit_per_index=2,
        max_failed_indexes=3,
        failed=4,
        failed_indexes=5,
        succeeded=1,
        is_suspended=True,
        has_ended=True,
        is_managed_elsewhere=True,
        bound_to="n1",
        rules=(
            FailureRule(action="FailJob", operator="In", exit_codes=frozenset({42})),
            FailureRule(
                action="Ignore", conditions=frozenset({("DisruptionTarget", "True"), ("ConfigIssue", "False")})
            ),
        ),
    )


@pytest.mark.parametrize(
    ("kind", "status", "has_ended"),
    [
        ("Complete", "True", True),
        ("FailureTarget", "True", True),
        ("SuccessCriteriaMet", "True", True),
        ("Failed", "False", False),
        ("Suspended", "True", False),
    ],
)
def test_a_job_has_ended_once_a_condition_says_that_it_completes_or_fails(
    kind: str, status: str, has_ended: bool
) -> None:
    assert read({}, {"conditions": [{"type": kind, "status": status}]}).has_ended is has_ended


@pytest.mark.parametrize(
    ("text", "number"), [("", 0), ("4", 1), ("0-9", 10), ("a-b,7", 2), ("9-1", 1), ("1-" + "9" * 5000, 1)]
)
def test_the_failed_indexes_of_a_job_are_counted_even_in_malformed_text(text: str, number: int) -> None:
    assert read({}, {"failedIndexes": text}).failed_indexes == number


@pytest.mark.parametrize(("text", "number"), [("2", 2), ("", 0), ("x", 0), ("-1", 0), ("9" * 400, 0)])
def test_the_failure_count_of_an_index_is_read_from_its_pod(text: str, number: int) -> None:
    meta = {"name": "p", "annotations": {"batch.kubernetes.io/job-index-failure-count": text}}
    assert load_objects([{"kind": "Pod", "metadata": meta, "spec": {}}]).pending[0].index_failures == number


def test_a_job_of_another_api_group_is_ignored() -> None:
    volcano = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "work"},
        "spec": {"tasks": []},
    }
    assert load_objects([volcano]).objects.jobs == {}

"""Tests in which cases a Job does not replace an evicted pod. The expected results follow the rules of the Job
controller."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler_core.cycle import Scheduler
from scheduler_core.model.job import FailureRule, Job
from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.simulation.drain import run_drain, simulate_drain
from scheduler_core.simulation.evicted.jobs import after_evictions, job_of
from scheduler_core.simulation.forecast import Outcome
from scheduler_core.snapshot.loading import load_objects
from tests.scheduler_core.simulation.test_drain import a_budget, a_node

OWNER = OwnerReference("batch/v1", "Job", "work", "job-1")
IGNORES = FailureRule(action="Ignore", conditions=frozenset({("DisruptionTarget", "True")}))
FAILS = FailureRule(action="FailJob", conditions=frozenset({("DisruptionTarget", "True")}))
COUNTS = FailureRule(action="Count", conditions=frozenset({("DisruptionTarget", "True")}))


def a_job(**changes: Any) -> Job:
    return Job(**{"namespace": "shop", "name": "work", "uid": "job-1", "completions": 8, "parallelism": 4, **changes})


def job_pods(number: int, *failures: int) -> list[Pod]:
    found = []
    for n in range(number):
        labels = {"batch.kubernetes.io/job-completion-index": str(n)}
        found.append(
            Pod(
                name=f"p{n}",
                namespace="shop",
                owner=OWNER,
                node_name="n1",
                labels=labels,
                index_failures=failures[n] if failures else 0,
            )
        )
    return found


def exits(action: str, operator: str, *codes: int) -> FailureRule:
    return FailureRule(action=action, operator=operator, exit_codes=frozenset(codes))


@pytest.mark.parametrize(
    ("job", "evicted", "lost"),
    [
        pytest.param(
            a_job(backoff_limit=6), 2, 0, id="evicted pods are replaced while failures stay below backoffLimit"
        ),
        pytest.param(a_job(backoff_limit=0), 1, 1, id="with a backoffLimit of zero, an evicted pod is not replaced"),
        pytest.param(a_job(backoff_limit=1), 1, 0, id="with a backoffLimit of one, a single evicted pod is replaced"),
        pytest.param(a_job(backoff_limit=1), 2, 2, id="with a backoffLimit of one, two evicted pods are not replaced"),
        pytest.param(
            a_job(backoff_limit=6, failed=6),
            1,
            1,
            id="a pod is not replaced if earlier failures have reached backoffLimit",
        ),
        pytest.param(
            a_job(backoff_limit=6, failed=5),
            1,
            0,
            id="a pod is replaced if earlier failures are one below backoffLimit",
        ),
        pytest.param(a_job(backoff_limit=0, rules=(IGNORES,)), 3, 0, id="the podFailurePolicy ignores evictions"),
        pytest.param(a_job(backoff_limit=0, rules=(COUNTS,)), 1, 1, id="the podFailurePolicy counts evictions"),
        pytest.param(
            a_job(backoff_limit=0, rules=()), 1, 1, id="a podFailurePolicy that has no rules counts evictions"
        ),
        pytest.param(a_job(rules=(FAILS,)), 1, 1, id="the podFailurePolicy fails the Job"),
        pytest.param(
            a_job(rules=(exits("FailJob", "In", 42), IGNORES)),
            1,
            0,
            id="a FailJob rule for exit code 42 does not match an eviction",
        ),
        pytest.param(
            a_job(rules=(exits("FailJob", "In", 137), IGNORES)),
            1,
            1,
            id="a FailJob rule for exit code 137 (SIGKILL) matches an eviction",
        ),
        pytest.param(
            a_job(rules=(exits("FailJob", "NotIn", 1), IGNORES)),
            1,
            1,
            id="a FailJob rule for all exit codes except 1 matches an eviction",
        ),
        pytest.param(
            a_job(rules=(IGNORES, exits("FailJob", "NotIn", 1))),
            1,
            0,
            id="an Ignore rule overrides a later FailJob rule that also matches",
        ),
        pytest.param(
            a_job(
                backoff_limit=0,
                rules=(FailureRule(action="Ignore", conditions=frozenset({("DisruptionTarget", "False")})),),
            ),
            1,
            1,
            id="an Ignore rule for a condition with another status does not match",
        ),
        pytest.param(a_job(has_ended=True), 1, 1, id="a Job that has ended replaces no pod"),
        pytest.param(a_job(is_suspended=True), 1, 1, id="a suspended Job replaces no pod"),
        pytest.param(a_job(succeeded=8), 1, 1, id="a Job that has all its completions replaces no pod"),
        pytest.param(a_job(parallelism=0), 1, 1, id="a Job with a parallelism of zero replaces no pod"),
        pytest.param(
            a_job(completions=None), 1, 0, id="if the Job sets no completions, pods are replaced until one succeeds"
        ),
        pytest.param(
            a_job(completions=None, succeeded=1),
            1,
            1,
            id="if the Job sets no completions, no pod is replaced after one succeeded",
        ),
        pytest.param(
            a_job(is_managed_elsewhere=True, backoff_limit=0),
            1,
            0,
            id="a Job of another controller is assumed to replace the pod",
        ),
    ],
)
def test_a_job_replaces_an_evicted_pod_only_while_the_job_allows_further_failures(
    job: Job, evicted: int, lost: int
) -> None:
    assert len(after_evictions({job.key: job}, job_pods(evicted)).lost) == lost


@pytest.mark.parametrize(
    ("job", "failures", "lost"),
    [
        pytest.param(
            a_job(backoff_limit_per_index=1, backoff_limit=2**31 - 1),
            (0, 1),
            ["shop/p1"],
            id="only the pod whose index has reached its limit is not replaced",
        ),
        pytest.param(
            a_job(backoff_limit_per_index=0),
            (0, 0),
            ["shop/p0", "shop/p1"],
            id="with a backoffLimitPerIndex of zero, no pod is replaced",
        ),
        pytest.param(
            a_job(backoff_limit_per_index=5, backoff_limit=1),
            (0, 0),
            ["shop/p0", "shop/p1"],
            id="no pod is replaced if the backoffLimit of the whole Job is reached",
        ),
        pytest.param(
            a_job(backoff_limit_per_index=0, rules=(IGNORES,)),
            (0, 0),
            [],
            id="the podFailurePolicy ignores evictions",
        ),
        pytest.param(
            a_job(backoff_limit_per_index=9, rules=(replace(FAILS, action="FailIndex"),)),
            (0,),
            ["shop/p0"],
            id="the podFailurePolicy fails the index",
        ),
        pytest.param(
            a_job(backoff_limit_per_index=1, max_failed_indexes=0),
            (0, 1),
            ["shop/p0", "shop/p1"],
            id="the Job fails if the number of failed indexes exceeds maxFailedIndexes",
        ),
        pytest.param(
            a_job(backoff_limit_per_index=1, max_failed_indexes=2, failed_indexes=1),
            (0, 1),
            ["shop/p1"],
            id="the Job does not fail if the number of failed indexes equals maxFailedIndexes",
        ),
    ],
)
def test_an_indexed_job_counts_the_failures_of_each_index(job: Job, failures: tuple[int, ...], lost: list[str]) -> None:
    assert sorted(after_evictions({job.key: job}, job_pods(len(failures), *failures)).lost) == lost


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(
            OwnerReference("batch.volcano.sh/v1alpha1", "Job", "work", "job-1"),
            id="an owner of kind Job in another API group",
        ),
        pytest.param(OwnerReference("batch/v1", "Job", "work", "job-0"), id="a deleted Job of the same name"),
        pytest.param(OwnerReference("batch/v1", "Job", "other", "job-2"), id="a Job missing from the snapshot"),
        pytest.param(None, id="a pod without an owner"),
    ],
)
def test_pods_without_a_job_are_ignored(owner: OwnerReference | None) -> None:
    job = a_job(backoff_limit=0)
    pod = replace(job_pods(1)[0], owner=owner)
    assert job_of({job.key: job}, pod) is None
    assert after_evictions({job.key: job}, [pod]).lost == {}


def manifest(name: str, node: str, *, owned_by: str = "work") -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "labels": {"app": owned_by},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": owned_by,
                    "uid": f"job-{owned_by}",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def job_manifest(name: str = "work", status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "shop", "uid": f"job-{name}"},
        "spec": {"parallelism": 4, "completions": 8, **spec},
        "status": status or {},
    }


NODES = (a_node("n1"), a_node("n2"))


def outcomes(*objects: dict[str, Any]) -> dict[str, Outcome]:
    (made,) = simulate_drain(load_objects([*NODES, *objects]), ["n1"], made_at="")
    return {pod.name: pod.outcome for pod in made.pods}


def test_a_pod_is_lost_if_its_eviction_makes_the_job_fail() -> None:
    objects = (job_manifest(backoffLimit=0), manifest("a", "n1"), manifest("b", "n2"), manifest("c", "n2"))
    (made,) = simulate_drain(load_objects([*NODES, *objects]), ["n1"], made_at="")
    (pod,) = made.pods
    assert (pod.outcome, pod.landing) == (Outcome.LOST, ())
    assert (
        pod.sentence == "the eviction counts as failure 1 of its Job, and the Job fails because its backoffLimit is 0"
    )
    assert made.notes == ("Job shop/work would fail, and the Job controller would delete 2 other pods",)


def test_a_pod_moves_if_its_eviction_does_not_make_the_job_fail() -> None:
    assert outcomes(job_manifest(backoffLimit=1), manifest("a", "n1")) == {"a": Outcome.MOVES}
    assert outcomes(
        job_manifest(
            backoffLimit=0,
            podFailurePolicy={
                "rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                ]
            },
        ),
        manifest("a", "n1"),
    ) == {"a": Outcome.MOVES}
    assert outcomes(manifest("a", "n1")) == {"a": Outcome.MOVES}  # whose Job is unknown


def test_a_pod_that_a_budget_blocks_does_not_count_as_a_failure() -> None:
    kept = a_budget(1, app="work")
    assert sorted(outcomes(job_manifest(backoffLimit=1), kept, manifest("a", "n1"), manifest("b", "n1")).values()) == [
        Outcome.BLOCKED,
        Outcome.MOVES,
    ]


def test_the_failures_of_a_job_add_up_over_several_drains() -> None:
    """A roll-out that moves a Job's pod from node to node uses up the Job's backoffLimit."""
    world = load_objects([*NODES, job_manifest(backoffLimit=1), manifest("a", "n1"), manifest("b", "n2")])
    scheduler = Scheduler()
    first = run_drain(world, ["n1"], scheduler)
    assert first.world.objects.jobs["shop/work"].failed == 1
    second = run_drain(first.world.with_node_uncordoned("n1"), ["n2"], scheduler)
    assert [pod.outcome for pod in second.forecasts[0].pods] == [Outcome.LOST, Outcome.LOST]
    assert second.world.objects.jobs["shop/work"].has_ended
    assert list(second.world.placed_pods) == []

"""Finds the evicted pods that their Job does not replace: an eviction is a failure of the pod, and a Job allows only a
limited number of failures.

The rules are the Job controller's (pkg/controller/job/job_controller.go, pod_failure_policy.go and
indexed_job_utils.go, v1.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import field

from scheduler_core.model.job import FailureRule, Job
from scheduler_core.model.pod import Pod
from scheduler_core.values import Value

# Of a container that is told to stop: SIGTERM, or SIGKILL if it ignores that. Which one it will be is not known before.
_EXIT_CODES = (143, 137)
_EVICTED = ("DisruptionTarget", "True")  # the condition that the eviction API sets
_WORST_FIRST = ("FailJob", "FailIndex", "Count", "Ignore")


class JobsAfter(Value):
    """The effect of evictions on Jobs. `lost` says, by key, why a pod's Job does not replace it. `jobs` has all Jobs
    with their new numbers of failures, `failing` the keys of those that failed because of the evictions."""

    lost: Mapping[str, str] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    failing: frozenset[str] = frozenset()


def after_evictions(jobs: Mapping[str, Job], evicted: Iterable[Pod]) -> JobsAfter:
    """Counts these evictions as failures of the pods' Jobs. Pods without a Job are ignored."""
    by_job: dict[str, list[Pod]] = {}
    for pod in evicted:
        job = job_of(jobs, pod)
        if job is not None and not job.is_managed_elsewhere:
            by_job.setdefault(job.key, []).append(pod)
    lost: dict[str, str] = {}
    after, failing = dict(jobs), set()
    for key, pods in by_job.items():
        fate = _fate(jobs[key], pods)
        lost.update(fate.lost)
        after[key] = fate.job
        if fate.job.has_ended and not jobs[key].has_ended:
            failing.add(key)
    return JobsAfter(lost, after, frozenset(failing))


def job_of(jobs: Mapping[str, Job], pod: Pod) -> Job | None:
    """The Job that controls the pod; None if `jobs` lacks it, or if the owner's kind Job is not of the API group
    batch."""
    owner = pod.owner
    if owner is None or owner.kind != "Job" or not owner.api_version.startswith("batch/"):
        return None
    job = jobs.get(f"{pod.namespace}/{owner.name}")
    return job if job is not None and job.uid in ("", owner.uid) else None


class _Fate(Value):
    job: Job
    lost: Mapping[str, str]


def _fate(job: Job, pods: Sequence[Pod]) -> _Fate:
    if why := _makes_no_pods(job):
        return _Fate(job, {pod.key: why for pod in pods})
    action = _action(job)
    if action == "FailJob":
        return _fails(job, pods, "its Job's podFailurePolicy fails the Job when a pod is evicted")
    counted = job if action == "Ignore" else replace(job, failed=job.failed + len(pods))
    if counted.failed > job.backoff_limit:
        why = (
            f"the eviction counts as failure {counted.failed} of its Job, and the Job fails because "
            f"its backoffLimit is {job.backoff_limit}"
        )
        return _fails(counted, pods, why)
    if job.backoff_limit_per_index is None:
        return _Fate(counted, {})
    return _by_index(counted, pods, action, job.backoff_limit_per_index)


def _makes_no_pods(job: Job) -> str:
    if job.has_ended:
        return "its Job has ended and creates no more pods"
    if job.is_suspended:
        return "its Job is suspended and creates no pods"
    if job.completions is None and job.succeeded:
        return "a pod of its Job has succeeded, so the Job creates no more pods"
    if job.parallelism == 0 or (job.completions is not None and job.succeeded >= job.completions):
        return "its Job needs no more pods"
    return ""


def _by_index(job: Job, pods: Sequence[Pod], action: str, limit: int) -> _Fate:
    """Counts the failures of each index of an Indexed Job, which fails as a whole only if too many indexes have
    failed."""
    failed = [pod for pod in pods if action == "FailIndex" or (action == "Count" and pod.index_failures >= limit)]
    counted = replace(job, failed_indexes=job.failed_indexes + len({_index(pod) for pod in failed}))
    if failed and job.max_failed_indexes is not None and counted.failed_indexes > job.max_failed_indexes:
        return _fails(
            counted,
            pods,
            f"its Job fails because more than {job.max_failed_indexes} indexes have failed (maxFailedIndexes)",
        )
    return _Fate(
        counted,
        {
            pod.key: f"the eviction makes the pod's index fail, because the backoffLimitPerIndex of its Job is {limit}"
            for pod in failed
        },
    )


def _index(pod: Pod) -> str:
    return pod.labels.get("batch.kubernetes.io/job-completion-index", pod.key)


def _fails(job: Job, pods: Sequence[Pod], why: str) -> _Fate:
    return _Fate(replace(job, has_ended=True), {pod.key: why for pod in pods})


def _action(job: Job) -> str:
    """What the Job's podFailurePolicy does about an evicted pod: "FailJob", "FailIndex", "Count" or "Ignore". Its
    exit code is not known, so the worst action for any likely one."""
    if job.rules is None:
        return "Count"
    return min((_action_for(job.rules, code) for code in _EXIT_CODES), key=_WORST_FIRST.index)


def _action_for(rules: Sequence[FailureRule], code: int) -> str:
    """The action of the first rule that matches this exit code or the eviction. If a rule names a container, that
    container is taken to have ended with the code."""
    for rule in rules:
        if _matches(rule, code):
            return rule.action if rule.action in _WORST_FIRST else "Count"
    return "Count"


def _matches(rule: FailureRule, code: int) -> bool:
    if rule.operator:
        return (code in rule.exit_codes) == (rule.operator == "In")
    return _EVICTED in rule.conditions

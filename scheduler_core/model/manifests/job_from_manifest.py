"""Jobs: from wire structures to the model. Also the annotations that the Job controller writes on pods."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.model.job import DEFAULT_BACKOFF_LIMIT, JOB_CONTROLLER, FailureRule, Job
from scheduler_core.model.manifests import wire
from scheduler_core.model.manifests.fields import template_labels, template_node

INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_ENDED = frozenset({"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"})


def job(written: wire.WireJob) -> Job:
    """Adds the API server's defaults, for manifests that did not pass through an API server."""
    meta, spec, status = written.metadata, written.spec or wire.WireJobSpec(), written.status or wire.WireJobStatus()
    unlimited = spec.backoff_limit_per_index is not None
    return Job(
        namespace=meta.namespace or "default",
        name=meta.name,
        uid=meta.uid,
        parallelism=1 if spec.parallelism is None else spec.parallelism,
        completions=1 if spec.completions is None and spec.parallelism is None else spec.completions,
        backoff_limit=spec.backoff_limit
        if spec.backoff_limit is not None
        else 2**31 - 1
        if unlimited
        else DEFAULT_BACKOFF_LIMIT,
        backoff_limit_per_index=spec.backoff_limit_per_index,
        max_failed_indexes=spec.max_failed_indexes,
        rules=None
        if spec.pod_failure_policy is None
        else tuple(_failure_rule(rule) for rule in spec.pod_failure_policy.rules or ()),
        failed=status.failed or 0,
        failed_indexes=_indexes(status.failed_indexes or ""),
        succeeded=status.succeeded or 0,
        is_suspended=bool(spec.suspend),
        has_ended=any(each.type in _ENDED and each.status == "True" for each in status.conditions or ()),
        is_managed_elsewhere=spec.managed_by not in (None, "", JOB_CONTROLLER),
        bound_to=template_node(spec.template),
        template_labels=template_labels(spec.template),
    )


def _failure_rule(written: wire.WireFailureRule) -> FailureRule:
    codes = written.on_exit_codes
    return FailureRule(
        action=written.action,
        operator=codes.operator if codes else "",
        exit_codes=frozenset(codes.values or ()) if codes else frozenset(),
        conditions=frozenset((each.type, each.status or "True") for each in written.on_pod_conditions or ()),
    )


def _indexes(text: str) -> int:
    """ "1,3-5,7" has 5 indexes. A part that is neither an index nor a range, such as "x", counts as one."""
    total = 0
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        is_span = all(end.isdecimal() and len(end) < 10 for end in (first, last))
        total += max(1, int(last) - int(first) + 1) if is_span else 1
    return total


def index_failures(annotations: Mapping[str, str]) -> int:
    """How often pods with the same index of an Indexed Job failed before this pod. The Job controller writes this
    annotation; an invalid number counts as 0 (pkg/controller/job/indexed_job_utils.go)."""
    text = annotations.get(INDEX_FAILURES, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0

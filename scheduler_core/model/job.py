"""What decides whether the Job controller replaces an evicted pod."""

from __future__ import annotations

from scheduler_core.values import Value

# Defaults of the API server and the Job controller (pkg/apis/batch/v1/defaults.go).
DEFAULT_BACKOFF_LIMIT = 6
JOB_CONTROLLER = "kubernetes.io/job-controller"


class FailureRule(Value, kw_only=True):
    """One rule of a podFailurePolicy: matches on exit codes (`operator` In or NotIn), or on pod conditions."""

    action: str
    operator: str = ""
    exit_codes: frozenset[int] = frozenset()
    conditions: frozenset[tuple[str, str]] = frozenset()  # type and status


class Job(Value, kw_only=True):
    """`rules` is None without a podFailurePolicy. `bound_to` and `template_labels`: spec.nodeName and
    the sorted labels of the pod template."""

    namespace: str
    name: str
    uid: str = ""
    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = DEFAULT_BACKOFF_LIMIT
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    rules: tuple[FailureRule, ...] | None = None
    failed: int = 0
    failed_indexes: int = 0
    succeeded: int = 0
    is_suspended: bool = False
    has_ended: bool = False  # true also while its last pods are terminating
    is_managed_elsewhere: bool = False  # spec.managedBy names another controller
    bound_to: str = ""
    template_labels: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """ "namespace/name"."""
        return f"{self.namespace}/{self.name}"

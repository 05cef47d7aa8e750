"""A PodDisruptionBudget with the number of evictions that it still allows."""

from __future__ import annotations

from scheduler_core.model.labels import LabelSelector
from scheduler_core.values import Value


class DisruptionBudget(Value, kw_only=True):
    """`disrupted_pods` are already being evicted; preemption does not count them again.

    Decisions use the numbers of the status. `max_unavailable` and `min_available` are kept as written ("1", "50%");
    `max_unavailable` is read only to suggest another limit. `owner` names the budget's controller, such as
    "CephCluster rook-ceph"; empty without one. `may_open` is
    the caller's reason, as a clause, why the budget may open although its numbers say never.
    """

    name: str
    namespace: str
    selector: LabelSelector
    disruptions_allowed: int = 0
    disrupted_pods: frozenset[str] = frozenset()
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    max_unavailable: str | None = None
    min_available: str | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"
    uid: str = ""
    generation: int = 0
    owner: str = ""
    may_open: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def identity(self) -> str:
        """The UID and the generation: another one proves that somebody changed or replaced the budget. "" without a
        UID."""
        return f"{self.uid}/{self.generation}" if self.uid else ""

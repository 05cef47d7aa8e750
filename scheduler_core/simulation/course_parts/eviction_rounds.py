"""The evictions of one course, round after round."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.evictions import BudgetLedger, EvictionRefusal
from scheduler_core.simulation.evicted.replacements import Recreation, recreation_of


@dataclass(slots=True)
class EvictionRounds:
    """The pods still to be evicted, the evicted ones, and the evictions that later become possible.

    In a round each pod is evicted once. The round ends when the evicted pods are gone; then evictions of the refused
    pods are repeated.
    """

    ledger: BudgetLedger
    remaining: tuple[Pod, ...]  # to be asked in this round, in order
    ending: tuple[Pod, ...] = ()  # evicted in this round, still on the node
    held: tuple[Pod, ...] = ()  # refused in this round, to be asked in the next
    afterwards: tuple[Pod, ...] = ()  # evicted in this round; their replacements appear when they are gone
    at_last: tuple[Pod, ...] = ()  # evicted in any round; their replacements come when all is over
    healthy: tuple[Pod, ...] = ()  # a replacement landed in this round: it counts for the budgets of the next
    refused: dict[str, EvictionRefusal] = field(default_factory=dict)  # the last answer, by the pod's key

    def copy(self) -> EvictionRounds:
        return replace(self, ledger=self.ledger.copy(), refused=dict(self.refused))

    def evict_next(self) -> Pod | None:
        """Evicts the next pod; returns it if the eviction is allowed."""
        pod, self.remaining = self.remaining[0], self.remaining[1:]
        refusal = self.ledger.refusal(pod)
        if refusal:
            self.refused[pod.key] = refusal
            self.held = (*self.held, pod)
            return None
        self.refused.pop(pod.key, None)
        self.ledger.spend(pod)
        self.ending = (*self.ending, pod)
        match recreation_of(pod):
            case Recreation.AFTER_IT_IS_GONE:
                self.afterwards = (*self.afterwards, pod)
            case Recreation.MUCH_LATER:
                self.at_last = (*self.at_last, pod)
        return pod

    @property
    def allows_another(self) -> bool:
        """Whether some remaining eviction would be allowed."""
        return any(self.ledger.refusal(pod) is None for pod in self.remaining)

    def refill(self) -> None:
        """Counts replacements that landed in this round for the budgets."""
        for pod in self.healthy:
            self.ledger.refill(pod)
        self.healthy = ()

    def begin_next(self) -> tuple[Pod, ...]:
        """Starts the next round: the evicted pods are gone, and refused ones will be evicted again. Returns the pods
        whose replacements appear now."""
        gone = self.afterwards
        self.remaining, self.held, self.ending, self.afterwards = self.held, (), (), ()
        return gone

    @property
    def likeness(self) -> Hashable:
        """Equal for rounds that continue in the same way."""
        asked, held = (tuple(pod.key for pod in pods) for pods in (self.remaining, self.held))
        return (asked, len(self.ending), held, self.ledger.state)

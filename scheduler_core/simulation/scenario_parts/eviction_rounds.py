"""Evicts the pods of one scenario, round after round."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.evictions import BudgetLedger, EvictionRefusal
from scheduler_core.simulation.evicted.replacements import Recreation, recreation_of


@dataclass(slots=True)
class EvictionRounds:
    """The pods still to be evicted, and those whose eviction was accepted or refused in this round.

    A round tries each eviction once. When the evicted pods have ended, the next one tries the refused ones again.
    """

    ledger: BudgetLedger
    remaining: tuple[Pod, ...]  # to be evicted in this round, in order
    ending: tuple[Pod, ...] = ()  # evicted in this round, still on the node
    held: tuple[Pod, ...] = ()  # refused in this round, to be evicted in the next
    afterwards: tuple[Pod, ...] = ()  # evicted in this round; their replacements appear when they are gone
    at_last: tuple[Pod, ...] = ()  # evicted in any round; their replacements appear after the last round
    healthy: tuple[Pod, ...] = ()  # evicted pods whose replacement got a node in this round
    refused: dict[str, EvictionRefusal] = field(default_factory=dict)  # the last refusal, by the pod's key
    opened: Mapping[str, EvictionRefusal] = field(default_factory=dict)  # slow pods, evicted last: why not before

    def copy(self) -> EvictionRounds:
        return replace(self, ledger=self.ledger.copy(), refused=dict(self.refused))

    def evict_next(self) -> Pod | None:
        """The pod, or None if a budget refuses its eviction."""
        pod, self.remaining = self.remaining[0], self.remaining[1:]
        refusal = self._refusal(pod)
        if refusal:
            self.refused[pod.key] = refusal
            self.held = (*self.held, pod)
            return None
        self.refused.pop(pod.key, None)
        if pod.key not in self.opened:
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
        """Whether the budgets now allow another eviction of this round."""
        return any(self._refusal(pod) is None for pod in self.remaining)

    def _refusal(self, pod: Pod) -> EvictionRefusal | None:
        return None if pod.key in self.opened else self.ledger.refusal(pod)

    def open_slow(self) -> bool:
        """When nothing else moves: the owners of the slow pods' budgets open them, so that they can be evicted in this
        round. False without such pods."""
        slow = {pod.key: self.refused[pod.key] for pod in self.held if self.refused[pod.key].is_slow}
        self.opened = {**self.opened, **slow}
        self.remaining = tuple(pod for pod in self.held if pod.key in slow)
        self.held = tuple(pod for pod in self.held if pod.key not in slow)
        return bool(slow)

    def refill(self) -> None:
        """The replacements that got a node in this round count as healthy, so their budgets allow further evictions."""
        for pod in self.healthy:
            if pod.key not in self.opened:
                self.ledger.refill(pod)
        self.healthy = ()

    def begin_next(self) -> tuple[Pod, ...]:
        """Tries the refused evictions again. Returns the evicted pods that are gone by now, so that their
        replacements appear."""
        gone = self.afterwards
        self.remaining, self.held, self.ending, self.afterwards = self.held, (), (), ()
        return gone

    @property
    def likeness(self) -> Hashable:
        """Equal if the next rounds proceed in the same way."""
        asked, held = (tuple(pod.key for pod in pods) for pods in (self.remaining, self.held))
        return (asked, len(self.ending), held, self.ledger.state, tuple(self.opened))

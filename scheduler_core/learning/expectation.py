"""Predicts the node of a pod before its binding is observed. After the binding, rates how well each search predicted
the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cycle import CycleResult
from scheduler_core.simulation.landings import CONFIDENCE
from scheduler_core.simulation.searches import Likely
from scheduler_core.values import Value

# How often the binding is none of the best nodes of the right search: one in fifty in recorded drains, and more where
# events are seen in another order.
_SURPRISES: Final = 0.04
_SURPRISES_OF_ALL: Final = 0.03
# Of them, what nothing foresees.
_STRANGE: Final = 0.02
# Which of several equal nodes is taken changes with each place of the start.
_AMONG_EQUALS: Final = 0.25

Foreseen = tuple[Likely, CycleResult]


class Expectation(Value, kw_only=True):
    """The predicted nodes of one pod: `followed` by the searches that a belief follows, `spread` by searches spread
    over all possible starts. If the scheduler checks every node, both are empty, and `exact` has the result."""

    followed: tuple[Foreseen, ...] = ()
    spread: tuple[Foreseen, ...] = ()
    doubt: float = 1.0
    born: tuple[Likely, ...] = ()
    nodes: int = 0
    exact: CycleResult | None = None

    @classmethod
    def of_one(cls, result: CycleResult) -> Expectation:
        """Returns the expectation for a scheduler that checks every node."""
        return cls(exact=result)

    @property
    def is_sampled(self) -> bool:
        """Whether the predicted node depends on where the search starts."""
        return any(result.sample is not None for _, result in self.spread)

    @property
    def shares(self) -> Mapping[str, float]:
        """The probability of each node, the most likely first; the sum is 1, or less if the pod may find no node."""
        if self.exact is not None:
            return _equal(self.exact)
        blind, said = _shares(self.spread), _shares(self.followed)
        certain = (1.0 - self.doubt) * (1.0 - _SURPRISES_OF_ALL)
        mixed = {name: share * (1.0 - certain) for name, share in blind.items()}
        for name, share in said.items():
            mixed[name] = mixed.get(name, 0.0) + share * certain
        return dict(sorted(mixed.items(), key=lambda pair: (-pair[1], pair[0])))

    @property
    def named(self) -> tuple[str, ...]:
        """Returns the smallest set of nodes that receives the pod in 95 percent of cases, the most likely node
        first."""
        held, names = 0.0, []
        for name, share in self.shares.items():
            names.append(name)
            held += share
            if held >= CONFIDENCE and self.exact is None:
                break
        return tuple(names)

    def weighed(self, node_name: str) -> tuple[NDArray[np.float64], float]:
        """Returns the weights of the followed searches and the doubt after the pod was bound to this node. They add up
        to 1."""
        blind = _shares(self.spread).get(node_name, 0.0)
        strange = _STRANGE / max(1, self.nodes)
        doubted = self.doubt * (blind + strange)
        weights = np.array(
            [
                likely.weight * ((1.0 - _SURPRISES) * _foresaw(result, node_name) + _SURPRISES * blind + strange)
                for likely, result in self.followed
            ],
            dtype=np.float64,
        )
        total = weights.sum() + doubted
        return weights / total, float(doubted / total)


def _shares(foreseen: Sequence[Foreseen]) -> dict[str, float]:
    total = sum(likely.weight for likely, _ in foreseen)
    shares: dict[str, float] = {}
    for likely, result in foreseen:
        for name, share in _told(result):
            shares[name] = shares.get(name, 0.0) + share * likely.weight / total
    return shares


def _told(result: CycleResult) -> Sequence[tuple[str, float]]:
    if result.node is None:
        return ((result.preemption.node, 1.0),) if result.preemption else ()
    if len(result.best) < 2:
        return ((result.node, 1.0),)
    equals = [(name, _AMONG_EQUALS / len(result.best)) for name in result.best]
    return ((result.node, 1.0 - _AMONG_EQUALS), *equals)


def _foresaw(result: CycleResult, node_name: str) -> float:
    return sum(share for name, share in _told(result) if name == node_name)


def _equal(result: CycleResult) -> Mapping[str, float]:
    names = result.best if result.node is not None else ((result.preemption.node,) if result.preemption else ())
    return {name: 1.0 / len(names) for name in names}

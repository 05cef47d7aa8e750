"""On which node a pod will land; and after its binding, how well each possible search had predicted the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cycle_result import CycleResult
from scheduler_core.simulation.landings import CONFIDENCE
from scheduler_core.simulation.scenario_parts.deviations import (
    AHEAD,
    equals_of,
    goes_elsewhere,
    predicted_node,
    taken_ahead,
    taken_in_order,
)
from scheduler_core.simulation.searches import Likely
from scheduler_core.values import Value

# The probability that a binding is one that no search and no deviation from it predicts.
_STRANGE: Final = 0.02

Foreseen = tuple[Likely, CycleResult]


class Weighed(Value, eq=False):
    """The probability of each possible search, given the node to which a pod was bound. All probabilities add up to 1.

    `in_order`: the search ran and no parallel worker was ahead of another. `ahead`: it ran and one worker was ahead.
    `doubt`: none of these searches ran.
    """

    in_order: NDArray[np.float64]
    ahead: NDArray[np.float64]
    doubt: float


class Expectation(Value, kw_only=True):
    """The nodes to which the scheduler may bind one pod.

    `followed` has each search that a SearchEstimate considers possible, `spread` searches from evenly spaced nodes,
    both with their results. If the scheduler checks every node, both are empty, and `exact` has the only result.
    """

    followed: tuple[Foreseen, ...] = ()
    spread: tuple[Foreseen, ...] = ()
    doubt: float = 1.0
    born: tuple[Likely, ...] = ()
    nodes: int = 0
    exact: CycleResult | None = None

    @classmethod
    def of_one(cls, result: CycleResult) -> Expectation:
        """For a scheduler that checks every node."""
        return cls(exact=result)

    @property
    def is_sampled(self) -> bool:
        """Whether the predicted node depends on the start of the search."""
        return any(result.sample is not None for _, result in self.spread)

    @property
    def shares(self) -> Mapping[str, float]:
        """The probability of each node, the most likely first. The sum is below 1 if the pod may find no node."""
        if self.exact is not None:
            return _equal(self.exact)
        blind, said = _shares(self.spread), _shares(self.followed)
        elsewhere = AHEAD * max((goes_elsewhere(result) for _, result in self.followed), default=0.0)
        certain = (1.0 - self.doubt) * (1.0 - elsewhere)
        mixed = {name: share * (1.0 - certain) for name, share in blind.items()}
        for name, share in said.items():
            mixed[name] = mixed.get(name, 0.0) + share * certain
        return dict(sorted(mixed.items(), key=lambda pair: (-pair[1], pair[0])))

    @property
    def named(self) -> tuple[str, ...]:
        """The smallest set of nodes that contains the pod's node in 95 percent of cases, the most likely first."""
        held, names = 0.0, []
        for name, share in self.shares.items():
            names.append(name)
            held += share
            if held >= CONFIDENCE and self.exact is None:
                break
        return tuple(names)

    def weighed(self, node_name: str) -> Weighed:
        """The probability of each search in `followed`, given that the pod was bound to this node."""
        blind = _shares(self.spread).get(node_name, 0.0)
        strange = _STRANGE / max(1, self.nodes)
        doubted = self.doubt * (blind + strange)
        in_order, ahead = np.zeros(len(self.followed)), np.zeros(len(self.followed))
        for number, (likely, result) in enumerate(self.followed):
            in_order[number] = likely.weight * (taken_in_order(result, node_name) + (1.0 - AHEAD) * strange)
            found = taken_ahead(result, node_name) + AHEAD * (goes_elsewhere(result) * blind + strange)
            ahead[number] = likely.weight * found
        total = in_order.sum() + ahead.sum() + doubted
        return Weighed(in_order / total, ahead / total, float(doubted / total))


def _shares(foreseen: Sequence[Foreseen]) -> dict[str, float]:
    total = sum(likely.weight for likely, _ in foreseen)
    shares: dict[str, float] = {}
    for likely, result in foreseen:
        names = equals_of(result)
        for name in names:
            share = AHEAD / len(names) + (1.0 - AHEAD) * (name == predicted_node(result))
            shares[name] = shares.get(name, 0.0) + share * likely.weight / total
    return shares


def _equal(result: CycleResult) -> Mapping[str, float]:
    names = result.best if result.node is not None else ((result.preemption.node,) if result.preemption else ())
    return {name: 1.0 / len(names) for name in names}

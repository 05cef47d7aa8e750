"""Combines the scenarios of a drain: on which nodes each displaced pod may land, and whether it may find none.

Replicas of one owner are interchangeable, so those of each scenario are matched with those of the main scenario such
that they agree as far as possible. If two replicas land on n1 and n2 in every scenario, the result has one on n1 and
the other on n2, whichever the scheduler tries first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from scheduler_core.cycle_result import NodeSample
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.scenario_parts.any_start import weighed
from scheduler_core.simulation.scenario_parts.displaced import Displaced
from scheduler_core.simulation.scenarios import Scenario

# The probability that the named nodes include the pod's node, if the scheduler checks only a part of the nodes.
CONFIDENCE = 0.95


@dataclass(slots=True)
class Landing:
    """The nodes on which one displaced pod lands in the scenarios of a drain; `main` is its result in the main
    scenario.

    `nodes` may take the pod. `homeless` is the first scenario in which it finds no node, with its result there. With
    `is_cut`, a node may be missing from `nodes`, because not all scenarios were simulated. `sample` is set if the
    pod is sampled in some scenario; `weights` then has each node's probability, and `searches` the
    number of simulated searches.
    """

    main: Displaced
    nodes: set[str] = field(default_factory=set)
    homeless: tuple[Scenario, Displaced] | None = None
    is_cut: bool = False
    sample: NodeSample | None = None
    weights: dict[str, float] = field(default_factory=dict)
    searches: int = 0
    homeless_weight: float = 0.0
    preempts_in_part: bool = False  # the scheduler may preempt pods on other nodes, because it starts at a random one

    @property
    def is_open(self) -> bool:
        """Whether the pod may also land, with an unknown probability, on a node that is not in `named`."""
        return self.is_cut or self.preempts_in_part or (self.sample is not None and not self.weights)

    @property
    def depends_on_the_start(self) -> bool:
        """Whether the pod could get another node, or none, from another start."""
        return self.sample is not None and (len(self.weights) > 1 or self.homeless_weight > 0)

    @property
    def named(self) -> tuple[tuple[str, float], ...]:
        """The smallest set of nodes that takes the pod in 95 of 100 cases, with their probabilities, the most likely
        first.

        If the pod often finds no room, all nodes that may take it. If the scheduler checks every node, all of `nodes`,
        sorted by name, with 0 for the unknown probabilities.
        """
        if self.sample is None or not self.weights:
            return tuple((name, 0.0) for name in sorted(self.nodes))
        weights = weighed(self.weights, self.searches, self.main.any_start)
        total, held, named = sum(weights.values()) + self.homeless_weight, 0.0, []
        for name, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])):
            named.append((name, weight / total))
            held += weight / total
            if held >= CONFIDENCE:
                break
        return tuple(named)

    def add(self, scenario: Scenario, each: Displaced) -> None:
        """Adds the pod's result in one more scenario."""
        self.nodes.update(each.choices, *(names for names, _ in each.shares))
        self.searches += len(scenario.searches)
        for names, share in each.shares:
            for name in names:
                self.weights[name] = self.weights.get(name, 0.0) + share * scenario.weight / len(names)
        self.is_cut = self.is_cut or each.is_after_cut
        preemption = each.result.preemption if each.result else None
        self.preempts_in_part = self.preempts_in_part or (preemption is not None and preemption.is_sampled)
        self.sample = self.sample or (each.result.sample if each.result else None)
        if not each.landed:
            self.homeless = self.homeless or (scenario, each)
            self.homeless_weight += scenario.weight

    @property
    def homeless_share(self) -> float:
        """The probability that the pod finds no room. If unknown: 1 if it finds none in some scenario, otherwise 0."""
        if self.homeless is None:
            return 0.0
        landed = sum(self.weights.values())
        return self.homeless_weight / (self.homeless_weight + landed) if landed else 1.0


def landings(scenarios: Sequence[Scenario]) -> dict[str, Landing]:
    """By key, the combined result of each pod that is displaced in the main scenario, which is the first of
    `scenarios`."""
    main = scenarios[0]
    said = {key: Landing(each) for key, each in main.displaced.items()}
    for key, each in main.displaced.items():
        said[key].add(main, each)
    for scenario in scenarios[1:]:
        theirs = _by_owner(scenario.displaced.values())
        for owner, mine in _by_owner(main.displaced.values()).items():
            for key, each in _matched([said[each.pod.key] for each in mine], theirs.get(owner, [])):
                said[key].add(scenario, each)
    return said


def _by_owner(displaced: Iterable[Displaced]) -> dict[Hashable, list[Displaced]]:
    groups: dict[Hashable, list[Displaced]] = {}
    for each in displaced:
        groups.setdefault(_owner(each.pod), []).append(each)
    return groups


def _owner(pod: Pod) -> Hashable:
    return (pod.namespace, pod.owner) if pod.owner else pod.key


def _matched(slots: Sequence[Landing], others: Sequence[Displaced]) -> list[tuple[str, Displaced]]:
    """Pairs the replicas of one owner in the main scenario (`slots`, by key) with those in another one.

    First those on the same node in both. Then each remaining replica with a result to which it adds nothing new: one
    that already lists its node or, for a replica without a node, one that may already find no room. The rest in order.
    """
    free, left, pairs = list(slots), list(others), []
    for agrees in (_same_place, _nothing_new, _whatever):
        for slot in tuple(free):
            each = next((each for each in left if agrees(slot, each)), None)
            if each is not None:
                free.remove(slot)
                left.remove(each)
                pairs.append((slot.main.pod.key, each))
    return pairs


def _same_place(slot: Landing, each: Displaced) -> bool:
    return slot.main.replacement.node_name == each.replacement.node_name


def _nothing_new(slot: Landing, each: Displaced) -> bool:
    return each.replacement.node_name in slot.nodes if each.landed else slot.homeless is not None


def _whatever(_slot: Landing, _each: Displaced) -> bool:
    return True

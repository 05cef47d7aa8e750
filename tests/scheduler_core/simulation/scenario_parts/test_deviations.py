"""Tests when a real scheduling cycle may deviate from the computed cycle: only if one of the scheduler's parallel
workers is ahead of another worker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult, NodeSample
from scheduler_core.sampling import Search
from scheduler_core.simulation.scenario_parts.deviations import (
    AHEAD,
    STEPS,
    equals_of,
    goes_elsewhere,
    moves_start,
    predicted_node,
    taken_ahead,
    taken_in_order,
)
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.testing.builders import a_node, a_pod, manifests

INCOMING = a_pod("incoming").requesting(cpu="2")


def cluster(nodes: int, refusing: int) -> Snapshot:
    """Returns a cluster with `nodes` nodes and a pending pod. Every fourth node, beginning with the first node, is too
    small for the pod, until `refusing` nodes are too small."""
    small = frozenset(range(0, 4 * refusing, 4))
    made = [a_node(f"n{number:03}").offering(cpu="1" if number in small else "4") for number in range(nodes)]
    return load_objects(manifests(made, INCOMING))


def cycle(nodes: int = 200, refusing: int = 20) -> CycleResult:
    world = cluster(nodes, refusing)
    return Scheduler().schedule(world, world.pending[0], search=Search())


def test_a_cycle_that_checks_every_node_cannot_deviate_from_the_computed_cycle() -> None:
    result = cycle(nodes=140, refusing=35)
    assert result.sample is not None
    few = cycle(nodes=110, refusing=20)
    assert few.sample is None
    assert (moves_start(few), goes_elsewhere(few)) == (0.0, 0.0)


def test_the_next_search_starts_at_the_computed_node_if_no_node_refused_the_pod() -> None:
    assert moves_start(cycle(refusing=0)) == 0.0


def test_a_deviation_of_the_next_search_start_is_more_likely_if_more_nodes_refuse_the_pod() -> None:
    """The start of the next search deviates if this start is not the computed start. In the tested cycles, one worker
    is ahead of another worker, and the search finds 100 nodes that fit. If the search checked only these 100 nodes, the
    probability of a deviation is 0. If the search also checked 99 nodes that refuse the pod, the probability is above
    95 %."""
    result = cycle(refusing=0)
    looked_at = NodeSample(100, 200)
    chances = [moves_start(replace(result, sample=looked_at, evaluated=evaluated)) for evaluated in range(100, 200)]
    assert chances == sorted(chances)
    assert chances[0] == 0.0
    assert 0.05 < chances[1] < 0.1
    assert chances[-1] > 0.95


@pytest.mark.parametrize("refusing", [0, 20])
def test_the_probabilities_of_best_nodes_and_all_other_nodes_add_up_to_one(refusing: int) -> None:
    result = cycle(refusing=refusing)
    names = [f"n{number:03}" for number in range(200)]
    total = sum(taken_in_order(result, name) + taken_ahead(result, name) for name in names)
    assert total == pytest.approx(1.0 - AHEAD * goes_elsewhere(result))


def test_the_pod_gets_another_node_of_equal_score_only_if_one_worker_is_ahead_of_another_worker() -> None:
    """The scheduler's workers check nodes in parallel. A worker is ahead if it checks nodes earlier than in the
    computed cycle. If no worker is ahead, the pod gets the computed node. If a worker is ahead, all nodes of equal
    score are equally likely."""
    result = cycle(refusing=0)
    other = next(name for name in result.best if name != result.node)
    assert result.node == predicted_node(result)
    assert taken_in_order(result, other) == 0.0
    assert taken_ahead(result, other) == taken_ahead(result, predicted_node(result)) > 0.0
    assert other in equals_of(result)


def test_no_node_is_predicted_for_a_cycle_in_which_no_node_fits() -> None:
    world = load_objects(manifests([a_node(f"n{number}").offering(cpu="1") for number in range(120)], INCOMING))
    result = Scheduler().schedule(world, world.pending[0], search=Search())
    assert (predicted_node(result), equals_of(result), moves_start(result)) == ("", (), 0.0)
    assert taken_in_order(result, "n1") == taken_ahead(result, "n1") == 0.0


def test_a_deviation_of_the_next_search_start_is_equally_likely_in_both_directions() -> None:
    assert sum(STEPS.values()) == pytest.approx(1.0)
    assert all(STEPS[step] == STEPS[-step] for step in STEPS)
    assert 0 not in STEPS

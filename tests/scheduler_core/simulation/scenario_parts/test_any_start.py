"""Tests how a forecast covers searches that it did not simulate. The scheduler's search may start at any node of its
list. A forecast simulates searches from only some start nodes. For each node, the forecast also computes the
probability that a search from a random start node would choose this node. The forecast combines these probabilities
with the results of the simulated searches."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from scheduler_core.cycle import Scheduler
from scheduler_core.sampling import Search
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.simulation.forecast import PodForecast
from scheduler_core.simulation.scenario_parts.any_start import shares_of_any_start, weighed
from scheduler_core.simulation.searches import Shares
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod, manifests
from tests.scheduler_core.learning.test_search_estimate import a_cluster, an_incoming_pod

SCHEDULER = Scheduler()


def counted(seed: int, *, is_order_known: bool) -> dict[str, float]:
    world, pod = a_cluster(seed, nodes=230), an_incoming_pod(seed, random.Random(seed))
    shares = shares_of_any_start(SCHEDULER.schedule(world, pod), 105, is_order_known=is_order_known)
    return {name: share for (name,), share in shares}


@pytest.mark.parametrize("seed", range(4))
def test_with_a_known_node_order_every_search_start_is_equally_likely(seed: int) -> None:
    world, pod = a_cluster(seed, nodes=230), an_incoming_pod(seed, random.Random(seed))
    results = SCHEDULER.schedule_each(world, pod, [Search(start) for start in range(230)])
    taken: Counter[str] = Counter()
    for result in results:
        for name in result.best:
            taken[name] += 1 / len(result.best) / 230
    shares = counted(seed, is_order_known=True)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert sum(abs(shares.get(name, 0.0) - taken[name]) for name in {*shares, *taken}) < 0.1


@pytest.mark.parametrize("seed", range(4))
def test_with_an_unknown_node_order_the_computed_and_a_random_order_are_equally_likely(seed: int) -> None:
    """The result for an unknown order is the mean of two results: the result for the computed order, and the result
    for a random order."""
    world, pod = a_cluster(seed, nodes=230), an_incoming_pod(seed, random.Random(seed))
    results = SCHEDULER.schedule_each(world, pod, [Search(0, shuffle=number) for number in range(1, 1001)])
    taken = Counter(name for result in results for name in result.best if len(result.best) == 1)
    by_age, mixed = (counted(seed, is_order_known=each) for each in (True, False))
    for name, times in taken.items():
        random_share = 2 * mixed.get(name, 0.0) - by_age.get(name, 0.0)
        assert times / 1000 <= random_share + 0.07


PRIOR: Shares = ((("a",), 0.4), (("b",), 0.3), (("c", "d"), 0.2), (("e",), 0.1))


def test_a_node_that_every_simulated_search_chooses_stays_nearly_certain() -> None:
    weights = weighed({"z": 1.0}, 160, PRIOR)
    assert weights["z"] > 0.99
    assert sum(weights.values()) == pytest.approx(1.0)


def test_the_combined_estimate_includes_nodes_that_the_simulated_searches_missed() -> None:
    """Each of 200 nodes has a true probability, and 32 simulated searches find only some of these nodes. `_held` takes
    the most likely nodes of an estimate, until they have 95 % of the estimate, and returns their true probability. This
    true probability is below 80 % for the simulated searches alone. It is above 93 % after `weighed` has combined the
    simulated searches with the probabilities of all nodes."""
    chance, nodes = np.random.default_rng(1), [f"n{number}" for number in range(200)]
    true = 0.9 ** np.arange(200)
    true /= true.sum()
    prior: Shares = tuple(((name,), float(share)) for name, share in zip(nodes, true, strict=True))
    held_alone, held = 0.0, 0.0
    for _ in range(50):
        counts = Counter(chance.choice(nodes, 32, p=true).tolist())
        alone = {name: times / 32 for name, times in counts.items()}
        held_alone += _held(alone, dict(zip(nodes, true, strict=True))) / 50
        held += _held(weighed(alone, 32, prior), dict(zip(nodes, true, strict=True))) / 50
    assert held_alone < 0.8
    assert held > 0.93


def _held(weights: dict[str, float], true: dict[str, float]) -> float:
    held, inside = 0.0, 0.0
    for name, weight in sorted(weights.items(), key=lambda pair: -pair[1]):
        if held >= 0.95 * sum(weights.values()):
            break
        held += weight
        inside += true[name]
    return inside


@pytest.mark.parametrize(
    ("counts", "number", "prior"),
    [
        pytest.param({}, 32, PRIOR, id="no simulated search found a node"),
        pytest.param({"a": 1.0}, 1, PRIOR, id="only one search was simulated"),
        pytest.param({"a": 0.5, "b": 0.5}, 32, (), id="the estimate over all start nodes is empty"),
    ],
)
def test_the_node_weights_stay_unchanged_if_an_estimate_has_too_little_data(
    counts: dict[str, float], number: int, prior: Shares
) -> None:
    assert weighed(counts, number, prior) == counts


def test_the_combined_node_weights_have_the_same_sum_as_the_weights_of_the_simulated_searches() -> None:
    assert sum(weighed({"a": 0.2, "b": 0.1}, 8, PRIOR).values()) == pytest.approx(0.3)


def forecast(**more: Any) -> PodForecast:
    """Returns the forecast of one pod in a cluster of 400 nodes, each of which already runs a pod."""
    mine = a_pod("mine").requesting(cpu="300m").owned_by("ReplicaSet", "mine").on("n000")
    (pod,) = load_objects(manifests(a_node("n000"), mine)).placed_pods
    world = a_cluster(1, nodes=400).with_pod_placed(pod, "n000")
    (said,) = simulate_drain(world, ["n000"], made_at="", **more)
    return next(each for each in said.pods if each.name == "mine")


def test_a_forecast_with_few_searches_also_lists_nodes_that_no_search_found() -> None:
    few, many = forecast(most_scenarios=4), forecast(most_scenarios=160)
    assert set(many.landing) <= set(few.landing)


def test_a_forecast_lists_fewer_nodes_if_the_search_start_is_known() -> None:
    assert len(forecast(most_scenarios=4, start=7).landing) < len(forecast(most_scenarios=4).landing)

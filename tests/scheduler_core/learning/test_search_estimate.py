"""Tests the estimate of the search start: the node that the scheduler will check first for the next pod. The estimate
is learned from bindings, and must not be more certain than the bindings justify.

In these tests, scheduler_core's own scheduler makes the bindings. The estimate does not know at which node the first
search began."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.learning.search_estimate import MOST_FOLLOWED, SearchEstimate
from scheduler_core.model.pod import Pod
from scheduler_core.sampling import Search
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.simulation.searches import Likely
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.testing.builders import a_node, a_pod, manifests
from scheduler_core.values import replace_value

SCHEDULER = Scheduler()
NODES = 130


def a_cluster(seed: int, nodes: int = NODES) -> Snapshot:
    """Returns a cluster with nodes of three sizes in three zones, and one pod on each node."""
    chance = random.Random(seed)
    made = [
        a_node(f"n{number:03}")
        .offering(cpu=chance.choice(["4", "8", "16"]))
        .labelled(topology__kubernetes__io_zone="abc"[number % 3])
        for number in range(nodes)
    ]
    loads = [
        a_pod(f"load-{number}").requesting(cpu=f"{chance.randrange(1, 40)}00m").on(f"n{number:03}")
        for number in range(nodes)
    ]
    return load_objects(manifests(made, loads))


def an_incoming_pod(number: int, chance: random.Random) -> Pod:
    pod = a_pod(f"comer-{number}").requesting(
        cpu=f"{chance.randrange(1, 20)}00m", memory=f"{chance.randrange(1, 9)}00Mi"
    )
    return load_objects(manifests(pod)).pending[0]


@dataclass
class HiddenScheduler:
    """Schedules one pod after another. The estimate does not know at which node the search for the first pod begins."""

    world: Snapshot
    search: Search
    chance: random.Random
    number: int = 0

    def bindings(self, count: int) -> Iterator[tuple[Snapshot, Pod, str]]:
        """Yields `count` bindings. Each binding is a tuple of the cluster before the binding, the pod, and the pod's
        node.
        """
        for _ in range(count):
            pod, before = an_incoming_pod(self.number, self.chance), self.world
            self.number += 1
            result = SCHEDULER.schedule(before, pod, search=self.search)
            assert result.node is not None
            assert result.next_start is not None
            self.search = replace_value(self.search, start=result.next_start)
            self.world = before.with_pod_placed(pod, result.node)
            yield before, pod, result.node


def hidden(seed: int, **search: Any) -> HiddenScheduler:
    return HiddenScheduler(a_cluster(seed), Search(seed * 37 % NODES, **search), random.Random(seed))


def learned(scheduler: HiddenScheduler, count: int, estimate: SearchEstimate | None = None) -> SearchEstimate:
    estimate = estimate or SearchEstimate.unknown(scheduler.world, SCHEDULER)
    for world, pod, node in scheduler.bindings(count):
        estimate = estimate.after_binding(estimate.expect(world, SCHEDULER, pod), node)
    return estimate


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_bindings_reveal_where_the_next_search_starts_and_the_number_of_workers(seed: int, workers: int) -> None:
    scheduler = hidden(seed, workers=workers)
    estimate = learned(scheduler, 20)
    assert estimate.bindings == 20
    (likeliest, _), *_ = estimate.starts()
    assert likeliest == scheduler.search.start
    assert max(estimate.followed, key=lambda each: each.weight).search.workers == workers
    assert estimate.doubt < 0.05


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_twenty_bindings_shrink_the_predicted_set_of_nodes(seed: int) -> None:
    scheduler = hidden(seed, workers=2)
    estimate = unknown = SearchEstimate.unknown(scheduler.world, SCHEDULER)
    estimate = learned(scheduler, 20, estimate)
    inside = mine = without = 0
    for world, pod, node in scheduler.bindings(20):
        expected = estimate.expect(world, SCHEDULER, pod)
        inside += node in expected.named
        mine += len(expected.named)
        without += len(unknown.expect(world, SCHEDULER, pod).named)
        estimate = estimate.after_binding(expected, node)
    assert inside >= 19
    assert mine <= without * 0.75


def test_the_probabilities_of_known_and_unknown_searches_add_up_to_one() -> None:
    scheduler, chance = hidden(4), random.Random(4)
    estimate = SearchEstimate.unknown(scheduler.world, SCHEDULER)
    for world, pod, _ in scheduler.bindings(12):
        expected = estimate.expect(world, SCHEDULER, pod)
        assert sum(expected.shares.values()) == pytest.approx(1.0)
        assert list(expected.shares.values()) == sorted(expected.shares.values(), reverse=True)
        estimate = estimate.after_binding(expected, chance.choice(world.node_names))
        assert sum(each.weight for each in estimate.followed) + estimate.doubt == pytest.approx(1.0)
        assert all(each.weight > 0 for each in estimate.followed)
        assert 0 < len(estimate.followed) <= MOST_FOLLOWED


def test_predictions_stay_right_with_an_unknown_node_order() -> None:
    scheduler = hidden(5, shuffle=4711)
    estimate = learned(scheduler, 20)
    assert estimate.doubt > 0.25
    inside = 0
    for world, pod, node in scheduler.bindings(20):
        expected = estimate.expect(world, SCHEDULER, pod)
        inside += node in expected.named
        estimate = estimate.after_binding(expected, node)
    assert inside >= 18


def test_the_estimate_recovers_after_the_scheduler_restarts() -> None:
    scheduler = hidden(6)
    estimate = learned(scheduler, 20)
    before = estimate.starts()[0]
    scheduler.search = replace_value(scheduler.search, start=(scheduler.search.start + NODES // 2) % NODES)
    estimate = learned(scheduler, 2, estimate)
    assert dict(estimate.starts()).get(scheduler.search.start, 0.0) < before[1] / 2
    estimate = learned(scheduler, 25, estimate)
    assert estimate.starts()[0][0] == scheduler.search.start


def test_a_single_binding_that_was_not_predicted_weakens_the_estimate_only_slightly() -> None:
    scheduler = hidden(7)
    estimate = learned(scheduler, 20)
    ((world, pod, _),) = scheduler.bindings(1)
    expected = estimate.expect(world, SCHEDULER, pod)
    elsewhere = next(name for name in world.node_names if name not in expected.shares)
    assert estimate.after_binding(expected, elsewhere).doubt < estimate.doubt + 0.05
    assert estimate.after_binding(expected, "no such node").doubt < estimate.doubt + 0.05


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_the_estimated_search_start_stays_near_the_true_start_after_a_binding_of_an_unknown_pod(seed: int) -> None:
    """The estimate has not observed the cycle of the unknown pod. The estimate assumes that this cycle probably moved
    the search start by as many nodes as one of the observed cycles did."""
    scheduler = hidden(seed)
    estimate = learned(scheduler, 20)
    list(scheduler.bindings(1))
    after = estimate.after_unknown_binding(scheduler.world)
    near = {(scheduler.search.start + step) % NODES for step in range(-6, 7)}
    assert sum(weight for start, weight in after.starts() if start in near) > 0.4
    assert sum(each.weight for each in after.followed) + after.doubt == pytest.approx(1.0)
    assert {each.search.workers for each in after.followed} <= {each.search.workers for each in estimate.followed}
    assert (after.bindings, after.strides) == (estimate.bindings, estimate.strides)


def test_predictions_stay_right_if_every_third_bound_pod_is_unknown() -> None:
    """If the estimate ignored the bindings of unknown pods, it would be too certain, and more predictions would be
    wrong."""
    inside = {True: 0, False: 0}
    for seed in range(31, 37):
        for is_told in inside:
            scheduler = hidden(seed)
            estimate = learned(scheduler, 20)
            for number, (world, pod, node) in enumerate(scheduler.bindings(24)):
                if number % 3 == 2:
                    estimate = estimate.after_unknown_binding(world) if is_told else estimate
                    continue
                expected = estimate.expect(world, SCHEDULER, pod)
                inside[is_told] += node in expected.named
                estimate = estimate.after_binding(expected, node)
    assert inside[True] >= 0.93 * 6 * 16
    assert inside[True] > inside[False]


def test_without_observed_cycles_a_binding_of_an_unknown_pod_makes_all_start_nodes_equally_likely() -> None:
    """The cycle of an unknown pod was not observed, but the binding of this pod also moves the search start. From
    observed cycles, the estimate would know how far a binding usually moves the start."""
    world = a_cluster(24)
    after = SearchEstimate(followed=(Likely(Search(7, 2, -1), 0.9),), doubt=0.1).after_unknown_binding(world)
    assert len(after.starts()) == NODES
    assert max(weight for _, weight in after.starts()) == pytest.approx(0.9 / NODES)
    assert SearchEstimate().after_unknown_binding(world) == SearchEstimate()
    assert after.after_unknown_binding(load_objects([])) == after


def test_the_estimate_remembers_how_far_the_last_cycles_moved_the_search_start() -> None:
    scheduler = hidden(25)
    estimate, moved = SearchEstimate.unknown(scheduler.world, SCHEDULER), []
    for _ in range(40):
        start = scheduler.search.start
        estimate = learned(scheduler, 1, estimate)
        moved.append((scheduler.search.start - start) % NODES)
    assert len(estimate.strides) == 32
    assert sum(mine == true for mine, true in zip(estimate.strides[-20:], moved[-20:], strict=True)) >= 18


def test_every_search_of_a_forecast_uses_what_was_learned_about_the_distance_between_search_starts() -> None:
    scheduler = hidden(26)
    estimate = replace_value(learned(scheduler, 10), others=2.0)
    (others,) = {each.others for each in estimate.searches(scheduler.world, SCHEDULER, 16)}
    (strides,) = {each.strides for each in estimate.searches(scheduler.world, SCHEDULER, 16)}
    assert (others, strides) == (2.0, estimate.strides)


def test_nothing_is_learned_if_the_scheduler_checks_every_node() -> None:
    small = a_cluster(8, nodes=99)
    estimate = SearchEstimate.unknown(small, SCHEDULER)
    assert estimate == SearchEstimate()
    assert estimate.searches(small, SCHEDULER, 32) == ()
    expected = estimate.expect(small, SCHEDULER, an_incoming_pod(1, random.Random(1)))
    assert not expected.is_sampled
    assert sum(expected.shares.values()) == pytest.approx(1.0)
    assert estimate.after_binding(expected, expected.named[0]) is estimate


def test_learning_begins_when_the_cluster_grows_beyond_a_hundred_nodes() -> None:
    scheduler = HiddenScheduler(a_cluster(9), Search(55), random.Random(9))
    estimate = learned(scheduler, 25, SearchEstimate())
    assert estimate.starts()[0][0] == scheduler.search.start


def test_a_search_start_beyond_the_last_node_wraps_to_the_first_nodes() -> None:
    scheduler = hidden(10)
    estimate = learned(scheduler, 5)
    scheduler.world = a_cluster(11, nodes=101)
    learned(scheduler, 3, estimate)


def test_a_prediction_for_a_pod_of_another_scheduler_is_an_error() -> None:
    world = a_cluster(12)
    estimate = SearchEstimate.unknown(world, SCHEDULER)
    pod = an_incoming_pod(1, random.Random(1))
    foreign = replace_value(pod, spec=replace(pod.spec, scheduler_name="another"))
    with pytest.raises(NoProfileError):
        estimate.expect(world, SCHEDULER, foreign)


def test_no_search_start_is_learned_for_a_scheduler_that_searches_all_nodes() -> None:
    all_nodes = Scheduler(Configuration(percentage_of_nodes_to_score=100))
    assert SearchEstimate.unknown(a_cluster(13), all_nodes) == SearchEstimate()


def test_a_forecast_lists_fewer_nodes_if_the_search_start_was_learned() -> None:
    scheduler = hidden(14)
    estimate = learned(scheduler, 20)
    mine = a_pod("mine").requesting(cpu="300m").owned_by("ReplicaSet", "mine").on("n000")
    pod = load_objects(manifests(a_node("n000"), mine)).placed_pods[0]
    world = scheduler.world.with_pod_placed(pod, "n000")
    searches = estimate.searches(world, SCHEDULER, 64)
    assert len(searches) == 64
    assert {each.weight for each in searches} == {1 / 64}
    (blind,) = simulate_drain(world, ["n000"], made_at="")
    (told,) = simulate_drain(world, ["n000"], made_at="", searches=searches)
    sizes = [next(len(each.landing) for each in said.pods if each.name == "mine") for said in (blind, told)]
    assert sizes[1] < sizes[0]

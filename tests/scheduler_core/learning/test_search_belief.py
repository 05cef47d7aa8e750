"""Tests the belief about the start of the scheduler's next search, which is learned from bindings. The belief is never
more certain than the bindings justify.

The bindings come from scheduler_core's own scheduler, whose start the belief does not know.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.learning.search_belief import MOST_FOLLOWED, SearchBelief
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
    """Schedules one pod after another, from a start that the belief does not know."""

    world: Snapshot
    search: Search
    chance: random.Random
    number: int = 0

    def bindings(self, count: int) -> Iterator[tuple[Snapshot, Pod, str]]:
        """Yields `count` bindings: the cluster before the binding, the pod, and its node."""
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


def learned(scheduler: HiddenScheduler, count: int, belief: SearchBelief | None = None) -> SearchBelief:
    belief = belief or SearchBelief.unknown(scheduler.world, SCHEDULER)
    for world, pod, node in scheduler.bindings(count):
        belief = belief.told(belief.expect(world, SCHEDULER, pod), node)
    return belief


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_start_and_the_number_of_workers_are_learned_from_twenty_bindings(seed: int, workers: int) -> None:
    scheduler = hidden(seed, workers=workers)
    belief = learned(scheduler, 20)
    assert belief.bindings == 20
    (likeliest, _), *_ = belief.starts()
    assert likeliest == scheduler.search.start
    assert max(belief.followed, key=lambda each: each.weight).search.workers == workers
    assert belief.doubt < 0.05


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_twenty_bindings_shrink_the_predicted_set_of_nodes(seed: int) -> None:
    scheduler = hidden(seed, workers=2)
    belief = unknown = SearchBelief.unknown(scheduler.world, SCHEDULER)
    belief = learned(scheduler, 20, belief)
    inside = mine = without = 0
    for world, pod, node in scheduler.bindings(20):
        expected = belief.expect(world, SCHEDULER, pod)
        inside += node in expected.named
        mine += len(expected.named)
        without += len(unknown.expect(world, SCHEDULER, pod).named)
        belief = belief.told(expected, node)
    assert inside >= 19
    assert mine <= without * 0.75


def test_weights_and_doubt_add_up_to_one_after_any_bindings() -> None:
    scheduler, chance = hidden(4), random.Random(4)
    belief = SearchBelief.unknown(scheduler.world, SCHEDULER)
    for world, pod, _ in scheduler.bindings(12):
        expected = belief.expect(world, SCHEDULER, pod)
        assert sum(expected.shares.values()) == pytest.approx(1.0)
        assert list(expected.shares.values()) == sorted(expected.shares.values(), reverse=True)
        belief = belief.told(expected, chance.choice(world.node_names))
        assert sum(each.weight for each in belief.followed) + belief.doubt == pytest.approx(1.0)
        assert all(each.weight > 0 for each in belief.followed)
        assert 0 < len(belief.followed) <= MOST_FOLLOWED


def test_predictions_stay_right_with_an_unknown_node_order() -> None:
    scheduler = hidden(5, shuffle=4711)
    belief = learned(scheduler, 20)
    assert belief.doubt > 0.25
    inside = 0
    for world, pod, node in scheduler.bindings(20):
        expected = belief.expect(world, SCHEDULER, pod)
        inside += node in expected.named
        belief = belief.told(expected, node)
    assert inside >= 18


def test_the_belief_recovers_after_the_scheduler_restarts() -> None:
    scheduler = hidden(6)
    belief = learned(scheduler, 20)
    before = belief.starts()[0]
    scheduler.search = replace_value(scheduler.search, start=(scheduler.search.start + NODES // 2) % NODES)
    belief = learned(scheduler, 2, belief)
    assert dict(belief.starts()).get(scheduler.search.start, 0.0) < before[1] / 2
    belief = learned(scheduler, 25, belief)
    assert belief.starts()[0][0] == scheduler.search.start


def test_a_binding_that_no_search_predicted_adds_little_doubt() -> None:
    scheduler = hidden(7)
    belief = learned(scheduler, 20)
    ((world, pod, _),) = scheduler.bindings(1)
    expected = belief.expect(world, SCHEDULER, pod)
    elsewhere = next(name for name in world.node_names if name not in expected.shares)
    assert belief.told(expected, elsewhere).doubt < belief.doubt + 0.05
    assert belief.told(expected, "no such node").doubt < belief.doubt + 0.05


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_the_binding_of_an_unknown_pod_moves_the_start_by_an_observed_stride(seed: int) -> None:
    scheduler = hidden(seed)
    belief = learned(scheduler, 20)
    list(scheduler.bindings(1))
    after = belief.unseen(scheduler.world)
    near = {(scheduler.search.start + step) % NODES for step in range(-6, 7)}
    assert sum(weight for start, weight in after.starts() if start in near) > 0.4
    assert sum(each.weight for each in after.followed) + after.doubt == pytest.approx(1.0)
    assert {each.search.workers for each in after.followed} <= {each.search.workers for each in belief.followed}
    assert (after.bindings, after.strides) == (belief.bindings, belief.strides)


def test_predictions_stay_right_if_every_third_bound_pod_is_unknown() -> None:
    """A belief that ignores the bindings of unknown pods is too certain, so more of its predictions are wrong."""
    inside = {True: 0, False: 0}
    for seed in range(31, 37):
        for is_told in inside:
            scheduler = hidden(seed)
            belief = learned(scheduler, 20)
            for number, (world, pod, node) in enumerate(scheduler.bindings(24)):
                if number % 3 == 2:
                    belief = belief.unseen(world) if is_told else belief
                    continue
                expected = belief.expect(world, SCHEDULER, pod)
                inside[is_told] += node in expected.named
                belief = belief.told(expected, node)
    assert inside[True] >= 0.93 * 6 * 16
    assert inside[True] > inside[False]


def test_an_unknown_binding_before_any_observed_cycle_makes_all_starts_equally_likely() -> None:
    world = a_cluster(24)
    after = SearchBelief(followed=(Likely(Search(7, 2, -1), 0.9),), doubt=0.1).unseen(world)
    assert len(after.starts()) == NODES
    assert max(weight for _, weight in after.starts()) == pytest.approx(0.9 / NODES)
    assert SearchBelief().unseen(world) == SearchBelief()
    assert after.unseen(load_objects([])) == after


def test_the_belief_keeps_the_strides_of_the_last_observed_cycles() -> None:
    scheduler = hidden(25)
    belief, moved = SearchBelief.unknown(scheduler.world, SCHEDULER), []
    for _ in range(40):
        start = scheduler.search.start
        belief = learned(scheduler, 1, belief)
        moved.append((scheduler.search.start - start) % NODES)
    assert len(belief.strides) == 32
    assert sum(mine == true for mine, true in zip(belief.strides[-20:], moved[-20:], strict=True)) >= 18


def test_learned_searches_have_the_rate_and_the_strides_of_other_pods() -> None:
    scheduler = hidden(26)
    belief = replace_value(learned(scheduler, 10), others=2.0)
    (others,) = {each.others for each in belief.searches(scheduler.world, SCHEDULER, 16)}
    (strides,) = {each.strides for each in belief.searches(scheduler.world, SCHEDULER, 16)}
    assert (others, strides) == (2.0, belief.strides)


def test_if_every_node_is_checked_nothing_is_learned() -> None:
    small = a_cluster(8, nodes=99)
    belief = SearchBelief.unknown(small, SCHEDULER)
    assert belief == SearchBelief()
    assert belief.searches(small, SCHEDULER, 32) == ()
    expected = belief.expect(small, SCHEDULER, an_incoming_pod(1, random.Random(1)))
    assert not expected.is_sampled
    assert sum(expected.shares.values()) == pytest.approx(1.0)
    assert belief.told(expected, expected.named[0]) is belief


def test_learning_begins_when_the_cluster_grows_beyond_a_hundred_nodes() -> None:
    scheduler = HiddenScheduler(a_cluster(9), Search(55), random.Random(9))
    belief = learned(scheduler, 25, SearchBelief())
    assert belief.starts()[0][0] == scheduler.search.start


def test_a_start_beyond_the_last_node_wraps_to_the_first_nodes() -> None:
    scheduler = hidden(10)
    belief = learned(scheduler, 5)
    scheduler.world = a_cluster(11, nodes=101)
    learned(scheduler, 3, belief)


def test_pods_of_another_scheduler_give_no_information() -> None:
    world = a_cluster(12)
    belief = SearchBelief.unknown(world, SCHEDULER)
    pod = an_incoming_pod(1, random.Random(1))
    foreign = replace_value(pod, spec=replace(pod.spec, scheduler_name="another"))
    with pytest.raises(NoProfileError):
        belief.expect(world, SCHEDULER, foreign)


def test_a_scheduler_that_searches_all_nodes_has_no_start_to_learn() -> None:
    all_nodes = Scheduler(Configuration(percentage_of_nodes_to_score=100))
    assert SearchBelief.unknown(a_cluster(13), all_nodes) == SearchBelief()


def test_a_forecast_with_a_learned_start_lists_fewer_nodes() -> None:
    scheduler = hidden(14)
    belief = learned(scheduler, 20)
    mine = a_pod("mine").requesting(cpu="300m").owned_by("ReplicaSet", "mine").on("n000")
    pod = load_objects(manifests(a_node("n000"), mine)).placed_pods[0]
    world = scheduler.world.with_pod_placed(pod, "n000")
    searches = belief.searches(world, SCHEDULER, 64)
    assert len(searches) == 64
    assert {each.weight for each in searches} == {1 / 64}
    (blind,) = simulate_drain(world, ["n000"], made_at="")
    (told,) = simulate_drain(world, ["n000"], made_at="", searches=searches)
    sizes = [next(len(each.landing) for each in said.pods if each.name == "mine") for said in (blind, told)]
    assert sizes[1] < sizes[0]

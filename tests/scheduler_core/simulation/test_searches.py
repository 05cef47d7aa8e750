"""Tests drains whose scheduler checks only a part of the nodes. The scheduler's search may begin at any node. The
forecast simulates searches from many of these start nodes. The forecast must list every node that a pod may get, and
may call a node certain only if every search chooses this node."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration, ExtenderSettings
from scheduler_core.cycle import Scheduler
from scheduler_core.sampling import Search
from scheduler_core.simulation.drain import _first_scenario, most_searches, run_drain, simulate_drain
from scheduler_core.simulation.evicted.replacements import moves_all
from scheduler_core.simulation.forecast import Forecast, Outcome
from scheduler_core.simulation.scenarios import Scenario, follow
from scheduler_core.simulation.searches import MOST_SEARCHES, Likely, after_others, possible_searches
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot
from tests.scheduler_core.simulation.test_drain import a_budget, a_node, a_pod

Manifest = dict[str, Any]


def loads(count: int, cpu: str = "3") -> list[Manifest]:
    return [a_pod(f"load-{number}", f"n{number:04}", cpu=cpu, app="load") for number in range(1, count)]


def forecast(objects: list[Manifest], **more: Any) -> Forecast:
    return simulate_drain(load_objects(objects), ["n0000"], made_at="", **more)[0]


def drawn_cluster(seed: int) -> Snapshot:
    """Returns a cluster with replicas of several owners on the node n0000. Some pods fit on few nodes only,
    and some are under a budget."""
    chance = random.Random(seed)
    count = chance.choice([120, 150, 220])
    nodes = [
        a_node(
            f"n{number:04}", zone="abc"[number % 3], cpu=chance.choice(["4", "8"]), few="yes" if number < 6 else "no"
        )
        for number in range(count)
    ]
    mine = [
        a_pod(
            f"p{number}",
            "n0000",
            cpu=f"{chance.randrange(1, 20)}00m",
            app=f"w{chance.randrange(4)}",
            owner=chance.choice(["ReplicaSet", "StatefulSet", "StatefulSet"]),
            **({"nodeSelector": {"few": "yes"}} if chance.random() < 0.5 else {}),
        )
        for number in range(chance.randrange(3, 9))
    ]
    budgets = [a_budget(1, app="w1")] if chance.random() < 0.5 else []
    return load_objects([*nodes, *loads(count, "1"), *mine, *budgets])


def scenarios_of(snapshot: Snapshot, most: int) -> list[Scenario]:
    scheduler = Scheduler()
    first = _first_scenario(snapshot, ["n0000"], scheduler, moves_all, with_pending=False)
    first.searches = possible_searches(snapshot, scheduler, most)
    return follow(first, max(most, len(first.searches)))


@pytest.mark.parametrize("most", [MOST_SEARCHES, 8])
@pytest.mark.parametrize("seed", range(8))
def test_the_weights_of_all_scenarios_add_up_to_one(seed: int, most: int) -> None:
    scenarios = scenarios_of(drawn_cluster(seed), most)
    assert sum(scenario.weight for scenario in scenarios) == pytest.approx(1.0)
    assert [scenario.is_main for scenario in scenarios].count(True) == 1
    assert len(scenarios) <= most


def test_a_scenario_keeps_no_scheduling_data_of_a_pod_that_was_placed() -> None:
    """Otherwise 160 scenarios with 100 pods each would keep 16,000 copies of the cluster's columns in memory."""
    scenarios = scenarios_of(drawn_cluster(3), MOST_SEARCHES)
    landed = [each for scenario in scenarios for each in scenario.displaced.values() if each.landed]
    assert landed
    assert all(each.result is not None and each.result.table is None and each.result.state is None for each in landed)


def test_a_forecast_of_a_large_cluster_reports_the_best_score_and_the_runner_up() -> None:
    made = simulate_drain(drawn_cluster(3), ["n0000"], made_at="")[0]
    assert any(pod.score is not None and pod.runner_up is not None for pod in made.pods)


def test_a_tie_is_reported_even_if_each_scenario_has_one_search() -> None:
    """The pods b and c may run only on the nodes n0001 and n0002. Both nodes are equally good for pod b. Neither node
    has room for both pods, so pod c gets the node that pod b does not get. The forecast first places the pods a0, a1
    and a2. Different searches choose different nodes for these three pods, and the forecast continues each result as a
    separate scenario. When pod b is placed, each scenario has only one search left and chooses only one node for pod b.
    The forecast must still list both nodes for pod b, and both nodes for pod c."""
    nodes = [a_node("n0000", cpu="64"), *(a_node(f"n{n:04}", cpu="8", two=str(n <= 2)) for n in range(1, 200))]
    before = [a_pod(f"a{n}", "n0000", cpu="200m", app=f"a{n}", nodeSelector={"two": "False"}) for n in range(3)]
    of_two = {"nodeSelector": {"two": "True"}}
    pods = [a_pod("b", "n0000", cpu="2", app="b", **of_two), a_pod("c", "n0000", cpu="4", app="c", **of_two)]
    made = forecast([*nodes, *loads(200), *before, *pods])
    assert [pod.landing for pod in made.pods if pod.name in "bc"] == [("n0001", "n0002")] * 2


def a_race(smalls: int) -> list[Manifest]:
    """Returns a cluster in which the pod `big` fits only on node n0001. If one of the small pods is placed on this
    node first, the pod `big` fits nowhere."""
    nodes = [a_node("n0000", cpu="64"), a_node("n0001", cpu="8", only="yes")]
    nodes += [a_node(f"n{number:04}", cpu="8") for number in range(2, 200)]
    small = [a_pod(f"a{number}", "n0000", cpu="200m", app=f"a{number}") for number in range(smalls)]
    big = a_pod("big", "n0000", cpu="5", app="big", nodeSelector={"only": "yes"})
    return [*nodes, a_pod("load-1", "n0001", cpu="2900m", app="load"), *loads(200)[1:], *small, big]


def test_the_sentence_about_a_moving_pod_says_how_often_the_pod_finds_no_room() -> None:
    (pod,) = [pod for pod in forecast(a_race(1)).pods if pod.name == "big"]
    assert (pod.outcome, pod.landing) == (Outcome.MOVES, ("n0001",))
    assert pod.sentence.endswith("; in 1 % of cases the pod finds no room")


def test_a_pod_that_often_finds_no_room_is_reported_as_pending() -> None:
    (pod,) = [pod for pod in forecast(a_race(40)).pods if pod.name == "big"]
    assert pod.outcome is Outcome.PENDING
    assert "% of cases" in pod.sentence or pod.sentence.startswith("finds room only in some scenarios")


@pytest.mark.parametrize(("others", "is_open"), [(99, False), (130, True)])
def test_the_forecast_of_a_preempting_pod_may_lack_nodes_if_the_search_for_victims_stops_early(
    others: int, is_open: bool
) -> None:
    """Each node has one pod of lower priority. The scheduler's search for victims begins at a random node and
    stops after a hundred nodes."""
    names = [f"n{number:04}" for number in range(others + 1)]
    less = [a_pod(f"less-{name}", name, cpu="3", app=f"less-{name}", priority=1) for name in names[1:]]
    urgent = a_pod("urgent", "n0000", cpu="2", app="urgent", priority=9)
    (pod,) = forecast([*(a_node(name, cpu="4") for name in names), *less, urgent]).pods
    assert (pod.outcome, pod.is_cut) == (Outcome.MOVES, is_open)
    assert ("beginning at a random node" in pod.sentence) is is_open


class Refusing:
    """An extender that lets five nodes pass and counts its calls."""

    asked = 0
    left = frozenset(f"n{number:04}" for number in range(150, 155))

    def __init__(self, _settings: ExtenderSettings) -> None: ...

    def post(self, _verb: str, body: bytes) -> bytes:
        Refusing.asked += 1
        names = json.loads(body)["NodeNames"]
        kept = [name for name in names if name in self.left]
        return json.dumps({"NodeNames": kept, "FailedNodes": {n: "no" for n in names if n not in kept}}).encode()


def test_a_drain_forecast_calls_an_extender_fewer_than_forty_times() -> None:
    settings: Mapping[str, Any] = {"urlPrefix": "http://x", "filterVerb": "filter", "nodeCacheCapable": True}
    configuration = Configuration.from_mapping({"extenders": [settings]})
    snapshot = load_objects([*(a_node(f"n{n:04}", cpu="8") for n in range(200)), *loads(200), a_pod("p", "n0000")])
    scheduler = Scheduler(configuration, transport=Refusing)
    Refusing.asked = 0
    searches = possible_searches(snapshot, scheduler)
    (pod,) = (
        run_drain(snapshot, ["n0000"], scheduler, with_details=False, searches=searches, most_scenarios=8)
        .forecasts[0]
        .pods
    )
    assert pod.landing
    assert set(pod.landing) <= Refusing.left
    assert Refusing.asked < 40


@pytest.mark.parametrize(
    ("extenders", "parallelism", "most", "counts"),
    [(0, 16, None, False), (0, 16, 20, True), (1, 16, None, False), (1, 16, 20, False), (0, 3, None, False)],
)
def test_a_forecast_considers_all_start_nodes_only_if_it_may_simulate_fewer_than_160_searches(
    monkeypatch: pytest.MonkeyPatch, extenders: int, parallelism: int, most: int | None, counts: bool
) -> None:
    """A forecast simulates searches from only some start nodes. If `counts_any_start` is True, the forecast also
    computes which nodes a pod may get if the search starts at any node.

    In a cluster with 200 nodes, the default limit is 160 searches, and `counts_any_start` is False. With a limit of 20
    searches, `counts_any_start` is True. With three workers and the default limit, the forecast simulates only 158
    searches. `counts_any_start` is still False, because only the limit decides. With an extender, `counts_any_start` is
    False for any limit, because an extender refuses nodes after the search has stopped.
    """
    given: list[bool] = []

    def run_drain(*_: Any, counts_any_start: bool, **__: Any) -> SimpleNamespace:
        given.append(counts_any_start)
        return SimpleNamespace(forecasts=())

    monkeypatch.setattr("scheduler_core.simulation.drain.run_drain", run_drain)
    monkeypatch.setattr("scheduler_core.cycle._over_http", Refusing)
    settings: Mapping[str, Any] = {"urlPrefix": "http://x", "filterVerb": "filter", "nodeCacheCapable": True}
    configuration = Configuration.from_mapping({"extenders": [settings] * extenders, "parallelism": parallelism})
    snapshot = load_objects([*(a_node(f"n{n:04}", cpu="8") for n in range(200)), *loads(200), a_pod("p", "n0000")])
    simulate_drain(snapshot, ["n0000"], made_at="", configuration=configuration, most_scenarios=most)
    assert given == [counts]


def test_a_forecast_is_incomplete_if_it_did_not_simulate_every_order_of_pods() -> None:
    """The start of the search and the order of the nodes are known, and the scheduler has one worker. So the forecast
    simulates only one search. But the pods of three StatefulSets may end in any order."""
    names = [f"n{number:04}" for number in range(150)]
    nodes = [a_node(name, cpu="8", few="yes" if name in names[:3] else "no") for name in names]
    few = {"nodeSelector": {"few": "yes"}}
    pods = [a_pod(f"s{n}", "n0000", cpu="3", app=f"s{n}", owner="StatefulSet", **few) for n in range(3)]
    configuration = Configuration.from_mapping({"parallelism": 1})
    made = forecast([*nodes, *loads(150), *pods], start=0, configuration=configuration, kube_version="1.34")
    assert any(pod.is_cut for pod in made.pods)


@pytest.mark.parametrize(
    ("nodes", "searches"), [(1, 160), (200, 160), (1000, 160), (2000, 80), (5000, 32), (15_000, 32)]
)
def test_a_forecast_of_a_large_cluster_simulates_fewer_searches(nodes: int, searches: int) -> None:
    assert most_searches(nodes) == searches


def test_a_drain_of_a_large_cluster_stays_within_the_limit_of_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler_core.simulation.drain._SEARCHES_TIMES_NODES", 0)
    cluster = [*(a_node(f"n{number:03}") for number in range(130)), *(a_pod(f"web-{n}", "n000") for n in range(2))]
    (forecast,) = simulate_drain(load_objects(cluster), ["n000"], made_at="")
    assert 1 < forecast.scenarios <= 32


def numbered(count: int, **more: Any) -> tuple[Likely, ...]:
    return tuple(Likely(Search(5), 1.0 / count, number, Search(50), **more) for number in range(1, count + 1))


def test_a_pod_from_outside_the_drain_moves_the_search_start_as_far_as_earlier_pods_did() -> None:
    after = after_others(numbered(2000, others=0.5, strides=(100, 110)), "default/mine", 1.0)
    starts = Counter(each.search.start for each in after)
    assert 0.6 < starts[5] / 2000 < 0.73  # no other pod was bound: probability 2/3
    assert 0.08 < starts[105] / 2000 < 0.15
    assert 0.08 < starts[115] / 2000 < 0.15
    assert set(starts) & {205, 215, 225}
    assert sum(each.weight for each in after) == pytest.approx(1.0)


def test_the_search_start_is_unknown_after_too_many_bindings_outside_the_drain() -> None:
    """All learned searches start at position 5. If the start of a search becomes unknown, the search is replaced by its
    `lost` search, which starts at position 50. Each search draws its own number of bindings outside the drain.

    First check: this number is 1 on average. `strides` is empty, so each binding moves the start by an unknown
    distance. Only the searches without a binding still start at position 5. Second check: each binding moves the start
    by 1 node, but each search has more than 30 bindings. After more than 30 bindings, the start is unknown.
    """
    assert {each.search.start for each in after_others(numbered(200, others=1.0), "default/mine", 1.0)} == {5, 50}
    assert {
        each.search.start for each in after_others(numbered(50, others=1e9, strides=(1,)), "default/mine", 1.0)
    } == {50}


def test_the_search_start_does_not_move_if_the_scheduler_binds_no_pod_outside_the_drain() -> None:
    searches = numbered(8, strides=(100,))
    assert after_others(searches, "default/mine", 100.0) is searches
    assert after_others((), "default/mine", 100.0) == ()


def test_a_forecast_lists_more_nodes_if_the_scheduler_also_binds_other_pods() -> None:
    """A StatefulSet replaces a pod only after the pod has ended. By then the scheduler has bound other pods."""
    snapshot = drawn_cluster(5)
    said = [
        simulate_drain(snapshot, ["n0000"], made_at="", searches=numbered(64, others=others, strides=(101, 113, 120)))[
            0
        ]
        for others in (0.0, 5.0)
    ]
    sizes = [sum(len(pod.landing) for pod in each.pods) for each in said]
    assert sizes[1] > sizes[0]

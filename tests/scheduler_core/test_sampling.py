"""Tests how many fitting nodes kube-scheduler searches for, and what a forecast says if more nodes fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import NodeSample
from scheduler_core.sampling import Search, nodes_to_find, run_search
from scheduler_core.simulation.drain import run_drain, simulate_drain
from scheduler_core.simulation.forecast import Forecast, Outcome
from scheduler_core.simulation.searches import Likely, possible_searches
from scheduler_core.snapshot.loading import load_objects
from tests.scheduler_core.simulation.test_drain import a_node, a_pod

Manifest = dict[str, Any]


@pytest.mark.parametrize(
    ("nodes", "percentage", "found"),
    [
        (0, 0, 0),
        (99, 0, 99),
        (99, 1, 99),
        (100, 0, 100),
        (150, 0, 100),
        (500, 0, 230),
        (1000, 0, 420),
        (2000, 0, 680),
        (5000, 0, 500),
        (5625, 0, 281),
        (20000, 0, 1000),
        (1000, 30, 300),
        (1000, 5, 100),
        (1000, 100, 1000),
        (150, 66, 100),
        (150, 67, 100),
        (160, 70, 112),
    ],
)
def test_the_number_of_nodes_to_find_is_the_same_as_in_kube_scheduler(nodes: int, percentage: int, found: int) -> None:
    assert nodes_to_find(nodes, percentage) == found


def a_cluster(fitting: int, others: int = 0) -> list[Manifest]:
    """Returns a cluster whose node n000 will be drained. Of the other nodes, `fitting` nodes have the label that
    CHOOSY selects, and `others` nodes lack it. Node n001 is the emptiest and therefore the best."""
    names = [f"n{number:03}" for number in range(1 + fitting + others)]
    nodes = [a_node(name, fits="no" if number > fitting else "yes") for number, name in enumerate(names)]
    loads = [
        a_pod(f"load-{name}", name, cpu="100m" if number == 1 else "2", app="load")
        for number, name in enumerate(names[1:], 1)
    ]
    return [*nodes, *loads]


def forecast(objects: list[Manifest], configuration: Manifest | None = None) -> Forecast:
    parsed = Configuration.from_mapping(configuration) if configuration else None
    return simulate_drain(load_objects(objects), ["n000"], made_at="", configuration=parsed)[0]


CHOOSY = {"nodeSelector": {"fits": "yes"}}


@pytest.mark.parametrize(
    ("fitting", "others", "is_open"),
    [
        pytest.param(98, 0, False, id="a cluster of fewer than 100 nodes is searched completely"),
        pytest.param(100, 0, False, id="100 nodes fit, and the scheduler searches for 100 nodes"),
        pytest.param(101, 0, True, id="101 nodes fit, and the scheduler searches for 100 nodes"),
        pytest.param(100, 99, False, id="100 nodes fit, 99 do not fit, and the scheduler searches for 100 nodes"),
        pytest.param(101, 99, True, id="101 nodes fit, 99 do not fit, and the scheduler searches for 100 nodes"),
    ],
)
def test_a_forecast_has_probabilities_if_the_scheduler_stops_its_search_early(
    fitting: int, others: int, is_open: bool
) -> None:
    made = forecast([*a_cluster(fitting, others), a_pod("p", "n000", **CHOOSY)])
    (pod,) = made.pods
    assert (pod.outcome, pod.landing, pod.is_cut) == (Outcome.MOVES, ("n001",), False)
    if is_open:
        assert 0.95 < pod.shares[0] <= 1
        assert pod.sentence.startswith(("lands on n001 (100 %)", "most likely lands on n001 (9"))
        assert pod.sentence.endswith(f"; kube-scheduler checks 100 of the {fitting} nodes that fit")
        (note,) = made.notes
        assert note == (
            f"a pod fits on up to {fitting} nodes, but kube-scheduler checks only 100 of them, and it is unknown where "
            "its search starts; for 1 of 1 pod, the chosen node depends on this start; the nodes that the forecast "
            "lists for a pod take this pod in 95 of 100 cases; with percentageOfNodesToScore: 100, kube-scheduler "
            "checks all nodes, and the forecast is exact"
        )
    else:
        assert (pod.shares, made.notes) == ((), ())


@pytest.mark.parametrize(
    ("configuration", "is_open"),
    [
        pytest.param({"percentageOfNodesToScore": 100}, False, id="percentageOfNodesToScore is 100 for all profiles"),
        pytest.param(
            {"profiles": [{"percentageOfNodesToScore": 100}]},
            False,
            id="percentageOfNodesToScore is 100 in the profile",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 100, "profiles": [{"percentageOfNodesToScore": 0}]},
            True,
            id="the profile's explicit 0 overrides the global 100",
        ),
        pytest.param({"percentageOfNodesToScore": 70}, True, id="a percentage that covers a part of the fitting nodes"),
        pytest.param({"percentageOfNodesToScore": 99}, False, id="a percentage that covers all fitting nodes"),
    ],
)
def test_percentage_of_nodes_to_score_decides_whether_a_forecast_has_probabilities(
    configuration: Manifest, is_open: bool
) -> None:
    made = forecast([*a_cluster(150, 10), a_pod("p", "n000", **CHOOSY)], configuration)
    assert (bool(made.pods[0].shares), bool(made.notes)) == (is_open, is_open)


def test_nodes_that_prefilter_excludes_do_not_make_the_forecast_uncertain() -> None:
    """The required node affinity lists 50 node names. The search checks all these nodes and no other node, so the
    result is certain."""
    names = [f"n{number:03}" for number in range(1, 51)]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    made = forecast([*a_cluster(150), a_pod("p", "n000", affinity=affinity)])
    assert (made.pods[0].landing, made.pods[0].shares, made.notes) == (("n001",), (), ())


def test_equally_good_nodes_are_equally_likely() -> None:
    nodes = [a_node(f"n{number:03}") for number in range(151)]
    (pod,) = forecast([*nodes, a_pod("p", "n000")]).pods
    assert 0.94 * 150 <= len(pod.landing) < 150
    assert max(pod.shares) < 1.2 / 150


def test_a_pod_that_fits_nowhere_is_certainly_pending() -> None:
    (pod,) = forecast([*a_cluster(150), a_pod("p", "n000", cpu="5")]).pods
    assert (pod.outcome, pod.is_cut) == (Outcome.PENDING, False)


def test_a_forecast_has_node_probabilities_only_for_pods_that_fit_on_more_than_100_nodes() -> None:
    made = forecast(
        [*a_cluster(110, 20), a_pod("wide", "n000", **CHOOSY), a_pod("narrow", "n000", nodeSelector={"fits": "no"})]
    )
    assert {pod.name: bool(pod.shares) for pod in made.pods} == {"wide": True, "narrow": False}


def test_a_nodes_probability_is_the_share_of_start_nodes_from_which_the_search_chooses_this_node() -> None:
    """Node n001 has the highest score of the 150 nodes that fit. The other 149 nodes have equal scores. A search ends
    after 100 nodes that fit, so the search reaches n001 from 100 of the 150 start nodes. From each of the other 50
    start nodes, the search does not reach n001 and chooses one of the nodes with equal scores."""
    (pod,) = forecast([*a_cluster(150), a_pod("p", "n000", **CHOOSY)], {"parallelism": 1}).pods
    assert pod.landing[0] == "n001"
    assert pod.shares[0] == pytest.approx(100 / 150, abs=0.02)
    assert pod.shares[1] < 0.01
    assert 0.949 <= sum(pod.shares) < 0.96


# Says for each of ten nodes whether the node fits. Seven nodes fit.
FITS = np.array([True, True, False, True, False, True, True, False, True, True])


@pytest.mark.parametrize(
    ("start", "found", "processed"),
    [
        pytest.param(0, [0, 1, 3], 5, id="the fourth fitting node ends the search and is not counted as processed"),
        pytest.param(5, [5, 6, 8], 4, id="a node that does not fit is counted as processed"),
        pytest.param(8, [8, 9, 0], 3, id="after the last node, the search continues at the first node"),
        pytest.param(9, [9, 0, 1], 4, id="a search that starts at the last node continues at the first node"),
    ],
)
def test_a_single_worker_finds_the_first_three_fitting_nodes_from_the_search_start_on(
    start: int, found: list[int], processed: int
) -> None:
    seen = run_search(np.arange(10), FITS, 3, Search(start), parallelism=1)
    assert (seen.rows.tolist(), seen.processed) == (found, processed)


@pytest.mark.parametrize("start", range(10))
def test_a_search_that_checks_all_nodes_does_not_move_the_next_search_start(start: int) -> None:
    seen = run_search(np.arange(10), FITS, 7, Search(start), parallelism=1)
    assert (sorted(seen.rows.tolist()), seen.processed % 10) == ([0, 1, 3, 5, 6, 8, 9], 0)


@pytest.mark.parametrize(
    ("workers", "runs"),
    [
        pytest.param(1, [(0, 100)], id="one worker checks the nodes in order"),
        pytest.param(2, [(0, 89), (91, 102)], id="two workers check two chunks at the same time"),
        pytest.param(
            16,
            [(13 * chunk, 13 * chunk + (7 if chunk < 5 else 6 if chunk < 15 else 5)) for chunk in range(16)],
            id="sixteen workers check one chunk each",
        ),
    ],
)
def test_parallel_workers_search_in_chunks(workers: int, runs: list[tuple[int, int]]) -> None:
    seen = run_search(np.arange(200), np.ones(200, dtype=bool), 100, Search(0, workers), parallelism=16)
    assert sorted(seen.rows.tolist()) == [place for run in runs for place in range(*run)]


def test_the_next_search_starts_at_the_node_where_the_last_search_stopped() -> None:
    snapshot = load_objects(a_cluster(150)).with_node_cordoned("n000")
    pod = load_objects([a_pod("p", "", **CHOOSY)]).pending[0]
    first, second = Scheduler().schedule_each(snapshot, pod, [Search(0), Search(120)])
    assert (first.node, first.next_start) == ("n001", 101)
    assert (second.node, second.next_start) == ("n001", (120 + 101) % 151)
    missed = Scheduler().schedule(snapshot, pod, start=2)
    assert (missed.node != "n001", missed.evaluated, missed.next_start) == (True, 100, 102)


def test_a_node_added_later_is_searched_last() -> None:
    nodes = [a_node(f"n{number:03}") for number in range(150)]
    for number, node in enumerate(nodes):
        node["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z" if number == 7 else "2026-01-01T00:00:00Z"
    by_name, by_age = load_objects(nodes).columns.tree_orders
    assert (by_name.tolist(), by_age[-1]) == (list(range(150)), 7)
    assert len(load_objects(a_cluster(150)).columns.tree_orders) == 1


NOBODY_SCORES: Manifest = {"profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}]}}}]}


def test_without_score_plugins_the_first_fitting_node_is_chosen() -> None:
    """Without score plugins, the scheduler's search ends at the first fitting node (numFeasibleNodesToFind is 1), also
    in a cluster of fewer than 100 nodes."""
    snapshot = load_objects([*a_cluster(20, 5), a_pod("p", "", **CHOOSY)]).with_node_cordoned("n000")
    scheduler = Scheduler(Configuration.from_mapping(NOBODY_SCORES))
    made = scheduler.schedule(snapshot, snapshot.pending[0], search=Search(19))
    assert (made.node, made.next_start) == ("n019", 20)
    assert scheduler.schedule(snapshot, snapshot.pending[0], search=Search(21)).next_start == 2
    assert made.sample == NodeSample(1, 20)
    assert len(made.best) == 20


def test_without_score_plugins_all_fitting_nodes_are_equally_likely() -> None:
    made = forecast([*a_cluster(150), a_pod("p", "n000", **CHOOSY)], {**NOBODY_SCORES, "percentageOfNodesToScore": 100})
    (pod,), (note,) = made.pods, made.notes
    assert 0.94 * 150 <= len(pod.landing) <= 150
    assert note == (
        "no plugin of this profile scores nodes, so kube-scheduler takes the first fitting node of its search; a pod "
        "fits on up to 150 nodes, and it is unknown where the search starts; for 1 of 1 pod, the chosen node depends "
        "on this start"
    )


def test_without_score_plugins_a_filtering_extender_still_gets_all_found_nodes() -> None:
    extender = {"urlPrefix": "http://x", "filterVerb": "filter"}
    scheduler = Scheduler(Configuration.from_mapping({**NOBODY_SCORES, "extenders": [extender]}))
    pod = load_objects([a_pod("p", "")]).pending[0]
    assert scheduler.nodes_wanted(pod, 200) == 100
    ranks = {"urlPrefix": "http://x", "prioritizeVerb": "rank", "weight": 1}
    assert Scheduler(Configuration.from_mapping({**NOBODY_SCORES, "extenders": [ranks]})).nodes_wanted(pod, 200) == 100


def test_since_1_35_a_restarted_scheduler_may_have_any_node_order() -> None:
    """The order of the nodes after a restart is random, but it still alternates between zones."""
    columns = load_objects([a_node(f"n{n:03}", zone="abc"[n % 3]) for n in range(150)]).columns
    orders = [columns.shuffled_order(number).tolist() for number in (1, 2)]
    assert orders[0] != orders[1]
    for order in orders:
        assert sorted(order) == list(range(150))
        assert all(len({row % 3 for row in order[place : place + 3]}) == 3 for place in range(0, 150, 3))
    assert columns.shuffled_order(1).tolist() == orders[0]


def test_half_of_the_searches_use_a_shuffled_node_order() -> None:
    snapshot = load_objects(a_cluster(150))
    searches = possible_searches(snapshot, Scheduler())
    assert sum(each.weight for each in searches if each.search.shuffle) == pytest.approx(0.5)
    assert sum(each.weight for each in searches) == pytest.approx(1)
    assert len({each.search.start for each in searches}) >= 32
    assert not any(each.search.shuffle for each in possible_searches(snapshot, Scheduler(kube_version="1.34")))


def test_a_pod_lands_on_a_node_of_its_forecast_in_95_percent_of_cases() -> None:
    """Three nodes score higher than all other nodes, each with a different score. The test starts the scheduler's
    search at every third node, with numbers of parallel workers that the forecast does not try. Nearly every pod must
    be placed on a node of the forecast."""
    objects = a_cluster(150)
    objects += [
        a_pod(f"more-{number}", f"n{number:03}", cpu="1", app="more") for number in range(4, 151) if number % 50
    ]
    objects.append(a_pod("p", "n000", **CHOOSY))
    snapshot = load_objects(objects)
    (pod,) = [each for each in forecast(objects).pods if each.name == "p"]
    cases = [Search(start, workers) for start in range(0, 151, 3) for workers in (1, 3, 5, 12)]
    went = [
        each.replacement.node_name
        for case in cases
        for each in run_drain(snapshot, ["n000"], Scheduler(), searches=(Likely(case, 1.0),)).displaced
    ]
    inside = sum(node in pod.landing for node in went)
    assert (len(went), len(pod.landing) < 8) == (len(cases), True)
    assert inside >= 0.93 * len(went)


def test_a_cycle_reports_how_many_nodes_its_search_checked() -> None:
    snapshot = load_objects(a_cluster(600))
    pod = load_objects([a_pod("p", "")]).pending[0]
    assert Scheduler().schedule(snapshot, pod).sample == NodeSample(looked_at=276, feasible=601)


def test_the_result_for_a_displaced_pod_says_how_many_nodes_the_search_checked() -> None:
    snapshot = load_objects([*a_cluster(110), a_pod("p", "n000", **CHOOSY)])
    (made,) = run_drain(snapshot, ["n000"], Scheduler()).displaced
    assert made.result is not None
    assert made.result.sample == NodeSample(looked_at=100, feasible=110)

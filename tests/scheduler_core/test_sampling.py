"""How many nodes kube-scheduler looks for, and what a forecast says where more fit."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Sample, Scheduler
from scheduler_core.sampling import nodes_to_find
from scheduler_core.simulation.drain import run_drain, simulate_drain
from scheduler_core.simulation.forecast import Forecast, Outcome
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
def test_the_number_is_kube_schedulers(nodes: int, percentage: int, found: int) -> None:
    assert nodes_to_find(nodes, percentage) == found


def a_cluster(fitting: int, others: int = 0) -> list[Manifest]:
    """n000 is drained; on so many others its pod fits, and best on n001, which is emptier than they are; on the
    rest it does not."""
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
        pytest.param(98, 0, False, id="a cluster of fewer than 100 nodes is looked at whole"),
        pytest.param(100, 0, False, id="as many fit as it looks for"),
        pytest.param(101, 0, True, id="one more fits"),
        pytest.param(100, 99, False, id="many nodes, of which no more fit than it looks for"),
        pytest.param(101, 99, True, id="many nodes, of which one more fits"),
    ],
)
def test_a_set_is_open_where_more_nodes_fit_than_the_scheduler_looks_for(
    fitting: int, others: int, is_open: bool
) -> None:
    made = forecast([*a_cluster(fitting, others), a_pod("p", "n000", **CHOOSY)])
    (pod,) = made.pods
    assert (pod.outcome, pod.landing, pod.is_cut) == (Outcome.MOVES, ("n001",), is_open)
    if is_open:
        assert pod.sentence == f"fits best on n001; kube-scheduler looks at 100 of the {fitting} nodes that fit"
        (note,) = made.notes
        assert note == (
            f"kube-scheduler looks at 100 of up to {fitting} nodes that fit: 1 pod may land on nodes that are "
            "not named; with "
            f"percentageOfNodesToScore: 100 it looks at all of them, and the forecast is exact"
        )
    else:
        assert made.notes == ()


@pytest.mark.parametrize(
    ("configuration", "is_open"),
    [
        pytest.param({"percentageOfNodesToScore": 100}, False, id="the whole configuration says 100"),
        pytest.param({"profiles": [{"percentageOfNodesToScore": 100}]}, False, id="the profile says 100"),
        pytest.param(
            {"percentageOfNodesToScore": 100, "profiles": [{"percentageOfNodesToScore": 0}]},
            True,
            id="the profile's explicit 0 is adaptive",
        ),
        pytest.param({"percentageOfNodesToScore": 70}, True, id="a percentage between"),
        pytest.param({"percentageOfNodesToScore": 99}, False, id="a percentage that is enough for those that fit"),
    ],
)
def test_the_percentage_that_closes_the_set(configuration: Manifest, is_open: bool) -> None:
    made = forecast([*a_cluster(150, 10), a_pod("p", "n000", **CHOOSY)], configuration)
    assert (made.pods[0].is_cut, bool(made.notes)) == (is_open, is_open)


def test_what_pre_filter_leaves_out_is_not_counted() -> None:
    """Node affinity for names narrows the search itself: of 50 nodes all are looked at, however large the
    cluster is."""
    names = [f"n{number:03}" for number in range(1, 51)]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    made = forecast([*a_cluster(150), a_pod("p", "n000", affinity=affinity)])
    assert (made.pods[0].landing, made.pods[0].is_cut, made.notes) == (("n001",), False, ())


def test_where_all_nodes_are_equally_good_all_are_named_whichever_it_looks_at() -> None:
    nodes = [a_node(f"n{number:03}") for number in range(151)]
    (pod,) = forecast([*nodes, a_pod("p", "n000")]).pods
    assert (len(pod.landing), pod.is_cut) == (150, False)


def test_a_pod_that_fits_nowhere_is_pending_without_a_doubt() -> None:
    (pod,) = forecast([*a_cluster(150), a_pod("p", "n000", cpu="5")]).pods
    assert (pod.outcome, pod.is_cut) == (Outcome.PENDING, False)


def test_only_pods_that_fit_on_many_nodes_are_marked() -> None:
    made = forecast(
        [*a_cluster(110, 20), a_pod("wide", "n000", **CHOOSY), a_pod("narrow", "n000", nodeSelector={"fits": "no"})]
    )
    assert {pod.name: pod.is_cut for pod in made.pods} == {"wide": True, "narrow": False}


def test_a_cycle_says_how_many_of_how_many() -> None:
    snapshot = load_objects(a_cluster(600))
    pod = load_objects([a_pod("p", "")]).pending[0]
    assert Scheduler().schedule(snapshot, pod).sample == Sample(looked_at=276, feasible=601)


def test_a_roll_out_marks_moves_that_may_go_elsewhere() -> None:
    snapshot = load_objects([*a_cluster(110), a_pod("p", "n000", **CHOOSY)])
    (made,) = run_drain(snapshot, ["n000"], Scheduler()).displaced
    assert made.result is not None
    assert made.result.sample == Sample(looked_at=100, feasible=110)

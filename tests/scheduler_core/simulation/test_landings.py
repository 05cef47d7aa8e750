"""Tests how a forecast collects the possible nodes of each pod from all scenarios of a drain (the possible sequences of
events). The forecast matches replicas of one owner across scenarios, so that each replica gets as few nodes as
possible."""

from __future__ import annotations

from dataclasses import replace

from scheduler_core.cycle import Scheduler
from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.simulation.evicted.evictions import BudgetLedger
from scheduler_core.simulation.landings import landings
from scheduler_core.simulation.scenario_parts.displaced import Displaced
from scheduler_core.simulation.scenario_parts.eviction_rounds import EvictionRounds
from scheduler_core.simulation.scenarios import Scenario
from scheduler_core.snapshot.snapshot import Snapshot

WEB = OwnerReference("apps/v1", "ReplicaSet", "web", "u")
NO_NODE = ""


def a_scenario(*places: str, owner: OwnerReference | None = WEB) -> Scenario:
    """Returns a scenario with the pods p0, p1, … of one owner on these nodes. NO_NODE means a pod without a node."""
    scenario = Scenario(Scheduler(), Snapshot.of([]), EvictionRounds(BudgetLedger([]), ()))
    for number, node in enumerate(places):
        pod = Pod(name=f"p{number}", namespace="shop", owner=owner)
        each = Displaced(
            pod,
            replace(pod, name=f"p{number}~", node_name=node),
            number,
            landed=bool(node),
            choices=(node,) if node else (),
        )
        scenario.displaced[pod.key] = each
    return scenario


def said(*scenarios: Scenario) -> list[set[str]]:
    return [landing.nodes for landing in landings(scenarios).values()]


def test_a_pod_has_one_possible_node_if_the_drain_has_one_scenario() -> None:
    assert said(a_scenario("n1", "n2")) == [{"n1"}, {"n2"}]


def test_replicas_that_swap_nodes_between_scenarios_keep_one_node_each() -> None:
    assert said(a_scenario("n1", "n2"), a_scenario("n2", "n1")) == [{"n1"}, {"n2"}]


def test_a_pod_has_several_possible_nodes_if_scenarios_differ() -> None:
    assert said(a_scenario("n1", "n2"), a_scenario("n3", "n1"), a_scenario("n1", "n3")) == [{"n1"}, {"n2", "n3"}]


def test_pods_without_a_common_owner_are_not_interchangeable() -> None:
    assert said(a_scenario("n1", "n2", owner=None), a_scenario("n2", "n1", owner=None)) == [{"n1", "n2"}, {"n1", "n2"}]


def test_the_result_contains_the_scenario_in_which_a_replica_has_no_node() -> None:
    main, other = a_scenario("n1", "n2"), a_scenario(NO_NODE, "n1")
    first, second = landings([main, other]).values()
    assert (first.nodes, first.homeless) == ({"n1"}, None)
    assert (second.nodes, second.homeless) == ({"n2"}, (other, other.displaced["shop/p0"]))


def test_the_pending_replicas_of_two_scenarios_are_matched_with_each_other() -> None:
    main, other = a_scenario(NO_NODE, "n1"), a_scenario("n2", NO_NODE)
    first, second = landings([main, other]).values()
    assert (first.nodes, first.homeless is not None) == (set(), True)
    assert (second.nodes, second.homeless) == ({"n1", "n2"}, None)


def test_the_possible_nodes_of_a_pod_include_the_tied_nodes_of_every_scenario() -> None:
    scenario = a_scenario("n1")
    scenario.displaced["shop/p0"] = replace(scenario.displaced["shop/p0"], choices=("n1", "n4"), is_after_cut=True)
    (landing,) = landings([a_scenario("n1"), scenario]).values()
    assert (landing.nodes, landing.is_cut) == ({"n1", "n4"}, True)

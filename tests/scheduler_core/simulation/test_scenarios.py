"""Tests the scenarios of a drain, which are the possible sequences of events. A scenario divides where several events
are possible, and equal scenarios are merged. All scenarios together contain every node on which a pod may be placed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.drain import run_drain, simulate_drain
from scheduler_core.simulation.evicted.evictions import BudgetLedger
from scheduler_core.simulation.evicted.replacements import eviction_order
from scheduler_core.simulation.forecast import Forecast, Outcome
from scheduler_core.simulation.scenario_parts.eviction_rounds import EvictionRounds
from scheduler_core.simulation.scenarios import Scenario, follow
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot

Manifest = dict[str, Any]


def a_node(name: str, *, cpu: str = "4", zone: str = "a") -> Manifest:
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone},
        },
        "spec": {},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def a_pod(
    name: str,
    node: str = "n1",
    *,
    cpu: str = "100m",
    owner: str = "ReplicaSet",
    app: str = "",
    deleted: bool = False,
    **spec: Any,
) -> Manifest:
    """Returns a pod. If `app` is empty, the value of the label `app` is the pod's name."""
    app = app or name
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": name,
        "labels": {"app": app},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": owner, "name": app, "uid": f"{owner}-{app}", "controller": True}
        ],
        **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}),
    }
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}],
            **spec,
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def a_budget(app: str, allowed: int) -> Manifest:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3},
    }


def near(app: str) -> Manifest:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def zone_spread(app: str) -> Manifest:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": app}},
            },
        ]
    }


def drained(*objects: Manifest, most: int = 100) -> Forecast:
    return simulate_drain(load_objects(objects), ["n1"], made_at="2026-01-05T08:00:00Z", most_scenarios=most)[0]


def landings(forecast: Forecast) -> dict[str, tuple[str, ...]]:
    return {pod.name: pod.landing for pod in forecast.pods}


# ---- ties ----


def test_a_pod_with_affinity_to_another_pod_has_the_possible_nodes_of_that_pod() -> None:
    forecast = drained(a_node("n1"), a_node("n2"), a_node("n3"), a_pod("a"), a_pod("b", **near("a")))
    assert landings(forecast) == {"a": ("n2", "n3"), "b": ("n2", "n3")}
    assert forecast.scenarios == 2


def test_the_sentence_about_a_pod_says_that_the_node_depends_on_an_earlier_pod() -> None:
    follower = drained(a_node("n1"), a_node("n2"), a_node("n3"), a_pod("a"), a_pod("b", **near("a"))).pods[1]
    assert follower.sentence in (
        "fits best on n2, or on n3 if an earlier pod gets another node than in the main scenario",
        "fits best on n3, or on n2 if an earlier pod gets another node than in the main scenario",
    )


def test_a_tie_between_identical_replicas_adds_no_scenario() -> None:
    forecast = drained(a_node("n1"), a_node("n2"), a_node("n3"), a_pod("p", app="web"), a_pod("q", app="web"))
    assert sorted(landings(forecast).values()) == [("n2",), ("n3",)]
    assert forecast.scenarios == 1


def test_a_pod_is_pending_if_it_finds_room_only_in_some_scenarios() -> None:
    room = [a_node("n2", cpu="2"), a_node("n3", cpu="2")]
    forecast = drained(
        a_node("n1"),
        *room,
        a_pod("a", cpu="1"),
        a_pod("b", cpu="1500m", **near("c")),
        a_pod("c", "n2", cpu="100m"),
        a_pod("d", "n3", cpu="100m"),
    )
    follower = forecast.pods[1]
    assert (follower.outcome, follower.landing) == (Outcome.PENDING, ("n2",))
    assert follower.sentence.startswith(
        "finds room only in some scenarios, because earlier pods may land on different nodes: 0/3 nodes are available"
    )


def test_the_forecast_reports_that_some_scenarios_were_not_simulated() -> None:
    forecast = drained(
        a_node("n1"), a_node("n2"), a_node("n3"), a_node("n4"), a_pod("a"), a_pod("b", **near("a")), most=2
    )
    assert landings(forecast)["a"] == ("n2", "n3", "n4"), "the limit must not remove a possible node of pod a"
    assert len(landings(forecast)["b"]) == 2
    assert [pod.is_cut for pod in forecast.pods] == [False, True]
    assert forecast.notes == (
        "more scenarios are possible than the 2 that were simulated: 1 pod may get nodes that are not listed",
    )


def test_a_tie_for_the_last_pod_adds_no_scenario() -> None:
    forecast = drained(a_node("n1"), a_node("n2"), a_node("n3"), a_pod("a"), most=1)
    assert (landings(forecast)["a"], forecast.pods[0].is_cut, forecast.notes) == (("n2", "n3"), False, ())


# ---- the order of events ----


def test_the_pod_of_lowest_priority_is_evicted_and_placed_first() -> None:
    forecast = drained(
        a_node("n1"), a_node("n2"), a_node("n3", cpu="3"), a_pod("a", cpu="2", priority=7), a_pod("b", cpu="2")
    )
    assert [pod.name for pod in forecast.pods] == ["b", "a"]
    assert landings(forecast) == {"b": ("n2",), "a": ("n3",)}


def test_the_replacement_of_a_replicasets_pod_is_placed_before_the_next_eviction() -> None:
    spread = zone_spread("web")
    cluster = [a_node("n1"), a_node("n2", cpu="3"), a_node("n3", cpu="8", zone="b")]
    forecast = drained(
        *cluster, a_pod("p", app="web", **spread), a_pod("q", app="web", **spread), a_pod("r", "n3", app="web")
    )
    assert ("n3",) in landings(forecast).values(), (
        "node n3 satisfies the spread over zones only while one of the pods p and q still runs on node n1"
    )


def test_a_pod_refused_by_a_budget_is_evicted_in_the_next_round() -> None:
    cluster = [a_node("n1", cpu="8"), a_node("n2", cpu="5"), a_node("n3", cpu="4")]
    forecast = drained(
        *cluster,
        a_pod("a", cpu="1500m", app="web"),
        a_pod("b", cpu="1500m", app="web"),
        a_pod("c", cpu="2"),
        a_budget("web", 1),
    )
    assert landings(forecast) == {"a": ("n2",), "b": ("n2",), "c": ("n3",)}, (
        "pod c is placed on node n3 before pod b can take this node"
    )


def test_every_order_in_which_the_pods_of_two_statefulsets_may_end_is_simulated() -> None:
    cluster = [a_node("n1", cpu="8"), a_node("n2", cpu="5"), a_node("n3", cpu="4")]
    forecast = drained(
        *cluster,
        a_pod("a-0", cpu="3", owner="StatefulSet", app="a"),
        a_pod("b-0", cpu="2500m", owner="StatefulSet", app="b"),
    )
    assert forecast.scenarios == 2
    assert {name: set(nodes) for name, nodes in landings(forecast).items()} == {
        "a-0": {"n2", "n3"},
        "b-0": {"n2", "n3"},
    }


def test_a_statefulset_pod_may_end_before_or_after_the_next_eviction_round() -> None:
    cluster = [a_node("n1", cpu="8"), a_node("n2", cpu="5"), a_node("n3", cpu="4")]
    pods = [
        a_pod("a", cpu="100m", app="web"),
        a_pod("b", cpu="2500m", app="web"),
        a_pod("c-0", cpu="3", owner="StatefulSet"),
        a_budget("web", 1),
    ]
    said = landings(drained(*cluster, *pods))
    assert (set(said["b"]), set(said["c-0"])) == ({"n2", "n3"}, {"n2", "n3"})


def test_an_eviction_round_without_allowed_evictions_adds_no_scenario() -> None:
    cluster = [a_node("n1", cpu="8"), a_node("n2", cpu="5"), a_node("n3", cpu="4")]
    forecast = drained(*cluster, a_pod("b", app="web"), a_pod("c-0", cpu="3", owner="StatefulSet"), a_budget("web", 0))
    assert ([pod.outcome for pod in forecast.pods], forecast.scenarios) == ([Outcome.BLOCKED, Outcome.MOVES], 1)


def test_the_replacement_of_a_jobs_pod_is_placed_last() -> None:
    cluster = [a_node("n1", cpu="8"), a_node("n2", cpu="5"), a_node("n3", cpu="4")]
    forecast = drained(*cluster, a_pod("a", cpu="2", owner="Job"), a_pod("b-0", cpu="2", owner="StatefulSet"))
    assert landings(forecast) == {"a": ("n3",), "b-0": ("n2",)}


@pytest.mark.parametrize(("owner", "outcome"), [("ReplicaSet", None), ("StatefulSet", Outcome.MOVES)])
def test_a_terminating_pod_needs_a_replacement_only_if_it_belongs_to_a_statefulset(
    owner: str, outcome: Outcome | None
) -> None:
    forecast = drained(a_node("n1"), a_node("n2"), a_pod("p", owner=owner, deleted=True))
    assert [pod.outcome for pod in forecast.pods] == ([outcome] if outcome else [])


# ---- laws ----


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Generates clusters with few nodes of two sizes and few kinds of pods, so that there are many ties."""
    nodes = [a_node("n1", cpu="8")] + [
        a_node(f"n{n}", cpu=draw(st.sampled_from(["2", "4"])), zone=draw(st.sampled_from("ab")))
        for n in range(2, draw(st.integers(4, 6)))
    ]
    rules: list[Manifest] = [{}, {}, near("a"), zone_spread("a")]
    pods = [
        a_pod(
            f"p{number}",
            app=draw(st.sampled_from("abc")),
            cpu=draw(st.sampled_from(["500m", "1"])),
            owner=draw(st.sampled_from(["ReplicaSet", "ReplicaSet", "StatefulSet", "Job"])),
            **draw(st.sampled_from(rules)),
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    others = [
        a_pod(f"o{number}", draw(st.sampled_from(["n2", "n3"])), app=draw(st.sampled_from("abc")), cpu="500m")
        for number in range(draw(st.integers(0, 2)))
    ]
    return load_objects([*nodes, *pods, *others, *([a_budget("a", 1)] if draw(st.booleans()) else [])])


def a_scenario(snapshot: Snapshot) -> Scenario:
    pods = sorted(snapshot.pods_on("n1"), key=eviction_order)
    return Scenario(
        Scheduler(),
        snapshot.with_node_cordoned("n1"),
        EvictionRounds(BudgetLedger(snapshot.objects.budgets), tuple(pods)),
    )


def walk(snapshot: Snapshot, chance: random.Random) -> Scenario:
    """Simulates one scenario to its end. If several events may come next, chooses one of them at random."""
    scenario = a_scenario(snapshot)
    while True:
        scenario.go_on()
        if scenario.is_over:
            return scenario
        (scenario,) = scenario.divided(1, chance.randrange(len(scenario.choices)))


# Simulates one scenario with random choices. This scenario must place each pod on a node that the forecast lists for
# this pod. Replicas of one owner are interchangeable, so the forecast may list the node for another replica instead.
@settings(max_examples=25, deadline=None)
@given(clusters(), st.integers(0, 2**32))
def test_every_random_scenario_lands_on_forecast_nodes(snapshot: Snapshot, seed: int) -> None:
    forecast = simulate_drain(snapshot, ["n1"], made_at="2026-01-05T08:00:00Z", most_scenarios=2000)[0]
    by_chance = walk(snapshot, random.Random(seed))
    said: dict[str, list[tuple[str, ...]]] = {}
    for pod in forecast.pods:
        said.setdefault(pod.owner, []).append(pod.landing)
    went: dict[str, list[str]] = {}
    for each in by_chance.displaced.values():
        owner = each.pod.owner
        assert owner is not None
        if each.landed:
            went.setdefault(f"{owner.kind} shop/{owner.name}", []).append(each.replacement.node_name)
    assert not any(pod.is_cut for pod in forecast.pods)
    for owner_name, places in went.items():
        assert can_be_matched(places, said[owner_name]), (owner_name, places, said[owner_name])


# Makes two forecasts of the same drain. The complete forecast simulates all scenarios. The short forecast simulates at
# most `most` scenarios, so it may list fewer nodes on which an owner's pods may land. It must not list a node that the
# complete forecast does not list for this owner. If any node is missing, the short forecast must mark a pod with
# `is_cut`. If the short forecast marks no pod, both forecasts must list the same nodes.
@settings(max_examples=15, deadline=None)
@given(clusters(), st.integers(1, 6))
def test_simulating_fewer_scenarios_removes_nodes_and_marks_their_pods(snapshot: Snapshot, most: int) -> None:
    whole, bounded = (
        simulate_drain(snapshot, ["n1"], made_at="2026-01-05T08:00:00Z", most_scenarios=n)[0] for n in (2000, most)
    )
    if any(pod.is_cut for pod in bounded.pods):
        assert all(nodes <= nodes_of_owners(whole)[owner] for owner, nodes in nodes_of_owners(bounded).items())
    else:
        assert nodes_of_owners(bounded) == nodes_of_owners(whole)


def nodes_of_owners(forecast: Forecast) -> dict[str, set[str]]:
    """Maps each owner to the set of nodes on which its pods may land. Replicas of one owner may swap these nodes."""
    found: dict[str, set[str]] = {}
    for pod in forecast.pods:
        found.setdefault(pod.owner, set()).update(pod.landing)
    return found


@settings(max_examples=15, deadline=None)
@given(clusters())
def test_a_drain_with_one_scenario_has_the_result_of_the_main_scenario(snapshot: Snapshot) -> None:
    alone = run_drain(snapshot, ["n1"], Scheduler())
    among = run_drain(snapshot, ["n1"], Scheduler(), most_scenarios=50)
    assert [(each.pod.key, each.replacement.node_name) for each in alone.displaced] == [
        (each.pod.key, each.replacement.node_name) for each in among.displaced
    ]


def test_a_drain_simulates_no_more_scenarios_than_the_limit() -> None:
    snapshot = load_objects([a_node(f"n{n}") for n in range(1, 6)] + [a_pod(name) for name in "abcd"])
    assert len(follow(a_scenario(snapshot), 7)) <= 7


def can_be_matched(places: list[str], said: list[tuple[str, ...]]) -> bool:
    """Whether each node in `places` can be paired with a set in `said` that contains the node. No set is used twice.
    Tries all pairings, because there are few."""
    if not places:
        return True
    first, *rest = places
    return any(
        first in nodes and can_be_matched(rest, [*said[:index], *said[index + 1 :]]) for index, nodes in enumerate(said)
    )

"""Tests which nodes of several kinds are bought for the pending pods."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core import Scheduler, Snapshot, load_objects, pod_from_manifest, template_from_manifest
from scheduler_core.model.manifests.from_manifest import node_from_manifest
from scheduler_core.model.pod import Pod
from scheduler_core.testing.builders import a_node, a_pod
from scheduler_core.what_if.cheapest_mix import NodeOffer, cheapest_mix
from scheduler_core.what_if.more_nodes import try_counts
from scheduler_core.what_if.placing import Placer

Json = dict[str, Any]
SCHEDULER = Scheduler()
ZONE = "topology.kubernetes.io/zone"
EMPTY = load_objects([])


def offer(name: str, cpu: str, price: float, zone: str = "a", most: int = 100, snapshot: Snapshot = EMPTY) -> NodeOffer:
    manifest: Json = a_node(name).manifest
    manifest["metadata"]["labels"][ZONE] = zone
    manifest["status"]["allocatable"]["cpu"] = cpu
    template = template_from_manifest(snapshot, node_from_manifest(manifest), SCHEDULER)
    return NodeOffer(template=template, price=price, most=most)


def pods(*cpus: str, **spec: Any) -> list[Pod]:
    made = []
    for number, cpu in enumerate(cpus):
        manifest: Json = a_pod(f"p{number}").requesting(cpu=cpu).manifest
        manifest["metadata"]["labels"] = {"app": "web"}
        manifest["spec"] |= spec
        made.append(pod_from_manifest(manifest))
    return made


@pytest.mark.parametrize(
    ("cpus", "large", "bought"),
    [
        (["1"] * 4, 3.0, {"small": 2, "large": 0}),
        (["1"] * 4, 1.5, {"small": 0, "large": 1}),
        (["3", *["1"] * 3], 3.0, {"small": 1, "large": 1}),
        (["3"] * 2, 9.0, {"small": 0, "large": 2}),
        ([], 1.0, {"small": 0, "large": 0}),
    ],
    ids=["small ones are cheaper", "a large one is cheaper", "one of each", "only large ones fit", "no pod"],
)
def test_the_cheapest_nodes_are_chosen(cpus: list[str], large: float, bought: dict[str, int]) -> None:
    found = cheapest_mix(SCHEDULER, EMPTY, pods(*cpus), [offer("small", "2", 1), offer("large", "4", large)])
    assert found.counts == bought
    assert found.price == bought["small"] + bought["large"] * large
    assert (found.is_enough, found.is_cheapest) == (True, True)


def test_nodes_of_similar_groups_are_bought_evenly() -> None:
    offers = [offer(f"in-{zone}", "2", 1, zone) for zone in "abc"]
    assert cheapest_mix(SCHEDULER, EMPTY, pods(*["1"] * 12), offers).counts == {"in-a": 2, "in-b": 2, "in-c": 2}


def test_pods_that_must_spread_over_zones_get_a_node_in_each() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    offers = [offer(f"in-{zone}", "4", price, zone) for zone, price in (("a", 1), ("b", 2), ("c", 3))]
    waiting = pods(*["1"] * 3, topologySpreadConstraints=[{**spread, "minDomains": 3}])
    found = cheapest_mix(SCHEDULER, EMPTY, waiting, offers)
    assert (found.counts, found.price) == ({"in-a": 1, "in-b": 1, "in-c": 1}, 6)


def test_a_pod_that_no_offer_can_hold_buys_no_node() -> None:
    found = cheapest_mix(SCHEDULER, EMPTY, pods("9", "1"), [offer("small", "2", 1)])
    assert (found.counts, found.is_enough, list(found.result.refused)) == ({"small": 1}, False, ["default/p0"])


def test_no_more_nodes_are_bought_than_are_on_offer() -> None:
    offers = [offer("cheap", "2", 1, most=1), offer("dear", "2", 5)]
    assert cheapest_mix(SCHEDULER, EMPTY, pods("2", "2", "2"), offers).counts == {"cheap": 1, "dear": 2}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from("1234"), max_size=4), st.integers(1, 4), st.integers(1, 6))
def test_no_other_mix_is_cheaper(cpus: list[str], small: int, large: int) -> None:
    offers = [offer("small", "2", small), offer("large", "4", large)]
    waiting = pods(*cpus)
    found = cheapest_mix(SCHEDULER, EMPTY, waiting, offers)
    placer, counts = Placer(SCHEDULER, waiting), product(range(len(cpus) + 1), repeat=2)
    enough = [
        one * small + other * large
        for one, other in counts
        if not try_counts(placer, EMPTY, [(offers[0].template, one), (offers[1].template, other)]).refused
    ]
    assert (found.is_enough, found.is_cheapest, found.price) == (True, True, min(enough))


@pytest.mark.parametrize(
    ("offers", "said"),
    [
        ([], "there is no offer"),
        ([offer("x", "1", 1), offer("x", "2", 1)], "two offers have the name x"),
        ([offer("x", "1", -1)], "the price of x is -1"),
        ([offer("x", "1", float("nan"))], "the price of x is nan"),
        ([offer("x", "1", 1, most=-2)], "most of x is -2: expected the number of nodes on offer"),
    ],
)
def test_offers_that_make_no_sense_are_refused(offers: list[NodeOffer], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        cheapest_mix(SCHEDULER, EMPTY, pods("1"), offers)


def spread_over(key: str, *cpus: str, **more: Any) -> list[Pod]:
    spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **more}
    return pods(*cpus, topologySpreadConstraints=[{**spread, "labelSelector": {"matchLabels": {"app": "web"}}}])


def test_nodes_that_only_keep_spread_pods_away_are_not_bought() -> None:
    """Small nodes take none of the pods, and while they are empty only one pod may run elsewhere."""
    offers = [offer("small", "1", 1, "a"), offer("large", "4", 1, "b")]
    for key in (ZONE, "kubernetes.io/hostname"):
        found = cheapest_mix(SCHEDULER, EMPTY, spread_over(key, "3", "3"), offers)
        assert found.is_enough, key
        assert found.counts["small"] == 0, key


def test_a_mix_is_found_that_neither_all_nodes_nor_those_of_one_offer_are() -> None:
    """Small nodes in zone c keep two of the pods away; those of one zone alone are too few zones."""
    offers = [offer(f"in-{zone}", cpu, 1, zone) for zone, cpu in (("a", "4"), ("b", "4"), ("c", "1"))]
    found = cheapest_mix(SCHEDULER, EMPTY, spread_over(ZONE, *["3"] * 4, minDomains=2), offers)
    assert (found.counts, found.is_enough, found.is_cheapest) == ({"in-a": 2, "in-b": 2, "in-c": 0}, True, True)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([ZONE, "kubernetes.io/hostname"]),
    st.lists(st.sampled_from("123"), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from("124"), st.sampled_from("ab"), st.integers(0, 3)), min_size=2, max_size=2),
)
def test_no_other_mix_is_cheaper_or_places_more_pods_that_spread(
    key: str, cpus: list[str], kinds: list[tuple[str, str, int]]
) -> None:
    offers = [offer(f"o{place}", cpu, price, zone, most=3) for place, (cpu, zone, price) in enumerate(kinds)]
    waiting = spread_over(key, *cpus)
    found = cheapest_mix(SCHEDULER, EMPTY, waiting, offers)
    placer = Placer(SCHEDULER, waiting)
    priced = []
    for one, other in product(range(min(3, len(cpus)) + 1), repeat=2):
        mix = try_counts(placer, EMPTY, [(offers[0].template, one), (offers[1].template, other)])
        priced.append((len(mix.placed), one * offers[0].price + other * offers[1].price))
    most = max(placed for placed, _ in priced)
    assert len(found.result.placed) == most
    if most == len(cpus) and found.is_cheapest:
        assert found.price == min(price for placed, price in priced if placed == most)


def test_more_mixes_than_can_be_tried_do_not_matter_if_arithmetic_knows_that_none_is_cheaper() -> None:
    offers = [offer(f"in-{zone}", "4", 1, zone) for zone in "abcd"]
    found = cheapest_mix(SCHEDULER, EMPTY, pods(*["1"] * 48), offers)
    assert (sum(found.counts.values()), found.is_cheapest) == (12, True)

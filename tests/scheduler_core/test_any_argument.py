"""Whatever is passed to a public function, the error says what to pass instead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import scheduler_core
from scheduler_core import NodeOffer, Scheduler, Snapshot, like_node, load_objects
from scheduler_core.testing.builders import a_node, a_pod, manifests

SNAPSHOT = load_objects(manifests(a_node("n1"), a_node("n2"), a_pod("p").on("n1")))
SCHEDULER, POD, NODE = Scheduler(), a_pod("q").build(), a_node("z").build()
TEMPLATE = like_node(SNAPSHOT, "n1")
BEGINS = datetime(2026, 1, 5, tzinfo=UTC)
JUNK = (None, 0.5, True, "text", b"x", object(), SNAPSHOT, SCHEDULER, POD, NODE, TEMPLATE, [None], [7], {7: "pod"})
core: Any = scheduler_core

# What each call must be given; the values of JUNK that fit are left out below.
CALLS: dict[str, Callable[[Any], object]] = {
    "schedule snapshot": lambda junk: SCHEDULER.schedule(junk, POD),
    "schedule pod": lambda junk: SCHEDULER.schedule(SNAPSHOT, junk),
    "Scheduler configuration": Scheduler,
    "Scheduler version": lambda junk: Scheduler(kube_version=junk),
    "Scheduler plugins": lambda junk: Scheduler(plugins=junk),
    "like_node name": lambda junk: core.like_node(SNAPSHOT, junk),
    "like_node snapshot": lambda junk: core.like_node(junk, "n1"),
    "template_from_manifest node": lambda junk: core.template_from_manifest(SNAPSHOT, junk, SCHEDULER),
    "template_from_manifest scheduler": lambda junk: core.template_from_manifest(SNAPSHOT, NODE, junk),
    "nodes_needed pods": lambda junk: core.nodes_needed(SCHEDULER, SNAPSHOT, junk, TEMPLATE),
    "nodes_needed template": lambda junk: core.nodes_needed(SCHEDULER, SNAPSHOT, [POD], junk),
    "nodes_needed most": lambda junk: core.nodes_needed(SCHEDULER, SNAPSHOT, [POD], TEMPLATE, junk),
    "with_more_nodes count": lambda junk: core.with_more_nodes(SCHEDULER, SNAPSHOT, [POD], TEMPLATE, junk),
    "cheapest_mix pods": lambda junk: core.cheapest_mix(SCHEDULER, SNAPSHOT, junk, [NodeOffer(template=TEMPLATE)]),
    "cheapest_mix offers": lambda junk: core.cheapest_mix(SCHEDULER, SNAPSHOT, [POD], junk),
    "an offer's template": lambda junk: core.cheapest_mix(SCHEDULER, SNAPSHOT, [POD], [NodeOffer(template=junk)]),
    "an offer's number": lambda junk: core.cheapest_mix(
        SCHEDULER, SNAPSHOT, [POD], [NodeOffer(template=TEMPLATE, most=junk)]
    ),
    "an offer's price": lambda junk: core.cheapest_mix(
        SCHEDULER, SNAPSHOT, [POD], [NodeOffer(template=TEMPLATE, price=junk)]
    ),
    "removable_nodes scheduler": lambda junk: core.removable_nodes(junk, SNAPSHOT),
    "removable_nodes candidates": lambda junk: core.removable_nodes(SCHEDULER, SNAPSHOT, junk),
    "removable_nodes most": lambda junk: core.removable_nodes(SCHEDULER, SNAPSHOT, None, junk),
    "simulate_drain snapshot": lambda junk: core.simulate_drain(junk, ["n1"]),
    "simulate_drain names": lambda junk: core.simulate_drain(SNAPSHOT, junk),
    "after_drain names": lambda junk: core.after_drain(SNAPSHOT, junk, SCHEDULER),
    "simulate_rollout names": lambda junk: core.simulate_rollout(SNAPSHOT, junk, SCHEDULER, begins=BEGINS),
    "simulate_rollout rules": lambda junk: core.simulate_rollout(SNAPSHOT, ["n1"], SCHEDULER, junk, begins=BEGINS),
    "simulate_rollout begins": lambda junk: core.simulate_rollout(SNAPSHOT, ["n1"], SCHEDULER, begins=junk),
    "load_objects": core.load_objects,
    "load_pages": core.load_pages,
    "from_dump": Snapshot.from_dump,
    "from_manifests": Snapshot.from_manifests,
    "with_node_added": SNAPSHOT.with_node_added,
    "pod_from_manifest": core.pod_from_manifest,
    "workload_from_manifest": core.workload_from_manifest,
}
FITS = {
    "schedule snapshot": (SNAPSHOT,),
    "schedule pod": (POD,),
    "Scheduler configuration": (None,),
    "Scheduler version": (),
    "Scheduler plugins": (None,),
    "like_node snapshot": (SNAPSHOT,),
    "template_from_manifest node": (NODE,),
    "template_from_manifest scheduler": (SCHEDULER,),
    "nodes_needed template": (TEMPLATE,),
    "an offer's template": (TEMPLATE,),
    "an offer's price": (0.5,),
    "removable_nodes scheduler": (SCHEDULER,),
    "removable_nodes candidates": (None,),
    "removable_nodes most": (None,),
    "simulate_drain snapshot": (SNAPSHOT,),
    "simulate_rollout rules": (None,),
    "with_node_added": (NODE,),
}
# These list what they cannot read in `problems`, or the path does not exist, or the name.
ANSWERED = {
    "load_objects": ([None], [7]),
    "from_dump": ("text",),
    "like_node name": ("text",),
    "from_manifests": ("text", {7: "pod"}),
    "Scheduler plugins": ({7: "pod"},),
    "load_pages": ([None], [7], {7: "pod"}),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_error_says_what_to_pass(call: str) -> None:
    left_out = (*FITS.get(call, ()), *ANSWERED.get(call, ()))
    for junk in JUNK:
        if any(junk is each or (type(junk) is type(each) and junk == each) for each in left_out):
            continue
        with pytest.raises((TypeError, ValueError), match=r"expected|pass |takes |write it|strict=False") as caught:
            CALLS[call](junk)
        assert "has no attribute" not in str(caught.value), (call, junk)


def test_a_number_of_nodes_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="count is -1: expected the number of nodes to add, 0 or more"):
        core.with_more_nodes(SCHEDULER, SNAPSHOT, [POD], TEMPLATE, -1)
    with pytest.raises(ValueError, match="most is -2: expected the largest number of nodes to try, 0 or more"):
        core.nodes_needed(SCHEDULER, SNAPSHOT, [POD], TEMPLATE, -2)


def test_a_begin_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a time zone"):
        core.simulate_rollout(SNAPSHOT, ["n1"], SCHEDULER, begins=datetime(2026, 1, 5))  # noqa: DTZ001

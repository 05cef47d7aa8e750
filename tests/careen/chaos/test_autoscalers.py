"""A roll-out beside autoscalers. A cordoned node has annotations that keep autoscalers from removing the node. These
annotations stay until the node is back in service, even if careen's agent on the node dies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from careen.core.node.autoscalers import PROTECTION
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World
from tests.careen.chaos.test_short_lives import agents_that_die

SCALE_DOWN, DISRUPT = PROTECTION
TOLD = "careen.dev/set-annotations"


def annotations(node: dict[str, Any] | None) -> dict[str, str]:
    return (node or {}).get("metadata", {}).get("annotations") or {}


def unprotected(world: World) -> list[str]:
    """Return the nodes that were cordoned at some time while they lacked the annotations that keep autoscalers from
    removing a node."""
    found = []
    for change in world.server.store.journal:
        node = change.after.content if change.after is not None else {}
        is_cordoned = change.storage[1] == "nodes" and node.get("spec", {}).get("unschedulable")
        if is_cordoned and not PROTECTION.items() <= annotations(node).items():
            found.append(node["metadata"]["name"])
    return found


def left(world: World) -> list[str]:
    """Return the nodes that at the end still have an annotation by which careen keeps autoscalers from removing a
    node."""
    keys = {*PROTECTION, TOLD}
    return [name for name in world.shape.names if keys & annotations(world.server.get("nodes", name)).keys()]


@pytest.mark.parametrize("lives_seconds", [5.0, 40.0])
@pytest.mark.parametrize("seed", [0, 2])
def test_a_node_keeps_its_autoscaler_annotations_through_the_reboot_if_its_agent_dies(
    lives_seconds: float, seed: int
) -> None:
    world = run_virtually(agents_that_die(Shape(nodes=3), seed, lives_seconds))
    assert (unprotected(world), left(world)) == ([], [])
    assert world.verdict(but=("taint", "settled", "service", "reported")) == [], world.report([])


async def with_persons(change: dict[str, dict[str, str | None]], *, wipes: bool = False) -> World:
    """Play a roll-out in which a person sets annotations of n1: those in `change["before"]` before the roll-out begins,
    and those in `change["during"]` while n1 is cordoned. If `wipes` is true, the person also removes the record of n1
    (the annotation in which careen stores the progress of the reboot)."""
    world = World(Shape(nodes=2))
    for key, value in change.get("before", {}).items():
        people.annotate(world, "n1", key, value)
    await world.all_need_a_reboot()
    while not (world.server.get("nodes", "n1") or {})["spec"].get("unschedulable"):
        await asyncio.sleep(0.2)
    for key, value in change.get("during", {}).items():
        people.annotate(world, "n1", key, value)
    if wipes:
        people.wipe_record(world, "n1")
    await world.until_home(900.0)
    world.stop()
    return world


@pytest.mark.parametrize(
    ("change", "after"),
    [
        ({"before": {DISRUPT: "true"}}, {DISRUPT: "true"}),
        ({"before": {SCALE_DOWN: "false"}}, {SCALE_DOWN: "false"}),
        ({"during": {SCALE_DOWN: "false"}}, {SCALE_DOWN: "false"}),
        ({"before": {DISRUPT: "x"}, "during": {DISRUPT: None}}, {}),
    ],
)
def test_autoscaler_annotations_that_people_set_are_kept(change: dict[str, Any], after: dict[str, str]) -> None:
    world = run_virtually(with_persons(change))
    found = annotations(world.server.get("nodes", "n1"))
    assert {key: found[key] for key in (*PROTECTION, TOLD) if key in found} == after
    assert [event.host for event in world.fleet.log if event.what == "booted"].count("n1") == 1


def test_no_autoscaler_annotation_is_left_if_a_person_removes_the_record_annotation() -> None:
    world = run_virtually(with_persons({}, wipes=True))
    assert left(world) == []


async def beside_a_removal() -> World:
    world = World(Shape(nodes=3))
    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    world.server.change(
        "nodes",
        "n2",
        lambda old: {**old, "spec": {**old["spec"], "taints": [*(old["spec"].get("taints") or ()), taint]}},
        actor="karpenter",
    )
    await world.all_need_a_reboot()
    await asyncio.sleep(600.0)
    world.stop()
    return world


def test_no_node_waits_for_a_node_that_karpenter_removes() -> None:
    world = run_virtually(beside_a_removal())
    assert sorted(event.host for event in world.fleet.log if event.what == "booted") == ["n1", "n3"]
    node = world.server.get("nodes", "n2") or {}
    assert not [
        key for key in (*annotations(node), *node["metadata"].get("labels", {})) if key.startswith("careen.dev/")
    ]
    assert world.lock().get("next", []) in ([], None)

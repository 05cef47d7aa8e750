"""A person writes invalid content on one Node or into one node's claim in the lock. Only the state of that node becomes
unknown, and the other nodes continue."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from careen.core.facts import keys
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World
from tests.careen.core.facts.test_untrusted import HUGE

RECORDS = {
    "a number of 400 digits": (
        '{"version":1,"phase":"Draining","claim":"c","boot_left":"b",'
        '"drain_started":{"boot":"b","uptime":' + HUGE + "}}"
    ),
    "infinity": '{"version":1,"claimed":{"boot":"b","uptime":1e999}}',
    "half of a surrogate pair": '{"version":1,"need_since":"\\ud800"}',
    "nesting without end": '{"version":' * 5_000,
    "no JSON": "please",
}
OTHERS = {
    keys.REFUSALS: '[{"gate":"hold","code":"held","sentence":"s","since":"0001-01-01T00:00:00+23:59"}]',
    keys.LAST_REBOOT: '{"at":"9999-12-31T23:59:59-23:59","seconds":' + HUGE + "}",
    keys.SINCE: "0001-01-01T00:00:00+23:59",
    keys.FORECAST: '{"pods":{"shop/web-1":[[]]},"at":5}',
    keys.MOVES: HUGE,
    keys.MOVES_IN_ZONE: HUGE,
}
ENTRIES: dict[str, Any] = {
    "a number": 5,
    "an object without a name": {"id": {}},
    "a path for a name": {"nodeID": ".."},
    "a boot id that is a list": {"nodeID": "n3", "boot": []},
    "a limit of 400 digits": {"nodeID": "n3", "id": "c", "limit": 10**400},
}
TWO_OF_THREE = Shape(nodes=3, concurrency=2)


async def beside_a_poisoned_node(record: str, label: str | None, shape: Shape) -> World:
    """Play a roll-out of n1 and n2. n3 needs no reboot, and the annotation with its progress is unreadable until a
    person removes it."""
    world = World(shape)
    poison(world, record, label)
    await asyncio.sleep(6.0)
    for name in ("n1", "n2"):
        world.fleet.hosts[name].needs_reboot()
    await asyncio.sleep(300.0)
    world.booted = [event.host for event in world.fleet.log if event.what == "booted"]
    poison(world, None, None)
    await asyncio.sleep(300.0)
    world.stop()
    return world


def poison(world: World, record: str | None, label: str | None) -> None:
    people.annotate(world, "n3", keys.PROGRESS, record)
    world.server.change(
        "nodes", "n3", lambda old: people._with(old, "labels", {keys.REBOOT_LABEL: label}), actor="person"
    )


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_an_unreadable_record_annotation_of_one_node_does_not_stop_other_nodes(record: str) -> None:
    """The label of n3 says that its reboot is in progress, so n3 counts as down. Two nodes may be down at once, so one
    other node can reboot at a time."""
    world = run_virtually(beside_a_poisoned_node(record, "in-progress", TWO_OF_THREE))
    broken = world.verdict(but=("taint", "finished", "explained"))
    assert not broken, world.report(broken)
    assert sorted(world.booted) == ["n1", "n2"]


@pytest.mark.parametrize("label", [None, "required", "ready"])
@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_a_node_with_an_unreadable_record_and_no_in_progress_label_counts_as_up(record: str, label: str | None) -> None:
    """Only one node may be down at once. If the node with the unreadable annotation counted as down, no other node
    could reboot."""
    world = run_virtually(beside_a_poisoned_node(record, label, Shape(nodes=3)))
    broken = world.verdict(but=("taint", "finished", "explained"))
    assert not broken, world.report(broken)
    assert sorted(world.booted) == ["n1", "n2"]


async def with_poison_everywhere() -> World:
    """Play a roll-out in which a person writes invalid annotations on every Node every seven seconds."""
    world = World(TWO_OF_THREE)

    def poison() -> None:
        for name in TWO_OF_THREE.names:
            for key, text in OTHERS.items():
                people.annotate(world, name, key, text)

    for second in range(0, 200, 7):
        world.at(float(second), poison)
    await world.all_need_a_reboot()
    await world.until_home(600.0)
    world.stop()
    return world


def test_invalid_text_in_annotations_other_than_the_record_does_not_prevent_a_reboot() -> None:
    world = run_virtually(with_poison_everywhere())
    broken = [
        each
        for each in world.verdict(but=("taint", "explained", "foreign"))
        if not each.startswith("end: ") or "annotations" not in each
    ]
    assert not broken, world.report(broken)
    assert len([event for event in world.fleet.log if event.what == "booted"]) == 3


async def beside_an_unreadable_entry(row: Any) -> World:
    world = World(TWO_OF_THREE)
    lock = {"nodeID": "", "maxOwners": 2, "locks": [row]}
    world.server.change(
        "daemonsets",
        "careen",
        lambda old: people._with(old, "annotations", {people.LOCK: json.dumps(lock)}),
        actor="person",
        namespace="careen",
    )
    await asyncio.sleep(6.0)
    for name in ("n1", "n2"):
        world.fleet.hosts[name].needs_reboot()
    await asyncio.sleep(300.0)
    world.note(json.dumps(world.lock())[:400])
    world.stop()
    return world


@pytest.mark.parametrize("row", ENTRIES.values(), ids=ENTRIES.keys())
def test_an_unreadable_lock_entry_does_not_stop_other_nodes(row: Any) -> None:
    world = run_virtually(beside_an_unreadable_entry(row))
    assert world.broken == []
    assert world.agents.broken_turns() == []
    log = [(event.what, event.host) for event in world.fleet.log if event.what in ("asked", "booted")]
    assert sorted(log) == [("asked", "n1"), ("asked", "n2"), ("booted", "n1"), ("booted", "n2")], world.report([])
    if isinstance(row, dict) and row.get("nodeID") == "n3":
        assert world.lock().get("locks", []) == [], "n3 holds no claim, so its agent must remove this entry"
    else:
        assert [what for what, _ in log] == ["asked", "booted", "asked", "booted"], (
            "the nodes must reboot one after another, because the entry counts as a claim"
        )
        (left,) = world.lock().get("locks", [])
        assert (left["nodeID"], left["raw"].replace("%22", '"').replace("%7B", "{").replace("%7D", "}")) == (
            "unreadable entry",
            json.dumps(row, separators=(",", ":")),
        ), "the holder of the entry is unknown, so only a person may remove the entry"

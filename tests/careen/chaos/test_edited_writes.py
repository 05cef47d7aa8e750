"""Admission or a GitOps controller edits what every agent writes: one field, always or sometimes. The agents' writes
stay few, no host goes down without its claim and its record, and a fleet goes on without what is only a comfort."""

from __future__ import annotations

import asyncio

import pytest

from careen.cluster import lock_store, nodes
from careen.core import losses
from drydock.server import api_errors
from tests.careen.chaos.fleet.admission import Edit, Field, How, Object, has_changed
from tests.careen.chaos.fleet.laws import too_many_writes
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

THREE = Shape(nodes=3)
SECONDS = 600.0
GOES_ON = {Field.REASON, Field.SETTINGS, Field.TAINT}
"""No decision rests on these fields; the policy of these worlds keeps no settings."""
UNSAFE = ("nodes-down", "claim", "reboot", "claims", "cordoned", "drained", "asked", "early", "out-of-service")


async def _edited(edit: Edit, seconds: float, seed: int) -> World:
    world = World(THREE, seed=seed)
    world.admission.edits.append(edit)
    await world.all_need_a_reboot()
    await asyncio.sleep(seconds)
    world.stop()
    return world


def played(field: Field, how: How, probability: float = 1.0, *, seconds: float = SECONDS, seed: int = 1) -> World:
    return run_virtually(_edited(Edit(field=field, how=how, probability=probability), seconds, seed))


def boots(world: World) -> int:
    return sum(event.what == "booted" for event in world.fleet.log)


def unsafe(world: World) -> list[str]:
    return [each for each in world.verdict() if each.split(":", 1)[0] in UNSAFE]


@pytest.mark.parametrize("how", list(How), ids=lambda how: how.name)
@pytest.mark.parametrize("field", list(Field), ids=lambda field: field.name)
def test_a_write_that_is_always_edited_costs_few_writes_and_no_safety(field: Field, how: How) -> None:
    world = played(field, how)
    assert too_many_writes(world) == []
    if field is not Field.LOCK or how is not How.TAKEN_BACK:  # two agents may see a free lock for a second
        assert unsafe(world) == [], world.report([])
    if field in GOES_ON:
        assert boots(world) == THREE.nodes
    told = {event.reason for event in world.agents.sent_events}
    assert field is Field.SETTINGS or "WriteNotKept" in told


@pytest.mark.parametrize("field", list(Field), ids=lambda field: field.name)
def test_a_write_that_is_sometimes_dropped_delays_the_roll_out_but_does_not_end_it(field: Field) -> None:
    world = played(field, How.DROPPED, 0.5)
    assert too_many_writes(world) == []
    assert unsafe(world) == [], world.report([])
    assert boots(world) == THREE.nodes


@pytest.mark.parametrize("code", [403, 422, 429, 500])
@pytest.mark.parametrize("field", [Field.RECORD, Field.LOCK, Field.LABEL, Field.TAINT], ids=lambda field: field.name)
def test_a_webhook_that_denies_each_write_of_a_field_costs_few_writes_and_no_safety(field: Field, code: int) -> None:
    def denying(old: Object, new: Object) -> Object:
        if has_changed(field, old, new):
            raise api_errors.denied("webhook.example.com", "not today", code=code)
        return new

    async def denied() -> World:
        world = World(THREE, seed=1)
        world.server.admit = denying
        await world.all_need_a_reboot()
        await asyncio.sleep(200.0)
        world.stop()
        return world

    world = run_virtually(denied())
    assert too_many_writes(world) == []
    assert unsafe(world) == [], world.report([])


@pytest.mark.parametrize("seed", [1, 8])
def test_a_node_whose_record_is_sometimes_put_back_keeps_its_claim_while_it_has_its_cordon(seed: int) -> None:
    world = played(Field.RECORD, How.TAKEN_BACK, 0.5, seconds=90.0, seed=seed)
    assert too_many_writes(world) == []
    assert [each for each in world.verdict() if each.split(":", 1)[0] in (*UNSAFE, "release")] == []


@pytest.mark.parametrize("field", [Field.RECORD, Field.LOCK, Field.LABEL, Field.TAINT], ids=lambda field: field.name)
def test_the_law_of_few_writes_sees_agents_that_believe_each_accepted_write(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "stands", lambda _patch, _node: True)
    monkeypatch.setattr(lock_store, "_means_the_same", lambda _seen, _wanted: True)
    monkeypatch.setattr(losses, "after_patch", lambda known, *_, **_more: known)
    monkeypatch.setattr(losses, "after_lock_write", lambda known, *_, **_more: known)
    assert too_many_writes(played(field, How.DROPPED, seconds=30.0)) != []

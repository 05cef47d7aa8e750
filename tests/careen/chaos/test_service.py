"""The rule `service` in a fleet whose pods need long to become ready: careen keeps it, and a careen that does not wait
for the displaced workloads breaks it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from careen.core.drain import baseline
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World


def pods_start_slowly(world: World) -> None:
    apps = world.fleet.workloads.apps
    apps.update({name: replace(app, ready_within=(40.0, 60.0)) for name, app in apps.items()})


async def a_roll_out() -> World:
    world = World(Shape(nodes=3, is_town=True), prepare=pods_start_slowly)
    await world.all_need_a_reboot()
    await world.until_home(2000.0)
    world.stop()
    return world


def test_the_next_node_starts_when_no_workload_lacks_pods_because_of_the_node_before() -> None:
    world = run_virtually(a_roll_out())
    assert world.verdict() == [], world.report([])


def test_the_rule_notices_if_careen_does_not_wait_for_displaced_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "what_ails", lambda _progress, _owners: "")
    broken = run_virtually(a_roll_out()).verdict(but=("settled",))
    assert broken
    assert all("started while" in each for each in broken), broken

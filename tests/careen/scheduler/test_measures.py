"""The metrics of extension points, plugins and events have kube-scheduler's names, and change no decision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from careen.scheduler.measures import Measures
from careen.scheduler.metrics import SchedulerMetrics
from scheduler_core.cycle import Scheduler
from scheduler_core.running.commands import Bind
from scheduler_core.running.machine import Machine
from tests.scheduler_core.running.world import World


class Clock:
    """A millisecond passes between two looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class Measured(World):
    def __init__(self, chance: float) -> None:
        self.measures = Measures(clock=Clock(), chance=lambda: chance)
        self.metrics = SchedulerMetrics(self.measures)
        super().__init__()

    def new_machine(self) -> Machine:
        return Machine(
            Scheduler(),
            on_attempt=self.metrics.attempted,
            on_change=self.metrics.changed,
            measured=self.measures.measured,
        )

    def told(self) -> dict[str, float]:
        self.metrics.show(self.machine)
        lines = self.metrics.exposition().decode().splitlines()
        return {name: float(value) for name, _, value in (each.rpartition(" ") for each in lines if each[0] != "#")}


def town(chance: float) -> Measured:
    world = Measured(chance)
    for name in ("n1", "n2", "n3"):
        world.create_node(name)
    world.create_pod("web")
    world.create_pod("large", cpu=64)
    world.deliver()
    world.run(2)
    return world


@pytest.mark.parametrize("chance", [0.05, 0.5])
def test_each_cycle_tells_how_long_its_extension_points_took(chance: float) -> None:
    told = town(chance).told()
    name = "scheduler_framework_extension_point_duration_seconds"
    counts = {
        point: told.get(f'{name}_count{{extension_point="{point}",profile="default-scheduler",status="{status}"}}')
        for point, status in (
            ("PreFilter", "Success"),
            ("Filter", "Success"),
            ("PreScore", "Success"),
            ("Score", "Success"),
            ("PostFilter", "Unschedulable"),
        )
    }
    assert counts == {"PreFilter": 2.0, "Filter": 2.0, "PreScore": 1.0, "Score": 1.0, "PostFilter": 1.0}


def test_the_first_and_a_tenth_of_the_other_cycles_tell_how_long_each_plugin_took() -> None:
    def of_fit(chance: float) -> float | None:
        labels = 'extension_point="Filter",plugin="NodeResourcesFit",status="Success"'
        return town(chance).told().get(f"scheduler_plugin_execution_duration_seconds_count{{{labels}}}")

    assert of_fit(0.1) == 1.0  # of the first cycle, which is always timed
    assert of_fit(0.0999) == 2.0


@pytest.mark.parametrize("chance", [0.05, 0.5])
def test_plugins_are_counted_once_for_each_node_that_they_were_asked_about(chance: float) -> None:
    told = town(chance).told()

    def of(plugin: str, point: str) -> float | None:
        labels = f'extension_point="{point}",plugin="{plugin}",profile="default-scheduler"'
        return told.get(f"scheduler_plugin_evaluation_total{{{labels}}}")

    assert of("NodeResourcesFit", "PreFilter") == 2.0
    assert of("NodeResourcesFit", "Filter") == 6.0  # both pods, three nodes
    assert of("NodeResourcesFit", "Score") == 3.0
    assert of("InterPodAffinity", "Filter") is None  # it skips pods without affinity


def test_each_event_tells_how_long_it_was_handled() -> None:
    world = Measured(0.5)
    world.create_node("n1")
    world.create_pod("web")
    for event in (*world.backlog, *_bound_and_gone(world)):
        world.machine.take(json.dumps(event).encode(), world.now)
        world.metrics.handled(0.002)
    told = world.told()
    name = "scheduler_event_handling_duration_seconds"
    events = ("NodeAdd", "UnschedulablePodAdd", "AssignedPodAdd", "AssignedPodDelete")
    assert {each: told.get(f'{name}_count{{event="{each}"}}') for each in events} == dict.fromkeys(events, 1.0)
    assert told[f'{name}_bucket{{event="NodeAdd",le="0.0016"}}'] == 0.0
    assert told[f'{name}_bucket{{event="NodeAdd",le="0.0032"}}'] == 1.0
    assert told[f'{name}_sum{{event="NodeAdd"}}'] == 0.002


def _bound_and_gone(world: Measured) -> list[dict[str, Any]]:
    pod = world.objects["Pod", "web"]
    bound = json.loads(json.dumps(pod))
    bound["spec"]["nodeName"] = "n1"
    bound["metadata"]["resourceVersion"] = "100"
    return [{"type": "MODIFIED", "object": bound}, {"type": "DELETED", "object": bound}]


def test_timed_cycles_decide_the_same() -> None:
    def binds(chance: float) -> list[tuple[str, str]]:
        return [(each.pod, each.node) for each in town(chance).open if isinstance(each, Bind)]

    assert binds(0.05) == binds(0.5) != []

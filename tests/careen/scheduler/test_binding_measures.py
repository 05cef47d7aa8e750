"""How long the extension points of a binding took, in milliseconds of a clock that only plugins and the API server turn
on. Labels and statuses are those of pkg/scheduler/framework/runtime/framework.go, v1.36."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from careen.scheduler.measures import Measures
from careen.scheduler.metrics import SchedulerMetrics
from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.extenders.asked_ahead import ExtenderCall, Unanswered
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, VerdictCode, error, unschedulable
from scheduler_core.running.machine import Machine
from scheduler_core.running.waiting.permits import WaitingPods
from tests.scheduler_core.plugins.asking import using
from tests.scheduler_core.running.world import LOST_BEFORE, World

Rows = dict[tuple[str, ...], tuple[int, int]]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow:
    """Each of its calls takes some milliseconds, and answers with a verdict or raises it."""

    name = "Slow"

    def __init__(self, clock: Clock, **calls: tuple[int, Any]) -> None:
        for method, (milliseconds, answer) in calls.items():
            setattr(self, method, self._calling(clock, milliseconds, answer))

    def _calling(self, clock: Clock, milliseconds: int, answer: Any) -> Callable[..., Any]:
        def call(*_: Any) -> Any:
            clock.now += milliseconds / 1000
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return call

    def unreserve(self, _state: Any, _pod: Any, _node: str) -> None: ...

    def events(self) -> tuple[()]:
        return ()


class Measured(World):
    """One node of four cores. `chance` 0: each call of a plugin is timed in every cycle."""

    def __init__(self, *, chance: float = 0.0, point: str = "multiPoint", **calls: tuple[int, Any]) -> None:
        self.clock = Clock()
        self.measures = Measures(clock=self.clock, chance=lambda: chance)
        self.metrics = SchedulerMetrics(self.measures)
        chosen = {"enabled": [{"name": "Slow"}]} if calls else {}
        if point != "multiPoint":
            chosen["disabled"] = [{"name": "*"}]
        plugin = Slow(self.clock, **calls)
        super().__init__(
            Scheduler(
                Configuration.from_mapping({"profiles": [{"plugins": {point: chosen}}]}),
                plugins={"Slow": lambda _args, _version: plugin} if calls else {},
            ),
            WaitingPods(),
        )
        self.create_node("n1")

    def new_machine(self) -> Machine:
        return Machine(
            self.scheduler,
            permits=self.permits,
            on_attempt=self.metrics.attempted,
            measured=self.measures.measured,
        )

    def comes(self, cpu: int = 1, **spec: Any) -> None:
        """A pod comes and is tried."""
        self.create_pod("a", cpu, **spec)
        self.deliver()
        self.run()

    def answers(self, fault: str = "good", *, after: int = 200) -> None:
        """The oldest request gets its answer, after some milliseconds."""
        self.clock.now += after / 1000
        self.carry_out(0, fault)

    def told(self, name: str, *labels: str, points: tuple[str, ...]) -> Rows:
        """By the values of these labels: how many, and milliseconds in all."""
        (family,) = [each for each in self.measures.collect() if each.name == name]
        found: dict[tuple[str, ...], dict[str, float]] = {}
        for sample in family.samples:
            if sample.labels["extension_point"] in points and "le" not in sample.labels:
                key = tuple(sample.labels[label] for label in labels)
                found.setdefault(key, {})[sample.name.rpartition("_")[2]] = sample.value
        return {key: (int(each["count"]), round(each["sum"] * 1000)) for key, each in found.items()}

    def points(self) -> Rows:
        name = "scheduler_framework_extension_point_duration_seconds"
        return self.told(name, "extension_point", "status", points=OF_BINDINGS)

    def plugins(self) -> Rows:
        name = "scheduler_plugin_execution_duration_seconds"
        return self.told(name, "plugin", "extension_point", "status", points=OF_BINDINGS)


OF_BINDINGS = ("Reserve", "Permit", "PreBind", "Bind", "PostBind", "Unreserve")
BOUND: Rows = {
    ("Reserve", "Success"): (1, 0),
    ("Permit", "Success"): (1, 0),
    ("PreBind", "Success"): (1, 0),
    ("Bind", "Success"): (1, 200),
    ("PostBind", "Success"): (1, 0),
}
RESERVED: Rows = {(plugin, "Reserve", "Success"): (1, 0) for plugin in ("VolumeBinding", "DynamicResources")}


def test_the_duration_of_a_bind_includes_the_request() -> None:
    world = Measured()
    world.comes()
    world.answers()
    assert world.points() == BOUND
    assert world.plugins() == {
        **RESERVED,
        ("DefaultBinder", "Bind", "Success"): (1, 200),
    }


def test_a_binding_that_the_watch_shows_first_is_told_once() -> None:
    world = Measured()
    world.comes()
    world.effect(world.open[0])
    world.clock.now += 0.15
    world.deliver()
    world.answers()
    assert world.points() == {**BOUND, ("Bind", "Success"): (1, 150)}


def test_each_point_and_plugin_tells_its_own_time() -> None:
    calls = {"reserve": 1, "permit": 2, "pre_bind": 4, "post_bind": 8, "unreserve": 16}
    world = Measured(**{method: (milliseconds, SUCCESS) for method, milliseconds in calls.items()})
    world.comes()
    world.answers()
    points = {"Reserve": (1, 1), "Permit": (1, 2), "PreBind": (1, 4), "Bind": (1, 200), "PostBind": (1, 8)}
    assert world.points() == {(point, "Success"): row for point, row in points.items()}
    assert world.plugins() == {
        **RESERVED,
        **{("Slow", point, "Success"): row for point, row in points.items() if point != "Bind"},
        ("DefaultBinder", "Bind", "Success"): (1, 200),
    }


def test_plugins_of_a_binding_are_timed_in_the_cycles_in_which_those_of_the_cycle_are() -> None:
    world = Measured(chance=0.5)
    world.comes()  # the first cycle of a process is always timed
    world.answers()
    first = world.plugins()
    world.create_pod("b")
    world.deliver()
    world.run()
    world.answers()
    assert world.plugins() == first
    assert {each: count for each, (count, _) in world.points().items()} == dict.fromkeys(BOUND, 2)


@pytest.mark.parametrize(
    ("method", "answer", "rows"),
    [
        ("reserve", unschedulable("no"), {("Reserve", "Unschedulable"): (1, 2)}),
        ("reserve", error("broken"), {("Reserve", "Error"): (1, 2)}),
        ("reserve", RuntimeError("bug"), {("Reserve", "Error"): (1, 2)}),
        ("permit", unschedulable("no"), {("Reserve", "Success"): (1, 0), ("Permit", "Unschedulable"): (1, 2)}),
        ("permit", RuntimeError("bug"), {("Reserve", "Success"): (1, 0), ("Permit", "Error"): (1, 2)}),
        (
            "pre_bind",
            unschedulable("no"),
            {
                ("Reserve", "Success"): (1, 0),
                ("Permit", "Success"): (1, 0),
                ("PreBind", "Unschedulable"): (1, 2),
            },
        ),
        (
            "pre_bind",
            RuntimeError("bug"),
            {("Reserve", "Success"): (1, 0), ("Permit", "Success"): (1, 0), ("PreBind", "Error"): (1, 2)},
        ),
    ],
)
def test_a_refusal_or_a_failure_is_the_status_of_its_point_and_unreserve_follows(
    method: str, answer: object, rows: Rows
) -> None:
    world = Measured(**{method: (2, answer)})
    world.comes()
    assert world.points() == {**rows, ("Unreserve", "Success"): (1, 0)}
    point, status = list(rows)[-1]
    assert world.plugins()["Slow", point, status] == (1, 2)


def test_a_pod_that_waits_for_permit_is_told_as_waiting_and_its_wait_is_no_part_of_any_point() -> None:
    world = Measured(permit=(2, Verdict(VerdictCode.WAIT)))
    world.comes()
    world.clock.now += 5
    (uid,) = world.machine.parts.permits.pods
    world.collect(world.machine.allow(uid, "Slow", world.now))
    world.open.pop(0)  # the nomination
    world.collect(())
    assert world.points() == {
        ("Reserve", "Success"): (1, 0),
        ("Permit", "Wait"): (1, 2),
        ("PreBind", "Success"): (1, 0),
    }


def test_a_bind_that_is_refused_or_whose_pod_is_gone_is_an_error() -> None:
    refused, gone = Measured(), Measured()
    for world in (refused, gone):
        world.comes()
    refused.answers("403")
    gone.clock.now += 0.2
    gone.remove("Pod", "a")
    gone.deliver()
    rows = {**BOUND, ("Unreserve", "Success"): (1, 0), ("Bind", "Error"): (1, 200)}
    del rows["Bind", "Success"], rows["PostBind", "Success"]
    assert refused.points() == gone.points() == rows
    assert refused.plugins()["DefaultBinder", "Bind", "Error"] == (1, 200)


def test_a_bind_without_an_answer_lasts_until_the_look_shows_the_pod() -> None:
    world = Measured()
    world.comes()
    world.effect(world.open[0])
    world.answers(LOST_BEFORE)
    world.wait(10)
    world.answers(after=10_000)
    assert world.points() == {**BOUND, ("Bind", "Success"): (1, 10_200)}


def test_bind_plugins_that_skip_the_pod_tell_it() -> None:
    world = Measured(point="bind", bind=(3, SKIP))
    world.comes()
    assert world.points()["Bind", "Skip"] == (1, 3)
    assert world.plugins()["Slow", "Bind", "Skip"] == (1, 3)


def test_prebind_lasts_until_the_volumes_are_bound() -> None:
    world = Measured()
    world.create_storage()
    world.create_volume("v", "n1")
    world.comes(volumes=using(world.create_claim("c", "wait")))
    for _ in range(20):
        if world.node_of("a"):
            break
        world.deliver()
        if world.open:
            world.answers(after=100)
        world.volumes_work()
        world.wait(1)
    # the nomination, the volume, and the binding
    assert world.points() == {**BOUND, ("PreBind", "Success"): (1, 200), ("Bind", "Success"): (1, 100)}
    assert world.plugins()["VolumeBinding", "PreBind", "Success"] == (1, 200)


def of_cycles(world: Measured) -> Rows:
    name = "scheduler_framework_extension_point_duration_seconds"
    points = ("PreFilter", "Filter", "PostFilter", "PreScore", "Score")
    return world.told(name, "extension_point", "status", points=points)


@pytest.mark.parametrize(
    ("method", "cpu", "rows"),
    [
        ("pre_filter", 1, {("PreFilter", "Error"): (1, 2)}),
        ("filter", 1, {("PreFilter", "Success"): (1, 0), ("Filter", "Error"): (1, 2)}),
        (
            "post_filter",
            64,
            {("PreFilter", "Success"): (1, 0), ("Filter", "Success"): (1, 0), ("PostFilter", "Error"): (1, 2)},
        ),
    ],
)
def test_a_point_of_the_cycle_at_which_a_plugin_raises_is_an_error(method: str, cpu: int, rows: Rows) -> None:
    world = Measured(**{method: (2, RuntimeError("bug"))})
    world.comes(cpu)
    assert of_cycles(world) == rows


@pytest.mark.parametrize(("method", "points"), [("pre_score", {"PreScore"}), ("score", {"PreScore", "Score"})])
def test_score_is_told_only_if_prescore_has_not_failed(method: str, points: set[str]) -> None:
    world = Measured(**{method: (2, RuntimeError("bug"))})
    world.create_node("n2")
    world.comes()
    rows = {each: row for each, row in of_cycles(world).items() if each[0] in ("PreScore", "Score")}
    assert {point for point, _ in rows} == points
    assert [each for each, (_, milliseconds) in rows.items() if milliseconds] == [(max(points), "Error")]


def test_a_cycle_that_is_broken_off_because_an_extender_must_be_asked_tells_no_error() -> None:
    asked = Unanswered(cast("ExtenderCall", None))
    world = Measured(post_filter=(2, asked))
    world.create_pod("a", 64)
    world.deliver()
    cache = world.machine.parts.cache
    with pytest.raises(Unanswered):
        world.measures.measured(world.scheduler).schedule(cache.snapshot(), cache.find("Pod", "default/a"))
    assert of_cycles(world) == {("PreFilter", "Success"): (1, 0), ("Filter", "Success"): (1, 0)}

"""Tells what the machine does with plugins that raise."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.extension_points import PostFilterResult
from scheduler_core.framework.verdict import SUCCESS, Verdict, unschedulable
from scheduler_core.queue.scheduling_queue import Room
from scheduler_core.running.commands import WriteStatus
from scheduler_core.running.machine import Attempt, Machine
from tests.scheduler_core.running.test_machine import coming, ready, room
from tests.scheduler_core.running.world import World


class Breaks:
    """`works`: the numbers of the calls that do not raise, from 1 on."""

    name = "Breaks"

    def __init__(self, works: tuple[int, ...] = ()) -> None:
        self.works, self.calls = works, 0

    def call(self) -> None:
        self.calls += 1
        if self.calls not in self.works:
            raise RuntimeError("broken")

    def events(self) -> tuple[()]:
        return ()


class Scores(Breaks):
    def score(self, _state: object, _pod: object, node: Any) -> int:
        if node.name == "n1":
            self.call()
        return 0


class Filters(Breaks):
    verdict = SUCCESS

    def filter(self, _state: object, _pod: object, _node: object) -> Verdict:
        self.call()
        return self.verdict


def running(plugin: Breaks, *nodes: str) -> World:
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Breaks"}]}}}
    configuration = Configuration.from_mapping({"profiles": [profile]})
    return ready(*nodes, scheduler=Scheduler(configuration, plugins={"Breaks": lambda _args, _version: plugin}))


def tried(world: World, times: int) -> None:
    """One attempt after another, each after the back-off."""
    coming(world, ("a", 1, 0))
    for _ in range(times - 1):
        world.wait(11)
        world.run(1)


def test_a_plugin_that_only_scores_is_switched_off_the_third_time_and_the_pod_is_bound() -> None:
    plugin = Scores()
    world = running(plugin, "n1", "n2")
    tried(world, 3)
    assert world.written["Bind"] == 0
    world.settle(60)
    assert (world.node_of("a") != "", plugin.calls) == (True, 3)


@pytest.mark.parametrize("wrong", [pytest.param(101, id="out of the range"), pytest.param("much", id="no number")])
def test_wrong_scores_are_as_bad_as_an_exception(wrong: Any) -> None:
    class Misjudges(Breaks):
        def score(self, _state: object, _pod: object, node: Any) -> Any:
            self.calls += node.name == "n1"
            return wrong

    plugin = Misjudges()
    world = running(plugin, "n1", "n2")
    tried(world, 3)
    world.settle(60)
    assert (world.node_of("a") != "", plugin.calls) == (True, 3)


def test_a_plugin_that_filters_is_never_switched_off_and_stops_the_pod() -> None:
    plugin = Filters()
    world = running(plugin)
    tried(world, 3)
    (status,) = (each for each in world.open if isinstance(each, WriteStatus))
    world.carry_out()
    world.run(1)
    said = [each.note for each in world.events if "third time in a row" in each.note]
    assert said == ["plugin Breaks failed: RuntimeError('broken'), the third time in a row"]
    assert (status.reason, room(world, "a")) == ("SchedulerError", Room.WAITING)
    world.settle(100)
    assert (world.node_of("a"), plugin.calls) == ("", 3)


@pytest.mark.parametrize("kind", [Scores, Filters])
def test_only_failures_in_a_row_count(kind: type[Breaks]) -> None:
    plugin = kind(works=(3,))
    world = running(plugin, *(("n1", "n2") if kind is Scores else ()))
    tried(world, 3)
    coming(world, ("b", 1, 0))
    world.wait(11)
    world.run(1)
    assert (plugin.calls, world.written["Bind"], room(world, "b")) == (5, 1, Room.BACKOFF)


def test_a_plugin_that_was_broken_for_a_while_places_the_pod_after_five_minutes() -> None:
    world = running(Filters(works=(4,)))
    tried(world, 3)
    world.settle(400)
    assert world.node_of("a") == "n1"


def test_a_cycle_that_does_not_ask_the_plugin_does_not_show_that_it_works() -> None:
    plugin = Scores()
    world = running(plugin, "n1", "n2")
    tried(world, 2)
    coming(world, ("c", 1, 0), nodeSelector={"kubernetes.io/hostname": "n1"})
    assert (world.written["Bind"], plugin.calls) == (1, 2)
    world.settle(60)
    assert (world.node_of("a") != "", plugin.calls) == (True, 3)


def test_a_pod_that_an_earlier_filter_refuses_does_not_show_that_a_later_one_works() -> None:
    plugin = Filters()
    world = running(plugin)
    tried(world, 2)
    coming(world, ("large", 1000, 0))
    assert (plugin.calls, room(world, "large")) == (2, Room.WAITING)
    world.wait(11)
    world.run(1)
    assert (plugin.calls, room(world, "a")) == (3, Room.WAITING)


def test_a_filter_that_refuses_without_an_exception_works() -> None:
    plugin = Filters()
    world = running(plugin)
    tried(world, 2)
    plugin.call = lambda: None  # type: ignore[method-assign]
    plugin.verdict = unschedulable("no")
    coming(world, ("refused", 1, 0))
    assert room(world, "refused") is Room.WAITING
    del plugin.call  # type: ignore[method-assign]
    world.wait(11)
    world.run(1)
    assert (plugin.calls, room(world, "a")) == (3, Room.BACKOFF)


def test_a_post_filter_plugin_works_if_it_finds_nothing_and_is_not_asked_for_a_pod_that_fits() -> None:
    class Preempts(Breaks):
        def post_filter(self, _state: object, _pod: object, _search: object) -> PostFilterResult:
            self.call()
            return PostFilterResult(unschedulable("nobody to evict"))

    plugin = Preempts(works=(3,))
    world = running(plugin)
    coming(world, ("a", 1000, 0))
    for name, cpu in (("fits", 1), ("b", 1000), ("c", 1000), ("d", 1000), ("e", 1000), ("f", 1000)):
        coming(world, (name, cpu, 0))
    # a and b raise, c does not, d, e and f raise: only f is the third in a row.
    rooms = [room(world, name) for name in "abcdef"]
    assert (plugin.calls, rooms) == (6, [*[Room.BACKOFF] * 2, Room.WAITING, *[Room.BACKOFF] * 2, Room.WAITING])
    assert world.node_of("f") == ""


def test_an_attempt_in_which_a_plugin_raised_is_an_error() -> None:
    seen: list[Attempt] = []
    world = running(Filters())
    machine = Machine(world.machine.parts.scheduler, on_attempt=seen.append)
    pod = {"metadata": {"name": "a", "namespace": "shop", "uid": "u"}, "spec": {"containers": [{"name": "c"}]}}
    node = {"metadata": {"name": "n1", "uid": "n"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
    for kind, item in (("Node", node), ("Pod", pod)):
        machine.take({"apiVersion": "v1", "kind": f"{kind}List", "items": [item]}, 0.0)
    machine.next(1.0)
    assert [each.outcome for each in seen] == ["error"]

"""A plugin that raises on a pod's way to its node fails this pod's attempt, and stops no other pod."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.verdict import SUCCESS
from scheduler_core.queue.scheduling_queue import Room
from scheduler_core.running.commands import Bind, Note, WriteStatus
from tests.scheduler_core.running.world import World


class Clumsy:
    name = "Clumsy"

    def __init__(self, method: str) -> None:
        self.method = method

    def events(self) -> tuple[()]:
        return ()

    def _at(self, method: str, pod: Any) -> Any:
        if method == self.method and pod.name == "bad":
            raise RuntimeError("no more disk")
        return SUCCESS

    def pre_enqueue(self, pod: Any) -> Any:
        return self._at("pre_enqueue", pod)

    def reserve(self, _state: Any, pod: Any, _node: str) -> Any:
        return self._at("reserve", pod)

    def unreserve(self, _state: Any, pod: Any, _node: str) -> None:
        self._at("unreserve", pod)

    def permit(self, _state: Any, pod: Any, _node: str) -> Any:
        return self._at("permit", pod)

    def pre_bind(self, _state: Any, pod: Any, _node: str) -> Any:
        return self._at("pre_bind", pod)

    def post_bind(self, _state: Any, pod: Any, _node: str) -> None:
        self._at("post_bind", pod)


def with_clumsy(method: str) -> World:
    configuration = Configuration.from_mapping(
        {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Clumsy"}]}}}]}
    )
    world = World(scheduler=Scheduler(configuration, plugins={"Clumsy": lambda _args, _version: Clumsy(method)}))
    world.create_node("n1")
    world.create_pod("bad")
    world.create_pod("good")
    world.deliver()
    return world


@pytest.mark.parametrize("method", ["reserve", "permit", "pre_bind"])
def test_before_the_binding_the_pod_goes_back_and_its_status_says_which_plugin_failed(method: str) -> None:
    world = with_clumsy(method)
    world.run(2)
    (status,) = [each for each in world.open if isinstance(each, WriteStatus)]
    assert (status.reason, "plugin Clumsy failed: RuntimeError('no more disk')" in status.message) == (
        "SchedulerError",
        True,
    )
    assert [each.pod for each in world.open if isinstance(each, Bind)] == ["default/good"]
    assert world.machine.parts.cache.assumed_node("default/bad") == ""
    world.settle(30)
    assert (world.node_of("bad"), world.node_of("good")) == ("", "n1")


def test_after_the_binding_nothing_changes() -> None:
    world = with_clumsy("post_bind")
    world.settle(10)
    assert (world.node_of("bad"), world.node_of("good")) == ("n1", "n1")
    assert not world.machine.parts.bindings


def test_a_pod_whose_unreserve_raises_is_tried_again() -> None:
    world = with_clumsy("unreserve")
    world.run(1)
    world.carry_out(fault="403")
    assert world.machine.parts.cache.assumed_node("default/bad") == ""
    world.settle(30)
    assert world.node_of("bad") == "n1"


def test_a_pod_whose_pre_enqueue_raises_stays_out_of_the_queue() -> None:
    world = with_clumsy("pre_enqueue")
    world.settle(10)
    assert (world.node_of("bad"), world.node_of("good")) == ("", "n1")


class BadSort:
    name = "BadSort"

    def less(self, one: Any, other: Any) -> bool:
        if "bad" in (one.pod.name, other.pod.name):
            raise RuntimeError("no such label")
        return bool(one.pod.name > other.pod.name)


def test_no_pod_is_lost_if_queue_sort_raises_and_the_log_says_so_once() -> None:
    sorts = {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "BadSort"}]}}
    configuration = Configuration.from_mapping({"profiles": [{"plugins": sorts}]})
    world = World(scheduler=Scheduler(configuration, plugins={"BadSort": lambda _args, _version: BadSort()}))
    world.create_node("n1", 9)
    for name, priority in (("bad", 1), ("a", 0), ("b", 0), ("c", 2)):
        world.create_pod(name, 1, priority)
    notes = [
        f"{each.text}: {each.why}"
        for event in world.backlog
        for each in world.machine.take(event, world.now)
        if isinstance(each, Note)
    ]
    world.backlog.clear()
    world.run(4)
    assert [each.pod for each in world.open if isinstance(each, Bind)] == [
        f"default/{name}" for name in ("c", "bad", "b", "a")
    ]
    assert notes == [
        "Pods that QueueSort cannot compare go by priority: plugin BadSort failed: RuntimeError('no such label')"
    ]


class BadGate:
    name = "BadGate"

    def pre_enqueue(self, pod: Any) -> Any:
        if pod.name == "odd":
            return True
        raise RuntimeError("no such label")


def test_the_log_says_once_that_pre_enqueue_raises_and_the_queue_why_each_pod_is_kept_out() -> None:
    enabled = {"multiPoint": {"enabled": [{"name": "BadGate"}]}}
    configuration = Configuration.from_mapping({"profiles": [{"plugins": enabled}]})
    world = World(scheduler=Scheduler(configuration, plugins={"BadGate": lambda _args, _version: BadGate()}))
    world.create_node("n1", 9)
    for name in ("a", "odd", "b"):
        world.create_pod(name, 1)
    notes = [
        f"{each.text}: {each.why}"
        for event in world.backlog
        for each in world.machine.take(event, world.now)
        if isinstance(each, Note)
    ]
    assert notes == ["Pods whose PreEnqueue fails stay pending: plugin BadGate failed: RuntimeError('no such label')"]
    reasons = {}
    for name in ("a", "odd"):
        found = world.machine.parts.queue.find(f"default/{name}")
        assert found is not None
        reasons[name] = found[1].gating_reason
    assert reasons["a"] == "it failed: RuntimeError('no such label')"
    assert "pre_enqueue returned the bool True; it must return a Verdict" in reasons["odd"]


class Unblamed:
    """No frame of its method has a `self`, so nobody can tell which plugin raised."""

    name = "Unblamed"

    def events(self) -> tuple[()]:
        return ()

    @staticmethod
    def filter(_state: Any, _pod: Any, _node: Any) -> Any:
        raise RuntimeError("no more disk")


def test_a_failure_for_which_no_plugin_can_be_blamed_is_tried_again_for_ever() -> None:
    enabled = {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Unblamed"}]}}}]}
    configuration = Configuration.from_mapping(enabled)
    world = World(scheduler=Scheduler(configuration, plugins={"Unblamed": lambda _args, _version: Unblamed()}))
    world.create_node("n1")
    world.create_pod("bad")
    world.deliver()
    for _ in range(5):
        world.run()
        found = world.machine.parts.queue.find("default/bad")
        assert found is not None
        assert found[0] is Room.BACKOFF
        world.wait(20)

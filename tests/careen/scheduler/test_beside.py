"""Plugins that wait for something hold up their pod and the pods behind it, but not the loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from careen.scheduler.plugins.beside import Beside
from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.verdict import SUCCESS
from scheduler_core.plugins.node_name import NodeName
from scheduler_core.running.commands import Bind, WriteStatus
from scheduler_core.running.machine import Machine
from scheduler_core.running.waiting.beside import WorkEnd
from tests.patience import LONG_SECONDS, until
from tests.scheduler_core.running.world import World


class Slow:
    """At one extension point it waits for a pod of the name `slow`. `calls`: of all pods, in their order."""

    name = "Slow"

    def __init__(self, method: str, *, raises: bool = False) -> None:
        self.calls: list[str] = []
        self.may_go = threading.Event()
        self._method = method
        self._raises = raises

    def events(self) -> tuple[()]:
        return ()

    def _at(self, method: str, pod: Any) -> Any:
        if method == self._method and pod.name == "slow":
            assert self.may_go.wait(LONG_SECONDS)
            if self._raises:
                raise RuntimeError("no more disk")
        self.calls.append(f"{method} {pod.name}")
        return SUCCESS

    def filter(self, _state: Any, pod: Any, _node_info: Any) -> Any:
        return self._at("filter", pod)

    def reserve(self, _state: Any, pod: Any, _node: str) -> Any:
        return self._at("reserve", pod)

    def unreserve(self, _state: Any, pod: Any, _node: str) -> None:
        self._at("unreserve", pod)

    def pre_bind(self, _state: Any, pod: Any, _node: str) -> Any:
        return self._at("pre_bind", pod)

    def post_bind(self, _state: Any, pod: Any, _node: str) -> None:
        self._at("post_bind", pod)


class Impatient(Slow):
    time_limit_seconds = 0.02


class Town(World):
    """One node, and the pods `slow` and `quick`. Must be made on a loop."""

    def __init__(self, plugin: Slow) -> None:
        self.plugin = plugin
        self.bugs: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, bug: self.bugs.append(bug))
        self.beside = Beside(time.monotonic)
        self.beside.use(self._ended)
        configuration = Configuration.from_mapping(
            {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Slow"}]}}}]}
        )
        factory = self.beside.guarded(lambda _args, _version: plugin)
        super().__init__(Scheduler(configuration, plugins={"Slow": factory}))
        self.create_node("n1")
        self.create_pod("slow")
        self.create_pod("quick")
        self.deliver()

    def new_machine(self) -> Machine:
        return Machine(self.scheduler, beside=self.beside.start)

    def _ended(self, number: int, outcome: WorkEnd) -> None:
        self.collect(self.machine.ended(number, outcome, self.now))

    def binds(self) -> list[str]:
        return [each.pod.removeprefix("default/") for each in self.open if isinstance(each, Bind)]

    async def until(self, is_met: Callable[[], bool]) -> None:
        def goes_on() -> bool:
            self.run(1)
            return is_met()

        await until(goes_on)
        assert not self.bugs


@pytest.mark.parametrize("method", ["filter", "reserve"])
async def test_while_a_cycle_waits_events_are_taken_and_no_other_pod_is_tried(method: str) -> None:
    town = Town(Slow(method))
    town.run(3)
    assert (town.binds(), town.machine.has_work) == ([], False)
    town.create_node("n2")
    town.deliver()
    assert town.machine.parts.cache.sizes()["nodes"] == 2
    town.plugin.may_go.set()
    await town.until(lambda: town.binds() == ["slow", "quick"])


async def test_a_pod_that_is_deleted_while_its_cycle_waits_is_not_bound_and_the_next_one_is() -> None:
    town = Town(Slow("filter"))
    town.run(1)
    town.remove("Pod", "slow")
    town.deliver()
    town.plugin.may_go.set()
    await town.until(lambda: town.binds() == ["quick"])


async def test_a_node_that_goes_while_a_cycle_waits_stops_nobody() -> None:
    town = Town(Slow("filter"))
    town.run(1)
    town.remove("Node", "n1")
    town.create_node("n2")
    town.deliver()
    town.plugin.may_go.set()
    await town.until(lambda: "quick" in town.binds())
    assert [each.node for each in town.open if isinstance(each, Bind) and each.pod == "default/quick"] == ["n2"]


async def test_while_pre_bind_waits_other_pods_are_bound() -> None:
    town = Town(Slow("pre_bind"))
    town.run(2)
    assert town.binds() == ["quick"]
    town.plugin.may_go.set()
    await town.until(lambda: town.binds() == ["quick", "slow"])


async def test_what_was_reserved_is_released_when_the_plugin_has_answered() -> None:
    town = Town(Slow("pre_bind"))
    town.run(1)
    town.remove("Pod", "slow")
    town.deliver()
    assert town.plugin.calls[-1] == "reserve slow"
    town.plugin.may_go.set()
    await town.until(lambda: "unreserve slow" in town.plugin.calls)
    assert town.plugin.calls.index("pre_bind slow") < town.plugin.calls.index("unreserve slow")
    assert "slow" not in town.binds()


@pytest.mark.parametrize("method", ["filter", "reserve", "pre_bind"])
async def test_a_plugin_that_needs_longer_than_its_limit_fails_the_pod_and_stops_no_other(method: str) -> None:
    town = Town(Impatient(method))
    town.run(1)
    await town.until(lambda: "quick" in town.binds())
    await town.until(lambda: any(isinstance(each, WriteStatus) for each in town.open))
    (status,) = [each for each in town.open if isinstance(each, WriteStatus)]
    assert (status.pod, status.reason) == ("default/slow", "SchedulerError")
    assert "plugin Slow has not answered for 0.02 s" in status.message
    assert town.beside.stuck["Slow"] == 1
    town.plugin.may_go.set()
    await town.until(lambda: not town.beside.stuck["Slow"])


async def test_a_plugin_that_raises_after_it_waited_is_named() -> None:
    town = Town(Slow("filter", raises=True))
    town.run(1)
    town.plugin.may_go.set()
    await town.until(lambda: any(isinstance(each, WriteStatus) for each in town.open))
    (status,) = [each for each in town.open if isinstance(each, WriteStatus)]
    assert status.message == "plugin Slow failed: RuntimeError('no more disk')"


def test_a_subclass_of_a_plugin_of_the_library_is_not_wrapped() -> None:
    class Mine(NodeName):
        pass

    mine = Mine()
    assert Beside(time.monotonic).guarded(lambda _args, _version: mine)(None, None) is mine

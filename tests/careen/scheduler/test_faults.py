"""A running scheduler on an API server that misbehaves: no pod is lost, none is bound twice, no node is over its
allocatable."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from careen.agent.clock import SystemClock
from careen.agent.telemetry.http_server import Heartbeat
from careen.cluster.wire.client import ServerAccess
from careen.scheduler.lease import LeaseSettings
from careen.scheduler.metrics import SchedulerMetrics
from careen.scheduler.scheduler import Process, RunningScheduler
from careen.scheduler.settings import ProcessSettings
from careen.scheduler.wire.server import Server
from drydock.rollout.kubeconfig import write_kubeconfig
from drydock.server.api_errors import ApiError
from drydock.server.faults import Fault, FaultKind
from drydock.server.kinds.resources import resource_named
from drydock.server.requests.info import RequestInfo
from drydock.server.testing import RunningServer, running_server
from scheduler_core.cycle import Scheduler
from tests.patience import until

Json = dict[str, Any]
NODES, PODS = 3, 12  # of one cpu each, on nodes of four: exactly full
SPEED = 10.0


class FastClock(SystemClock):
    """Ten times as fast as the loop's."""

    def monotonic(self) -> float:
        return super().monotonic() * SPEED

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / SPEED)


class Cable:
    """Every connection to the API server. `cut` breaks them all; while `is_unplugged`, no new one is made."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._pipes: set[asyncio.Task[None]] = set()
        self.is_unplugged = False
        self.url = ""

    async def plug_in(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    def cut(self) -> None:
        for each in self._pipes:
            each.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pipes.add(task)
        back = None
        try:
            if not self.is_unplugged:
                answers, back = await asyncio.open_connection("127.0.0.1", self._port)
                await asyncio.wait(
                    (asyncio.ensure_future(_pump(reader, back)), asyncio.ensure_future(_pump(answers, writer))),
                    return_when=asyncio.FIRST_COMPLETED,
                )
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._pipes.discard(task)
            for end in (writer, back):
                if end is not None:
                    end.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(2**16):
            writer.write(data)


class Town:
    def __init__(self, server: RunningServer, cable: Cable, folder: Path) -> None:
        self.server = server
        self.cable = cable
        self.said: list[str] = []
        clock = FastClock()
        access = ServerAccess(write_kubeconfig(folder / "kubeconfig", cable.url, user="scheduler"))
        self.scheduler = RunningScheduler(
            Scheduler(),
            ProcessSettings(lease=LeaseSettings(name="x", is_wanted=False)),
            Process(
                me="test",
                server=Server(access, agent="test", monotonic=clock.monotonic),
                clock=clock,
                connect=lambda: pytest.fail("no election"),
                chance=lambda: 0.5,
                say=self.said.append,
                leave=self.said.append,
                health=Heartbeat(clock.monotonic),
            ),
            metrics=SchedulerMetrics(),
        )

    def come(self, *names: str, cpu: str = "1") -> None:
        for name in names:
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
            spec = {"schedulerName": "default-scheduler", "containers": [container]}
            self.server.seed({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})

    @property
    def pods(self) -> dict[str, Json]:
        storage = resource_named("pods").storage
        return {item.key[1]: dict(item.content) for item in self.server.store.items(storage)}

    @property
    def placed(self) -> dict[str, str]:
        return {name: pod["spec"]["nodeName"] for name, pod in self.pods.items() if pod["spec"].get("nodeName")}

    @property
    def binds(self) -> Counter[str]:
        """Bindings that took effect, by pod."""
        changes = [each for each in self.server.store.journal if each.before is not None and each.after is not None]
        return Counter(
            each.key[1]
            for each in changes
            if "nodeName" in each.after.content.get("spec", {}) and "nodeName" not in each.before.content["spec"]
        )

    async def all_placed(self) -> None:
        await until(lambda: len(self.placed) == PODS, lambda: f"{self.placed} {self.said[-20:]}")
        assert max(Counter(self.placed.values()).values()) == PODS // NODES
        await asyncio.sleep(0.3)  # three seconds in which a binding could be sent once more
        assert self.binds == Counter(list(self.placed))


def a_node(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


@contextlib.asynccontextmanager
async def town(folder: Path, **options: Any) -> AsyncIterator[Town]:
    async with running_server(**options) as server:
        cable = Cable(int(server.url.rsplit(":", 1)[1]))
        listening = await cable.plug_in()
        server.seed(*(a_node(f"n{number}") for number in range(NODES)))
        made, stop = Town(server, cable, folder), asyncio.Event()
        task = asyncio.create_task(made.scheduler.run(stop))
        try:
            yield made
            assert not task.done(), task
        finally:
            stop.set()
            await until(task.done)
            listening.close()
            cable.cut()
            await asyncio.sleep(0.01)


NAMES = [f"p{number}" for number in range(PODS)]


def once_each(spoil: Callable[[], Fault | None], *, of: str) -> Callable[[RequestInfo, str, bool], Fault | None]:
    """The first write of each pod to this subresource meets the fault."""
    met: set[str] = set()

    def plan(info: RequestInfo, _user: str, _may_be_stale: bool) -> Fault | None:
        if info.subresource != of or info.verb not in ("create", "patch") or info.name in met:
            return None
        met.add(info.name)
        return spoil()

    return plan


def refused() -> Fault | None:
    raise ApiError(403, "Forbidden", "admission webhook says no")


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda: Fault(kind=FaultKind.CONFLICT), id="409"),
        pytest.param(lambda: Fault(kind=FaultKind.THROTTLED, seconds=1), id="429 with Retry-After"),
        pytest.param(lambda: Fault(kind=FaultKind.SERVER_ERROR, code=500), id="500"),
        pytest.param(lambda: Fault(kind=FaultKind.LOST_BEFORE), id="lost before it took effect"),
        pytest.param(lambda: Fault(kind=FaultKind.LOST_AFTER), id="lost after it took effect"),
        pytest.param(lambda: Fault(kind=FaultKind.LATE, seconds=0.5), id="takes effect five seconds later"),
        pytest.param(refused, id="403"),
    ],
)
async def test_bindings_that_meet_a_fault_are_made_once(tmp_path: Path, spoil: Callable[[], Fault | None]) -> None:
    async with town(tmp_path, plan=once_each(spoil, of="binding")) as made:
        made.come(*NAMES)
        await made.all_placed()


@pytest.mark.parametrize("is_done", [True, False], ids=["made", "not made"])
async def test_an_empty_answer_to_a_binding_says_nothing(tmp_path: Path, *, is_done: bool) -> None:
    async with town(tmp_path) as made:
        api: Any = made.server.api
        bind, success, met = api.verbs.bind, api._success, set[str]()

        def half(namespace: str, name: str, *args: Any, **more: Any) -> None:
            api._success = success if name in met else lambda _code: api._json({}, 200)
            if is_done or name in met:
                bind(namespace, name, *args, **more)
            met.add(name)

        api.verbs.bind = half
        made.come(*NAMES)
        await made.all_placed()


async def test_a_refused_status_stops_nobody(tmp_path: Path) -> None:
    def plan(info: RequestInfo, _user: str, _may_be_stale: bool) -> Fault | None:
        return refused() if info.subresource == "status" else None

    async with town(tmp_path, plan=plan) as made:
        made.come("large", cpu="9")
        made.come(*NAMES)
        await until(lambda: len(made.placed) == PODS, lambda: f"{made.placed} {made.said[-20:]}")
        assert "large" not in made.placed


async def test_what_came_while_the_api_server_was_down_is_scheduled_when_it_is_back(tmp_path: Path) -> None:
    async with town(tmp_path) as made:
        made.come(*NAMES[:4])
        await until(lambda: len(made.placed) == 4)
        made.cable.is_unplugged = True
        made.cable.cut()
        made.come(*NAMES[4:])
        await asyncio.sleep(20 / SPEED)
        assert len(made.placed) == 4
        made.cable.is_unplugged = False
        await made.all_placed()


async def test_connections_that_break_every_second_delay_pods_and_lose_none(tmp_path: Path) -> None:
    async with town(tmp_path) as made:
        for name in NAMES:
            made.come(name)
            await asyncio.sleep(1 / SPEED)
            made.cable.cut()
        await made.all_placed()


async def test_watches_that_are_always_too_old_become_lists_and_lose_no_pod(tmp_path: Path) -> None:
    async with town(tmp_path) as made:
        for name in NAMES:
            made.come(name)
            await asyncio.sleep(1 / SPEED)
            # A watch from the newest version would not be too old.
            made.server.seed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
            made.server.store.forget_history()
            made.cable.cut()
        await made.all_placed()
        lists = [each for each in made.server.api.requests if (each.verb, each.resource) == ("list", "pods")]
        assert len(lists) > 1


async def test_a_kind_that_cannot_be_watched_for_long_is_said_once(tmp_path: Path) -> None:
    async with town(tmp_path) as made:
        made.come(*NAMES)
        await made.all_placed()
        made.cable.is_unplugged = True
        made.cable.cut()
        await until(lambda: any("careen cannot watch Node" in each for each in made.said), lambda: str(made.said))
        made.cable.is_unplugged = False
        await until(lambda: "careen watches Node again" in made.said, lambda: str(made.said))
        about = [each.partition(":")[0] for each in made.said if " Node " in each]
        assert about == ["careen cannot watch Node and tries again", "careen watches Node again"]

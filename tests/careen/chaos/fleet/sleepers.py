"""The second form of an agent's process. While an agent sleeps, careen's own `SleepersLooks` run on virtual time,
against the simulated server and host, and what an agent hands over is encoded and decoded as in production."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from careen.agent.asleep import sleeper
from careen.agent.asleep.doorkeeper import Woken
from careen.agent.asleep.handover import CarriedMemory
from careen.agent.asleep.rest import SleepAttempt
from careen.agent.need_watch import NeedWatch
from careen.agent.turn import Reconciler
from careen.cluster.access import OptionalRight
from careen.cluster.wire.client import Credentials
from careen.cluster.wire.errors import ClusterError
from careen.cluster.wire.transport import Request, Response
from careen.settings.live import KeptSettings, SeenConfigMap
from careen.settings.tree import Settings
from drydock.server.kinds.resources import resource_named
from drydock.server.store import HistoryGone

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.agents import Agents, Process
    from tests.careen.chaos.fleet.machines import Host

LOADS_SECONDS = (0.3, 0.6)
"""How long the woken agent's libraries load."""
_EXEC_SECONDS = 0.05
_SILENCE_SECONDS = 150.0
_BOOKMARK_SECONDS = 60.0
_NODES = resource_named("nodes").storage
CREDENTIALS = Credentials(
    server="http://server:80",
    authorization=None,
    ca_file=None,
    certificate_file=None,
    key_file=None,
    insecure=False,
)


class Instant(StrEnum):
    """An instant around a change of form at which a process may die."""

    LIES_DOWN = "before the exec of the sleeper"
    ASLEEP = "after the exec of the sleeper, before its first look"
    GETS_UP = "before the exec of the agent"
    LOADS = "after the exec of the agent, while its libraries load"
    AWAKE = "before the first turn of the woken agent"


async def signatures_of(host: Host) -> dict[str, str]:
    """Raise OSError if the sentinel file cannot be checked. Hang as long as the host's file system does."""
    while host.hangs:
        await asyncio.sleep(0.5)
    if not host.is_sentinel_readable:
        raise OSError(errno.ESTALE, "stale file handle")
    return {"/run/reboot-required": f"there since {host.need_at}" if host.has_need else "absent:4"}


def attempt(
    agents: Agents,
    process: Process,
    *,
    need: NeedWatch,
    reconciler: Reconciler,
    remembered: CarriedMemory,
) -> SleepAttempt:
    """What production asks after each turn whether the agent may sleep."""
    host = agents.fleet.hosts[process.node]
    settings = Settings(node_id=process.node, ds_namespace="careen")
    return SleepAttempt(
        settings=lambda: settings,
        kept_settings=lambda: KeptSettings(config_map=seen_config_map(agents)),
        host=host,  # type: ignore[arg-type]
        need=need,
        reconciler=reconciler,
        credentials=lambda: CREDENTIALS,
        remembered=remembered,
        is_busy=lambda: process.is_busy,
        is_reviewed=lambda: True,
        without=lambda: () if agents.may_follow else (OptionalRight.WATCHING,),
        not_ready=lambda: "",
        signatures=lambda: signatures_of(host),
    )


def seen_config_map(agents: Agents) -> SeenConfigMap | None:
    found = agents.fleet.server.get("configmaps", "careen", "careen")
    if found is None:
        return None
    metadata = found["metadata"]
    return SeenConfigMap(uid=metadata["uid"], resource_version=metadata["resourceVersion"], data={})


async def sleeps(agents: Agents, process: Process, content: Mapping[str, Any]) -> Woken | None:
    """From the exec of the sleeper until the libraries of the woken agent are loaded. Return what was handed over; None
    if it could not be read, as after an ordinary start."""
    await agents.reach(process, Instant.LIES_DOWN)
    process.change_form(is_asleep=True)
    agents.note_sleep(process)
    text = sleeper.encoded({"requests": {}, **content})
    await asyncio.sleep(_EXEC_SECONDS)
    await agents.reach(process, Instant.ASLEEP)
    looks = sleeper.SleepersLooks(sleeper.decoded(text), Outside(agents, process))
    process.looks = looks
    found = [process.do(look) for look in looks.all()]
    done, _ = await asyncio.wait(found, timeout=max(0.0, looks.left_seconds), return_when=asyncio.FIRST_COMPLETED)
    await process.thawed()
    why = next((task.result() for task in found if task in done), "a look is due")
    await agents.reach(process, Instant.GETS_UP)
    text = sleeper.encoded(looks.handed_back(why))
    process.change_form(is_asleep=False)
    agents.note_wake(process, why)
    await agents.reach(process, Instant.LOADS)
    await asyncio.sleep(agents.chance_of(process.node).uniform(*LOADS_SECONDS))
    await process.thawed()
    await agents.reach(process, Instant.AWAKE)
    with suppress(ValueError):
        return Woken(sleeper.decoded(agents.handed_over(process.node, text)), None)
    return None


class Outside(sleeper.Outside):
    """The simulated host and server, as one sleeping process meets them."""

    def __init__(self, agents: Agents, process: Process) -> None:
        self._agents, self._process = agents, process
        self._host = agents.fleet.hosts[process.node]
        self._clock = agents.clock_of(process)
        self.api = Api(agents, process)  # type: ignore[assignment]

    def now(self) -> float:
        return self._host.uptime()

    def wall(self) -> float:
        return self._clock.now().timestamp()

    def chance(self) -> float:
        return self._agents.chance_of(self._process.node).random()

    async def pause(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    async def signature(self, path: str) -> str:
        return (await signatures_of(self._host))[path]


class Api:
    """The simulated connection of one sleeping process, which meets the same faults as that of an agent."""

    def __init__(self, agents: Agents, process: Process) -> None:
        self._agents, self._process = agents, process

    async def get(self, path: str, accept: str) -> tuple[int, dict[str, Any]]:
        answer = await self._send(path, accept)
        found = json.loads(answer.body) if answer.status == 200 else {}
        if not isinstance(found, dict):
            raise TypeError("the answer is not an object")
        return answer.status, found

    async def watch(self, path: str, accept: str) -> tuple[int, AsyncIterator[dict[str, Any]]]:
        answer = await self._send(path, accept)
        query = dict(parse_qsl(path.partition("?")[2]))
        return answer.status, Watch(self._agents, self._process, query, answer.body)

    async def _send(self, path: str, accept: str) -> Response:
        path, _, query = path.partition("?")
        request = Request(method="GET", path=path, query=dict(parse_qsl(query)), accept=accept)
        if why := self._agents.withheld(request):
            return self._agents.fleet.server.refusal(403, why)
        try:
            return await self._agents.wire(self._process).send(request)
        except ClusterError as error:
            raise ConnectionError(str(error)) from error


class Watch:
    """The events of one Node. `instead` is what a fault put in their place."""

    def __init__(self, agents: Agents, process: Process, query: Mapping[str, str], instead: bytes) -> None:
        self._agents, self._process = agents, process
        self._store, self._loop = agents.fleet.server.store, asyncio.get_running_loop()
        self._version = int(query["resourceVersion"])
        self._until = self._loop.time() + float(query["timeoutSeconds"])
        self._bookmark_at = self._loop.time() + _BOOKMARK_SECONDS
        self._instead = instead.splitlines() if instead else None
        self._waiting: list[dict[str, Any]] = []
        self._changed = asyncio.Event()
        self._is_broken = False
        self._stop = self._store.listen([_NODES], self._changed.set)
        process.watches.append(self)

    def breaks(self) -> None:
        """The server has ended, or the connection."""
        self._is_broken = True
        self._changed.set()

    def close(self) -> None:
        if self in self._process.watches:
            self._process.watches.remove(self)
            self._stop()

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> dict[str, Any]:
        if self._instead is not None:
            return self._next_instead()
        while not self._waiting:
            if self._is_broken or self._loop.time() >= self._until:
                self.close()
                if self._is_broken:
                    raise ConnectionError("connection reset")
                raise StopAsyncIteration
            self._changed.clear()
            self._waiting = list(self._new())
            if not self._waiting:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(min(self._until, self._bookmark_at)):
                        await self._changed.wait()
        await self._arrive()
        return self._waiting.pop(0)

    def _next_instead(self) -> dict[str, Any]:
        if not self._instead:
            self.close()
            raise StopAsyncIteration
        return dict(json.loads(self._instead.pop(0)))

    def _new(self) -> Iterator[dict[str, Any]]:
        try:
            changes = self._store.changes_after(_NODES, self._version)
        except HistoryGone:
            yield {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
            return
        for change in changes:
            self._version = change.version
            if change.key == ("", self._process.node):
                yield {"type": change.kind, "object": (change.after or change.before).content}  # type: ignore[union-attr]
        self._version = max(self._version, self._store.version)
        if self._loop.time() >= self._bookmark_at:
            self._bookmark_at = self._loop.time() + _BOOKMARK_SECONDS
            yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self._version)}}}

    async def _arrive(self) -> None:
        """What a broken network holds back arrives later, unless the client has given up."""
        until, _ = self._agents.cut_off.get(self._process.node, (0.0, None))
        left = until - self._loop.time()
        if left > 0:
            await asyncio.sleep(min(left, _SILENCE_SECONDS))
        if left > _SILENCE_SECONDS:
            self.close()
            raise TimeoutError("timed out")
        await self._process.thawed()

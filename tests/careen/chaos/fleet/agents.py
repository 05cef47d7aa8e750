"""Runs agent processes on virtual time. A function of type `Plan` decides for each request to the API server whether a
fault hits the request, for example a lost connection."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from careen.agent.apply import Hands
from careen.agent.asleep import handover
from careen.agent.asleep.doorkeeper import Woken
from careen.agent.asleep.rest import SleepAttempt
from careen.agent.asleep.sleeper import SleepersLooks
from careen.agent.loop import Loop
from careen.agent.need_watch import NeedWatch
from careen.agent.observe import Forecaster, Observer, Senses
from careen.agent.self_test import SelfTests
from careen.agent.telemetry.http_server import Heartbeat
from careen.agent.telemetry.logs import LogContext
from careen.agent.telemetry.metrics import Metrics
from careen.agent.turn import Reconciler
from careen.cluster.lock_store import LockStore
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.client import Credentials
from careen.cluster.wire.errors import NotSent, Unclear
from careen.cluster.wire.transport import Request, Response
from careen.core.facts.policy import Policy
from careen.core.lock import notation
from careen.core.lock.content import LockContent
from careen.services.prometheus import AlertSource, MetricSource
from scheduler_core.simulation.forecast import Forecast
from tests.careen.chaos.fleet import older, sleepers
from tests.careen.chaos.fleet.machines import Fleet, Host
from tests.careen.chaos.fleet.sleepers import Instant

LOCK = "weave.works/kured-node-lock"
START = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
_LATENCY_SECONDS = (0.005, 0.03)
_MOST_SLEEPS, _HOUR_SECONDS = 6, 3600.0
T = TypeVar("T")


class Fault(StrEnum):
    """A fault that hits one request of an agent to the API server, or the agent process that sends this request.

    The texts say what the agent sees and what the API server does. "Everything was done" means that the server carried
    out the request. "Nothing was done" means that the server did not. "Everything is done half a minute later" means
    that the server carries out the request at that time. "403 for a moment" means that the server refuses one request,
    as can happen while a person applies the RBAC objects again. "No items" is the body `{"items":null}`. "A proxy's
    login in JSON" is a JSON body that tells the client to log in. An answer that "ends in the middle" has only the
    first half of its body.

    Keep each text as it is: the function `tried` in `test_every_call.py` computes from the text which requests the
    fault hits.
    """

    DIE_BEFORE = "the process dies, the request was not sent"
    DIE_AFTER = "the process dies, the request was carried out"
    DIE_LATE = "the process dies, the request is carried out after its successor's next read of the object"
    DIE_LATER = "the process dies, the request is carried out half a minute later"
    LOST_BEFORE = "the connection breaks, nothing was done"
    LOST_AFTER = "the connection breaks, everything was done"
    LATE = "the connection breaks, and everything is done after the next read of the object"
    LATER = "the connection breaks, and everything is done half a minute later"
    CONFLICT = "409 although no other client wrote"
    THROTTLED = "429, retry after a second"
    FAILED = "500, nothing was done"
    FAILED_AFTER = "504, everything was done"
    FORBIDDEN = "403 for a moment, as while rights are applied again"
    PROXY = "a proxy's page with status 200, everything was done"
    EMPTY_OBJECT = "an empty object with status 200, nothing was done"
    EMPTY_OBJECT_AFTER = "an empty object with status 200, everything was done"
    STATUS_200 = "a Status of code 200, nothing was done"
    STATUS_200_AFTER = "a Status of code 200, everything was done"
    NULL_ITEMS = "no items with status 200, nothing was done"
    NULL_ITEMS_AFTER = "no items with status 200, everything was done"
    LOGIN_JSON = "a proxy's login in JSON with status 200, nothing was done"
    LOGIN_JSON_AFTER = "a proxy's login in JSON with status 200, everything was done"
    CUT_SHORT = "the answer ends in the middle, everything was done"
    SLOW = "an answer after twelve seconds"
    STALE = "a stale cache repeats a response that is up to three seconds old"
    FROZEN_BEFORE = "the process is frozen for 150 seconds, then the request is sent"
    FROZEN_AFTER = "everything was done, and the process is frozen for a minute before it reads the answer"
    OUTAGE = "the API server is down for a minute"
    TWICE = "the request is carried out twice, the second answer arrives"
    AGAIN = "the request is carried out, and again ten seconds later"
    NOT_FOUND_PAGE = "404 from a proxy, nothing was done"
    NOT_FOUND_PAGE_AFTER = "404 from a proxy, everything was done"
    EXPIRED = "410, the server has forgotten the list between two pages"


OF_PROCESSES = (Fault.DIE_BEFORE, Fault.DIE_AFTER, Fault.DIE_LATE, Fault.DIE_LATER)
OF_FROZEN = (Fault.FROZEN_BEFORE, Fault.FROZEN_AFTER)
FROZEN_SECONDS = {Fault.FROZEN_BEFORE: 150.0, Fault.FROZEN_AFTER: 60.0}
STALE_SECONDS = 3.0
WITHOUT_CONTENT = {
    Fault.EMPTY_OBJECT: b"{}",
    Fault.STATUS_200: b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":200}',
    Fault.NULL_ITEMS: b'{"items":null}',
    Fault.LOGIN_JSON: b'{"error":"login_required","location":"https://sso.example/login","data":{},"status":{"allowed":true}}',
}
"""The body of each fault's response. The status is 200, but the body does not contain the requested object."""
WITHOUT_CONTENT_AFTER = {Fault[f"{fault.name}_AFTER"]: body for fault, body in WITHOUT_CONTENT.items()}

DONE_BEFORE_THE_ANSWER = (
    Fault.LOST_AFTER,
    Fault.FAILED_AFTER,
    Fault.PROXY,
    Fault.TWICE,
    Fault.NOT_FOUND_PAGE_AFTER,
    *WITHOUT_CONTENT_AFTER,
)

OF_READS = (
    *WITHOUT_CONTENT,
    Fault.CUT_SHORT,
    Fault.DIE_BEFORE,
    Fault.DIE_AFTER,
    Fault.LOST_BEFORE,
    Fault.THROTTLED,
    Fault.FAILED,
    Fault.FORBIDDEN,
    Fault.PROXY,
    Fault.SLOW,
    Fault.OUTAGE,
    Fault.STALE,
    Fault.NOT_FOUND_PAGE,
    Fault.EXPIRED,
    *OF_FROZEN,
)
OF_PAGES = (Fault.EXPIRED,)
"""Faults that can hit only a request for a further page of a list."""


def can_meet(request: Request, fault: Fault) -> bool:
    if fault in OF_PAGES:
        return "continue" in request.query
    return request.method != "GET" or fault in OF_READS


Plan = Callable[[int, str, Request], Fault | None]
"""A function that returns the fault of a request, or None for no fault. Its arguments are the request's number among
the requests of all agents, the node whose agent sends the request, and the request."""


Latency = Callable[[str, Request], float]
"""A function that returns by how many seconds a request is delayed. Its arguments are the node whose agent sends the
request, and the request."""


def no_latency(_node: str, _request: Request) -> float:
    return 0.0


def slow_evictions(_node: str, request: Request) -> float:
    """Return how many seconds a slow webhook delays this request: 12 for an eviction or its dry run, else 0."""
    return 12.0 if request.path.endswith("/eviction") else 0.0


@dataclass
class Clock:
    """A host's clock. Its monotonic time is the time of the event loop. Its wall clock is wrong by `skew_seconds`."""

    loop: asyncio.AbstractEventLoop
    skew_seconds: float = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.loop.time() + self.skew_seconds)

    def monotonic(self) -> float:
        return self.loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass
class ProcessClock:
    """The host's clock as one agent process uses it. If the process is suspended while it sleeps, the sleep ends only
    when the process continues."""

    clock: Clock
    process: Process

    def now(self) -> datetime:
        return self.clock.now()

    def monotonic(self) -> float:
        return self.clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        await self.process.thawed()


class CutOff(StrEnum):
    """What happens to every request of an agent whose network is broken."""

    REFUSED = "no connection can be opened"
    SILENT = "every request is lost"
    DEAF = "every request is carried out, but its response is lost"


class Fine:
    """A forecaster whose forecasts allow every drain."""

    async def forecast(self, node: str) -> Forecast:
        return Forecast(node=node, made_at="2026-03-04T12:00:00Z")


@dataclass(eq=False)
class Process:
    """One agent process of a node."""

    node: str
    loop: Loop | None = None
    """None while the process is the sleeper, or loads."""
    life: asyncio.Task[Any] | None = None
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    is_dead: bool = False
    frozen_until: float = 0.0
    is_asleep: bool = False
    looks: SleepersLooks | None = None
    """What the sleeper looks at, since the process last fell asleep."""
    watches: list[sleepers.Watch] = field(default_factory=list)
    has_read: set[str] = field(default_factory=set)
    """What the process has read since its last exec: `nodes`, `daemonsets`."""
    slept_at: list[float] = field(default_factory=list)

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        self.life = asyncio.ensure_future(work)

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        self.do(work)

    def do(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self.tasks = [*(each for each in self.tasks if not each.done()), task]
        return task

    @property
    def is_busy(self) -> bool:
        return any(not each.done() for each in self.tasks)

    def change_form(self, *, is_asleep: bool) -> None:
        """Replace the program of the process, as `exec` does: its tasks end, and its connections."""
        self.loop, self.is_asleep = None, is_asleep
        self.has_read.clear()
        for task in self.tasks:
            task.cancel()
        self._close_watches()

    def _close_watches(self) -> None:
        for watch in list(self.watches):
            watch.close()

    def freeze(self, seconds: float) -> None:
        """Suspend the process for `seconds`, as SIGSTOP and SIGCONT would. The clocks of its host continue."""
        self.frozen_until = max(self.frozen_until, asyncio.get_running_loop().time() + seconds)

    async def thawed(self) -> None:
        """Sleep until the process is no longer suspended. The code of a process takes no virtual time, so the
        simulation can suspend a process only where the process waits."""
        while (left := self.frozen_until - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(left)

    def kill(self) -> None:
        """End the process as `kill -9` would: it sends no further request and cleans nothing up."""
        self.is_dead = True
        for task in (*self.tasks, *([self.life] if self.life is not None else ())):
            task.cancel()
        self._close_watches()


@dataclass(frozen=True, slots=True)
class SentEvent:
    """An Event that an agent sent, whether or not the server received it."""

    at: float
    node: str
    reason: str


class Agents:
    """Runs the agents of all nodes. If an agent process is killed, a new process starts on its node, as its kubelet
    would start it."""

    def __init__(self, fleet: Fleet, policy: Callable[[str], Policy], plan: Plan, chance: random.Random) -> None:
        self.fleet = fleet
        self.policy = policy
        self.plan = plan
        self.requests = 0
        self.trace: list[str] = []
        self.sent_events: list[SentEvent] = []
        self.deaths: list[tuple[float, str]] = []
        self.writes: list[tuple[float, str]] = []
        """When each agent sent a write of its Node or of the lock, whatever became of it."""
        self.met: Counter[str] = Counter()
        """How many requests were hit by each fault and by each kind of network failure."""
        self.latency: Latency = no_latency
        """By how many seconds each request is delayed."""
        self.cut_off: dict[str, tuple[float, CutOff]] = {}
        """For each node whose agent has no network: when the failure ends, and the kind of the failure."""
        self.forecaster: Callable[[ClusterApi, str], Forecaster] = lambda _api, _node: Fine()
        self.is_older: Callable[[str], bool] = lambda _node: False
        """Whether the agent that starts on this node is of an older release."""
        self.alerts: AlertSource | None = None
        self.metrics: MetricSource | None = None
        """The server that answers health queries. Set it before the first agent starts (`World(prepare=…)`)."""
        self.is_server_down = False
        self.may_sleep: Callable[[str], bool] = lambda _node: True
        """Whether --sleep=auto is in force on this node. An agent of an older release does not know it."""
        self.may_follow = True
        """Whether a sleeping agent may watch its Node."""
        self.doomed: dict[str, Instant] = {}
        """For each node whose agent dies when it next changes its form: the instant."""
        self.spoilt: set[str] = set()
        """Nodes whose next woken agent cannot read its handover."""
        self.died_at: Counter[str] = Counter()
        self.changes: list[tuple[float, str, str]] = []
        """When an agent fell asleep ("") or woke, and why."""
        self.breaches: list[str] = []
        """What a process did against the laws of sleep."""
        self.clocks: dict[str, Clock] = {}
        self.processes: list[Process] = []
        self._metrics: dict[str, Metrics] = {}
        self._held: list[tuple[str, Request]] = []
        self._answers: dict[tuple[str, str], tuple[float, Response]] = {}
        self._seed = chance.random()
        self._chances: dict[str, random.Random] = {}
        self._loop = asyncio.get_running_loop()
        fleet.on_down = self.kill
        fleet.on_up = self.start

    def chance_of(self, node: str) -> random.Random:
        """Return the random number generator of this node. Each node has its own generator, so that an additional
        random draw for one node does not change what happens to the requests of other nodes."""
        return self._chances.setdefault(node, random.Random(f"{self._seed} {node}"))

    def withheld(self, request: Request) -> str:
        """Return why the RBAC roles of the agents do not allow this request, or an empty text if they allow it."""
        return ""

    # Processes -----------------------------------------------------------------------------------------------

    def start(self, node: str) -> Process:
        process = Process(node)
        self.processes.append(process)
        with older.release(is_older=self.is_older(node)):
            process.begin(self._live(process))
        return process

    async def _live(self, process: Process) -> None:
        """Each form of the process, until it ends."""
        woken: Woken | None = None
        while True:
            rest = self._compose(process, woken)
            assert process.loop is not None
            await process.loop.run()
            if rest is None or rest.content is None:
                return
            woken = await sleepers.sleeps(self, process, rest.content)

    def _compose(self, process: Process, woken: Woken | None) -> SleepAttempt | None:
        """Build the parts of an agent."""
        node = process.node
        host = self.fleet.hosts[node]
        chance = self.chance_of(node).random
        clock = self.clock_of(process)
        metrics = self._metrics.setdefault(node, Metrics(node))
        api = ClusterApi(self.wire(process), clock, chance=chance)
        api.withheld = self.withheld
        lock = LockStore(api, namespace="careen", name="careen", annotation=LOCK)
        need = NeedWatch(host.read_need, clock, period_seconds=lambda: 60.0)
        remembered = handover.remembered(woken)
        reconciler = Reconciler(
            Observer(
                Senses(
                    node_name=node,
                    daemonset_namespace="careen",
                    daemonset_name="careen",
                    api=api,
                    host=host,
                    need=need,
                    lock=lock,
                    self_tests=SelfTests(host, clock),
                    forecaster=self.forecaster(api, node),
                    alerts=lambda: self.alerts,
                    chance=chance,
                    **({"metrics": lambda: self.metrics} if self.metrics is not None else {}),
                )
            ),
            Hands(
                node_name=node,
                api=api,
                host=host,
                lock=lock,
                chance=chance,
                metrics=metrics,
                notify=lambda _: None,
                in_background=process.run,
            ),
            remembered.memory,
        )
        rest = None
        if self.may_sleep(node) and not self.is_older(node):
            rest = sleepers.attempt(self, process, need=need, reconciler=reconciler, remembered=remembered)
        process.loop = Loop(
            reconciler=reconciler,
            policy=lambda: self.policy(node),
            need=need,
            clock=clock,
            chance=chance,
            place=LogContext(node),
            metrics=metrics,
            heartbeat=Heartbeat(clock.monotonic),
            after_first_turn=lambda: None,
            **({"after_turn": rest.saw, "rests": rest.begins} if rest is not None else {}),
        )
        process.loop.told = remembered.told
        if rest is not None:
            rest.loop = process.loop
        return rest

    def wire(self, process: Process) -> Wire:
        return Wire(self, process)

    def clock_of(self, process: Process) -> ProcessClock:
        return ProcessClock(self.clocks.setdefault(process.node, Clock(self._loop)), process)

    # Sleep ---------------------------------------------------------------------------------------------------

    async def reach(self, process: Process, instant: Instant) -> None:
        """Let the process die at this instant of a change of its form, if it is to."""
        if self.doomed.get(process.node) is instant:
            del self.doomed[process.node]
            self.died_at[instant.name] += 1
            self.trace.append(f"{self._loop.time():8.2f} {process.node}: {instant.value}")
            self.crash(process)
            await asyncio.Event().wait()

    def note_sleep(self, process: Process) -> None:
        now, node = self._loop.time(), process.node
        self.trace.append(f"{now:8.2f} {node}: the agent sleeps")
        self.changes.append((now, node, ""))
        process.slept_at = [*(at for at in process.slept_at if now - at < _HOUR_SECONDS), now]
        if len(process.slept_at) > _MOST_SLEEPS:
            self.breaches.append(f"{now:.2f}: the agent of {node} fell asleep {len(process.slept_at)} times in an hour")
        if node in self.holders():
            self.breaches.append(f"{now:.2f}: the agent of {node} sleeps with a claim in the lock")

    def handed_over(self, node: str, text: bytes) -> bytes:
        """Return what the woken agent finds of its handover."""
        if node not in self.spoilt:
            return text
        self.spoilt.remove(node)
        self.trace.append(f"{self._loop.time():8.2f} {node}: the handover cannot be read")
        return text[: len(text) // 2]

    def note_wake(self, process: Process, why: str) -> None:
        self.trace.append(f"{self._loop.time():8.2f} {process.node}: the agent wakes: {why}")
        self.changes.append((self._loop.time(), process.node, why))

    def holders(self) -> set[str]:
        """Return the nodes with a claim in the lock."""
        found = self.fleet.server.get("daemonsets", "careen", "careen")
        content = notation.parse(((found or {}).get("metadata", {}).get("annotations") or {}).get(LOCK))
        return {each.node for each in content.entries} if isinstance(content, LockContent) else set()

    def judge(self, process: Process, request: Request) -> None:
        """Nothing is written while a process sleeps, nor by a woken one before it has read what it writes."""
        if request.method == "GET" or request.path.endswith(("/events", "reviews")):
            return
        missing = {"nodes", *({"daemonsets"} if "/daemonsets/" in request.path else ())} - process.has_read
        if process.is_asleep or missing:
            what = f"{request.method} {request.path}"
            self.breaches.append(
                f"{self._loop.time():.2f}: the agent of {process.node} sends {what} without a read of {sorted(missing)}"
            )

    def break_connections(self) -> None:
        """End every watch, as the API server does when it ends."""
        for process in self.processes:
            for watch in list(process.watches):
                watch.breaks()

    # Processes -----------------------------------------------------------------------------------------------

    def kill(self, node: str) -> None:
        """End all agent processes of the node, because its host goes down."""
        for process in [each for each in self.processes if each.node == node]:
            self._bury(process)

    def crash(self, process: Process) -> None:
        """End this agent process. If its node has no other agent process, start a new one within four seconds."""
        if process.is_dead:
            return
        self._bury(process)
        self.trace.append(f"{self._loop.time():8.2f} {process.node}: the process dies")
        if not any(each.node == process.node for each in self.processes):
            boot = self.fleet.hosts[process.node].boot
            self._loop.call_later(
                self.chance_of(process.node).uniform(0.2, 4.0),
                lambda: self._start_again(self.fleet.hosts[process.node], boot),
            )

    def replace(self, process: Process) -> None:
        """Replace the agent process as a rolling update of the DaemonSet does: ask the process to stop, kill it after
        ten seconds at the latest, and start a new process."""
        if not process.is_dead:
            self.trace.append(f"{self._loop.time():8.2f} {process.node}: the process is asked to stop")
            if process.loop is not None:
                process.loop.stop()
            self._crash_when_stopped(process, self._loop.time() + 10.0)

    def _crash_when_stopped(self, process: Process, end: float) -> None:
        if process.loop is not None and process.loop.is_turning and self._loop.time() < end:
            self._loop.call_later(0.2, lambda: self._crash_when_stopped(process, end))
        else:
            self.crash(process)

    def _start_again(self, host: Host, boot: int) -> None:
        if host.is_up and host.boot == boot and not any(each.node == host.name for each in self.processes):
            self.start(host.name)

    def _bury(self, process: Process) -> None:
        process.kill()
        self.deaths.append((self._loop.time(), process.node))
        self.processes.remove(process)

    def broken_turns(self) -> list[str]:
        """Return the nodes on which a turn ended with an unexpected exception."""
        return [
            node for node, metrics in self._metrics.items() if metrics.turns.labels(node, "broken")._value.get() > 0
        ]

    # The wire ------------------------------------------------------------------------------------------------

    def hold(self, node: str, request: Request) -> None:
        self._held.append((node, request))

    def land(self, node: str, request: Request) -> Response:
        answer = self.fleet.server.answer(request, f"careen-agent-{node}")
        if request.method == "GET":
            self._answers[_question(request)] = (self._loop.time(), answer)
        if request.method != "GET" and not request.path.endswith("/events") and "dryRun" not in request.query:
            self.trace.append(
                f"{self._loop.time():8.2f} {node}: {request.method} {request.path.rsplit('/', 2)[-1]} "
                f"{answer.status} {_short(request)}"
            )
        return answer

    def answered_before(self, request: Request) -> Response | None:
        """Return the last response to the same read, as a stale cache would send it. Return None if the server sent no
        such response in the last three seconds."""
        at, answer = self._answers.get(_question(request), (-STALE_SECONDS, None))
        return answer if self._loop.time() - at < STALE_SECONDS else None

    def land_later(self, node: str, request: Request, seconds: float) -> None:
        self._loop.call_later(seconds, lambda: self.land(node, request))

    def land_held(self, node: str, path: str) -> None:
        for held in [each for each in self._held if each[0] == node and each[1].path == path]:
            self._held.remove(held)
            self.land(*held)

    def go_down(self, seconds: float) -> None:
        def recover() -> None:
            self.is_server_down = False

        self.trace.append(f"{self._loop.time():8.2f} the API server is down for {seconds:.0f} s")
        self.is_server_down = True
        self.break_connections()
        self._loop.call_later(seconds, recover)


def _question(request: Request) -> tuple[str, str]:
    return request.path, str(sorted(request.query.items()))


def _short(request: Request) -> str:
    text = (request.body or b"").decode()
    return text if len(text) < 1500 else text[:1500] + "…"


class Wire:
    """The connection of one process to the API server."""

    def __init__(self, agents: Agents, process: Process) -> None:
        self._agents = agents
        self._process = process

    async def send(self, request: Request) -> Response:
        agents, node = self._agents, self._process.node
        await self._process.thawed()
        agents.judge(self._process, request)
        if request.path.endswith("/events"):
            agents.sent_events.append(
                SentEvent(asyncio.get_running_loop().time(), node, json.loads(request.body or b"{}").get("reason", ""))
            )
        agents.requests += 1
        if request.method in ("PATCH", "PUT"):
            agents.writes.append((asyncio.get_running_loop().time(), node))
        fault = agents.plan(agents.requests, node, request)
        chance = agents.chance_of(node)
        if fault is not None:
            agents.trace.append(
                f"{asyncio.get_running_loop().time():8.2f} {node}: {request.method} {request.path}: {fault.value}"
            )
        await asyncio.sleep(chance.uniform(*_LATENCY_SECONDS))
        if (seconds := agents.latency(node, request)) > 0:
            await asyncio.sleep(seconds)
        await self._be_cut_off(request)
        response = await self._meet(fault, request) if fault is not None else self._pass(request)
        await asyncio.sleep(chance.uniform(*_LATENCY_SECONDS))
        if request.method == "GET":
            agents.land_held(node, request.path)
            self._process.has_read.update({"nodes", "daemonsets"} & set(request.path.split("/")))
        await self._process.thawed()
        return response

    def credentials(self) -> Credentials:
        return sleepers.CREDENTIALS

    def _pass(self, request: Request) -> Response:
        if self._agents.is_server_down:
            raise NotSent("connection refused")
        return self._agents.land(self._process.node, request)

    async def _be_cut_off(self, request: Request) -> None:
        """Raise a network error if the network of this agent is broken now."""
        agents = self._agents
        until, how = agents.cut_off.get(self._process.node, (0.0, CutOff.SILENT))
        if asyncio.get_running_loop().time() >= until:
            return
        agents.met[how.name] += 1
        if how is CutOff.REFUSED:
            raise NotSent("no route to host")
        if how is CutOff.DEAF:
            self._pass(request)
        await asyncio.sleep(request.timeout_seconds)
        raise Unclear("timed out")

    async def _meet(self, fault: Fault, request: Request) -> Response:
        if fault is not Fault.STALE or self._agents.answered_before(request) is not None:
            self._agents.met[fault.name] += 1
        if fault in OF_PROCESSES:
            await self._die(fault, request)
        if (
            fault is Fault.STALE
            and request.method == "GET"
            and (old := self._agents.answered_before(request)) is not None
        ):
            return old
        await self._wait_out(fault)
        if fault in DONE_BEFORE_THE_ANSWER:
            self._pass(request)
        if fault is Fault.AGAIN:
            self._agents.land_later(self._process.node, request, 10.0)
        if fault is Fault.LATE:
            self._agents.hold(self._process.node, request)
        if fault is Fault.LATER:
            self._agents.land_later(self._process.node, request, 30.0)
        if fault in (Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.LATE, Fault.LATER):
            raise Unclear("connection reset")
        return self._nonsense(fault, request) or self._refusal(fault) or self._pass(request)

    async def _die(self, fault: Fault, request: Request) -> None:
        agents, node = self._agents, self._process.node
        if fault is Fault.DIE_AFTER:
            self._pass(request)
        elif fault is Fault.DIE_LATE:
            agents.hold(node, request)
        elif fault is Fault.DIE_LATER:
            agents.land_later(node, request, 30.0)
        agents.crash(self._process)
        await asyncio.Event().wait()

    async def _wait_out(self, fault: Fault) -> None:
        """Carry out the part of the fault that precedes the sending of the request: stop the API server, suspend the
        agent process or delay the request."""
        if fault is Fault.OUTAGE:
            self._agents.go_down(60.0)
        if fault in OF_FROZEN:
            self._process.freeze(FROZEN_SECONDS[fault])
        if fault is Fault.FROZEN_BEFORE:
            await self._process.thawed()
        if fault is Fault.SLOW:
            await asyncio.sleep(12.0)

    def _nonsense(self, fault: Fault, request: Request) -> Response | None:
        if fault is Fault.CUT_SHORT:
            whole = self._pass(request)
            return Response(status=whole.status, headers=whole.headers, body=whole.body[: len(whole.body) // 2])
        pages = {Fault.PROXY: b"<html>please log in</html>"} | WITHOUT_CONTENT | WITHOUT_CONTENT_AFTER
        return Response(status=200, headers={}, body=pages[fault]) if fault in pages else None

    def _refusal(self, fault: Fault) -> Response | None:
        server = self._agents.fleet.server
        if fault is Fault.FORBIDDEN:
            return server.refusal(403, "nodes is forbidden")
        if fault is Fault.CONFLICT:
            return server.refusal(
                409, "the object has been modified; please apply your changes to the latest version and try again"
            )
        if fault is Fault.THROTTLED:
            return server.refusal(429, "too many requests", retry_after="1")
        if fault in (Fault.NOT_FOUND_PAGE, Fault.NOT_FOUND_PAGE_AFTER):
            return Response(status=404, headers={}, body=b"404 page not found\n")
        if fault is Fault.EXPIRED:
            return server.refusal(410, "The provided continue parameter is too old")
        if fault in (Fault.FAILED, Fault.FAILED_AFTER):
            return server.refusal(500 if fault is Fault.FAILED else 504, "etcdserver: request timed out")
        return None

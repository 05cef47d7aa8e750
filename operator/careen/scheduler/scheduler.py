"""One running scheduler: it competes for the Lease, then lists, watches and schedules until it is told to end."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, Protocol

from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from careen.cluster.wire.transport import Clock
from careen.scheduler.feed import SchedulerFeed, watched
from careen.scheduler.lease import Election, Won
from careen.scheduler.log_lines import log_line
from careen.scheduler.metrics import SchedulerMetrics
from careen.scheduler.plugins.beside import Beside
from careen.scheduler.pod_events import PodEvents
from careen.scheduler.pump import Pump
from careen.scheduler.settings import ProcessSettings
from careen.scheduler.why_pending import WhyPending, of_machine
from careen.scheduler.wire.lanes import DEADLINE_SECONDS
from careen.scheduler.wire.limit import RateLimit
from careen.scheduler.wire.server import Server
from careen.scheduler.wire.streams import LoopTransport
from careen.scheduler.writer import Writer
from scheduler_core.cycle import Scheduler
from scheduler_core.extenders.asked_ahead import AskedAhead
from scheduler_core.extenders.protocol import ExtenderError
from scheduler_core.running.commands import AskExtender, Note
from scheduler_core.running.machine import Machine
from scheduler_core.running.waiting.permits import WaitingPods
from scheduler_core.values import Value

_END_SECONDS: Final = 10.0  # for the answers to the last requests
_LOOP_SECONDS: Final = 30.0
_TROUBLE_SECONDS: Final = 5.0  # a watch that breaks and is opened again is no news


class Health(Protocol):
    """What the probes say."""

    def expect_within(self, seconds: float, doing: str) -> None: ...

    def ready(self) -> None: ...

    def hold_readiness(self, why: str) -> None: ...


class Process(Value, kw_only=True, eq=False):
    """What a running scheduler is given. `me` tells it from other schedulers; `connect` makes a client for the
    election, in the election's thread."""

    me: str
    server: Server
    clock: Clock
    connect: Callable[[], ClusterApi]
    chance: Callable[[], float]
    say: Callable[[str], None]
    leave: Callable[[str], None]
    """Ends the process at once, without cleaning up: another scheduler may already write."""
    health: Health
    verbosity: int = 2


class NotSchedulingError(Exception):
    """The process does not schedule at the moment; the message says why."""


class RunningScheduler:
    """Schedules the pods of the scheduler's profiles."""

    def __init__(
        self,
        scheduler: Scheduler,
        settings: ProcessSettings,
        process: Process,
        *,
        metrics: SchedulerMetrics,
        permits: WaitingPods | None = None,
        ahead: AskedAhead | None = None,
        beside: Beside | None = None,
    ) -> None:
        """`ahead`: that of the scheduler's extenders; `beside`: that of its plugins."""
        self._settings = settings
        self._process = process
        self._metrics = metrics
        clock = process.clock
        self._reading = LoopTransport(process.server, clock.now)
        machine = Machine(
            scheduler,
            awaits=[source.kind for source in watched()],
            permits=permits,
            on_attempt=metrics.attempted,
            on_change=metrics.changed,
            ahead=ahead,
            beside=None if beside is None else beside.start,
            measured=None if metrics.measures is None else metrics.measures.measured,
        )
        self._ahead = ahead
        self.pump = Pump(machine, monotonic=clock.monotonic, metrics=metrics)
        self.writer = Writer(
            process.server,
            limit=RateLimit(qps=settings.qps, burst=settings.burst, monotonic=clock.monotonic),
            events=PodEvents(process.me),
            monotonic=clock.monotonic,
            now=clock.now,
            answered=self.pump.answered,
            noted=self._note,
            counted=metrics.counted,
            requested=metrics.requested,
            asked=self._ask_extender,
        )
        self.pump.use(self.writer)
        if beside is not None:
            beside.use(self.pump.ended)
        self.feed = SchedulerFeed(
            ClusterApi(self._reading, clock, chance=process.chance),
            self._reading,
            watched(),
            pump=self.pump,
            chance=process.chance,
        )
        self._election: _ElectionThread | None = None
        if settings.lease.is_wanted:  # whoever loses the Lease ends
            metrics.elects(settings.lease.name, lambda: self._election is not None and self._election.won.done())

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set. Ends the process at once if the Lease is lost."""
        try:
            if self._settings.lease.is_wanted and not await self._become_leader(stop):
                return
            await self._work(stop)
        finally:
            self._reading.close()
            self.writer.close()
            if self._election is not None:
                await asyncio.to_thread(self._election.end)

    def why_pending(self, pod: str) -> WhyPending | None:
        """None for a pod that this scheduler does not know. Takes as long as some cycles. Raises NotSchedulingError
        while another one schedules, or before everything is listed."""
        if self.feed.missing:
            raise NotSchedulingError(f"the scheduler {self._process.me} has no part in it: {self._doing()}")
        if self._ahead is None:
            return of_machine(self.pump.machine, pod, self._process.clock.monotonic())
        self._ahead.is_blocking = True
        try:
            return of_machine(self.pump.machine, pod, self._process.clock.monotonic())
        finally:
            self._ahead.is_blocking = False

    def _ask_extender(self, command: AskExtender) -> None:
        """In a thread that the process does not wait for when it ends."""
        ahead, told, loop = self._ahead, self.pump.told, asyncio.get_running_loop()
        assert ahead is not None

        def ask() -> None:
            answer: bytes | ExtenderError
            try:
                answer = ahead.ask(command.call)
            except ExtenderError as error:
                answer = error
            except Exception as bug:  # its pod must not wait for ever
                answer = ExtenderError(repr(bug))
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(told, command.number, answer)

        threading.Thread(target=ask, name="extender", daemon=True).start()

    def _doing(self) -> str:
        lease = self._settings.lease
        if self._election is not None and not self._election.won.done():
            return f"it waits for the Lease {lease.namespace}/{lease.name}; ask the holder"
        return f"it is still listing {', '.join(sorted(self.feed.missing))}; try again"

    async def _become_leader(self, stop: asyncio.Event) -> bool:
        """False if the process was told to end first."""
        lease, process = self._settings.lease, self._process
        self._election = election = _ElectionThread(self._settings, process)
        election.start()
        ended = asyncio.ensure_future(stop.wait())
        try:
            won = asyncio.wrap_future(election.won)
            while not won.done():
                process.health.expect_within(_LOOP_SECONDS, f"waiting for the Lease {lease.namespace}/{lease.name}")
                process.health.ready()
                await asyncio.wait((won, ended), timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    return False
            process.say(f"careen holds the Lease {lease.namespace}/{lease.name} as {process.me}")
            if won.result().was_taken:
                # Requests of the one before may be on their way: the lists must show what became of them.
                await asyncio.wait((ended,), timeout=DEADLINE_SECONDS)
            return not ended.done()
        finally:
            ended.cancel()

    async def _work(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(self.feed.run()), tasks.create_task(self.pump.run())]
            look = tasks.create_task(self._look_after())
            await stop.wait()
            self.pump.stop()
            for each in (*work, look):
                each.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await self.writer.end()

    async def _look_after(self) -> None:
        """Probes, the metrics' gauges, and the first lists."""
        process, is_listed, troubles = self._process, False, _Troubles(self._process)
        while True:
            troubles.look(self.feed.troubles)
            troubled = ", ".join(sorted(self.feed.troubles))
            missing = ", ".join(sorted(self.feed.missing))
            process.health.expect_within(_LOOP_SECONDS, "scheduling" if not missing else f"listing {missing}")
            process.health.hold_readiness(f"careen cannot watch {troubled}" if troubled else "")
            self._metrics.show(self.pump.machine)
            if not missing and not is_listed:
                is_listed = True
                gc.collect()
                gc.freeze()  # the listed objects stay alive, so the collector need not search them again
                process.health.ready()
                sizes = self.pump.machine.parts.cache.sizes()
                process.say(f"careen schedules: {sizes['nodes']} nodes and {sizes['pods']} pods were listed")
            await asyncio.sleep(1.0 if is_listed else 0.05)

    def _note(self, note: Note) -> None:
        if note.verbosity <= self._process.verbosity:
            self._process.say(log_line(note, self._process.clock.now()))


class _Troubles:
    """Says which kinds cannot be watched, if that lasts."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._since: dict[str, float] = {}
        self._said: set[str] = set()

    def look(self, troubles: Mapping[str, ClusterError]) -> None:
        now = self._process.clock.monotonic()
        for kind in self._since.keys() - troubles.keys():
            del self._since[kind]
        for kind in sorted(self._said - troubles.keys()):
            self._said.discard(kind)
            self._process.say(f"careen watches {kind} again")
        for kind, error in sorted(troubles.items()):
            if now - self._since.setdefault(kind, now) >= _TROUBLE_SECONDS and kind not in self._said:
                self._said.add(kind)
                self._process.say(f"careen cannot watch {kind} and tries again: {error}")


class _ElectionThread(threading.Thread):
    """`won` is set when this process becomes the leader."""

    def __init__(self, settings: ProcessSettings, process: Process) -> None:
        super().__init__(name="election", daemon=True)
        self.won: Future[Won] = Future()
        self._settings = settings
        self._process = process
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._compete())
        except BaseException as bug:  # without an election nobody may schedule
            self._process.leave(f"the election failed, and the process ends: {bug!r}")
            raise

    async def _compete(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        lease, process = self._settings.lease, self._process
        election = Election(process.connect(), lease, me=process.me, on_won=self.won.set_result, say=process.say)
        try:
            await election.run()
        except asyncio.CancelledError:
            with suppress(ClusterError):
                await election.release()
            return
        process.leave(f"careen lost the Lease {lease.namespace}/{lease.name}; the process ends")

    def end(self) -> None:
        """Releases the Lease."""
        if self._loop is not None and self._task is not None and self.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
            self.join(_END_SECONDS)

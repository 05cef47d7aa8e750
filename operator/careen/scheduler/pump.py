"""Runs the machine on the event loop in slices of a few milliseconds, between watches and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from careen.scheduler.metrics import SchedulerMetrics
from careen.scheduler.writer import Writer
from scheduler_core.cache.events import Event, UnusableEventError
from scheduler_core.extenders.protocol import ExtenderError
from scheduler_core.running.commands import Answered, Commands
from scheduler_core.running.failures import WriteOutcome
from scheduler_core.running.machine import Machine
from scheduler_core.running.waiting.beside import WorkEnd

SLICE_SECONDS: Final = 0.004
TICK_SECONDS: Final = 1.0
MOST_BACKLOG: Final = 400
"""Bindings that wait to be sent. Then the machine pauses: a binding whose turn comes late would be taken for lost."""


class Pump:
    """Gives every input to the machine, and its commands to the writer."""

    def __init__(self, machine: Machine, *, monotonic: Callable[[], float], metrics: SchedulerMetrics) -> None:
        self.machine = machine
        self._metrics = metrics
        self._is_stopped = False
        self._monotonic = monotonic
        self._writer: Writer | None = None
        self._is_scheduled = False
        self._news = asyncio.Event()

    def use(self, writer: Writer) -> None:
        """Before `run`."""
        self._writer = writer

    async def run(self) -> None:
        """Until the task is cancelled. The machine's timers."""
        while True:
            self._carry_out(self.machine.tick(self._monotonic()))
            await asyncio.sleep(TICK_SECONDS)

    def stop(self) -> None:
        """Starts no further cycle. Answers are still taken."""
        self._is_stopped = True

    def take(self, event: Event) -> None:
        """Raises UnusableEventError."""
        now = self._monotonic()
        commands = self.machine.take(event, now)
        self._metrics.handled(self._monotonic() - now)
        self._carry_out(commands)

    def answered(self, command: Answered, outcome: WriteOutcome) -> None:
        self._carry_out(self.machine.answered(command, outcome, self._monotonic()))

    def told(self, number: int, answer: bytes | ExtenderError) -> None:
        """By an extender."""
        now = self._monotonic()
        commands = self.machine.told(number, answer, now)
        self._metrics.took(self._monotonic() - now)
        self._carry_out(commands)

    def ended(self, number: int, outcome: WorkEnd) -> None:
        """What went on beside the machine."""
        now = self._monotonic()
        commands = self.machine.ended(number, outcome, now)
        self._metrics.took(self._monotonic() - now)
        self._carry_out(commands)

    async def listed(self, kind: str) -> None:
        """Waits until the lists of this kind are applied."""
        await self.taken(kind, lambda: True)

    async def taken(self, kind: str, is_waiting: Callable[[], bool]) -> None:
        """Waits until the machine has taken a page that `is_waiting`, or has given the list up."""
        while is_waiting() and self.machine.is_listing(kind):
            self._news.clear()
            await self._news.wait()

    def wake(self) -> None:
        """A page has arrived."""
        self._carry_out(())

    def _carry_out(self, commands: Commands) -> None:
        assert self._writer is not None
        if commands:
            self._writer.carry_out(commands)
        if not self._is_scheduled and not self._is_stopped and self.machine.has_work:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._slice)

    def _slice(self) -> None:
        assert self._writer is not None
        self._is_scheduled = False
        self._news.set()  # whoever waits goes on after the slice
        now = self._monotonic()
        end = now + SLICE_SECONDS
        while now < end and not self._is_stopped and self._writer.backlog < MOST_BACKLOG:
            if not self.machine.has_work:
                return
            try:
                commands = self.machine.next(now)
            except UnusableEventError:  # whoever waits for the list sees that its pages were not read to the end
                commands = ()
            after = self._monotonic()
            self._metrics.took(after - now)
            self._writer.carry_out(commands)
            now = after
        if self._writer.backlog < MOST_BACKLOG:
            self._carry_out(())

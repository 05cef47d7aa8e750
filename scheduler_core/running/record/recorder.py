"""A machine that records what it is told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from scheduler_core import __version__
from scheduler_core.cache.events import Event, Sync, WatchEvent
from scheduler_core.config.configuration import ExtenderSettings
from scheduler_core.cycle import Scheduler
from scheduler_core.extenders.protocol import ExtenderError, ExtenderTransport
from scheduler_core.running.commands import Answered, Commands
from scheduler_core.running.failures import WriteOutcome
from scheduler_core.running.machine import Attempt, Machine
from scheduler_core.running.record.lines import (
    FORMAT,
    Allow,
    AnyLine,
    Call,
    ExtenderAnswer,
    ListedPage,
    Next,
    OutcomeTold,
    PagesEnd,
    RecordHeader,
    Reject,
    Take,
    TakeList,
    TickTold,
    checksum,
    raw,
    write_line,
)
from scheduler_core.running.waiting.permits import PermitDecision, WaitingPods

Connect = Callable[[ExtenderSettings], ExtenderTransport]


class Recorder:
    """`write` gets one line at a time, with its line feed. Give `transport` to the Scheduler if it has extenders; they
    then must not be asked by anybody but the machine."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._extenders = 0

    def line(self, line: AnyLine) -> None:
        self._write(write_line(line))

    def transport(self, connect: Connect) -> Connect:
        def connected(settings: ExtenderSettings) -> ExtenderTransport:
            number, self._extenders = self._extenders, self._extenders + 1
            return _RecordedTransport(self, number, connect(settings))

        return connected


class _RecordedTransport:
    def __init__(self, recorder: Recorder, number: int, behind: ExtenderTransport) -> None:
        self._recorder = recorder
        self._number = number
        self._behind = behind

    def post(self, verb: str, body: bytes) -> bytes:
        try:
            answer = self._behind.post(verb, body)
        except ExtenderError as problem:
            self._recorder.line(ExtenderAnswer(extender=self._number, problem=str(problem) or "no answer"))
            raise
        self._recorder.line(ExtenderAnswer(extender=self._number, body=answer))
        return answer


class RecordedMachine(Machine):
    """`config`: the mapping from which the scheduler's configuration was made. `origin`: when `now` was 0, in seconds
    since the epoch."""

    def __init__(
        self,
        scheduler: Scheduler,
        recorder: Recorder,
        *,
        config: Mapping[str, Any] | None = None,
        origin: float | None = None,
        awaits: Collection[str] = ("Node", "Pod"),
        permits: WaitingPods | None = None,
        on_attempt: Callable[[Attempt], None] | None = None,
    ) -> None:
        super().__init__(scheduler, awaits=awaits, permits=permits, on_attempt=on_attempt)
        self._recorder = recorder
        self._lists_taken = 0
        self._waiting: set[int] = set()
        recorder.line(
            RecordHeader(
                format=FORMAT,
                library=__version__,
                kube_version=str(scheduler.kube_version),
                awaits=tuple(awaits),
                config=None if config is None else dict(config),
                origin=origin,
            )
        )

    def take(self, event: Event, now: float) -> Commands:
        """An event that the machine refuses is not recorded: it changes nothing."""
        decided = self._decided()
        if isinstance(event, Sync):
            self._lists_taken += 1
            number = self._lists_taken
            pages = self._listening(number, event.pages)
            commands = super().take(Sync(event.kind, pages, lambda: self._is_ready(number, event)), now)
            self._told(TakeList(at=now, kind=event.kind, list=self._lists_taken, decided=decided), commands)
            return commands
        commands = super().take(event, now)
        written: Any = event
        if isinstance(event, WatchEvent):
            written = event.line or {"type": event.type, "object": event.item.written}
        self._told(Take(at=now, event=raw(written), is_text=isinstance(written, bytes), decided=decided), commands)
        return commands

    def next(self, now: float) -> Commands:
        decided = self._decided()
        self._waiting.clear()
        try:
            commands = super().next(now)
        except Exception:
            self._recorder.line(Next(at=now, decided=decided, raised=True, waiting=tuple(sorted(self._waiting))))
            raise
        self._told(Next(at=now, decided=decided, waiting=tuple(sorted(self._waiting))), commands)
        return commands

    def answered(self, command: Answered, outcome: WriteOutcome, now: float) -> Commands:
        decided = self._decided()
        commands = super().answered(command, outcome, now)
        written = msgspec.Raw(msgspec.json.encode(command))
        name = type(command).__name__
        self._told(OutcomeTold(at=now, name=name, command=written, outcome=outcome, decided=decided), commands)
        return commands

    def tick(self, now: float) -> Commands:
        decided = self._decided()
        commands = super().tick(now)
        self._told(TickTold(at=now, decided=decided), commands)
        return commands

    def allow(self, uid: str, plugin: str, now: float) -> Commands:
        decided = self._decided()
        commands = super().allow(uid, plugin, now)
        self._told(Allow(at=now, uid=uid, plugin=plugin, decided=decided), commands)
        return commands

    def reject(self, uid: str, plugin: str, message: str, now: float) -> Commands:
        decided = self._decided()
        commands = super().reject(uid, plugin, message, now)
        self._told(Reject(at=now, uid=uid, plugin=plugin, message=message, decided=decided), commands)
        return commands

    def _is_ready(self, number: int, event: Sync) -> bool:
        is_ready = event.is_ready()
        if not is_ready:
            self._waiting.add(number)
        return is_ready

    def _decided(self) -> tuple[PermitDecision, ...]:
        return self.parts.permits.undone

    def _told(self, call: Call, commands: Commands) -> None:
        self._recorder.line(msgspec.structs.replace(call, commands=checksum(call.at, commands)))  # type: ignore[arg-type]

    def _listening(
        self, number: int, pages: Iterable[bytes | Mapping[str, Any]]
    ) -> Iterator[bytes | Mapping[str, Any]]:
        try:
            for page in pages:
                self._recorder.line(_page(number, page))
                yield page
        except Exception as problem:
            self._recorder.line(PagesEnd(list=number, problem=str(problem) or type(problem).__name__))
            raise
        self._recorder.line(PagesEnd(list=number))


def _page(number: int, page: bytes | Mapping[str, Any]) -> ListedPage | PagesEnd:
    try:
        return ListedPage(list=number, body=raw(page), is_text=isinstance(page, bytes))
    except msgspec.MsgspecError as problem:  # the machine will refuse it as well
        return PagesEnd(list=number, problem=f"a page cannot be read: {problem}")

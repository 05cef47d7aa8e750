"""Tells a machine what a record says, and compares its commands."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from scheduler_core.cache.events import Sync
from scheduler_core.config.configuration import Configuration, ExtenderSettings
from scheduler_core.config.fields import ConfigurationError
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.cycle import Scheduler
from scheduler_core.extenders.protocol import ExtenderError, ExtenderTransport
from scheduler_core.framework.plugin_set import Factory
from scheduler_core.running.commands import Answered, Command, Commands
from scheduler_core.running.machine import Attempt, Machine
from scheduler_core.running.record.lines import (
    ANSWERED,
    FORMAT,
    Allow,
    AnyCall,
    Call,
    ExtenderAnswer,
    ListedPage,
    Next,
    OutcomeTold,
    PagesEnd,
    RecordError,
    RecordHeader,
    Reject,
    Take,
    TakeList,
    checksum,
    of_raw,
    read_line,
)
from scheduler_core.running.waiting.permits import WaitingPods
from scheduler_core.values import Value


class DeviationError(Exception):
    """The machine commands something else than it did when the record was written."""


class Told(Value):
    """One call of the record, and the machine's commands."""

    at: float
    commands: tuple[Command, ...]


class Replay:
    """Raises RecordError if the record's first line is unusable, ConfigurationError if its configuration is, for
    example because it names a plugin that `plugins` has not. `permits`: shared with these plugins."""

    def __init__(
        self,
        lines: Iterable[bytes],
        *,
        plugins: Mapping[str, Factory] | None = None,
        permits: WaitingPods | None = None,
        on_attempt: Callable[[Attempt], None] | None = None,
    ) -> None:
        self._lines = iter(lines)
        self.header = _header(next(self._lines, b""))
        self._answers: list[deque[ExtenderAnswer]] = []
        self._pages: dict[int, deque[ListedPage | PagesEnd]] = {}
        self._waiting: tuple[int, ...] = ()
        self.machine = Machine(
            self.scheduler(self.header.config, plugins=plugins, transport=self._extender),
            awaits=self.header.awaits,
            permits=permits,
            on_attempt=on_attempt,
        )

    def scheduler(
        self,
        config: Mapping[str, Any] | None,
        *,
        plugins: Mapping[str, Factory] | None = None,
        transport: Callable[[ExtenderSettings], ExtenderTransport] | None = None,
    ) -> Scheduler:
        """With this configuration, for the record's release. Without a `transport` it must have no extenders: nobody
        can ask them about the past."""
        version = KubeVersion.parse(self.header.kube_version)
        configuration = Configuration() if config is None else Configuration.from_mapping(config, version)
        if transport is None and configuration.extenders:
            raise ConfigurationError(["extenders: a replay cannot ask them; remove them from the configuration"])
        return Scheduler(configuration, version, plugins=plugins, transport=transport)

    def calls(self, until: float | None = None) -> Iterator[Told]:
        """Raises RecordError at the first line that is damaged, DeviationError at the first call that gives other
        commands; the lines before were told."""
        for number, text in enumerate(self._lines, start=2):
            try:
                line = read_line(text)
                if isinstance(line, Call):
                    if until is not None and line.at > until:
                        return
                    yield Told(line.at, self._call(line))
                else:
                    self._keep(line)
            except RecordError as trouble:
                raise RecordError(f"line {number}: {trouble}") from trouble
            except DeviationError as trouble:
                raise DeviationError(f"line {number}: {trouble}") from trouble

    # ---- what calls read ----

    def _keep(self, line: RecordHeader | ListedPage | PagesEnd | ExtenderAnswer) -> None:
        if isinstance(line, ListedPage | PagesEnd):
            self._pages.setdefault(line.list, deque()).append(line)
        elif isinstance(line, ExtenderAnswer):
            if not 0 <= line.extender < len(self._answers):
                raise RecordError(f"the configuration has no extender {line.extender}")
            self._answers[line.extender].append(line)
        else:
            raise RecordError("a second record begins here; split the file")

    def _listed(self, number: int) -> Iterator[bytes | Mapping[str, Any]]:
        while True:
            kept = self._pages.get(number)
            if not kept:
                raise RecordError(f"a page of list {number} is missing")
            line = kept.popleft()
            if isinstance(line, PagesEnd):
                if line.problem:
                    raise OSError(line.problem)
                return
            yield of_raw(line.body, is_text=line.is_text)

    def _extender(self, _settings: ExtenderSettings) -> ExtenderTransport:
        answers: deque[ExtenderAnswer] = deque()
        self._answers.append(answers)
        return _Recorded(answers)

    # ---- calls ----

    def _call(self, call: AnyCall) -> Commands:
        for decision in call.decided:
            permits = self.machine.parts.permits
            if decision.message:
                permits.reject(decision.uid, decision.plugin, decision.message)
            else:
                permits.allow(decision.uid, decision.plugin)
        try:
            commands = self._told(call)
        except Exception as trouble:
            if call.raised:
                return ()
            raise RecordError(f"the machine cannot use it: {trouble}") from trouble
        if call.raised or checksum(call.at, commands) != call.commands:
            raise DeviationError(
                "the machine commands something else than in the record, "
                f"which version {self.header.library} of scheduler_core wrote"
            )
        return commands

    def _told(self, call: AnyCall) -> Commands:
        machine, now = self.machine, call.at
        if isinstance(call, Take):
            return machine.take(of_raw(call.event, is_text=call.is_text), now)
        if isinstance(call, TakeList):
            number = call.list
            return machine.take(Sync(call.kind, self._listed(number), lambda: number not in self._waiting), now)
        if isinstance(call, Next):
            self._waiting = call.waiting
            return machine.next(now)
        if isinstance(call, OutcomeTold):
            return machine.answered(_command(call), call.outcome, now)
        if isinstance(call, Allow):
            return machine.allow(call.uid, call.plugin, now)
        if isinstance(call, Reject):
            return machine.reject(call.uid, call.plugin, call.message, now)
        return machine.tick(now)


class _Recorded:
    """An extender whose answers were recorded."""

    def __init__(self, answers: deque[ExtenderAnswer]) -> None:
        self._answers = answers

    def post(self, _verb: str, _body: bytes) -> bytes:
        if not self._answers:
            raise RecordError("an extender's answer is missing")
        answer = self._answers.popleft()
        if answer.problem:
            raise ExtenderError(answer.problem)
        return answer.body


def _header(text: bytes) -> RecordHeader:
    if not text:
        raise RecordError("the record is empty")
    line = read_line(text)
    if not isinstance(line, RecordHeader):
        raise RecordError("line 1: a record begins with its header")
    if line.format != FORMAT:
        raise RecordError(f"line 1: format {line.format} is unknown; this version reads format {FORMAT}")
    return line


def _command(answer: OutcomeTold) -> Answered:
    known = ANSWERED.get(answer.name)
    if known is None:
        raise RecordError(f"{answer.name!r} is no command that is answered")
    return cast("Answered", msgspec.json.decode(answer.command, type=known))

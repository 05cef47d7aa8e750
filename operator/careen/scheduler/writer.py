"""Carries out the machine's commands, each kind in its own lane: statuses and Events never delay a binding."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Final

from careen.core.facts.times import rfc3339
from careen.scheduler.pod_events import PodEvents
from careen.scheduler.wire.calls import calls, outcome
from careen.scheduler.wire.lanes import HttpAnswer, HttpCall, Lane
from careen.scheduler.wire.limit import RateLimit
from careen.scheduler.wire.server import Server
from scheduler_core.running.commands import (
    Answered,
    AskExtender,
    Bind,
    Command,
    Count,
    DeleteVictim,
    LookAtPod,
    Note,
    PatchVolume,
    PostPodEvent,
    WriteStatus,
)
from scheduler_core.running.failures import WriteOutcome

MOST_EVENTS: Final = 2_000
"""Events that may wait. Then they are dropped, and counted."""
# At most: a lane opens one when a request has to wait. To a server that needs 200 ms, each carries five a second.
_CONNECTIONS: Final = {Bind: 64, DeleteVictim: 32, PatchVolume: 16, WriteStatus: 32, LookAtPod: 4}
_EVENT_CONNECTIONS: Final = 32


class Writer:
    """`answered` gets each command of the lanes once, with its outcome. `noted` and `counted` get the others."""

    def __init__(
        self,
        server: Server,
        *,
        limit: RateLimit,
        events: PodEvents,
        monotonic: Callable[[], float],
        now: Callable[[], datetime],
        answered: Callable[[Answered, WriteOutcome], None],
        noted: Callable[[Note], None],
        counted: Callable[[Count], None],
        requested: Callable[[str, str, int], None],
        asked: Callable[[AskExtender], None],
    ) -> None:
        self._lanes = {kind: Lane(server, connections=size) for kind, size in _CONNECTIONS.items()}
        self._event_lane = Lane(server, connections=_EVENT_CONNECTIONS)
        self._limit = limit
        self._events = events
        self._monotonic = monotonic
        self._now = now
        self._answered = answered
        self._noted = noted
        self._counted = counted
        self._requested = requested
        self._asked = asked
        self._host = server.authority
        self.dropped_events = 0

    @property
    def backlog(self) -> int:
        """Bindings that were not sent yet."""
        return self._lanes[Bind].backlog + self._limit.waiting

    @property
    def is_idle(self) -> bool:
        """Whether every request but Events has its answer."""
        return not self._limit.waiting and all(lane.is_idle for lane in self._lanes.values())

    def carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if isinstance(command, Note):
                self._noted(command)
            elif isinstance(command, Count):
                self._counted(command)
            elif isinstance(command, AskExtender):
                self._asked(command)
            elif isinstance(command, PostPodEvent):
                self._post(command)
            else:
                self._limit.pass_on(partial(self._begin, command))

    def close(self) -> None:
        for lane in (*self._lanes.values(), self._event_lane):
            lane.close()

    def _begin(self, command: Answered) -> None:
        self._send(command, deque(calls(command, rfc3339(self._now()))))

    def _send(self, command: Answered, left: deque[HttpCall]) -> None:
        call = left.popleft()

        def done(answer: HttpAnswer) -> None:
            self._requested(call.method, self._host, answer.status)
            result = outcome(command, answer)
            if left and 200 <= answer.status < 300 and result.is_complete:
                self._send(command, left)
            else:
                self._answered(command, result)

        self._lanes[type(command)].send(call, done)

    def _post(self, event: PostPodEvent) -> None:
        if self._event_lane.backlog >= MOST_EVENTS:
            self.dropped_events += 1
            return
        call = self._events.call(event, self._monotonic(), self._now())
        # An Event that was not written is not worth a second request.
        self._event_lane.send(call, lambda answer: self._requested(call.method, self._host, answer.status))

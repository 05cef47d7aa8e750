"""Carries out the machine's commands, each kind in its own lane: statuses and Events never delay a binding."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, cast

from careen.core.facts.times import rfc3339
from careen.scheduler.pod_events import PodEvents
from careen.scheduler.wire.calls import calls, outcome, why_refused
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

MOST_EVENTS: Final = 20_000
"""Events that may wait, 10 MiB. Then they are dropped, and counted."""
LATER_SECONDS: Final = 0.1
"""So long Events wait for others: what nobody waits for is done at once for several pods, because the processor's
caches are cold after each wait."""
_MANY_BINDINGS: Final = 8
_EVENTS_BESIDE: Final = 10
"""Events that are sent every `LATER_SECONDS` while more than `_MANY_BINDINGS` have no answer: an Event costs the API
server as much as a binding."""
# At most: a lane opens one when a request has to wait. To a server that needs 200 ms, each carries five a second.
_CONNECTIONS: Final = {Bind: 64, DeleteVictim: 32, PatchVolume: 16, WriteStatus: 32, LookAtPod: 4}
_EVENT_CONNECTIONS: Final = 32
_LOOK_SECONDS: Final = 0.01
_NAMESPACE_ENDS: Final = b"NamespaceTerminating"  # the cause in the API server's answer
_DATED: Final = (WriteStatus, DeleteVictim)


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
        self._requested = requested
        self._handlers: Mapping[type[Command], Callable[[Any], None]] = {
            Note: noted,
            Count: counted,
            AskExtender: asked,
            PostPodEvent: self._collect,
        }
        self._host = server.authority
        self._collected: deque[tuple[PostPodEvent, datetime]] = deque()
        self._later: asyncio.TimerHandle | None = None
        self.dropped_events = 0
        self._events_are_refused = False  # that is said once, until one is written

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
            handle = self._handlers.get(type(command))
            if handle is None:
                self._limit.pass_on(partial(self._begin, cast("Answered", command)))
            else:
                handle(command)

    async def end(self) -> None:
        """Until every request has its answer. Sends as many of the waiting Events as it has connections for."""
        while not self.is_idle:
            await asyncio.sleep(_LOOK_SECONDS)
        self._post(_EVENT_CONNECTIONS)
        while not self._event_lane.is_idle:
            await asyncio.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        if self._later is not None:
            self._later.cancel()
        for lane in (*self._lanes.values(), self._event_lane):
            lane.close()

    def _begin(self, command: Answered) -> None:
        self._send(command, calls(command, rfc3339(self._now()) if isinstance(command, _DATED) else ""))

    def _send(self, command: Answered, left: Sequence[HttpCall]) -> None:
        call = left[0]

        def done(answer: HttpAnswer) -> None:
            self._requested(call.method, self._host, answer.status)
            result = outcome(command, answer)
            if len(left) > 1 and 200 <= answer.status < 300 and result.is_complete:
                self._send(command, left[1:])
            else:
                self._answered(command, result)

        self._lanes[type(command)].send(call, done)

    # ---- what nobody waits for ----

    def _collect(self, event: PostPodEvent) -> None:
        if len(self._collected) + self._event_lane.backlog >= MOST_EVENTS:
            self.dropped_events += 1
            return
        self._collected.append((event, self._now()))
        self._catch_up_later()

    def _catch_up_later(self) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(LATER_SECONDS, self.catch_up)

    def catch_up(self) -> None:
        """Sends Events."""
        self._later = None
        self._post(_EVENTS_BESIDE if self._lanes[Bind].unanswered > _MANY_BINDINGS else len(self._collected))
        if self._collected:
            self._catch_up_later()

    def _post(self, most: int) -> None:
        now = self._monotonic()
        for _ in range(min(most, len(self._collected))):
            event, at = self._collected.popleft()
            call = self._events.call(event, now, at)
            # An Event that was not written is not worth a second request.
            self._event_lane.send(call, partial(self._event_answered, call.method, event.pod))

    def _event_answered(self, method: str, pod: str, answer: HttpAnswer) -> None:
        self._requested(method, self._host, answer.status)
        if 0 < answer.status < 300:
            self._events_are_refused = False
        elif answer.status == 403 and _NAMESPACE_ENDS not in answer.body and not self._events_are_refused:
            self._events_are_refused = True
            self._noted(Note(verbosity=0, text="Could not write an Event", pod=pod, why=why_refused(answer)))

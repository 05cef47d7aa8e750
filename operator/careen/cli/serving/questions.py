"""Answers `careen why-pending` from the thread of an HTTP server, beside a running scheduler."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Final
from urllib.parse import parse_qs

import msgspec

from careen.cli.serving.aside import Copy
from careen.scheduler.scheduler import NotSchedulingError, RunningScheduler
from scheduler_core.cycle import NoProfileError

_SECONDS: Final = 10.0
_FORK_SECONDS: Final = 5.0


class Questions:
    """One at a time, each in a copy of the process: pods are scheduled meanwhile."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._running: tuple[RunningScheduler, asyncio.AbstractEventLoop] | None = None

    def use(self, scheduler: RunningScheduler) -> None:
        """Call it on the scheduler's loop."""
        self._running = scheduler, asyncio.get_running_loop()

    def why_pending(self, query: str) -> tuple[int, bytes]:
        """Status and JSON of the answer to `pod=NAMESPACE/NAME`."""
        pod = parse_qs(query).get("pod", [""])[0]
        if not pod:
            return _error(400, "give ?pod=NAMESPACE/NAME")
        if self._running is None:
            return _error(503, "starting; try again")
        scheduler, loop = self._running

        async def copy() -> Copy:
            return Copy(lambda: _answer(scheduler, pod), seconds=_SECONDS)

        try:
            with self._one_at_a_time:
                asked = asyncio.run_coroutine_threadsafe(copy(), loop)
                answer = asked.result(_FORK_SECONDS).answer()
        except TimeoutError:
            asked.cancel()
            return _error(503, f"the scheduler is busy and did not answer within {_SECONDS:.0f} s; try again")
        except OSError as error:
            return _error(503, f"the scheduler could not work out the answer: {error}; try again")
        status, _, body = answer.partition(b" ")
        return int(status), body


def _answer(scheduler: RunningScheduler, pod: str) -> bytes:
    try:
        found = scheduler.why_pending(pod)
    except (NotSchedulingError, NoProfileError) as error:
        status, body = _error(503, str(error))
    else:
        unknown = f"this scheduler knows no unfinished pod {pod} with a schedulerName of its profiles"
        status, body = _error(404, unknown) if found is None else (200, msgspec.json.encode(found))
    return f"{status} ".encode() + body


def _error(status: int, text: str) -> tuple[int, bytes]:
    return status, json.dumps({"error": text}).encode()

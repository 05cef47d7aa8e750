"""Answers `careen why-pending` from the thread of an HTTP server, on the loop of a running scheduler."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import TimeoutError as LateError
from urllib.parse import parse_qs

import msgspec

from careen.scheduler.scheduler import NotSchedulingError, RunningScheduler
from careen.scheduler.why_pending import WhyPending
from scheduler_core.cycle import NoProfileError

_SECONDS = 10.0


class Questions:
    """One at a time: an answer takes as long as some cycles, and no pod is scheduled meanwhile."""

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

        async def ask() -> WhyPending | None:
            return scheduler.why_pending(pod)

        try:
            with self._one_at_a_time:
                found = asyncio.run_coroutine_threadsafe(ask(), loop).result(_SECONDS)
        except (NotSchedulingError, NoProfileError) as error:
            return _error(503, str(error))
        except LateError:
            return _error(503, f"the scheduler is busy and did not answer within {_SECONDS:.0f} s; try again")
        if found is None:
            return _error(404, f"this scheduler knows no unfinished pod {pod} with a schedulerName of its profiles")
        return 200, msgspec.json.encode(found)


def _error(status: int, text: str) -> tuple[int, bytes]:
    return status, json.dumps({"error": text}).encode()

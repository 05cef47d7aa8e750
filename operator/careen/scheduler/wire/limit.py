"""The client's own limit of requests, as `clientConnection.qps` and `.burst` of kube-scheduler's configuration."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class RateLimit:
    """A token bucket. `qps` 0: no limit."""

    def __init__(self, *, qps: float, burst: int, monotonic: Callable[[], float]) -> None:
        self._qps = qps
        self._burst = max(1, burst)
        self._monotonic = monotonic
        self._tokens = float(self._burst)
        self._at = monotonic()
        self._queue: deque[Callable[[], None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def pass_on(self, send: Callable[[], None]) -> None:
        """Calls `send` now, or as soon as the limit allows it."""
        if not self._qps:
            send()
            return
        self._queue.append(send)
        if self._timer is None:
            self._go_on()

    def _go_on(self) -> None:
        now = self._monotonic()
        self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._qps)
        self._at = now
        self._timer = None
        while self._queue and self._tokens >= 1.0:
            self._tokens -= 1.0
            self._queue.popleft()()
        if self._queue:
            self._timer = asyncio.get_running_loop().call_later((1.0 - self._tokens) / self._qps, self._go_on)

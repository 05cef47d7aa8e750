"""Plugins of others run in threads, so that one that waits delays pods, but no watch, no Lease and no probe.

Of the loop and the threads one has the turn, and the others wait. The loop gives the turn to a thread and waits until
its work is done. If a plugin has not answered after `PATIENCE_SECONDS`, the loop takes the turn and goes on; the thread
gets it back when the plugin has answered. So nothing but the plugin's own code runs at the same time as the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from queue import SimpleQueue
from typing import Any, Final

from scheduler_core.framework.plugin_set import Factory
from scheduler_core.plugin_contract import TooSlowError
from scheduler_core.running.waiting.beside import WorkEnd

PATIENCE_SECONDS: Final = 0.004
"""As long as the machine runs at a time (pump.SLICE_SECONDS)."""
LIMIT_SECONDS: Final = 10.0
"""For one call of a plugin without `time_limit_seconds` of its own: a quarter of the time in which a probe fails."""
_MOST_THREADS: Final = 256
_MOST_STUCK: Final = 8
"""Calls that came to their limit and never ended. Then the plugin is not called again until one of them ends."""
_LIBRARY: Final = "scheduler_core.plugins."

Ended = Callable[[int, WorkEnd], None]
Work = Callable[[], Any]


class Beside:
    """`use` it before the first `start`; both on the loop."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.monotonic = monotonic
        self.stuck: Counter[str] = Counter()
        self._ended: Ended | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: list[_Worker] = []
        self._running = 0
        self._queued: deque[_Task] = deque()

    def use(self, ended: Ended) -> None:
        """`ended` gets the outcome of each work that went on beside the machine."""
        self._ended, self._loop = ended, asyncio.get_running_loop()

    def guarded(self, factory: Factory) -> Factory:
        """Makes the same plugin, whose calls may go on beside the machine. A subclass of one of the library's plugins
        stays as it is: the library looks at its class."""

        def make(args: Any, kube_version: Any) -> Any:
            plugin = factory(args, kube_version)
            is_librarys = any(each.__module__.startswith(_LIBRARY) for each in type(plugin).__mro__)
            return plugin if is_librarys or not hasattr(plugin, "name") else _Guarded(plugin)

        return make

    def start(self, number: int, work: Work) -> WorkEnd | None:
        """See `scheduler_core.running.waiting.beside.Beside`."""
        task = _Task(self, number, work)
        if self._running >= _MOST_THREADS:
            self._queued.append(task)
            return None
        return self._begin(task)

    def wants_turn(self, task: _Task) -> None:
        """For a thread whose plugin has answered."""
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._resume, task)

    # ---- on the loop ----

    def _begin(self, task: _Task) -> WorkEnd | None:
        self._running += 1
        worker = self._idle.pop() if self._idle else _Worker(self._idle)
        worker.tasks.put(task)
        return self._wait(task)

    def _wait(self, task: _Task) -> WorkEnd | None:
        """Until the work is done, or a plugin has needed too long."""
        end = self.monotonic() + PATIENCE_SECONDS
        with task.news:
            while task.outcome is None:
                left = end - self.monotonic()
                if left <= 0.0 and task.inside is not None:
                    task.has_turn = task.is_urged = False
                    self._watch(task, task.inside)
                    return None
                task.is_urged = left <= 0.0
                task.news.wait(left if left > 0.0 else None)
        self._over()
        return task.outcome

    def _watch(self, task: _Task, call: _Call) -> None:
        assert self._loop is not None
        left = call.began + call.limit - self.monotonic()
        task.timer = self._loop.call_later(max(0.0, left), self._late, task, call)

    def _late(self, task: _Task, call: _Call) -> None:
        with task.news:
            if task.inside is not call or task.has_turn:
                return
            task.is_abandoned = True
        self.stuck[call.plugin] += 1
        self._over()
        self._tell(task, WorkEnd(bug=TooSlowError(call.plugin, f"has not answered for {call.limit:g} s")))

    def _resume(self, task: _Task) -> None:
        if task.timer is not None:
            task.timer.cancel()
        with task.news:
            task.has_turn = True
            task.news.notify_all()
        if task.is_abandoned:
            self.stuck[task.was_in] -= 1
            return
        outcome = self._wait(task)
        if outcome is not None:
            self._tell(task, outcome)

    def _tell(self, task: _Task, outcome: WorkEnd) -> None:
        assert self._ended is not None
        self._ended(task.number, WorkEnd(value=outcome.value, bug=outcome.bug, was_beside=True))

    def _over(self) -> None:
        self._running -= 1
        if self._queued:
            assert self._loop is not None
            self._loop.call_soon(self._begin_queued)

    def _begin_queued(self) -> None:
        if self._queued and self._running < _MOST_THREADS:
            task = self._queued.popleft()
            outcome = self._begin(task)
            if outcome is not None:
                self._tell(task, outcome)


class _Call:
    """One call of a plugin."""

    __slots__ = ("began", "limit", "plugin")

    def __init__(self, plugin: str, limit: float, began: float) -> None:
        self.plugin = plugin
        self.limit = limit
        self.began = began


class _AbandonedError(BaseException):
    """Ends work for which nobody waits any more."""


class _Task:
    """`inside`: the plugin's call that is under way. `is_urged`: the loop waits for one, to take the turn."""

    def __init__(self, beside: Beside, number: int, work: Work) -> None:
        self.number = number
        self.news = threading.Condition()
        self.has_turn = True
        self.is_urged = self.is_abandoned = False
        self.inside: _Call | None = None
        self.was_in = ""
        self.outcome: WorkEnd | None = None
        self.timer: asyncio.TimerHandle | None = None
        self._beside = beside
        self._work = work

    def run(self) -> None:
        """In its thread."""
        outcome = WorkEnd()
        try:
            outcome = WorkEnd(value=self._work())
        except _AbandonedError:
            pass
        except BaseException as bug:  # a plugin's SystemExit as well: it must not end the thread
            outcome = WorkEnd(bug=bug)
        with self.news:
            self.outcome = outcome
            self.news.notify_all()

    def call(self, plugin: str, limit: float, method: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        if self.inside is not None:  # a plugin calls a plugin
            return method(*given)
        if self._beside.stuck[plugin] >= _MOST_STUCK:
            raise TooSlowError(plugin, f"still has not answered {_MOST_STUCK} earlier calls")
        with self.news:
            self.inside, self.was_in = _Call(plugin, limit, self._beside.monotonic()), plugin
            if self.is_urged:
                self.news.notify_all()
        try:
            return method(*given)
        finally:
            self._come_back()

    def _come_back(self) -> None:
        with self.news:
            self.inside = None
            if self.has_turn:
                return
            self._beside.wants_turn(self)
            while not self.has_turn:
                self.news.wait()
        if self.is_abandoned:
            raise _AbandonedError


class _Worker(threading.Thread):
    """The process does not wait for it when it ends."""

    def __init__(self, idle: list[_Worker]) -> None:
        super().__init__(name="plugin", daemon=True)
        self.tasks: SimpleQueue[_Task] = SimpleQueue()
        self._idle = idle
        self.start()

    def run(self) -> None:
        while True:
            _current.task = task = self.tasks.get()
            task.run()
            _current.task = None
            self._idle.append(self)


class _Current(threading.local):
    task: _Task | None = None


_current = _Current()


class _Guarded:
    """A plugin with the same methods and values."""

    may_wait = True
    name: str

    def __init__(self, plugin: Any) -> None:
        self._limit = float(getattr(plugin, "time_limit_seconds", LIMIT_SECONDS))
        self._plugin = plugin
        for name in dir(plugin):
            if not name.startswith("_"):
                value = getattr(plugin, name)
                setattr(self, name, self._guarded(value) if callable(value) else value)

    def __repr__(self) -> str:
        return repr(self._plugin)

    def _guarded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*given: Any) -> Any:
            # `plugin_contract.plugin_that_raised` finds the plugin by `self` in this frame.
            task = _current.task
            return method(*given) if task is None else task.call(self.name, self._limit, method, given)

        return call

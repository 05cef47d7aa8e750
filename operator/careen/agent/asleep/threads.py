"""Keeps SIGTERM and SIGINT in the main thread: one that another thread takes is lost when the process replaces
itself."""

from __future__ import annotations

import signal
import threading

STOPS = frozenset({signal.SIGTERM, signal.SIGINT})


def keep_signals_in_main_thread() -> None:
    """From now on each new thread is created with these signals blocked. Children of the main thread are not."""
    start = threading.Thread.start
    if getattr(start, "blocks_signals", False):
        return

    def start_blocked(thread: threading.Thread) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        try:
            start(thread)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    start_blocked.blocks_signals = True  # type: ignore[attr-defined]
    setattr(threading.Thread, "start", start_blocked)  # noqa: B010 - mypy knows no method of another name

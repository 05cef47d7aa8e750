"""The progress of a long command on standard error: a bar on a terminal, otherwise a line from time to time. Standard
output has only the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from careen.cli.support.screen import say

# Often enough for a reader of a log; a short command prints nothing.
SECONDS_PER_LINE = 10.0


@contextmanager
def progress(what: str, total: int, monotonic: Callable[[], float]) -> Iterator[Callable[[int], None]]:
    """Yields a function that shows the number of finished nodes, to be called any number of times."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(what, total, monotonic, lambda line: say(line, err=True))
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bar:
        task = bar.add_task("plan", total=total)
        yield lambda done: bar.update(task, completed=done)


class Lines:
    """At most one line within `SECONDS_PER_LINE`, and the first not before."""

    def __init__(self, what: str, total: int, monotonic: Callable[[], float], say: Callable[[str], None]) -> None:
        self._what = what
        self._total = total
        self._monotonic = monotonic
        self._say = say
        self._began = self._said = monotonic()

    def __call__(self, done: int) -> None:
        now = self._monotonic()
        if now - self._said < SECONDS_PER_LINE:
            return
        self._said = now
        time_left = _about(self._left_seconds(done, now)) if done else ""
        self._say(
            f"{self._what}: {done:,} of {self._total:,} nodes are "
            f"done{f', about {time_left} left' if time_left else ''}"
        )

    def _left_seconds(self, done: int, now: float) -> float:
        return (now - self._began) / done * (self._total - done)


def _about(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"

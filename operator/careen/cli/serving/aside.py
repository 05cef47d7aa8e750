"""Works out an answer in a forked copy of this process: the copy sees everything as it is at this moment, and the
original goes on at once."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from typing import Final, NoReturn

_FAILED: Final = 1


class Copy:
    """A copy at work. Ask each for its `answer`."""

    def __init__(self, work: Callable[[], bytes], *, seconds: float) -> None:
        """Must be called by the thread that changes what `work` reads. The copy has one thread: `work` must need no
        other one, and no lock of another one. The copy ends after `seconds` in any case."""
        self._pipe, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads exist; see above
            self._process = os.fork()
        if self._process == 0:
            _work(work, writing, seconds)
        os.close(writing)

    def answer(self) -> bytes:
        """Blocks, so call it once, from another thread. Raises TimeoutError, or OSError if the copy failed."""
        with os.fdopen(self._pipe, "rb") as pipe:
            read = pipe.read()
        _, status = os.waitpid(self._process, 0)
        if os.WIFSIGNALED(status):
            raise TimeoutError
        if status:
            raise OSError(f"exit code {os.waitstatus_to_exitcode(status)}")
        return read


def _work(work: Callable[[], bytes], writing: int, seconds: float) -> NoReturn:
    try:
        signal.set_wakeup_fd(-1)  # the original's
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(each, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)  # the kernel ends the copy then
        answer = work()
        while answer:
            answer = answer[os.write(writing, answer) :]
        os._exit(0)
    finally:  # whatever was raised is not the original's
        os._exit(_FAILED)

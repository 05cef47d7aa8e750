"""Runs a command on the host with a deadline, directly or through nsenter in the mount namespace of PID 1."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum

from careen.host import environment, paths
from scheduler_core.values import Value

# Kured enters PID 1's mount namespace and nothing else; hostPID makes /proc/1 the host's.
NSENTER = ("nsenter", "--mount=/proc/1/ns/mnt", "--")
_END_SECONDS = 2.0  # a killed process ends within milliseconds
_CANNOT_EXECUTE, _NO_SUCH_PROGRAM = 126, 127  # as shells and nsenter use them
_END_BYTES = 1_000  # kept of the beginning and of the end of a command's output: enough for a sentence
_CHUNK_BYTES = 64 * 1024


class HostExec(StrEnum):
    """Through nsenter on the host, or directly as a child process."""

    NSENTER = "nsenter"
    DIRECT = "direct"


class Exited(Value, kw_only=True):
    """Ended before the deadline. A code of 128 + N, or a negative one, means a signal."""

    code: int
    output: str
    errors: str


class NotStarted(Value):
    """The program is missing or not executable; the command certainly had no effect. `is_program`: the host was
    reached, but could not run this program."""

    why: str
    is_program: bool = False


class TimedOut(Value):
    """Killed at the deadline. The effect is unknown."""

    after_seconds: float


class NotFollowed(Value):
    """Perhaps started, but no thread was free to wait for its end, or an earlier run does not end. The effect is
    unknown."""

    why: str


Outcome = Exited | NotStarted | TimedOut | NotFollowed

# asyncio kills the child when its process object is garbage-collected. Objects of children that may outlive the agent
# are kept here.
_kept: list[asyncio.subprocess.Process] = []

# By their command lines, killed runs that do not end: SIGKILL waits for a hanging file system (state D).
_unended: dict[tuple[str, ...], asyncio.Task[object]] = {}


async def run_on_host(
    argv: Sequence[str], *, how: HostExec, deadline_seconds: float, outlives_us: bool = False
) -> Outcome:
    """Runs `argv` until it ends or until the deadline. Every failure is an outcome, not an exception.

    If the caller is cancelled, the command is killed; with `outlives_us` it continues, as a requested reboot must.
    While a killed run does not end, the same command is not started again, so that such runs do not pile up.
    """
    if how is HostExec.NSENTER and (why := paths.why_not_the_host(paths.PROC)):
        return NotStarted(why)
    full = [*NSENTER, *argv] if how is HostExec.NSENTER else list(argv)
    if (ending := _unended.get(tuple(full))) is not None:
        return NotFollowed(f"an earlier run, {ending.get_name()}, was killed but has not ended yet")
    try:
        process = await _started(full, outlives_us=outlives_us)
    except (OSError, ValueError) as error:
        return NotStarted(f"the program {full[0]} cannot be started: {error}", is_program=how is HostExec.DIRECT)
    except RuntimeError as error:  # Python 3.11 waits for each child in a thread, which it begins after the child
        return NotFollowed(str(error))
    try:
        async with asyncio.timeout(deadline_seconds):
            output, errors = await _read_to_the_end(process)
    except TimeoutError:
        await _killed(process, full)
        return TimedOut(deadline_seconds)
    except asyncio.CancelledError:
        if not outlives_us:
            await _killed(process, full)
        raise
    assert process.returncode is not None
    if how is HostExec.NSENTER and _text(errors).startswith("nsenter:"):
        # nsenter itself exits with 1 (not permitted) or 127 (no such program), and 1 would be mistaken for an answer.
        return NotStarted(_text(errors), is_program=process.returncode in (_CANNOT_EXECUTE, _NO_SUCH_PROGRAM))
    return Exited(code=process.returncode, output=_text(output), errors=_text(errors))


async def _started(argv: Sequence[str], *, outlives_us: bool) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment.of_children(),
            start_new_session=True,  # a signal to the agent's process group must not interrupt a reboot
        )
    )
    if not outlives_us:
        return await starting
    starting.add_done_callback(_keep)
    return await asyncio.shield(starting)  # asyncio kills a child whose start is cancelled


def _keep(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        _kept.append(starting.result())


async def kill_group(process: asyncio.subprocess.Process) -> None:
    """Kills a child that was started in its own session, with its process group. Takes two seconds at most, even if
    another process holds the child's pipes open."""
    ending = await _killed(process)
    ending.cancel()


async def _killed(process: asyncio.subprocess.Process, argv: Sequence[str] = ()) -> asyncio.Task[object]:
    """`kill_group`; the task that waits for the end. With `argv` the run counts as unended until then, also if the
    caller is cancelled meanwhile."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # Read to the end, so that the pipes are closed before the event loop ends. A grandchild in another session may keep
    # them open; then neither the read nor asyncio's own wait() returns, although the process has ended.
    ending: asyncio.Task[object] = asyncio.create_task(_read_to_the_end(process), name=f"process {process.pid}")
    if argv:
        _remember(tuple(argv), ending)
    try:
        await asyncio.wait({ending}, timeout=_END_SECONDS)
    except asyncio.CancelledError:
        if not argv:
            ending.cancel()
        raise
    return ending


def _remember(key: tuple[str, ...], ending: asyncio.Task[object]) -> None:
    _unended[key] = ending
    ending.add_done_callback(lambda ended: _unended.pop(key) if _unended.get(key) is ended else None)


async def _read_to_the_end(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """Waits for the process and its pipes. Returns the beginning and the end of output and error output."""
    if process.stdin is not None:
        process.stdin.close()
    output, errors, _ = await asyncio.gather(_ends_of(process.stdout), _ends_of(process.stderr), process.wait())
    return output, errors


async def _ends_of(pipe: asyncio.StreamReader | None) -> bytes:
    """The beginning and the end. Reads all, so that a full pipe never blocks the command, and keeps at most two
    chunks."""
    head, tail, is_cut = b"", b"", False
    while pipe is not None and (chunk := await pipe.read(_CHUNK_BYTES)):
        room = _END_BYTES - len(head)
        head, rest = head + chunk[:room], tail + chunk[room:]
        is_cut, tail = is_cut or len(rest) > _END_BYTES, rest[-_END_BYTES:]
    return head + (b" ... " if is_cut else b"") + tail


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").strip()

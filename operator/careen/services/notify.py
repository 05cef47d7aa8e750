"""Sends messages to people from a short-lived child process, within a deadline.

apprise is large and a webhook may hang, so neither may run in the resident agent. Addresses contain secrets: the child
reads them from its stdin, never from a command line, and failures do not show them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from careen.core.plain_text import one_line
from careen.host import environment
from careen.host.commands import kill_group
from careen.services.notification_urls import DeliveryMethod, Target
from scheduler_core.values import Value

_LONGEST_WHY = 200


class Delivery(Value, kw_only=True):
    """The outcome for one target; `why` is empty if the message was sent."""

    service: str
    why: str = ""


async def send(text: str, targets: Sequence[Target], *, seconds: float) -> tuple[Delivery, ...]:
    """To all targets at the same time; outcomes in their order. A failure is an outcome too, not an exception."""
    wanted = [target for target in targets if target.way is not DeliveryMethod.LOG]
    if not wanted:
        return ()
    answers: dict[int, str] = {}
    order = {"text": text, "seconds": seconds, "targets": [asdict(target) for target in wanted]}
    try:
        missing = await _ask(json.dumps(order).encode(), answers, seconds)
    except OSError as error:
        missing = f"the process that sends messages could not be started: {error.strerror}"
    return tuple(
        Delivery(service=target.service, why=answers.get(number, missing)) for number, target in enumerate(wanted)
    )


async def refusals(targets: Sequence[Target], *, seconds: float) -> tuple[Delivery, ...]:
    """The URLs of apprise's own form that apprise does not accept, and why. Without an answer within `seconds` a URL is
    accepted: the first message will show the problem."""
    asked = [target for target in targets if target.is_native]
    if not asked:
        return ()
    answers: dict[int, str] = {}
    order = {"seconds": seconds, "targets": [asdict(target) for target in asked]}
    with suppress(OSError):
        await _ask(json.dumps(order).encode(), answers, seconds)
    return tuple(
        Delivery(service=target.service, why=answers[number])
        for number, target in enumerate(asked)
        if answers.get(number)
    )


async def _ask(order: bytes, answers: dict[int, str], seconds: float) -> str:
    """Runs the child and stores its answers as they arrive. Returns why an answer may be missing: the child took too
    long, or it ended."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "careen.services.notify_child",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        env=environment.of_children(),
    )
    try:
        async with asyncio.timeout(seconds):
            await _converse(process, order, answers)
            await process.wait()
    except TimeoutError:
        return f"the process that sends messages did not answer within {seconds:g} s"
    finally:
        if process.returncode is None:
            await kill_group(process)
    return f"the process that sends messages ended with exit code {process.returncode}"


async def _converse(process: asyncio.subprocess.Process, order: bytes, answers: dict[int, str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(order)
        await process.stdin.drain()
    process.stdin.close()
    async for line in process.stdout:
        with suppress(ValueError, KeyError, TypeError):
            answer = json.loads(line)
            answers[int(answer["target"])] = one_line(str(answer["why"]), _LONGEST_WHY)

"""Plays a simulated roll-out (a `Story`) with many different faults. The roll-out runs once. At each chosen request, a
forked child process continues the same roll-out with one fault, so that the part before the fault is not repeated."""

from __future__ import annotations

import asyncio
import gc
import os
import traceback
import warnings
from asyncio import events
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.fleet.stories import Story, played
from tests.careen.chaos.fleet.world import World


class Branch(NamedTuple):
    """A simulated roll-out in which `fault` hits one request. `number` is the position of this request among all
    requests of the roll-out, counted from 1."""

    number: int
    fault: Fault


Judge = Callable[[World, Branch], str]
"""A function that returns the problem at the end of a branch, or an empty text if there is none."""


def judged(story: Story, faults: Mapping[int, Sequence[Fault]], judge: Judge) -> dict[Branch, str]:
    """Play the simulated roll-out `story` once for each fault in `faults`, which maps the number of a request to the
    faults that hit this request. Each run has one fault and its own child process. Return for each run the text that
    `judge` returns: the problem, or an empty text if the run broke no rule.

    A child process is forked at its faulty request, so the part of the roll-out before this request runs only once. The
    roll-out must run on virtual time, because a forked child has none of its parent's threads."""
    judgements: dict[Branch, str] = {}
    own: list[tuple[Branch, int]] = []

    def plan(number: int, _node: str, _request: Request) -> Fault | None:
        for fault in () if own else faults.get(number, ()):
            branch = Branch(number, fault)
            reader, writer = os.pipe()
            if (child := _forked()) == 0:
                own.append((branch, writer))
                return fault
            os.close(writer)
            judgements[branch] = _read_to_the_end(reader, child)
        return None

    try:
        world = played(story, plan)
        text = judge(world, own[0][0]) if own else ""
    except BaseException:
        if not own:
            raise
        text = traceback.format_exc()
    if own:
        _end_with(own[0][1], text)
    return judgements


def _forked() -> int:
    """Fork this process. Return the process id of the child, or 0 in the child. The child continues the parent's event
    loop."""
    loop = asyncio.get_running_loop()
    with warnings.catch_warnings():
        # Python 3.12 and newer warn of threads in the parent: the runner has one, and the child needs none.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        gc.disable()  # a collection writes to every object, so that each page of the parent would be copied
        events._set_running_loop(loop)  # asyncio forgets it at a fork
    return child


def _read_to_the_end(reader: int, child: int) -> str:
    with os.fdopen(reader) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    return text if status == 0 else f"{text}\nthe branch's process ended with status {status}"


def _end_with(writer: int, text: str) -> None:
    """Send the result of the branch to the parent process and end the child process. Skip the exit handlers of Python
    and of the test runner, because they belong to the parent process."""
    with os.fdopen(writer, "w") as stream:
        stream.write(text)
    os._exit(0)

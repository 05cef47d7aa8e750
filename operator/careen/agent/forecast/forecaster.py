"""Runs the simulation of a drain in a child process. The forecast is unknown if the child is killed, slow or out of
memory, or if its output is unreadable."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from careen.agent.forecast.ahead import Ahead
from careen.agent.forecast.container_memory import room
from careen.agent.forecast.order import AHEAD, ForecastRequest, NodesToAdd
from careen.core.facts.observation import Unknown
from careen.core.facts.times import span
from careen.host import environment
from careen.host.commands import kill_group
from scheduler_core.simulation.forecast import Forecast, UnreadableForecastError
from scheduler_core.values import Value

if TYPE_CHECKING:
    # The command `careen forecast` runs a forecast, too, and has no metrics.
    from careen.agent.telemetry.metrics import Metrics
    from careen.cluster.wire.transport import Clock
    from careen.core.facts.selectors import Selector

_LONGEST_SENTENCE = 500
# OpenBLAS writes this if memory runs out while numpy loads, and ends the process before Python can report the error.
_GAVE_UP = b"OpenBLAS error: Memory allocation"


class Limits(Value, kw_only=True):
    """The limits and settings of a simulation, read for each forecast because some can change while the agent runs."""

    seconds: float
    memory_bytes: int
    scheduler_config: str
    may_name_files: bool = False  # in the text of `scheduler_config`
    drain_pod_selector: Selector | None = None
    slow_pod_selectors: tuple[Selector, ...] = ()
    more_nodes: tuple[NodesToAdd, ...] = ()
    suggests_nodes: bool = False


class Mistake(Value):
    """The request is invalid: its file is not a dump, or the dump lacks a requested node. `why` is a sentence."""

    why: str


class ChildForecaster:
    """Forecasts the drain of the agent's own node, and counts the forecasts in a metric."""

    def __init__(
        self, *, kubeconfig: str, limits: Callable[[], Limits | Unknown], clock: Clock, metrics: Metrics
    ) -> None:
        self._kubeconfig = kubeconfig
        self._limits = limits
        self._clock = clock
        self._metrics = metrics
        self._ahead = Ahead(self._start_ahead, clock)

    async def forecast(self, node: str) -> Forecast | Unknown:
        """Where each pod of the drained node would land, or why that is unknown."""
        began = self._clock.monotonic()
        limits = self._limits()
        answer = (
            limits
            if isinstance(limits, Unknown)
            else await forecast_together([node], limits, kubeconfig=self._kubeconfig, process=await self._ahead.take())
        )
        made = answer[0] if isinstance(answer, tuple) else Unknown(answer.why)
        self._metrics.forecast_seconds.labels(node).observe(self._clock.monotonic() - began)
        self._metrics.forecasts.labels(node, "unknown" if isinstance(made, Unknown) else "made").inc()
        return made

    async def get_ready(self, *, is_wanted: bool) -> None:
        """Starts the process for the next forecast ahead, or ends it."""
        await self._ahead.keep(is_wanted=is_wanted)

    async def _start_ahead(self) -> Process | None:
        limits = self._limits()
        if isinstance(limits, Unknown):
            return None
        try:
            return await _started(AHEAD, str(limits.memory_bytes))
        except OSError:
            return None  # the forecast reports the failure


async def forecast_together(
    nodes: Sequence[str],
    limits: Limits,
    *,
    kubeconfig: str = "",
    context: str = "",
    dump: str = "",
    process: Process | None = None,
) -> tuple[Forecast, ...] | Unknown | Mistake:
    """Simulates a drain of all these nodes together, in a child process; one forecast for each node, in the given
    order.

    `dump` is the path of a dump that is used instead of the API server. `process` is a child that was started ahead.
    """
    return await _run(
        ForecastRequest(
            nodes=tuple(nodes),
            kubeconfig=kubeconfig,
            context=context,
            memory_bytes=limits.memory_bytes,
            scheduler_config=limits.scheduler_config,
            may_name_files=limits.may_name_files,
            dump=dump,
            drain_pod_selector=limits.drain_pod_selector.text if limits.drain_pod_selector else "",
            slow_pod_selectors=tuple(each.text for each in limits.slow_pod_selectors),
            more_nodes=limits.more_nodes,
            suggests_nodes=limits.suggests_nodes,
        ),
        limits.seconds,
        process,
    )


async def _run(
    order: ForecastRequest, seconds: float, ahead: Process | None
) -> tuple[Forecast, ...] | Unknown | Mistake:
    """Uses the process `ahead`; if it fails or is None, another one. Both together may take `seconds`."""
    until = asyncio.get_running_loop().time() + seconds
    answer = await _answer(ahead, order, until) if ahead is not None else None
    if ahead is None or (answer is not None and answer[0] != 0):
        try:
            answer = await _answer(await _started(), order, until)
        except OSError as error:
            return Unknown(f"the simulation could not be started: {error}")
    if answer is None:
        return Unknown(f"the simulation took longer than {span(seconds)}: raise --forecast-timeout")
    code, output, errors = answer
    if _GAVE_UP in errors:
        return Unknown(order.wants_more_memory(room()))
    return _read(code, output, errors, nodes=order.nodes)


async def _started(*arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "careen.agent.forecast.child",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment.of_children(),
        start_new_session=True,
    )


async def _answer(process: Process, order: ForecastRequest, until: float) -> tuple[int | None, bytes, bytes] | None:
    """Exit code, output and error output; None if the deadline has passed."""
    try:
        async with asyncio.timeout_at(until):
            output, errors = await process.communicate(order.to_json())
    except TimeoutError:
        await kill_group(process)
        return None
    except asyncio.CancelledError:
        await kill_group(process)
        raise
    return process.returncode, output, errors


def _read(
    code: int | None, output: bytes, errors: bytes, *, nodes: Sequence[str]
) -> tuple[Forecast, ...] | Unknown | Mistake:
    if code == -signal.SIGKILL:
        return Unknown("the simulation was killed, probably because memory ran out: raise the container's memory limit")
    if code != 0:
        return Unknown(f"the simulation ended with exit code {code}: {_last_line(errors)}")
    try:
        answer = json.loads(output)
        if "unknown" in answer:
            return Unknown(str(answer["unknown"])[:_LONGEST_SENTENCE])
        if "mistake" in answer:
            return Mistake(str(answer["mistake"])[:_LONGEST_SENTENCE])
        made = tuple(Forecast.from_mapping(each) for each in answer["forecasts"])
    except (ValueError, KeyError, TypeError, UnreadableForecastError) as error:
        return Unknown(f"the simulation's answer could not be read: {error}")
    return (
        made
        if [each.node for each in made] == list(nodes)
        else Unknown("the simulation answered for other nodes than requested")
    )


def _last_line(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_LONGEST_SENTENCE] if lines else "there is no error output"

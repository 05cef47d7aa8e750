"""Runs the simulation of a drain in a child process. Killed, slow, out of memory, unreadable: the forecast is unknown."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from careen.agent.forecast_child import Order
from careen.agent.metrics import Metrics
from careen.cluster.transport import Clock
from careen.core.observation import Unknown
from scheduler_core.simulation.forecast import Forecast, UnreadableForecastError

_LONGEST_SENTENCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a simulation may cost; live settings, so they are asked for each time."""

    seconds: float
    memory_bytes: int
    scheduler_config: str


class ChildForecaster:
    """One simulation at a time, each in a process of its own."""

    def __init__(self, *, kubeconfig: str, limits: Callable[[], Limits], clock: Clock, metrics: Metrics, context: str = "") -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._limits = limits
        self._clock = clock
        self._metrics = metrics

    async def forecast(self, node: str) -> Forecast | Unknown:
        """Where each pod of the node would land, or why that cannot be told."""
        began = self._clock.monotonic()
        limits = self._limits()
        order = Order(node=node, kubeconfig=self._kubeconfig, context=self._context, memory_bytes=limits.memory_bytes, scheduler_config=limits.scheduler_config)
        answer = await _run(order, limits.seconds)
        self._metrics.forecast_seconds.labels(node).observe(self._clock.monotonic() - began)
        self._metrics.forecasts.labels(node, "unknown" if isinstance(answer, Unknown) else "made").inc()
        return answer


async def _run(order: Order, seconds: float) -> Forecast | Unknown:
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "careen.agent.forecast_child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Unknown(f"the simulation could not be started: {error}")
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate(order.to_json())
    except TimeoutError:
        await _kill(process)
        return Unknown(f"the simulation took longer than {seconds:.0f} s: raise --forecast-timeout")
    except asyncio.CancelledError:
        await _kill(process)
        raise
    return _read(process.returncode, output, errors)


def _read(code: int | None, output: bytes, errors: bytes) -> Forecast | Unknown:
    if code == -signal.SIGKILL:
        return Unknown("the simulation was killed, probably for want of memory: raise the container's memory limit")
    if code != 0:
        return Unknown(f"the simulation ended with exit code {code}: {_last_line(errors)}")
    try:
        answer = json.loads(output)
        if "unknown" in answer:
            return Unknown(str(answer["unknown"])[:_LONGEST_SENTENCE])
        return Forecast.from_mapping(answer["forecast"])
    except (ValueError, KeyError, TypeError, UnreadableForecastError) as error:
        return Unknown(f"the simulation's answer could not be read: {error}")


async def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _last_line(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_LONGEST_SENTENCE] if lines else "it printed nothing"

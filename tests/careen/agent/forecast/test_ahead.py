"""The agent starts the child process that computes forecasts before it needs a forecast. Even if this process fails or
is killed, the agent gets the same forecast from another process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from careen.agent.forecast import forecaster as forecast
from careen.agent.forecast.ahead import AGAIN_SECONDS, Ahead
from careen.agent.forecast.forecaster import ChildForecaster
from careen.agent.forecast.order import ForecastRequest
from careen.core.facts.observation import Unknown
from drydock.server.testing import running_server
from scheduler_core.simulation.forecast import Forecast
from tests.careen.agent.forecast.test_forecaster import child, forecaster, put_cluster
from tests.patience import growing


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], asyncio.subprocess.Process]]:
    """Return a list to which the arguments and the process of each new child process are added."""
    found: list[tuple[tuple[str, ...], asyncio.subprocess.Process]] = []
    start = forecast._started

    async def noting(*arguments: str) -> asyncio.subprocess.Process:
        process = await start(*arguments)
        found.append((arguments, process))
        return process

    monkeypatch.setattr(forecast, "_started", noting)
    return found


Started = list[tuple[tuple[str, ...], asyncio.subprocess.Process]]


async def test_a_prestarted_process_makes_the_forecast_and_no_other_process_starts(
    tmp_path: Path, started: Started
) -> None:
    async with running_server() as server:
        put_cluster(server)
        ours = forecaster(server.write_kubeconfig(tmp_path / "kc"))
        await ours.get_ready(is_wanted=True)
        await ours.get_ready(is_wanted=True)
        answer = await ours.forecast("n1")
        assert isinstance(answer, Forecast)
        assert [arguments for arguments, _ in started] == [("--ahead", str(512 * 2**20))]
        cold = await ours.forecast("n1")
    assert isinstance(cold, Forecast)
    assert cold.pods == answer.pods
    assert [arguments for arguments, _ in started[1:]] == [()]


async def test_a_prestarted_process_ends_when_no_forecast_is_expected(tmp_path: Path, started: Started) -> None:
    ours = forecaster(tmp_path / "kc")
    await ours.get_ready(is_wanted=False)
    assert not started
    await ours.get_ready(is_wanted=True)
    ((_, process),) = started
    await ours.get_ready(is_wanted=False)
    assert not Path(f"/proc/{process.pid}").exists()


async def test_a_prestarted_process_that_was_killed_is_replaced(tmp_path: Path, started: Started) -> None:
    async with running_server() as server:
        put_cluster(server)
        ours = forecaster(server.write_kubeconfig(tmp_path / "kc"))
        await ours.get_ready(is_wanted=True)
        ((_, process),) = started
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        assert isinstance(await ours.forecast("n1"), Forecast)
    assert len(started) == 2


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("import sys\nsys.stdin.read()\nsys.exit(1)", id="the process fails after it has read the request"),
        pytest.param(
            "import os, sys\nsys.stdin.read()\nos.kill(os.getpid(), 9)",
            id="the process is killed after it has read the request",
        ),
        pytest.param(
            "import sys\nsys.stdin.close()\nsys.exit('no memory')", id="the process ends and has not read the request"
        ),
    ],
)
async def test_a_new_process_makes_the_forecast_if_the_prestarted_process_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, started: Started
) -> None:
    real = sys.executable
    child(monkeypatch, tmp_path, program)
    async with running_server() as server:
        put_cluster(server)
        ours = forecaster(server.write_kubeconfig(tmp_path / "kc"))
        await ours.get_ready(is_wanted=True)
        monkeypatch.setattr(forecast.sys, "executable", real)
        assert isinstance(await ours.forecast("n1"), Forecast)
    assert [arguments for arguments, _ in started][-1] == ()


async def test_no_second_process_starts_if_the_prestarted_process_exceeds_the_deadline(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, started: Started
) -> None:
    child(monkeypatch, tmp_path, "import time\ntime.sleep(3000)")
    ours = forecaster(tmp_path / "kc", seconds=0.2)
    await ours.get_ready(is_wanted=True)
    answer = await ours.forecast("n1")
    assert isinstance(answer, Unknown)
    assert "raise --forecast-timeout" in answer.why
    ((_, process),) = started
    assert not Path(f"/proc/{process.pid}").exists()


async def test_the_time_limit_of_a_forecast_starts_with_the_request(tmp_path: Path, started: Started) -> None:
    """The agent starts the child process before it needs a forecast. The time in which this process waits for a
    request is not part of the time limit."""
    async with running_server() as server:
        put_cluster(server)
        for seconds in growing(1.0):
            ours = forecaster(server.write_kubeconfig(tmp_path / "kc"), seconds=seconds)
            await ours.get_ready(is_wanted=True)
            await asyncio.sleep(seconds)
            if isinstance(await ours.forecast("n1"), Forecast):
                break
    assert started[-1][0][0] == "--ahead"


class FakeProcess:
    returncode: int | None = None


class FakeClock:
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


async def test_the_agent_waits_a_minute_before_it_replaces_a_prestarted_process() -> None:
    """On a node with too little memory, the child process that computes forecasts ends at once. Without this delay, the
    agent would start a new process in each turn."""
    made: list[FakeProcess] = []

    async def start() -> Any:
        made.append(FakeProcess())
        return made[-1]

    clock: Any = FakeClock()
    ahead = Ahead(start, clock)
    await ahead.keep(is_wanted=True)
    made[0].returncode = 1
    counts = []
    for clock.seconds in (0.0, AGAIN_SECONDS - 1, AGAIN_SECONDS):
        await ahead.keep(is_wanted=True)
        counts.append(len(made))
    assert counts == [1, 1, 2]


async def test_no_process_is_prestarted_if_the_memory_limits_are_unknown(started: Started) -> None:
    from careen.agent.clock import SystemClock
    from careen.agent.telemetry.metrics import Metrics

    ours = ChildForecaster(
        kubeconfig="", limits=lambda: Unknown("settings"), clock=SystemClock(), metrics=Metrics("n1")
    )
    await ours.get_ready(is_wanted=True)
    assert not started


async def test_a_prestarted_process_that_gets_no_request_exits_by_itself() -> None:
    program = (
        "import sys; from careen.agent.forecast import child; child.WAITS_SECONDS = 1; "
        f"sys.argv = ['child', '--ahead', '{512 * 2**20}']; child.main()"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == -signal.SIGALRM


async def test_a_prestarted_process_has_all_modules_loaded_before_the_request(tmp_path: Path) -> None:
    """If the child process loaded its modules only after the request for a forecast, the forecast would be ready later
    and the whole roll-out would take longer."""
    program = """
        import json, sys
        from careen.agent.forecast import child
        from careen.agent.forecast.order import ForecastRequest

        child._get_ready(512 * 2**20)
        before = set(sys.modules)
        answer = child._answer(ForecastRequest.from_json(sys.stdin.read()))
        assert "forecasts" in answer, answer
        ours = ("careen", "scheduler_core", "numpy", "kubernetes", "urllib3", "asyncio", "msgspec")
        json.dump([name for name in {*sys.modules} - before if name.partition(".")[0] in ours], sys.stdout)
    """
    async with running_server() as server:
        put_cluster(server)
        order = ForecastRequest(
            nodes=("n1",),
            kubeconfig=str(server.write_kubeconfig(tmp_path / "kc")),
            memory_bytes=512 * 2**20,
            scheduler_config="",
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            textwrap.dedent(program),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate(order.to_json())
    assert sorted(json.loads(output)) == []

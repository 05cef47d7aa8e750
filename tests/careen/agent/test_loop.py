"""The agent's loop. One round (observe, decide, apply) follows another at the right time, even if a part of the agent
fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise

import pytest

from careen.agent.apply import Stop
from careen.agent.loop import Loop
from careen.agent.need_watch import NeedWatch
from careen.agent.telemetry.http_server import Heartbeat
from careen.agent.telemetry.logs import LogContext
from careen.agent.telemetry.metrics import Metrics
from careen.agent.turn import TurnResult
from careen.core.decision import Decision, Reason, Refusal
from careen.core.facts.memory import Memory
from careen.core.facts.observation import Chance, Gone, Need, NeedAnswer
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.lock import pauses
from careen.core.observation import Observation
from tests.careen.agent.conftest import FakeHost
from tests.careen.virtual_shell import VirtualClock

POLICY = Policy(node_name="n1")
Outcome = float | Exception | Stop


class ScriptedReconciler:
    """Makes scripted turns. Each ends with the next item of `outcomes`: the seconds until the next turn, an exception,
    or a stop. The loop ends after the last item."""

    def __init__(self, clock: VirtualClock, host: FakeHost, *outcomes: Outcome) -> None:
        self.clock = clock
        self.host = host
        self.outcomes = list(outcomes)
        self.turned_at: list[float] = []
        self.loop: Loop | None = None
        self.phase = Phase.IDLE
        self.refusals: tuple[Refusal, ...] = ()
        self.during: Callable[[int], None] = lambda _: None

    async def turn(self, policy: Policy) -> TurnResult:
        assert policy is POLICY
        self.turned_at.append(self.clock.seconds)
        outcome = self.outcomes.pop(0)
        self.during(len(self.turned_at))
        if not self.outcomes and self.loop is not None:
            self.loop.stop()
        if isinstance(outcome, Exception):
            raise outcome
        need = await self.host.read_need()
        seen = Observation(
            now=self.clock.now(),
            uptime=0.0,
            chance=Chance(claim_id="c", jitter=0.0),
            memory=Memory(),
            clock_skew_seconds=0.0,
            node=Gone(),
            boot_id="b",
            need=need,
        )
        decision = Decision(
            phase=self.phase,
            reason=Reason(code=Code.NO_NEED, sentence="nothing to do"),
            memory=Memory(),
            look_again_seconds=outcome if isinstance(outcome, float) else 99.0,
            refusals=self.refusals,
        )
        return TurnResult(
            decision=decision, observation=seen, stop=outcome if isinstance(outcome, Stop) else None, phase=self.phase
        )


class Stage:
    def __init__(self, *outcomes: Outcome) -> None:
        self.clock = VirtualClock()
        self.host = FakeHost(self.clock)
        self.need = NeedWatch(self.host.read_need, self.clock, period_seconds=lambda: 3600.0)
        self.reconciler = ScriptedReconciler(self.clock, self.host, *outcomes)
        self.metrics = Metrics("n1")
        self.heartbeat = Heartbeat(self.clock.monotonic)
        self.place = LogContext("n1")
        self.started: list[float] = []
        self.loop = Loop(
            reconciler=self.reconciler,
            policy=lambda: POLICY,
            need=self.need,
            clock=self.clock,
            chance=lambda: 0.0,
            place=self.place,  # type: ignore[arg-type]
            metrics=self.metrics,
            heartbeat=self.heartbeat,
            after_first_turn=lambda: self.started.append(self.clock.seconds),
        )
        self.reconciler.loop = self.loop

    async def run(self) -> list[float]:
        await self.loop.run()
        return self.reconciler.turned_at


async def test_the_decision_sets_the_time_of_the_next_loop_round() -> None:
    assert await Stage(3.0, 12.0, 1.0).run() == [0, 3, 15]


async def test_the_loop_sleeps_for_milliseconds_if_the_decision_requests_a_delay_of_zero() -> None:
    first, second, _ = await Stage(0.0, 0.0, 0.0).run()
    assert 0 < second - first < 0.1


async def test_the_loop_does_not_shorten_the_long_sleeps_of_agents_in_a_large_fleet() -> None:
    """If each agent's loop shortened its sleep to the same maximum, agents that started together would always send
    their requests at the same time."""
    longest = pauses.paced(30.0, 5000, 1.0)
    assert await Stage(longest, 1.0).run() == [0, longest]


async def test_the_loop_shortens_an_extremely_long_sleep() -> None:
    assert await Stage(1e9, 1.0).run() == [0, pauses.LONGEST_LOOK_SECONDS]


async def test_a_new_sentinel_file_starts_the_next_loop_round_within_two_seconds() -> None:
    stage = Stage(300.0, 1.0)
    sleep = stage.clock.sleep

    async def sleep_and_change(seconds: float) -> None:
        await sleep(seconds)
        if stage.clock.seconds >= 100:
            stage.host.need = Need(answer=NeedAnswer.YES)

    stage.clock.sleep = sleep_and_change  # type: ignore[method-assign]
    await stage.need.read()
    first, second = await stage.run()
    assert 100 <= second <= 102
    assert first == 0


async def test_changed_settings_start_the_next_loop_round_within_two_seconds() -> None:
    stage = Stage(300.0, 1.0)
    stage.reconciler.during = lambda number: stage.loop.wake() if number == 1 else None
    assert await stage.run() == [0, 2]


async def test_failed_loop_rounds_are_repeated_with_a_growing_back_off() -> None:
    stage = Stage(*[Stop("conflict")] * 10, 1.0)
    at = await stage.run()
    pauses = [later - earlier for earlier, later in pairwise(at)]
    assert pauses == pytest.approx([0.25, 0.5, 1, 2, 4, 8, 15, 15, 15, 15])


async def test_the_first_pause_after_a_write_with_an_old_resource_version_lasts_only_50_ms() -> None:
    at = await Stage(*[Stop("conflict", is_stale=True)] * 3, Stop("unclear"), 1.0).run()
    assert [later - earlier for earlier, later in pairwise(at)] == pytest.approx([0.05, 0.1, 0.2, 2])


async def test_a_successful_loop_round_resets_the_back_off() -> None:

    at = await Stage(Stop("conflict"), Stop("conflict"), 10.0, Stop("conflict"), 1.0).run()
    assert at == pytest.approx([0, 0.25, 0.75, 10.75, 11.0])


async def test_a_loop_round_that_raises_an_exception_is_logged_and_repeated(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(KeyError("our bug"), 5.0, 1.0)
    at = await stage.run()
    assert at == pytest.approx([0, 0.25, 5.25])
    assert "our bug" in caplog.text
    assert b'careen_turns_total{end="broken",node="n1"} 1.0' in stage.metrics.exposition()


async def test_the_loop_logs_a_forbidden_write_as_error_and_a_conflict_as_info(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "careen")
    await Stage(Stop("403 patch nodes", is_refusal=True), Stop("409"), 1.0).run()
    levels = {
        record.getMessage(): record.levelname for record in caplog.records if "tries again" in record.getMessage()
    }
    assert levels == {
        "a turn did not finish, so the agent tries again: 403 patch nodes": "ERROR",
        "a turn did not finish, so the agent tries again: 409": "INFO",
    }


async def test_kopf_starts_once_after_the_first_loop_round() -> None:
    stage = Stage(5.0, 5.0, 1.0)
    await stage.run()
    assert stage.started == [0]


async def test_kopf_starts_even_if_the_first_loop_round_fails() -> None:
    stage = Stage(ValueError("x"), 1.0)
    await stage.run()
    assert stage.started == [0]


async def test_an_unchanged_reason_is_logged_only_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "careen")
    await Stage(5.0, 5.0, 5.0).run()
    assert [record.getMessage() for record in caplog.records] == ["nothing to do"]


async def test_the_health_probe_fails_if_the_loop_stops() -> None:
    stage = Stage(5.0, 1.0)
    seen: list[tuple[bool, str]] = []
    stage.reconciler.during = lambda _: seen.append(stage.heartbeat.health())
    assert not stage.heartbeat.readiness()[0]
    await stage.run()
    assert seen == [(True, "a turn")] * 2
    assert stage.heartbeat.readiness()[0]
    stage.clock.seconds += 2000
    assert not stage.heartbeat.health()[0]


async def test_the_metrics_show_the_phase_and_the_refusals_of_the_last_decision() -> None:
    stage = Stage(5.0, 1.0)
    stage.host.need = Need(answer=NeedAnswer.YES)
    stage.reconciler.phase = Phase.WAITING
    stage.reconciler.refusals = (Refusal(gate="hold", code=Code.HELD, sentence="held"),)
    await stage.run()
    text = stage.metrics.exposition().decode()
    for line in (
        'kured_reboot_required{node="n1"} 1.0',
        'careen_phase{node="n1",phase="Waiting"} 1.0',
        'careen_phase{node="n1",phase="Idle"} 0.0',
        'careen_refused{code="held",gate="hold",node="n1"} 1.0',
        'careen_turns_total{end="done",node="n1"} 2.0',
    ):
        assert line in text.splitlines()


async def test_the_health_probe_fails_only_after_a_loop_round_exceeds_the_configured_deadlines() -> None:
    """A forecast may take a quarter of an hour. The liveness probe must not end the agent during this time."""
    stage = Stage(5.0, 1.0)
    loop = Loop(
        reconciler=stage.reconciler,
        policy=lambda: POLICY,
        need=stage.need,
        clock=stage.clock,
        chance=lambda: 0.0,
        place=stage.place,  # type: ignore[arg-type]
        metrics=stage.metrics,
        heartbeat=stage.heartbeat,
        after_first_turn=lambda: None,
        other_deadlines_seconds=lambda: 900.0,
    )
    stage.reconciler.loop = loop
    health: list[bool] = []

    def during(_: int) -> None:
        stage.clock.seconds += 1400.0
        health.append(stage.heartbeat.health()[0])
        stage.clock.seconds += 200.0
        health.append(stage.heartbeat.health()[0])

    stage.reconciler.during = during
    await loop.run()
    assert health[:2] == [True, False]


async def test_an_error_between_two_loop_rounds_does_not_end_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(5.0, 5.0, 1.0)
    stage.loop._after_turn = lambda _: 1 / 0  # type: ignore[assignment, return-value]
    assert len(await stage.run()) == 3
    assert "a turn succeeded, but the work after it failed" in caplog.text


async def test_a_thread_that_could_not_start_is_started_after_a_later_loop_round() -> None:
    """For example, the operating system allows no further thread when the agent tries to start kopf's thread after the
    first turn."""
    stage = Stage(5.0, 5.0, 5.0, 1.0)
    tries = 0

    def start() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise RuntimeError("can't start new thread")

    stage.loop._after_first_turn = start
    assert len(await stage.run()) == 4
    assert tries == 3


async def test_a_failed_check_whether_the_host_needs_a_reboot_does_not_stop_the_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(12.0, 1.0)

    async def breaks() -> bool:
        raise RuntimeError("can't start new thread")

    stage.need.has_changed = breaks  # type: ignore[method-assign]
    assert await stage.run() == [0, 12]
    assert "can't start new thread" in caplog.text

"""A process's memory: how long a refused eviction waits, and what is known of a reboot that was asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.facts.memory import (
    EvictAnswer,
    Memory,
    RebootMemory,
    RebootOutcome,
    after_eviction,
    after_reboot_asked,
    before_reboot_asked,
)


def refused(
    memory: Memory,
    times: int,
    jitter: float = 0.5,
    retry_after: float = 0.0,
    answer: EvictAnswer = EvictAnswer.DENIED,
) -> Memory:
    for _ in range(times):
        memory = after_eviction(
            memory, pod_uid="p", answer=answer, uptime=100.0, jitter=jitter, retry_after_seconds=retry_after
        )
    return memory


@pytest.mark.parametrize(("times", "pause"), [(1, 1.5), (2, 3.0), (3, 6.0), (6, 48.0), (7, 60.0), (100, 60.0)])
def test_the_pause_doubles_up_to_a_minute(times: int, pause: float) -> None:
    assert refused(Memory(), times).evictions["p"].not_before == 100.0 + pause
    assert refused(Memory(), times).evictions["p"].attempts == times


@pytest.mark.parametrize(("times", "pause"), [(1, 1.0), (2, 1.25), (3, 1.5625), (18, 44.4), (20, 60.0), (100, 60.0)])
def test_the_pause_after_a_budget_grows_by_a_quarter_up_to_a_minute(times: int, pause: float) -> None:
    found = refused(Memory(), times, answer=EvictAnswer.BUDGET).evictions["p"].not_before
    assert found == pytest.approx(100.0 + pause, abs=0.05)


def test_retry_after_is_never_undercut() -> None:
    assert refused(Memory(), 1, retry_after=45.0).evictions["p"].not_before == 145.0


@given(st.floats(0, 0.999), st.integers(1, 200))
def test_chance_spreads_a_pause_by_a_quarter_at_most(jitter: float, times: int) -> None:
    pause = refused(Memory(), times, jitter).evictions["p"].not_before - 100.0
    middle = min(60.0, 1.5 * 2.0 ** (times - 1))
    assert 0.75 * middle <= pause <= 1.25 * middle


def test_from_the_moment_it_is_asked_a_reboot_is_no_longer_surely_not_asked() -> None:
    announced = Memory(reboot=RebootMemory(claim="c", announcement=1, outcome=RebootOutcome.NOT_ASKED))
    asked = before_reboot_asked(announced)
    assert asked.reboot is not None
    assert asked.reboot.outcome is RebootOutcome.UNCLEAR
    failed = after_reboot_asked(asked, RebootOutcome.FAILED, "exit code 1")
    assert failed.reboot is not None
    assert (failed.reboot.outcome, failed.reboot.detail) == (RebootOutcome.FAILED, "exit code 1")

"""The sentinel is asked as often as it is worth, and no answer is believed for too long."""

from __future__ import annotations

import pytest

from careen.agent.need_watch import NeedWatch
from careen.core.observation import Need, NeedAnswer
from tests.careen.agent.conftest import FakeHost
from tests.careen.virtual_shell import VirtualClock

YES, NO, UNKNOWN = Need(answer=NeedAnswer.YES), Need(answer=NeedAnswer.NO), Need(answer=NeedAnswer.UNKNOWN)


def watch(*, is_command: bool, period: float = 3600.0) -> tuple[NeedWatch, FakeHost, VirtualClock]:
    clock = VirtualClock()
    host = FakeHost(clock)
    return NeedWatch(host, clock, is_command=is_command, period_seconds=lambda: period), host, clock


async def test_a_file_is_looked_at_each_time() -> None:
    need, host, _ = watch(is_command=False)
    assert (await need.read(), host.needs_read) == (NO, 1)
    host.need = YES
    assert (await need.read(), host.needs_read) == (YES, 2)


async def test_a_command_that_said_no_runs_once_a_period() -> None:
    need, host, clock = watch(is_command=True, period=3600)
    await need.read()
    clock.seconds = 3599
    assert (await need.read(), host.needs_read) == (NO, 1)
    clock.seconds = 3600
    await need.read()
    assert host.needs_read == 2


@pytest.mark.parametrize("answer", [YES, UNKNOWN])
async def test_a_yes_or_an_unknown_of_a_command_is_good_for_a_minute_at_most(answer: Need) -> None:
    """A drain must not go on for an hour on a need that is gone."""
    need, host, clock = watch(is_command=True, period=3600)
    host.need = answer
    await need.read()
    clock.seconds = 59
    await need.read()
    assert host.needs_read == 1
    clock.seconds = 60
    await need.read()
    assert host.needs_read == 2


async def test_a_short_period_is_kept() -> None:
    need, host, clock = watch(is_command=True, period=10)
    host.need = YES
    await need.read()
    clock.seconds = 10
    await need.read()
    assert host.needs_read == 2


async def test_a_change_is_noticed_once() -> None:
    need, host, _ = watch(is_command=False)
    assert not await need.has_changed(), "nothing was read before"
    await need.read()
    assert not await need.has_changed()
    host.need = YES
    assert await need.has_changed()
    assert not await need.has_changed()
    host.need = UNKNOWN
    assert await need.has_changed()

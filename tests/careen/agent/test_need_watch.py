"""The agent checks regularly whether the host needs a reboot. The tests show how often the agent does this check, and
for how many seconds it uses the result."""

from __future__ import annotations

import asyncio

import pytest

from careen.agent import need_watch
from careen.agent.need_watch import NeedWatch
from careen.core.facts.observation import Need, NeedAnswer
from tests.careen.agent.conftest import FakeHost
from tests.careen.virtual_shell import VirtualClock

YES, NO, UNKNOWN = Need(answer=NeedAnswer.YES), Need(answer=NeedAnswer.NO), Need(answer=NeedAnswer.UNKNOWN)


def watch(*, is_command: bool, period: float = 3600.0) -> tuple[NeedWatch, FakeHost, VirtualClock]:
    clock = VirtualClock()
    host = FakeHost(clock)
    return watch_of(host, clock, is_command=is_command, period=period), host, clock


def watch_of(host: FakeHost, clock: VirtualClock, *, is_command: bool, period: float) -> NeedWatch:
    async def look() -> Need:
        return await host.read_need()

    files, commands = (None, look) if is_command else (look, None)
    return NeedWatch(files, clock, commands=commands, period_seconds=lambda: period)


async def test_the_agent_does_not_reuse_an_earlier_check_of_the_sentinel_file() -> None:
    need, host, _ = watch(is_command=False)
    assert (await need.read(), host.needs_read) == (NO, 1)
    host.need = YES
    assert (await need.read(), host.needs_read) == (YES, 2)


async def test_a_command_that_found_no_need_for_a_reboot_runs_once_per_period() -> None:
    need, host, clock = watch(is_command=True, period=3600)
    await need.read()
    clock.seconds = 3599
    assert (await need.read(), host.needs_read) == (NO, 1)
    clock.seconds = 3600
    await need.read()
    assert host.needs_read == 2


@pytest.mark.parametrize("answer", [YES, UNKNOWN])
async def test_a_command_runs_again_after_a_minute_if_it_found_a_need_or_failed(answer: Need) -> None:
    """The command may say later that no reboot is needed. The agent of a draining node must notice this soon, even if
    --period is an hour."""
    need, host, clock = watch(is_command=True, period=3600)
    host.need = answer
    await need.read()
    clock.seconds = 59
    await need.read()
    assert host.needs_read == 1
    clock.seconds = 60
    await need.read()
    assert host.needs_read == 2


async def test_a_command_with_a_short_period_runs_again_after_its_period() -> None:
    need, host, clock = watch(is_command=True, period=10)
    host.need = YES
    await need.read()
    clock.seconds = 10
    await need.read()
    assert host.needs_read == 2


async def test_each_change_of_the_need_for_a_reboot_is_reported_exactly_once() -> None:
    """For example, the need changes from no to yes. The next call of `has_changed` returns True, and the call after it
    returns False."""
    need, host, _ = watch(is_command=False)
    assert not await need.has_changed(), "the need was unknown before"
    await need.read()
    assert not await need.has_changed()
    host.need = YES
    assert await need.has_changed()
    assert not await need.has_changed()
    host.need = UNKNOWN
    assert await need.has_changed()


class Slow:
    """A host on which a check for a needed reboot does not end before the test sets the event `is_over`."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.is_over = asyncio.Event()
        host.read_need = self.read_need  # type: ignore[method-assign]

    async def read_need(self) -> Need:
        self.host.needs_read += 1
        await self.is_over.wait()
        return self.host.need


async def test_the_last_result_stays_valid_while_a_slow_command_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(need_watch, "_WAIT_SECONDS", 0.01)
    need, host, clock = watch(is_command=True, period=60)
    assert await need.read() == NO
    slow = Slow(host)
    host.need = YES
    clock.seconds = 60
    assert [await need.read() for _ in range(5)] == [NO] * 5
    assert host.needs_read == 2, "only one check runs at a time"
    clock.seconds = 80
    slow.is_over.set()
    await asyncio.sleep(0)
    assert await need.read() == YES
    clock.seconds = 119
    assert (await need.read(), host.needs_read) == (YES, 2), "the age of the result begins when the check starts"
    clock.seconds = 120
    await need.read()
    assert host.needs_read == 3


async def test_the_agent_notices_a_change_that_a_slow_check_of_the_host_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(need_watch, "_WAIT_SECONDS", 0.01)
    need, host, clock = watch(is_command=True, period=60)
    await need.read()
    slow = Slow(host)
    host.need = YES
    clock.seconds = 60
    assert not await need.has_changed()
    slow.is_over.set()
    await asyncio.sleep(0.01)
    assert await need.has_changed()
    assert not await need.has_changed()


async def test_the_agent_makes_no_decision_before_the_first_check_of_the_host() -> None:
    """Without the result of the check, the agent does not know whether the host needs a reboot."""
    need, host, _ = watch(is_command=True)
    slow = Slow(host)
    first = asyncio.ensure_future(need.read())
    await asyncio.sleep(0.05)
    assert not first.done()
    slow.is_over.set()
    assert await first == NO


async def test_an_error_in_a_check_of_the_host_is_raised_and_the_next_check_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need, host, _ = watch(is_command=False)
    await need.read()
    with monkeypatch.context() as broken:

        async def breaks() -> Need:
            raise KeyError("our bug")

        broken.setattr(host, "read_need", breaks)
        with pytest.raises(KeyError):
            await need.read()
    assert await need.read() == NO


async def test_sentinel_files_are_checked_each_time_even_if_a_command_runs_once_per_period() -> None:
    clock, said, asked = VirtualClock(), {"files": NO, "commands": NO}, {"files": 0, "commands": 0}

    def source(name: str) -> need_watch.Look:
        async def look() -> Need:
            asked[name] += 1
            return said[name]

        return look

    need = NeedWatch(source("files"), clock, commands=source("commands"), period_seconds=lambda: 3600.0)
    assert await need.read() == NO
    said["files"] = Need(answer=NeedAnswer.YES, detail="the file asks for a reboot")
    assert await need.has_changed()
    assert asked == {"files": 2, "commands": 1}
    said["commands"] = Need(answer=NeedAnswer.YES, detail="the command asks for a reboot")
    clock.seconds = 3600
    assert await need.read() == Need(
        answer=NeedAnswer.YES, detail="the command asks for a reboot; the file asks for a reboot"
    )
    said["files"] = NO
    clock.seconds = 3659
    assert await need.read() == Need(answer=NeedAnswer.YES, detail="the command asks for a reboot"), (
        "the command's result is valid for a minute"
    )
    assert asked["commands"] == 2


async def test_the_package_manager_is_checked_each_time_even_if_the_command_result_is_cached() -> None:
    """The agent caches the result of the command that says whether the host needs a reboot. It does not cache whether a
    package manager is running on the host."""
    clock, busy = VirtualClock(), ["dpkg"]

    async def files() -> Need:
        return Need(answer=NeedAnswer.NO, package_manager=busy[0])

    async def command() -> Need:
        return Need(answer=NeedAnswer.YES, detail="the command asks for a reboot")

    need = NeedWatch(files, clock, commands=command, period_seconds=lambda: 3600.0)
    assert (await need.read()).package_manager == "dpkg"
    busy[0] = ""
    assert (await need.read()).package_manager == ""


async def test_a_command_runs_again_before_its_period_ends_if_its_answer_is_forgotten() -> None:
    need, host, clock = watch(is_command=True, period=3600)
    await need.read()
    clock.seconds = 5
    need.forget()
    assert (await need.read(), host.needs_read) == (NO, 2)
    await need.read()
    assert host.needs_read == 2

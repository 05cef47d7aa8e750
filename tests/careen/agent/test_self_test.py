"""The self-test checks whether the host could carry out a reboot request. The tests show how often the agent runs the
self-test, and which findings it reports."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from careen.agent.self_test import SelfTests
from careen.core.facts.observation import NeedAnswer, SelfTest
from careen.core.facts.phases import Phase
from tests.careen.agent.conftest import Shell
from tests.careen.agent.test_way_home import POLICY, a_life
from tests.careen.virtual_shell import VirtualClock

BROKEN = SelfTest(obstacle="the host has no program /sbin/reboot")


@dataclass
class Host:
    answer: SelfTest = field(default_factory=SelfTest)
    tests: int = 0

    async def test_reboot(self) -> SelfTest:
        self.tests += 1
        await asyncio.sleep(0)
        return self.answer


def watching(answer: SelfTest) -> tuple[SelfTests, Host, VirtualClock]:
    host, clock = Host(answer), VirtualClock()
    return SelfTests(cast("Any", host), clock), host, clock


async def test_a_passed_self_test_is_repeated_after_five_minutes() -> None:
    tests, host, clock = watching(SelfTest())
    for _ in range(10):
        assert await tests.read() == SelfTest()
        await clock.sleep(29.9)
    assert host.tests == 1
    host.answer = BROKEN
    await clock.sleep(2.0)
    assert await tests.read() == BROKEN
    assert host.tests == 2


async def test_a_failed_self_test_is_repeated_at_intervals_up_to_ten_minutes() -> None:
    tests, host, clock = watching(BROKEN)
    at: list[float] = []
    while clock.seconds < 4000:
        before = host.tests
        await tests.read()
        at += [clock.seconds] if host.tests > before else []
        await clock.sleep(5.0)
    pauses = [later - earlier for earlier, later in itertools.pairwise(at)]
    assert pauses[:6] == [15, 30, 60, 120, 240, 480]
    assert set(pauses[6:]) == {600}
    host.answer = SelfTest()
    await clock.sleep(600)
    assert await tests.read() == SelfTest()


async def test_simultaneous_requests_share_one_self_test() -> None:
    tests, host, _ = watching(SelfTest())
    assert await asyncio.gather(tests.read(), tests.read()) == [SelfTest(), SelfTest()]
    assert host.tests == 1


async def test_a_self_test_problem_that_returns_is_reported_again(caplog: pytest.LogCaptureFixture) -> None:
    tests, host, clock = watching(BROKEN)
    assert tests.news() == SelfTest()
    await tests.read()
    assert [tests.news(), tests.news()] == [BROKEN, SelfTest()]
    for answer in (BROKEN, SelfTest(), BROKEN):
        host.answer = answer
        await clock.sleep(600)
        await tests.read()
    assert tests.news() == SelfTest(), "the last call of `news` already returned the same problem"
    assert caplog.text.count("the host has no program /sbin/reboot") == 2


async def test_a_host_whose_self_test_failed_is_drained_and_rebooted_after_a_person_repairs_it(tmp_path: Any) -> None:
    """No pod moves before a person repairs the host. After the repair, the agent continues by itself."""
    async with a_life(tmp_path) as life:
        life.host.self_test = BROKEN
        reconciler = life.new_process()
        for _ in range(60):
            result = await reconciler.turn(POLICY)
            await life.settle_background()
            assert result.phase in (Phase.WAITING, Phase.IDLE, None)
            await life.clock.sleep(max(result.decision.look_again_seconds, 0.02))
        assert [refusal["code"] for refusal in _refusals(life)] == ["reboot-impossible"]
        assert life.node("n1")["spec"].get("unschedulable") is None
        assert life.lock_content().get("locks", []) == []
        assert life.server.get("pods", "web-1", "shop") is not None
        life.host.self_test = SelfTest()
        assert life.host.need.answer is NeedAnswer.YES
        await life.live()
        life.check_home()


def _refusals(life: Shell) -> list[Any]:
    return list(json.loads(life.node("n1")["metadata"]["annotations"]["careen.dev/refusals"]))

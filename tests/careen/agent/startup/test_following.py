"""When an agent that may sleep begins to follow the ConfigMap, and when it reads it meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from careen.agent.startup.following import READ_SECONDS, SettingsFollower
from careen.agent.turn import TurnResult
from careen.core.decision import Decision, Reason, Refusal
from careen.core.facts.memory import Memory
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.people.asleep import BREAK_EVEN_SECONDS
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.core.builders import a_marked_node, a_node, a_progress, an_observation

REFUSAL = Refusal(gate="window", code=Code.OUTSIDE_WINDOW, sentence="no")


def result(
    phase: Phase, *refusals: Refusal, is_releasing: bool = False, code: Code = Code.WAITING_FOR_TURN
) -> TurnResult:
    claim = {"claim": "c1", "boot_left": "b0", "is_releasing": True} if is_releasing else {}
    record = a_progress(phase, **claim)
    decision = Decision(
        phase=phase,
        reason=Reason(code=code, sentence="so"),
        memory=Memory(),
        look_again_seconds=5.0,
        refusals=refusals,
    )
    node = a_node() if phase is Phase.IDLE else a_marked_node(record)
    return TurnResult(decision=decision, observation=an_observation(node), stop=None, phase=phase)


class Agent:
    """What an agent did, by the seconds since its start."""

    def __init__(self) -> None:
        self.followed: list[float] = []
        self.reads: list[float] = []
        self._began = asyncio.get_running_loop().time()
        self.following = SettingsFollower(
            follow=lambda: self.followed.append(self._seconds()),
            read=self._read,
            now=asyncio.get_running_loop().time,
        )

    async def _read(self) -> None:
        self.reads.append(self._seconds())

    async def turn(self, found: TurnResult) -> None:
        self.following.saw(found)
        await self.following.catch_up()

    def _seconds(self) -> float:
        return round(asyncio.get_running_loop().time() - self._began)


def turns(found: TurnResult, *, at_once: bool = False, seconds: float = 400.0, every: float = 10.0) -> Agent:
    """The agent stays awake after the first turn, and makes more of the same outcome."""

    async def story() -> Agent:
        agent = Agent()
        agent.following.saw(found)
        agent.following.stay_awake(at_once=at_once)
        for _ in range(int(seconds / every)):
            await asyncio.sleep(every)
            await agent.turn(found)
        return agent

    return run_virtually(story())


@pytest.mark.parametrize(
    "found",
    [
        result(Phase.WAITING, REFUSAL),
        result(Phase.FAILED),
    ],
    ids=["refused", "failed"],
)
def test_an_agent_whose_node_waits_for_people_follows_at_once(found: TurnResult) -> None:
    agent = turns(found)
    assert (agent.followed, agent.reads) == ([0], [])


def test_an_agent_that_soon_sleeps_follows_after_five_minutes() -> None:
    agent = turns(result(Phase.IDLE))
    assert (agent.followed, agent.reads) == ([BREAK_EVEN_SECONDS], [])


def test_an_agent_that_may_not_sleep_follows_at_once() -> None:
    assert turns(result(Phase.IDLE), at_once=True).followed == [0]


@pytest.mark.parametrize(
    "found",
    [
        result(Phase.WAITING),
        result(Phase.DRAINING),
        result(Phase.VERIFYING),
        result(Phase.WAITING, REFUSAL, is_releasing=True),
    ],
    ids=["is in line", "drains", "verifies", "releases"],
)
def test_a_node_in_line_or_at_work_has_its_config_map_read_twice_a_minute_until_it_is_followed(
    found: TurnResult,
) -> None:
    agent = turns(found)
    assert agent.followed == [BREAK_EVEN_SECONDS]
    assert agent.reads == [READ_SECONDS * number for number in range(1, 10)]


def test_a_gate_that_refuses_later_begins_it() -> None:
    async def story() -> Agent:
        agent = Agent()
        agent.following.stay_awake(at_once=False)
        await asyncio.sleep(40.0)
        await agent.turn(result(Phase.WAITING, REFUSAL))
        await asyncio.sleep(400.0)
        await agent.turn(result(Phase.WAITING))
        return agent

    agent = run_virtually(story())
    assert (agent.followed, agent.reads) == ([40], [])


def test_a_person_who_asks_the_agent_to_look_again_has_the_config_map_read() -> None:
    agent = turns(result(Phase.IDLE, code=Code.RECHECK), seconds=20.0)
    assert agent.reads == [10, 20]


def test_an_agent_that_has_not_decided_to_stay_awake_neither_reads_nor_follows() -> None:
    """It may sleep after this turn, and has just read the ConfigMap."""

    async def story() -> Agent:
        agent = Agent()
        for _ in range(40):
            await agent.turn(result(Phase.WAITING, REFUSAL))
            await agent.turn(result(Phase.WAITING))
            await asyncio.sleep(10.0)
        return agent

    agent = run_virtually(story())
    assert (agent.followed, agent.reads) == ([], [])


def test_a_node_that_takes_a_claim_has_its_config_map_read_once_before_it_asks_the_gates_again() -> None:
    async def story() -> Agent:
        agent = Agent()
        agent.following.stay_awake(at_once=False)
        await asyncio.sleep(10.0)
        before = result(Phase.WAITING)
        taking = replace(before, decision=replace(before.decision, phase=Phase.CLAIMING))
        await agent.turn(taking)
        for _ in range(5):
            await asyncio.sleep(1.0)
            await agent.turn(result(Phase.CLAIMING))
        return agent

    assert run_virtually(story()).reads == [10]

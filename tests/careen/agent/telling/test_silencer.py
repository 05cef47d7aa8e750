"""The agent creates a silence for the alerts of its node in Alertmanager before it records on the Node that a reboot
follows. It ends the silence when the node is back in service."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from typing import Any

import pytest

from careen.agent.telling.silencer import Silencer
from careen.core.facts.observation import Unknown
from careen.core.facts.phases import Phase
from careen.settings.tree import Settings
from tests.careen.core.builders import an_observation
from tests.careen.virtual_shell import Scripted, VirtualClock, api_on

SEEN = an_observation()


class World:
    def __init__(self, **settings: Any) -> None:
        self.clock = VirtualClock()
        self.settings = Settings(
            node_id="n1", **{"alertmanager_url": "http://am", "alertmanager_silence": 1800.0, **settings}
        )
        self.did: list[str] = []
        self.answer: str | Unknown = ""
        self.tasks: list[asyncio.Task[object]] = []
        self.events: list[str] = []
        self.silencer = self.restarted()

    def restarted(self) -> Silencer:
        self.silencer = Silencer(
            node="n1",
            api=api_on(Scripted(), self.clock),
            settings=lambda: self.settings,
            in_background=self._start,
            silences=lambda _: self,  # type: ignore[arg-type, return-value]
        )
        return self.silencer

    def _start(self, work: Coroutine[Any, Any, object]) -> None:
        if "post_event" in work.__qualname__:
            self.events.append(str(work.cr_frame.f_locals["sentence"]))  # type: ignore[attr-defined]
            work.close()
            return
        self.tasks.append(asyncio.create_task(work))

    async def begin(self, seconds: float, *, now: datetime) -> str | Unknown:
        self.did.append(f"begin {seconds:g}")
        return self.answer

    async def end(self) -> str | Unknown:
        self.did.append("end")
        return self.answer

    async def look(self, *phases: Phase | None, after: float = 0.0) -> list[str]:
        self.clock.seconds += after
        for phase in phases:
            self.silencer.look(phase, SEEN)
            await asyncio.gather(*self.tasks)
        did, self.did = self.did, []
        return did


async def test_a_silence_lasts_until_the_rebooted_node_is_back_in_service() -> None:
    world = World()
    await world.look(Phase.DRAINING)
    await world.silencer.begin()
    assert world.did == ["begin 1800"]
    world.did.clear()
    assert await world.look(Phase.DRAINING, Phase.REBOOTING, Phase.REBOOTING) == []
    world.restarted()
    assert await world.look(Phase.VERIFYING) == ["begin 1800"], "a new process finds the silence and extends it"
    assert await world.look(Phase.VERIFYING) == []
    assert await world.look(Phase.SETTLING, Phase.SETTLING, Phase.IDLE) == ["end"]


async def test_a_silence_is_extended_while_the_node_is_down() -> None:
    world = World()
    await world.silencer.begin()
    world.did.clear()
    assert await world.look(Phase.REBOOTING, after=1199) == []
    assert await world.look(Phase.REBOOTING, after=2) == ["begin 1800"]
    assert await world.look(Phase.REBOOTING, after=600) == []


@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.FAILED, Phase.SETTLING, Phase.IDLE])
async def test_a_silence_ends_when_the_node_leaves_the_phases_rebooting_and_verifying(phase: Phase) -> None:
    world = World()
    await world.silencer.begin()
    world.did.clear()
    assert await world.look(Phase.REBOOTING, phase, phase) == ["end"]


async def test_an_agent_that_starts_after_the_reboot_ends_the_silence() -> None:
    assert await World().look(Phase.SETTLING, Phase.SETTLING) == ["end"]
    for phase in (Phase.IDLE, Phase.WAITING, Phase.DRAINING, None):
        assert await World().look(phase, phase) == [], "an idle agent sends no request"


async def test_a_silence_that_cannot_be_created_does_not_stop_the_reboot(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.answer = Unknown("Alertmanager at http://am gave no usable answer")
    await world.look(Phase.DRAINING)
    for _ in range(2):
        await world.silencer.begin()
    assert world.events == [
        "the node's alerts are perhaps not silenced while it reboots: Alertmanager at http://am gave no usable answer"
    ]
    assert "the node's alerts are perhaps not silenced: Alertmanager" in caplog.text


async def test_the_agent_tries_three_times_to_end_a_silence_and_then_gives_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    await world.silencer.begin()
    world.did.clear()
    world.answer = Unknown("down")
    assert await world.look(Phase.SETTLING, Phase.SETTLING) == ["end", "end", "end"]
    assert world.clock.seconds >= 35
    assert "ends by itself" in caplog.text


async def test_a_late_retry_to_end_a_silence_does_not_end_the_silence_of_the_next_reboot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()

    async def end_while_the_next_reboot_begins() -> Unknown:
        world.did.append("end")
        await world.silencer.begin()
        return Unknown("down")

    await world.silencer.begin()
    world.did.clear()
    monkeypatch.setattr(world, "end", end_while_the_next_reboot_begins)
    assert await world.look(Phase.SETTLING) == ["end", "begin 1800"]


@pytest.mark.parametrize("settings", [{"alertmanager_silence": 0.0}])
async def test_an_agent_with_silences_switched_off_requests_no_silence(settings: dict[str, Any]) -> None:
    world = World(**settings)
    await world.silencer.begin()
    assert await world.look(Phase.REBOOTING, Phase.VERIFYING, Phase.SETTLING) == []

"""A leader whose renewals get no answer must end in time. On virtual time: no number here depends on the machine."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec

from careen.cluster.wire.errors import NotSent
from careen.scheduler.lease import Election, Lease, LeaseSettings
from tests.careen.chaos.fleet.virtual_time import run_virtually

SETTINGS = LeaseSettings(name="careen-scheduler", lease_seconds=15.0, renew_seconds=10.0, retry_seconds=2.0)


class LoopClock:
    def now(self) -> datetime:
        return datetime(2026, 11, 27, 10, tzinfo=UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Api:
    """An API server that grants the first Lease; then `hangs` or refuses every connection."""

    def __init__(self, *, hangs: bool) -> None:
        self.clock = LoopClock()
        self.hangs = hangs
        self.is_away = False
        self.asked: list[float] = []

    async def get(self, *_: Any, **__: Any) -> Lease | None:
        self.asked.append(self.clock.monotonic())
        if self.is_away:
            await self.fail()
        return None

    async def post(self, _path: str, body: Any, _kind: type) -> Lease:
        self.is_away = True
        return msgspec.convert(body, Lease)

    async def fail(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        raise NotSent("no connection")


async def competes(api: Any, seconds: float = 3600.0, *, said: list[str] | None = None) -> tuple[bool, float]:
    """Whether the election still goes on after so long, and when it ended."""
    say = None if said is None else said.append
    election = Election(api, SETTINGS, me="me", on_won=lambda _: None, say=say)
    task = asyncio.create_task(election.run())
    await asyncio.wait((task,), timeout=seconds)
    goes_on = not task.done()
    task.cancel()
    assert goes_on or not election.is_leader
    return goes_on, api.clock.monotonic()


def test_a_renewal_without_an_answer_does_not_outlive_the_deadline() -> None:
    api, said = Api(hangs=True), list[str]()
    assert run_virtually(competes(api, said=said)) == (False, 10.0)
    assert api.asked == [0.0, 2.0]
    assert said == ["the Lease kube-system/careen-scheduler cannot be read or written: no answer in time"]


def test_a_leader_ends_at_the_deadline_and_not_a_retry_later() -> None:
    api = Api(hangs=False)
    assert run_virtually(competes(api)) == (False, 10.0)
    assert api.asked == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_a_pause_between_renewals_ends_at_the_deadline() -> None:
    class Late(Api):
        async def fail(self) -> None:
            await asyncio.sleep(1.0)
            raise NotSent("no connection")

    api = Late(hangs=False)
    assert run_virtually(competes(api)) == (False, 10.0)
    assert api.asked == [0.0, 2.0, 5.0, 8.0, 10.0]


def test_who_waits_for_an_api_server_that_is_away_asks_every_two_seconds() -> None:
    api = Api(hangs=False)
    api.is_away = True
    assert run_virtually(competes(api, 19.0)) == (True, 19.0)
    assert api.asked == [2.0 * number for number in range(10)]


def test_who_holds_the_lease_and_why_it_cannot_be_taken_is_said_once() -> None:
    class Held(Api):
        async def get(self, *_: Any, **__: Any) -> Lease | None:
            self.asked.append(self.clock.monotonic())
            if len(self.asked) < 3:
                raise NotSent("no connection")
            return msgspec.convert({"spec": {"holderIdentity": "other", "leaseDurationSeconds": 900}}, Lease)

    said: list[str] = []
    assert run_virtually(competes(Held(hangs=False), 11.0, said=said)) == (True, 11.0)
    lease = "the Lease kube-system/careen-scheduler"
    assert said == [f"{lease} cannot be read or written: no connection", f"{lease} is held by other"]

"""A leader whose renewals get no answer must end in time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec

from careen.cluster.wire.errors import NotSent
from careen.scheduler.lease import Election, Lease, LeaseSettings
from tests.patience import until

SETTINGS = LeaseSettings(name="careen-scheduler", lease_seconds=15.0, renew_seconds=10.0, retry_seconds=2.0)


class FastClock:
    """A hundred times as fast."""

    def now(self) -> datetime:
        return datetime(2026, 11, 27, 10, tzinfo=UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() * 100

    async def sleep(self, seconds: float) -> None:
        self.slept = seconds
        await asyncio.sleep(seconds / 100)


class Api:
    """An API server that grants the first Lease; then `hangs` or refuses every connection."""

    def __init__(self, *, hangs: bool) -> None:
        self.clock = FastClock()
        self.hangs = hangs
        self.is_away = False
        self.asked = 0

    async def get(self, *_: Any, **__: Any) -> Lease | None:
        self.asked += 1
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


def an_election(api: Any, settings: LeaseSettings = SETTINGS) -> Election:
    return Election(api, settings, me="me", on_won=lambda _: None)


async def test_a_renewal_without_an_answer_does_not_outlive_the_deadline() -> None:
    loop, api = asyncio.get_running_loop(), Api(hangs=True)
    api.clock.monotonic = loop.time  # type: ignore[method-assign]
    quick = LeaseSettings(name="x", lease_seconds=0.9, renew_seconds=0.3, retry_seconds=0.05)
    said: list[str] = []
    election = Election(api, quick, me="me", on_won=lambda _: None, say=said.append)  # type: ignore[arg-type]
    task = asyncio.create_task(election.run())
    await until(task.done)
    assert not election.is_leader
    assert said == ["the Lease kube-system/x cannot be read or written: no answer in time"]


async def test_a_leader_ends_at_the_deadline_and_not_a_retry_later() -> None:
    api = Api(hangs=False)
    await an_election(api).run()
    assert 4 <= api.asked <= 7  # one each two seconds, for ten
    assert api.clock.slept < SETTINGS.retry_seconds


async def test_who_waits_for_an_api_server_that_is_away_asks_no_more_often_than_every_two_seconds() -> None:
    api = Api(hangs=False)
    api.is_away = True
    election = asyncio.create_task(an_election(api).run())
    await asyncio.sleep(0.2)  # twenty seconds
    election.cancel()
    assert 2 <= api.asked <= 11


async def test_who_holds_the_lease_and_why_it_cannot_be_taken_is_said_once() -> None:
    class Held(Api):
        async def get(self, *_: Any, **__: Any) -> Lease | None:
            self.asked += 1
            if self.asked < 3:
                raise NotSent("no connection")
            return msgspec.convert({"spec": {"holderIdentity": "other", "leaseDurationSeconds": 900}}, Lease)

    said: list[str] = []
    api: Any = Held(hangs=False)
    election = Election(api, SETTINGS, me="me", on_won=lambda _: None, say=said.append)
    task = asyncio.create_task(election.run())
    await until(lambda: api.asked >= 6)
    task.cancel()
    lease = "the Lease kube-system/careen-scheduler"
    assert said == [f"{lease} cannot be read or written: no connection", f"{lease} is held by other"]

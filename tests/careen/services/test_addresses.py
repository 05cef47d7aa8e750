"""Tests that a name with many dead addresses, or without an answer of DNS, is given up at the deadline."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from careen.core.facts.observation import Unknown
from careen.services.alertmanager import Alertmanager
from careen.services.prometheus import Prometheus
from careen.services.wire import bounded
from tests.careen.services import nasty
from tests.careen.services.nasty import full_listener, serving
from tests.patience import LONG_SECONDS, until

CLIENTS = [
    pytest.param(lambda url, seconds: Prometheus(url, timeout_seconds=seconds).active_alerts(), id="Prometheus"),
    pytest.param(lambda url, seconds: Alertmanager(url, timeout_seconds=seconds).active_alerts(), id="Alertmanager"),
]


async def ended() -> None:
    idle = asyncio.ensure_future(asyncio.get_running_loop().shutdown_default_executor())
    await until(idle.done, lambda: "the end of the thread that asked")


@pytest.mark.parametrize("ask", CLIENTS)
async def test_many_dead_addresses_of_a_name_share_one_deadline(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    with full_listener() as dead:
        rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", dead)] * 1000
        monkeypatch.setattr(bounded.socket, "getaddrinfo", lambda *_, **__: tried.append(1) or rows)
        answer = await ask("http://many.example:9", 0.3)
        assert isinstance(answer, Unknown)
        assert "in time" in answer.why or "did not answer within" in answer.why
        await ended()
    assert tried == [1]


async def test_a_living_address_behind_dead_ones_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with full_listener() as dead, serving(lambda _: iter([nasty.with_length(b"[]")])) as server:
        port = int(server.url.rpartition(":")[2])
        rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in (dead, ("127.0.0.1", port))]
        monkeypatch.setattr(bounded.socket, "getaddrinfo", lambda *_, **__: rows)
        assert await Alertmanager("http://two.example:9", timeout_seconds=4.0).active_alerts() == ()


@pytest.mark.parametrize("ask", CLIENTS)
async def test_a_name_without_an_answer_ends_at_the_deadline_and_is_asked_for_once(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, asked = threading.Event(), list[str]()

    def slow(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        over.wait(LONG_SECONDS)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(bounded.socket, "getaddrinfo", slow)
    try:
        for _ in range(3):
            answer = await ask("http://slow.example:9", 0.2)
            assert isinstance(answer, Unknown)
        assert asked == ["slow.example"]
    finally:
        over.set()
    await until(lambda: all("addresses of" not in each.name for each in threading.enumerate()))


async def test_questions_at_the_same_time_share_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: iter([nasty.with_length(b"[]")])) as server:
        port = int(server.url.rpartition(":")[2])
        rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(bounded.socket, "getaddrinfo", lambda *_, **__: rows)
        client = Alertmanager("http://one.example:9", timeout_seconds=LONG_SECONDS)
        assert await asyncio.gather(*(client.active_alerts() for _ in range(8))) == [()] * 8


async def test_a_name_that_does_not_exist_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(bounded.socket, "getaddrinfo", none)
    answer = await Alertmanager("http://none.example:9", timeout_seconds=LONG_SECONDS).active_alerts()
    assert isinstance(answer, Unknown)
    assert "none.example" in answer.why

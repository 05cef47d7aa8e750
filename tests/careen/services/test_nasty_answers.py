"""Tests each client of a service against a server of nasty answers: the result is unknown, or the message has failed,
within the deadline and with bounded memory, and no thread is left."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from careen.cluster.wire.answers import the_object
from careen.cluster.wire.errors import ClusterError, raise_unless_ok
from careen.cluster.wire.transport import Request
from careen.core.facts.observation import Unknown
from careen.services.alertmanager import Alertmanager
from careen.services.notification_urls import parse
from careen.services.notify import send
from careen.services.prometheus import Prometheus
from careen.services.silences import Silences
from drydock.rollout.patience import crowding
from scheduler_core.config.configuration import ExtenderSettings
from scheduler_core.extenders.protocol import ExtenderError, read_filter_answer
from scheduler_core.extenders.transport import HttpTransport
from tests.careen.services import nasty
from tests.careen.services.nasty import BROKEN, ENDLESS, SLOW, WRONG, serving, with_length
from tests.patience import LONG_SECONDS, until

Answer = Callable[[str], Iterator[bytes]]
Ask = Callable[[str, float], Awaitable[Any]]

MOST_BYTES = 200 * 2**20
"""Of the heap, at the peak. The longest answers are of 600 MiB or endless."""
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def silences(url: str, seconds: float) -> Silences:
    matcher = {"name": "instance", "value": "n1", "isRegex": False, "isEqual": True}
    return Silences(url, node="n1", matchers=[[matcher]], timeout_seconds=seconds)


async def extender(url: str, seconds: float) -> Any:
    """An extender of the scheduler, which forecasts ask as well."""
    asking = HttpTransport(ExtenderSettings(url_prefix=url, timeout_seconds=2 * seconds))

    def ask() -> Any:
        try:
            return read_filter_answer(asking.post("filter", b"{}"), asked=["n1"], by_name=True)
        except ExtenderError as error:
            return Unknown(str(error))

    return await asyncio.to_thread(ask)


async def api_server(url: str, seconds: float) -> Any:
    """The agent's API server. Its client has threads of its own."""
    from kubernetes.client import Configuration  # the size of the processes that bench.services starts before

    from careen.cluster.wire.client import ClientTransport

    configuration = Configuration(host=url)
    configuration.retries = False
    transport = ClientTransport(lambda: configuration, agent="careen-agent")
    request = Request(method="GET", path="/api/v1/nodes/n1", timeout_seconds=seconds)
    try:
        answer = await transport.send(request)
        raise_unless_ok(request, answer, now=NOW)
        return the_object(answer.body, request.path, dict, "GET")
    except ClusterError as error:
        return Unknown(str(error))
    finally:
        transport.close()
        idle = asyncio.get_running_loop().run_in_executor(None, transport._threads.shutdown)
        await until(idle.done, lambda: "the end of the thread that asked the API server")


ASKING: dict[str, Ask] = {
    "alerts of Prometheus": lambda url, seconds: Prometheus(url, timeout_seconds=seconds).active_alerts(),
    "samples of Prometheus": lambda url, seconds: Prometheus(url, timeout_seconds=seconds).samples(
        "up", fresh_seconds=60.0
    ),
    "alerts of Alertmanager": lambda url, seconds: Alertmanager(url, timeout_seconds=seconds).active_alerts(),
    "the begin of a silence": lambda url, seconds: silences(url, seconds).begin(60.0, now=NOW),
    "the end of a silence": lambda url, seconds: silences(url, seconds).end(),
    "an extender": extender,
    "the API server": api_server,
}
SENDING = {
    "a webhook": "generic+{url}/hook",
    "a library's service": "mattermost://{host}/abcdefghijklmnopqrstuvwx?disabletls=yes",
}


def answers(*kinds: Answer) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("answer", kinds, ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("client", ASKING)
@answers(*SLOW)
async def test_the_deadline_ends_a_slow_answer_and_its_thread(client: str, answer: Answer) -> None:
    with serving(answer) as server:
        # The client must have connected before its deadline, also on a crowded machine.
        assert isinstance(await ASKING[client](server.url, 0.25 * crowding()), Unknown)
        idle = asyncio.ensure_future(asyncio.get_running_loop().shutdown_default_executor())
        await until(idle.done, lambda: "the end of the thread that asked")
        await until(lambda: server.opened > 0, lambda: "the server's thread has counted the connection")
        assert server.opened == 1


@pytest.mark.parametrize("client", ASKING)
@answers(*ENDLESS)
async def test_a_limit_ends_an_endless_answer_in_bounded_memory(client: str, answer: Answer) -> None:
    nasty.packed()
    with serving(answer) as server:
        tracemalloc.start()
        try:
            assert isinstance(await ASKING[client](server.url, LONG_SECONDS), Unknown)
            assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("client", ASKING)
@answers(*BROKEN, *WRONG)
async def test_a_broken_or_wrong_answer_is_unknown_and_no_redirect_is_followed(client: str, answer: Answer) -> None:
    def perfect(_: str) -> Iterator[bytes]:
        rows = b"[]" if "Prometheus" not in client else json.dumps({"data": {"result": []}}).encode()
        yield with_length(rows)

    with serving(perfect) as other, serving(answer, other.url) as server:
        assert isinstance(await ASKING[client](server.url, LONG_SECONDS), Unknown)
        assert (server.opened, other.opened) == (1, 0)


async def test_a_redirect_is_named_with_what_to_do() -> None:
    with serving(nasty.redirect, "http://127.0.0.1:9") as server:
        for client, ask in ASKING.items():
            found = await ask(server.url, LONG_SECONDS)
            assert (
                client in ("an extender", "the API server")
                or "status 302; careen follows no redirect, so give the URL that it leads to" in found.why
            )


@pytest.mark.parametrize("target", SENDING)
@answers(*ENDLESS, *BROKEN)
async def test_a_message_to_a_nasty_server_has_failed(target: str, answer: Answer) -> None:
    with serving(lambda _: iter([with_length(b"")])) as other, serving(answer, other.url) as server:
        url = SENDING[target].format(url=server.url, host=server.url.partition("//")[2])
        (outcome,) = await send("x", [parse(url)], seconds=LONG_SECONDS)
        assert outcome.why
        assert "exit code" not in outcome.why, "the child has ended by itself, with an answer"
        assert other.opened == 0

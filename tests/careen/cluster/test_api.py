"""Requests with retries where they are safe."""

from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime

import msgspec
import pytest

from careen.cluster.errors import (
    Conflict,
    Expired,
    NotFound,
    NotSent,
    ServerFailed,
    TooManyRequests,
    Unclear,
    UnreadableAnswer,
)
from careen.cluster.transport import MERGE_PATCH
from tests.careen.virtual_shell import START, Meddling, Scripted, VirtualClock, answer, api_on, methods, status


class Named(msgspec.Struct):
    name: str


@pytest.mark.parametrize("trouble", [NotSent("refused"), Unclear("reset"), status(503), status(500), status(429, retry_after="1")])
async def test_a_read_is_tried_again_on_whatever_may_pass(trouble: Exception) -> None:
    server = Scripted(trouble, trouble, answer(200, {"name": "n1"}))
    assert await api_on(server).get("/x", Named) == Named(name="n1")
    assert len(server.asked) == 3


async def test_a_read_is_not_tried_again_when_the_server_has_decided() -> None:
    server = Scripted(status(404))
    with pytest.raises(NotFound):
        await api_on(server).get("/x", Named)


async def test_reads_give_up_when_the_next_pause_would_pass_their_deadline() -> None:
    clock, server = VirtualClock(), Scripted(*[Unclear("reset")] * 50)
    with pytest.raises(Unclear):
        await api_on(server, clock).get("/x", Named)
    assert 5 < clock.seconds <= 10
    assert len(server.asked) < 15


async def test_retry_after_is_waited_for_and_jitter_comes_on_top() -> None:
    clock = VirtualClock()
    await api_on(Scripted(status(429, retry_after="3"), answer(200, {"name": "n1"})), clock).get("/x", Named)
    assert clock.slept == [3.125]  # three seconds, and half of the first quarter of a second


@pytest.mark.parametrize("trouble", [Unclear("reset"), status(500), status(504)])
async def test_a_write_whose_answer_was_lost_is_never_sent_again(trouble: Exception) -> None:
    server = Scripted(trouble)
    with pytest.raises((Unclear, ServerFailed)):
        await api_on(server).merge_patch("/x", {}, Named)
    assert methods(server.asked) == ["PATCH /x"]


@pytest.mark.parametrize("trouble", [NotSent("refused"), status(429, retry_after="1")])
async def test_a_write_that_certainly_did_nothing_is_sent_again(trouble: Exception) -> None:
    server = Scripted(trouble, answer(200, {"name": "n1"}))
    assert (await api_on(server).merge_patch("/x", {"a": None}, Named)).name == "n1"
    assert server.bodies == [{"a": None}, {"a": None}]
    assert server.asked[0].content_type == MERGE_PATCH


async def test_a_write_that_must_not_wait_hands_429_to_its_caller() -> None:
    with pytest.raises(TooManyRequests) as caught:
        await api_on(Scripted(status(429, retry_after="10"))).write("POST", "/x", {}, wait_when_busy=False)
    assert caught.value.retry_after_seconds == 10


async def test_a_conflict_is_handed_on_at_once() -> None:
    with pytest.raises(Conflict):
        await api_on(Scripted(status(409))).merge_patch("/x", {}, Named)


async def test_lists_are_read_page_by_page_and_consistently() -> None:
    server = Scripted(answer(200, {"metadata": {"continue": "abc"}, "items": [{"name": "a"}]}), answer(200, {"metadata": {}, "items": [{"name": "b"}]}))
    assert [each.name for each in await api_on(server).items("/x", Named, query={"labelSelector": "l=1"})] == ["a", "b"]
    assert [dict(request.query) for request in server.asked] == [
        {"labelSelector": "l=1", "limit": "500"},  # no resourceVersion: a quorum read
        {"labelSelector": "l=1", "limit": "500", "continue": "abc"},
    ]


async def test_a_list_whose_pages_expired_is_read_once_more_from_the_start() -> None:
    first = answer(200, {"metadata": {"continue": "abc"}, "items": [{"name": "a"}]})
    server = Scripted(first, status(410), answer(200, {"items": [{"name": "b"}]}))
    assert [each.name for each in await api_on(server).items("/x", Named)] == ["b"]
    with pytest.raises(Expired):
        await api_on(Scripted(first, status(410), first, status(410))).items("/x", Named)


@pytest.mark.parametrize("body", [b"<html>login</html>", b'{"name": 7}', b"", b"{}"])
async def test_an_answer_that_is_not_what_the_api_promises_is_an_error_of_its_own(body: bytes) -> None:
    with pytest.raises(UnreadableAnswer, match="GET /x"):
        await api_on(Scripted(answer(200, body))).get("/x", Named)


async def test_a_list_without_items_is_empty() -> None:
    assert await api_on(Scripted(answer(200, {"items": None}))).items("/x", Named) == []


@pytest.mark.parametrize(("ahead", "skew"), [(0, -0.5), (90, -90.5), (-90, 89.5)])
async def test_the_difference_of_the_clocks_comes_from_the_date_header(ahead: int, skew: float) -> None:
    theirs = format_datetime(START + timedelta(seconds=ahead), usegmt=True)
    api = api_on(Scripted(answer(200, {"name": "a"}, date=theirs)))
    assert api.clock_skew_seconds is None
    await api.get("/x", Named)
    assert api.clock_skew_seconds == skew


@pytest.mark.parametrize("date", ["", "yesterday"])
async def test_an_unreadable_date_says_nothing_about_clocks(date: str) -> None:
    api = api_on(Scripted(answer(200, {"name": "a"}, date=date)))
    await api.get("/x", Named)
    assert api.clock_skew_seconds is None


async def test_every_request_is_told_also_the_lost_ones() -> None:
    told: list[tuple[str, int | None]] = []
    server = Meddling(Scripted(answer(200, {"name": "a"})))
    troubles = [Unclear("reset")]
    server.before = lambda _: troubles.pop() if troubles else None
    api = api_on(server, observer=lambda request, response: told.append((request.path, response.status if response else None)))
    await api.get("/x", Named)
    assert told == [("/x", None), ("/x", 200)]

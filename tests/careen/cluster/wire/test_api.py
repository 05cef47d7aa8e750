"""Tests requests to the API server, and which requests careen repeats after an error."""

from __future__ import annotations

import json
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from careen.cluster.objects import ObjectHead
from careen.cluster.wire.answers import decoded
from careen.cluster.wire.errors import (
    AnswerTooLong,
    Conflict,
    Expired,
    NotFound,
    NotSent,
    NotServed,
    ServerFailed,
    TooManyRequests,
    Unclear,
    UnreadableAnswer,
)
from careen.cluster.wire.transport import MERGE_PATCH
from tests.careen.virtual_shell import (
    START,
    Meddling,
    Scripted,
    VirtualClock,
    a_list,
    an_object,
    answer,
    api_on,
    methods,
    status,
)

NODE, NODES = "/api/v1/nodes/n1", "/api/v1/nodes"
N1 = an_object("Node", "n1")


def nodes(*names: str, token: str = "") -> dict[str, Any]:
    return a_list("Node", *({"metadata": {"name": name}} for name in names), token=token)


@pytest.mark.parametrize(
    "trouble", [NotSent("refused"), Unclear("reset"), status(503), status(500), status(429, retry_after="1")]
)
async def test_a_read_is_retried_on_transient_errors(trouble: Exception) -> None:
    server = Scripted(trouble, trouble, answer(200, N1))
    assert await api_on(server).get(NODE, ObjectHead) == decoded(json.dumps(N1).encode(), ObjectHead, "")
    assert len(server.asked) == 3


async def test_a_read_is_not_retried_after_a_definite_answer() -> None:
    server = Scripted(status(404))
    with pytest.raises(NotFound):
        await api_on(server).get(NODE, ObjectHead)


async def test_a_read_is_not_retried_if_the_retry_would_exceed_the_deadline() -> None:
    clock, server = VirtualClock(), Scripted(*[Unclear("reset")] * 50)
    with pytest.raises(Unclear):
        await api_on(server, clock).get(NODE, ObjectHead)
    assert 5 < clock.seconds <= 10
    assert len(server.asked) < 15


async def test_a_retry_waits_for_the_retry_after_time_and_a_random_delay() -> None:
    clock = VirtualClock()
    await api_on(Scripted(status(429, retry_after="3"), answer(200, N1)), clock).get(NODE, ObjectHead)
    assert clock.slept == [3.125]  # three seconds, and half of the first quarter of a second


async def test_a_retry_after_a_429_without_a_time_waits_a_second_and_a_random_delay() -> None:
    clock = VirtualClock()
    await api_on(Scripted(status(429), answer(200, N1)), clock).get(NODE, ObjectHead)
    assert clock.slept == [1.125]


@pytest.mark.parametrize("trouble", [Unclear("reset"), status(500), status(504)])
async def test_a_write_with_a_lost_answer_is_never_sent_again(trouble: Exception) -> None:
    server = Scripted(trouble)
    with pytest.raises((Unclear, ServerFailed)):
        await api_on(server).merge_patch(NODE, {}, ObjectHead)
    assert methods(server.asked) == [f"PATCH {NODE}"]


@pytest.mark.parametrize("trouble", [NotSent("refused"), status(429, retry_after="1")])
async def test_a_write_that_certainly_had_no_effect_is_sent_again(trouble: Exception) -> None:
    server = Scripted(trouble, answer(200, N1))
    assert (await api_on(server).merge_patch(NODE, {"a": None}, ObjectHead)).metadata.name == "n1"
    assert server.bodies == [{"a": None}, {"a": None}]
    assert server.asked[0].content_type == MERGE_PATCH


async def test_a_write_that_must_not_wait_raises_an_error_if_the_server_is_busy() -> None:
    with pytest.raises(TooManyRequests) as caught:
        await api_on(Scripted(status(429, retry_after="10"))).write("POST", "/api/v1/events", {}, wait_when_busy=False)
    assert caught.value.retry_after_seconds == 10


async def test_a_write_that_conflicts_raises_an_error_and_is_not_retried() -> None:
    with pytest.raises(Conflict):
        await api_on(Scripted(status(409))).merge_patch(NODE, {}, ObjectHead)


async def test_lists_are_read_in_pages_of_one_resource_version() -> None:
    server = Scripted(answer(200, nodes("a", token="abc")), answer(200, nodes("b")))
    assert [
        each.metadata.name for each in await api_on(server).items(NODES, ObjectHead, query={"labelSelector": "l=1"})
    ] == ["a", "b"]
    assert [dict(request.query) for request in server.asked] == [
        {"labelSelector": "l=1", "limit": "500"},  # no resourceVersion: a quorum read
        {"labelSelector": "l=1", "limit": "500", "continue": "abc"},
    ]


async def test_a_list_that_expired_between_pages_is_read_once_more_from_the_start() -> None:
    first = answer(200, nodes("a", token="abc"))
    server = Scripted(first, status(410), answer(200, nodes("b")))
    assert [each.metadata.name for each in await api_on(server).items(NODES, ObjectHead)] == ["b"]
    with pytest.raises(Expired):
        await api_on(Scripted(first, status(410), first, status(410))).items(NODES, ObjectHead)


NOTHING = {
    "a page": b"<html>login</html>",
    "no bytes": b"",
    "an empty object": {},
    "null": b"null",
    "a JSON array": b"[]",
    "a Status": {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 200},
    "a login": {"error": "login_required", "data": {}},
    "no items": {"items": None},
    "a truncated body": json.dumps(N1).encode()[:-9],
    "nesting without end": b'{"metadata":' * 100_000,
    "bytes that are not text": b'{"kind": "\xff"}',
}

NO_NODE = NOTHING | {
    "another kind": {**N1, "kind": "Pod"},
    "another version of the API": {**N1, "apiVersion": "apps/v1"},
    "no kind": {"metadata": N1["metadata"]},
    "no metadata": {"kind": "Node"},
    "another Node": an_object("Node", "n2"),
    "no name": an_object("Node", ""),
    "no uid": an_object("Node", "n1", metadata={"uid": ""}),
    "no version": an_object("Node", "n1", metadata={"resourceVersion": ""}),
    "a resourceVersion that is a number": an_object("Node", "n1", metadata={"resourceVersion": 5}),
    "a list": nodes("n1"),
    "a resourceVersion of 400 digits": json.dumps(N1).encode().replace(b'"5"', b"5" * 400),
    "two keys `metadata`, the second is empty": json.dumps(N1).encode()[:-1] + b',"metadata":{}}',
}

NO_LIST = NOTHING | {
    "another kind": a_list("Pod"),
    "one object": N1,
    "no kind": {"metadata": {"resourceVersion": "7"}, "items": []},
    "no metadata": {"kind": "NodeList", "items": []},
    "no version": a_list("Node", version=""),
    "items that are null": {**nodes(), "items": None},
    "no field `items`": {"kind": "NodeList", "metadata": {"resourceVersion": "7"}},
    "an item without uid": a_list("Node", {"metadata": {"name": "n1", "uid": ""}}),
    "an item without version": a_list("Node", {"metadata": {"name": "n1", "resourceVersion": ""}}),
    "an item without metadata": {**nodes(), "items": [{}]},
    "a continue token that is a number": {**nodes(), "metadata": {"resourceVersion": "7", "continue": 5}},
    "two keys `items`, the second is null": json.dumps(nodes("n1")).encode()[:-1] + b',"items":null}',
}


@pytest.mark.parametrize("body", NO_NODE.values(), ids=NO_NODE.keys())
async def test_a_read_that_returns_another_object_is_retried_and_then_raises_an_error(body: Any) -> None:
    assert await api_on(Scripted(answer(200, body), answer(200, N1))).get(NODE, ObjectHead)
    with pytest.raises(UnreadableAnswer, match=f"GET {NODE}"):
        await api_on(Scripted(*[answer(200, body)] * 50)).get(NODE, ObjectHead)


@pytest.mark.parametrize("body", NO_LIST.values(), ids=NO_LIST.keys())
async def test_an_invalid_page_of_a_list_is_requested_again(body: Any) -> None:
    server = Scripted(answer(200, body), answer(200, nodes("a", token="t")), answer(200, body), answer(200, nodes("b")))
    assert [each.metadata.name for each in await api_on(server).items(NODES, ObjectHead)] == ["a", "b"]
    assert [request.query.get("continue") for request in server.asked] == [None, None, "t", "t"]
    for before in ([], [answer(200, nodes("a", token="t"))]):
        with pytest.raises(UnreadableAnswer, match=f"GET {NODES}"):
            await api_on(Scripted(*before, *[answer(200, body)] * 50)).items(NODES, ObjectHead)


async def test_a_list_without_an_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("careen.cluster.wire.api.MOST_LISTED", 1500)
    server = Scripted(*(answer(200, nodes(f"n{number}", token=f"t{number}")) for number in range(10)))
    with pytest.raises(UnreadableAnswer, match="GET /api/v1/nodes: the list does not end after 3 pages"):
        await api_on(server).items(NODES, ObjectHead)
    assert len(server.asked) == 3


async def test_a_page_that_is_too_long_is_asked_for_in_parts() -> None:
    """A tenant can fill pods with 1.5 MiB each."""
    long = AnswerTooLong("the answer is longer than 32 MiB")
    server = Scripted(
        answer(200, nodes("a", token="t1")), long, long, answer(200, nodes("b", token="t2")), answer(200, nodes("c"))
    )
    assert [each.metadata.name for each in await api_on(server).items(NODES, ObjectHead)] == ["a", "b", "c"]
    assert [(request.query["limit"], request.query.get("continue")) for request in server.asked] == [
        ("500", None),
        ("500", "t1"),
        ("250", "t1"),
        ("125", "t1"),
        ("125", "t2"),
    ]


async def test_an_object_that_is_too_long_is_not_asked_for_again() -> None:
    long = AnswerTooLong("the answer is longer than 32 MiB")
    for asked, most in ((api_on, 1), (api_on, 9)):
        server = Scripted(*[long] * 50)
        with pytest.raises(AnswerTooLong):
            await (asked(server).get(NODE, ObjectHead) if most == 1 else asked(server).items(NODES, ObjectHead))
        assert len(server.asked) == most  # 500, 250, 125, …, 1


async def test_a_list_with_a_repeated_continue_token_raises_an_error() -> None:
    with pytest.raises(UnreadableAnswer, match="the answer repeats the continue token of the request"):
        await api_on(Scripted(*[answer(200, nodes("a", token="t"))] * 50)).items(NODES, ObjectHead)


@pytest.mark.parametrize("body", NO_NODE.values(), ids=NO_NODE.keys())
async def test_a_write_that_returns_another_object_raises_an_error_and_is_not_sent_again(body: Any) -> None:
    server = Scripted(answer(200, body))
    with pytest.raises(UnreadableAnswer) as caught:
        await api_on(server).merge_patch(NODE, {}, ObjectHead)
    assert caught.value.may_have_landed


async def test_an_answer_with_an_object_of_another_namespace_is_not_accepted() -> None:
    path = "/api/v1/namespaces/shop/pods/a"
    other, ours = (an_object("Pod", "a", namespace=each) for each in ("other", "shop"))
    assert (
        await api_on(Scripted(answer(200, other), answer(200, ours))).get(path, ObjectHead)
    ).metadata.namespace == "shop"


async def test_a_list_with_zero_items_is_read_as_an_empty_list() -> None:
    assert await api_on(Scripted(answer(200, nodes()))).items(NODES, ObjectHead) == []


async def test_a_404_without_a_status_object_does_not_mean_that_the_object_is_gone() -> None:
    """A proxy sends a 404 without a Status object, and so does a server that does not serve the API group."""
    with pytest.raises(NotServed) as caught:
        await api_on(Scripted(answer(404, b"404 page not found"))).get(NODE, ObjectHead)
    assert not isinstance(caught.value, NotFound)
    assert caught.value.may_have_landed


@pytest.mark.parametrize(("ahead", "skew"), [(0, -0.5), (90, -90.5), (-90, 89.5)])
async def test_the_clock_difference_is_read_from_the_date_header(ahead: int, skew: float) -> None:
    theirs = format_datetime(START + timedelta(seconds=ahead), usegmt=True)
    api = api_on(Scripted(answer(200, N1, date=theirs)))
    assert api.clock_skew_seconds is None
    await api.get(NODE, ObjectHead)
    assert api.clock_skew_seconds == skew


@pytest.mark.parametrize(
    "date",
    [
        "",
        "yesterday",
        "Wed, 04 Mar 1960 12:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "Wed, 04 Mar 99999999999999999999 12:00:00 GMT",
        "9" * 5000,
        "Wed,,,",
        ":::",
    ],
)
async def test_an_unreadable_date_header_gives_no_clock_difference(date: str) -> None:
    api = api_on(Scripted(answer(200, N1, date=date)))
    await api.get(NODE, ObjectHead)
    assert api.clock_skew_seconds is None


async def test_the_observer_callback_gets_every_request_even_if_no_answer_arrives() -> None:
    told: list[tuple[str, int | None]] = []
    server = Meddling(Scripted(answer(200, N1)))
    troubles = [Unclear("reset")]
    server.before = lambda _: troubles.pop() if troubles else None
    api = api_on(
        server, observer=lambda request, response: told.append((request.path, response.status if response else None))
    )
    await api.get(NODE, ObjectHead)
    assert told == [(NODE, None), (NODE, 200)]

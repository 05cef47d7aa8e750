"""Tests which exception careen raises for each HTTP status. The name of each exception tells the caller what to do
next."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from careen.cluster.wire import errors
from careen.cluster.wire.transport import Request
from tests.careen.poisoned_texts import LONG, POISON, unfit
from tests.careen.virtual_shell import answer, status

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
REQUEST = Request(method="PATCH", path="/api/v1/nodes/n1")


@pytest.mark.parametrize(
    ("code", "kind", "may_have_landed"),
    [
        (401, errors.Unauthorized, False),
        (403, errors.Forbidden, False),
        (404, errors.NotFound, False),
        (409, errors.Conflict, False),
        (410, errors.Expired, False),
        (422, errors.Refused, False),
        (400, errors.Refused, False),
        (429, errors.TooManyRequests, False),
        (500, errors.ServerFailed, True),
        (504, errors.ServerFailed, True),
        (302, errors.Refused, False),
    ],
)
def test_each_http_status_raises_the_correct_error(
    code: int, kind: type[errors.Refused], may_have_landed: bool
) -> None:
    with pytest.raises(errors.Refused) as caught:
        errors.raise_unless_ok(REQUEST, status(code, "Why", "because"), now=NOW)
    assert type(caught.value) is kind
    assert caught.value.may_have_landed is may_have_landed
    assert (caught.value.status, caught.value.reason, caught.value.message) == (code, "Why", "because")
    assert str(caught.value) == f"PATCH /api/v1/nodes/n1: {code} Why: because"


@pytest.mark.parametrize("code", [200, 201, 202])
def test_a_successful_http_status_raises_no_error(code: int) -> None:
    errors.raise_unless_ok(REQUEST, answer(code), now=NOW)


def test_the_error_quotes_the_body_of_a_proxys_error_page() -> None:
    with pytest.raises(errors.ServerFailed, match=r"502.*Bad Gateway"):
        errors.raise_unless_ok(REQUEST, answer(502, b"<html>Bad Gateway</html>"), now=NOW)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        ("0", 0.0),
        ("Wed, 04 Mar 2026 12:00:07 GMT", 7.0),
        ("Wed, 04 Mar 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("-1", None),
        ("²", None),
        ("61", 60.0),
        ("1000000000", 60.0),
        ("9" * 5000, 60.0),
        ("Fri, 31 Dec 2199 23:59:59 GMT", 60.0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", None),
        ("1e9", None),
        ("0x10", None),
        ("NaN", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str, seconds: float | None) -> None:
    assert errors.retry_after(answer(429, retry_after=header), now=NOW) == seconds


def test_an_error_says_whether_the_request_may_have_taken_effect() -> None:
    assert errors.Unclear("").may_have_landed
    assert errors.UnreadableAnswer("").may_have_landed
    assert not errors.NotSent("").may_have_landed


@pytest.mark.parametrize("text", [POISON, LONG], ids=["short", "long"])
def test_error_messages_of_servers_and_networks_are_made_safe_to_display(text: str) -> None:
    refused = errors.Refused(text, status=403, reason=text, message=text, retry_after_seconds=None)
    assert [unfit(str(error)) for error in (refused, errors.Unclear(text), errors.NotSent(text))] == [[], [], []]
    assert refused.message == text, (
        "`message` must be the server's unchanged text, because careen recognises some refusals by this text"
    )

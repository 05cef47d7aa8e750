"""Errors of requests to the API server, named for what the caller does next.

This file and `client.py` translate HTTP statuses and the errors of library and network; no other package sees those.
The main distinction: *certain* failures (refused or never sent: nothing changed) and *unclear* ones (the server may
have applied the write, or may still apply it).
"""

from __future__ import annotations

import email.utils
import re
from datetime import datetime

import msgspec

from careen.cluster.wire.transport import Request, Response
from careen.core.facts.times import bounded
from careen.core.facts.untrusted import LONGEST_SENTENCE
from careen.core.plain_text import one_line

LONGEST_RETRY_AFTER_SECONDS = 60.0
_DIGITS = 9  # a longer number is more than a minute in any case


class ClusterError(Exception):
    """No usable response. The text is safe to show, whatever the server sent."""

    may_have_landed: bool = False

    def __init__(self, what: str) -> None:
        super().__init__(one_line(what, LONGEST_SENTENCE))


class NotSent(ClusterError):
    """The request never reached the server. Nothing changed. The caller may try again soon."""


class Unclear(ClusterError):
    """The response was lost. A write may have been applied, or may be later. The caller reads the object before its
    next step."""

    may_have_landed = True


class UnreadableAnswer(ClusterError):
    """The response violates the API or is about another object. A write may have been applied."""

    may_have_landed = True


class AnswerTooLong(UnreadableAnswer):
    """The answer exceeds a limit. The caller asks for less."""


class Refused(ClusterError):
    """The server rejected the request. Nothing changed."""

    def __init__(self, what: str, *, status: int, reason: str, message: str, retry_after_seconds: float | None) -> None:
        super().__init__(f"{what}: {status} {reason}: {message}" if message else f"{what}: {status} {reason}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class Unauthorized(Refused):
    """401: the credentials may have been rotated: read them again. If that does not help, report it to a person."""


class Forbidden(Refused):
    """403: a right is missing, or admission denied. A retry does not help; report it to a person."""


class Withheld(Forbidden):
    """Not sent: the review of rights showed that the server would answer 403. The caller goes on without the
    response."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what} was not sent", status=403, reason="Withheld", message=why, retry_after_seconds=None)


class NotFound(Refused):
    """404: the object does not exist."""


class NotServed(Refused):
    """A 404 without a `Status`: the server does not serve this API, or a proxy answered. No proof that the object does
    not exist."""

    may_have_landed = True


class Conflict(Refused):
    """409: another client changed the object first, or the UID differs. Read it again and decide again."""


class Expired(Refused):
    """410: the continue token or the watch's resourceVersion is too old. Start the list again."""


class TooManyRequests(Refused):
    """429: the server is busy, or a disruption budget does not allow the eviction now. Wait `retry_after_seconds`."""


class ServerFailed(Refused):
    """5xx: the server failed while processing. A write may have been applied."""

    may_have_landed = True


_BY_STATUS: dict[int, type[Refused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    429: TooManyRequests,
}


class _Status(msgspec.Struct, gc=False, frozen=True):
    """The fields of `metav1.Status` that tell why a request failed."""

    kind: str | None = None
    reason: str | None = None
    message: str | None = None


def raise_unless_ok(request: Request, response: Response, *, now: datetime) -> None:
    """`now` turns a date in Retry-After into seconds."""
    if 200 <= response.status < 300:
        return
    status = _why(response.body)
    kind = _BY_STATUS.get(response.status) or (ServerFailed if response.status >= 500 else Refused)
    if kind is NotFound and status.kind != "Status":
        kind = NotServed
    raise kind(
        f"{request.method} {request.path}",
        status=response.status,
        reason=status.reason or "",
        message=status.message or "",
        retry_after_seconds=retry_after(response, now=now),
    )


def retry_after(response: Response, *, now: datetime) -> float | None:
    """In seconds, from either form of Retry-After; at most a minute, because a wrong header must not stop an agent for
    years."""
    text = response.headers.get("retry-after", "").strip()
    if (seconds := retry_after_seconds(text)) is not None:
        return seconds
    at = http_date(text)
    return None if at is None else min(max(0.0, (at - now).total_seconds()), LONGEST_RETRY_AFTER_SECONDS)


def retry_after_seconds(text: str) -> float | None:
    """Of the form that is a number, which API servers send; None for any other text."""
    if not re.fullmatch(r"[0-9]+", text):
        return None
    return LONGEST_RETRY_AFTER_SECONDS if len(text) > _DIGITS else min(float(text), LONGEST_RETRY_AFTER_SECONDS)


def http_date(text: str) -> datetime | None:
    """None for any other text, and outside the years that `core/facts/times.py` reads."""
    try:
        return bounded(email.utils.parsedate_to_datetime(text))
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _why(body: bytes) -> _Status:
    try:
        return msgspec.json.decode(body, type=_Status)
    except (ValueError, OverflowError, RecursionError):
        return _Status(message=body[:200].decode("utf-8", "replace").strip())

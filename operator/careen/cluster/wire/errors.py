"""What can go wrong between us and the API server, named for the caller's next move.

Errors of the client library, of the network and HTTP statuses become ours here and in `client.py`; nothing above this
package sees theirs. The line that matters most runs between *certain* failures (the server refused, or the request was
never sent: nothing changed) and *unclear* ones (it may have landed, or may still land).
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
_DIGITS = 9  # more of them are more than a minute, whatever they say


class ClusterError(Exception):
    """Anything that kept a question to the API server from being answered. Its text is fit to show, whatever the
    server said."""

    may_have_landed: bool = False

    def __init__(self, what: str) -> None:
        super().__init__(one_line(what, LONGEST_SENTENCE))


class NotSent(ClusterError):
    """The request never reached the server. Nothing changed: try again soon."""


class Unclear(ClusterError):
    """The answer was lost. A write may have landed or may land late: read again before believing anything."""

    may_have_landed = True


class UnreadableAnswer(ClusterError):
    """The answer is not what the API promises, or not about what was asked. A write may have landed."""

    may_have_landed = True


class Refused(ClusterError):
    """The server answered, and the answer is no. Nothing changed."""

    def __init__(self, what: str, *, status: int, reason: str, message: str, retry_after_seconds: float | None) -> None:
        super().__init__(f"{what}: {status} {reason}: {message}" if message else f"{what}: {status} {reason}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class Unauthorized(Refused):
    """401: our credentials are not accepted. They may just have been rotated: read them again, then tell a person."""


class Forbidden(Refused):
    """403: a right is missing, or admission said no. Retrying does not help by itself; tell a person."""


class Withheld(Forbidden):
    """Not sent, because the review of our rights showed that it would be answered with 403. Do without."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what} is not asked", status=403, reason="Withheld", message=why, retry_after_seconds=None)


class NotFound(Refused):
    """404: the object does not exist."""


class NotServed(Refused):
    """404 that does not come as a `Status`: this API is not served, or a proxy answered. It says nothing about
    any object."""

    may_have_landed = True


class Conflict(Refused):
    """409: somebody else was faster, or the UID is another one. Read again and think again."""


class Expired(Refused):
    """410: the continue token or the watch position is too old. Start the list again."""


class TooManyRequests(Refused):
    """429: the server is busy, or a disruption budget says not now. Wait `retry_after_seconds`."""


class ServerFailed(Refused):
    """5xx: the server failed half-way. A write may have landed."""

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
    """The part of `metav1.Status` that says why."""

    kind: str | None = None
    reason: str | None = None
    message: str | None = None


def raise_unless_ok(request: Request, response: Response, *, now: datetime) -> None:
    """Raises the error that fits the status; 2xx passes. `now` turns an HTTP date in Retry-After into seconds."""
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
    """Seconds the server asks us to wait, from either form of the Retry-After header; None if it does not say.

    At most a minute: a header that is wrong must not keep an agent from its node for years.
    """
    text = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]+", text):
        return LONGEST_RETRY_AFTER_SECONDS if len(text) > _DIGITS else min(float(text), LONGEST_RETRY_AFTER_SECONDS)
    at = http_date(text)
    return None if at is None else min(max(0.0, (at - now).total_seconds()), LONGEST_RETRY_AFTER_SECONDS)


def http_date(text: str) -> datetime | None:
    """The instant of an HTTP date; None for a text that is none, or that lies outside the years that
    `core/facts/times.py` reads."""
    try:
        return bounded(email.utils.parsedate_to_datetime(text))
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _why(body: bytes) -> _Status:
    try:
        return msgspec.json.decode(body, type=_Status)
    except (ValueError, OverflowError, RecursionError):
        return _Status(message=body[:200].decode("utf-8", "replace").strip())

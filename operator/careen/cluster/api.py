"""Requests to the API server with retries where they are safe, and JSON in and out.

A read is tried again on anything that may pass. A write is tried again only when it certainly did nothing; what to do
after an unclear write is the caller's business (`nodes.py`, `lock_store.py`), because it takes knowledge of what was
written.
"""

from __future__ import annotations

import email.utils
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, timedelta
from typing import Any, TypeVar

import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from careen.cluster.errors import (
    ClusterError,
    Expired,
    NotSent,
    Refused,
    ServerFailed,
    TooManyRequests,
    Unclear,
    UnreadableAnswer,
    raise_unless_ok,
)
from careen.cluster.transport import JSON, MERGE_PATCH, Clock, Method, Request, Response, Transport

T = TypeVar("T")

PAGE_SIZE = 500  # what client-go's pager asks for: about 3 MB of pods, which decodes in milliseconds
READ_PATIENCE_SECONDS = 10.0
WRITE_PATIENCE_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 5.0

Observer = Callable[[Request, "Response | None"], None]


class ApiServer:
    """One API server: `get`, `pages`, `write`. Every failure is an error of `errors.py`."""

    def __init__(self, transport: Transport, clock: Clock, *, chance: Callable[[], float], observer: Observer | None = None) -> None:
        """`chance` gives 0 ≤ x < 1 for jitter; `observer` hears of each request and its response (None: lost)."""
        self.transport = transport
        self.clock = clock
        self.clock_skew_seconds: float | None = None
        """Our clock minus the server's, as of the last answer that carried a Date; good to about a second."""
        self._chance = chance
        self._observer = observer

    async def get(self, path: str, kind: type[T], *, query: Mapping[str, str] | None = None, timeout_seconds: float = 15.0) -> T:
        """The object at `path`, read consistently: a GET without resourceVersion is served at the latest state."""
        request = Request(method="GET", path=path, query=query or {}, timeout_seconds=timeout_seconds)
        return decoded((await self._read(request)).body, kind, f"GET {path}")

    async def pages(
        self, path: str, *, query: Mapping[str, str] | None = None, timeout_seconds: float = 30.0, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[bytes]:
        """The raw bodies of a list, page after page. Consistent: no resourceVersion is sent, so the first page is a
        quorum read and the following ones continue at its version.

        Raises `Expired` if the pages took so long that the server forgot that version: start again.
        """
        wanted = {**(query or {}), "limit": str(page_size)}
        while True:
            request = Request(method="GET", path=path, query=wanted, timeout_seconds=timeout_seconds)
            body = (await self._read(request)).body
            token = decoded(body, _ListHead, f"GET {path}").metadata.continue_token
            yield body
            if not token:
                return
            wanted = {**wanted, "continue": token}

    async def items(self, path: str, kind: type[T], *, query: Mapping[str, str] | None = None) -> list[T]:
        """All items of a list, each decoded as `kind`. A list whose pages expired is started again, once."""
        for last in (False, True):
            try:
                found: list[T] = []
                async for body in self.pages(path, query=query):
                    found.extend(decoded(body, list_of(kind), f"GET {path}").items or ())
            except Expired:
                if last:
                    raise
            else:
                return found
        raise AssertionError("unreachable: the second round returns or raises")

    async def write(
        self,
        method: Method,
        path: str,
        body: object,
        *,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout_seconds: float = 15.0,
        wait_when_busy: bool = True,
    ) -> Response:
        """One write. It is sent again only after `NotSent` and, with `wait_when_busy`, after 429; never after an answer
        that was lost. Raises `Refused` (nothing changed), `Unclear` or `ServerFailed` (look again)."""
        request = Request(
            method=method, path=path, query=query or {}, body=msgspec.json.encode(body), content_type=content_type, timeout_seconds=timeout_seconds
        )
        again = (NotSent, TooManyRequests) if wait_when_busy else (NotSent,)
        return await self._persistently(request, lambda error: isinstance(error, again), WRITE_PATIENCE_SECONDS)

    async def merge_patch(self, path: str, patch: object, kind: type[T], *, query: Mapping[str, str] | None = None) -> T:
        """A JSON merge patch (null removes a key, lists are replaced whole); the object as it is afterwards."""
        response = await self.write("PATCH", path, patch, content_type=MERGE_PATCH, query=query)
        return decoded(response.body, kind, f"PATCH {path}")

    async def post(self, path: str, body: object, kind: type[T], *, query: Mapping[str, str] | None = None) -> T:
        """Creates an object, or asks a review; the object as the server made it."""
        return decoded((await self.write("POST", path, body, query=query)).body, kind, f"POST {path}")

    async def _read(self, request: Request) -> Response:
        return await self._persistently(request, _may_pass, READ_PATIENCE_SECONDS)

    async def _persistently(self, request: Request, again: Callable[[BaseException], bool], patience_seconds: float) -> Response:
        give_up_at = self.clock.monotonic() + patience_seconds
        retrying = AsyncRetrying(
            retry=retry_if_exception(again),
            wait=self._pause,
            stop=lambda state: self.clock.monotonic() + state.upcoming_sleep > give_up_at,
            sleep=self.clock.sleep,
            reraise=True,
        )
        return await retrying(self._send, request)

    def _pause(self, state: RetryCallState) -> float:
        """Doubling from a quarter of a second with full jitter, and never less than the server asked for."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after_seconds or 0.0 if isinstance(error, Refused) else 0.0
        longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** (state.attempt_number - 1))
        # Jitter is added to what the server asked for: a thousand agents told "1 s" must not come back as one.
        return asked + longest * (0.5 + 0.5 * self._chance())

    async def _send(self, request: Request) -> Response:
        try:
            response = await self.transport.send(request)
        except ClusterError:
            self._tell(request, None)
            raise
        self._tell(request, response)
        self._compare_clocks(response)
        raise_unless_ok(request, response, now=self.clock.now())
        return response

    def _tell(self, request: Request, response: Response | None) -> None:
        if self._observer is not None:
            self._observer(request, response)

    def _compare_clocks(self, response: Response) -> None:
        try:
            theirs = email.utils.parsedate_to_datetime(response.headers.get("date", ""))
        except ValueError:
            return
        # The Date header is cut to whole seconds, so on average it lies half a second back.
        theirs = (theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)) + timedelta(seconds=0.5)
        self.clock_skew_seconds = (self.clock.now() - theirs).total_seconds()


class _ListMeta(msgspec.Struct, gc=False, frozen=True, rename={"continue_token": "continue"}):
    continue_token: str = ""


class _ListHead(msgspec.Struct, gc=False, frozen=True):
    metadata: _ListMeta = _ListMeta()


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, NotSent | Unclear | TooManyRequests | ServerFailed)


def decoded(body: bytes, kind: type[T], what: str) -> T:
    """`body` as a `kind`. Raises `UnreadableAnswer` for a page of a proxy, or a field of the wrong type."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise UnreadableAnswer(f"{what}: the answer is not what the API promises: {error}") from error


def list_of(kind: type[T]) -> type[Any]:
    """The struct that decodes a list of `kind`; made once per kind."""
    if kind not in _LISTS:
        _LISTS[kind] = msgspec.defstruct(f"{kind.__name__}List", [("items", list[kind] | None, None)], gc=False, frozen=True)  # type: ignore[valid-type]
    return _LISTS[kind]


_LISTS: dict[type[Any], type[Any]] = {}

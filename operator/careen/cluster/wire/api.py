"""Sends requests with JSON bodies, and retries them if that is safe.

A read is retried after every error that may be temporary, such as a response with another object (`answers.py`). A
write is retried only if it certainly had no effect. If that is unknown, the caller (`nodes.py`, `lock_store.py`)
decides, because it knows what it wrote.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import timedelta
from typing import TypeVar

import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from careen.cluster.wire.answers import decoded, list_of, the_object, the_page, the_review
from careen.cluster.wire.errors import (
    AnswerTooLong,
    ClusterError,
    Expired,
    NotSent,
    Refused,
    ServerFailed,
    TooManyRequests,
    Unclear,
    UnreadableAnswer,
    Withheld,
    http_date,
    raise_unless_ok,
)
from careen.cluster.wire.transport import JSON, MERGE_PATCH, Clock, Method, Request, Response, Transport

T = TypeVar("T")
V = TypeVar("V")

PAGE_SIZE = 500  # what client-go's pager asks for: about 3 MB of pods, which decodes in milliseconds
MOST_LISTED = 500_000
"""By the number of pages: three times the pods of the largest cluster that Kubernetes supports."""
READ_PATIENCE_SECONDS = 10.0
WRITE_PATIENCE_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 5.0
BUSY_SECONDS = 1.0

Observer = Callable[[Request, "Response | None"], None]


class ClusterApi:
    """A client of one API server. Every failure is an error of `errors.py`."""

    def __init__(
        self, transport: Transport, clock: Clock, *, chance: Callable[[], float], observer: Observer | None = None
    ) -> None:
        """`chance` gives a random number 0 ≤ x < 1 for jitter. `observer` gets each request and its response, None if
        that was lost."""
        self.transport = transport
        self.clock = clock
        self.clock_skew_seconds: float | None = None
        """The local clock minus the API server's, in seconds, from the last Date header: accurate to about a second."""
        self.withheld: Callable[[Request], str] = lambda _: ""
        """Why the server would answer 403, so that the request is not sent; "" for a request to send."""
        self._chance = chance
        self._observer = observer

    async def get(
        self, path: str, kind: type[T], *, query: Mapping[str, str] | None = None, timeout_seconds: float = 15.0
    ) -> T:
        """Consistent: a GET without resourceVersion is served at the latest state."""
        request = Request(method="GET", path=path, query=query or {}, timeout_seconds=timeout_seconds)
        return await self._read(request, lambda body: the_object(body, path, kind, f"GET {path}"))

    async def get_plain(self, path: str, kind: type[T]) -> T:
        """For a `path` that is not a resource, such as `/version`."""
        return await self._read(Request(method="GET", path=path), lambda body: decoded(body, kind, f"GET {path}"))

    async def ask(self, request: Request) -> Response:
        """Reads a path that is not an object, whatever the status. Never retried: the caller can also use an error
        status. Raises `NotSent` or `Unclear`."""
        try:
            response = await self.transport.send(request)
        except ClusterError:
            self._tell(request, None)
            raise
        self._tell(request, response)
        return response

    async def pages(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout_seconds: float = 30.0,
        page_size: int = PAGE_SIZE,
    ) -> AsyncGenerator[bytes, None]:
        """The raw pages of a list. Consistent: without a resourceVersion the first page is a quorum read, and the
        others show its resourceVersion.

        A page that is too long is asked for with fewer items. Raises `Expired` if the pages were read so slowly that
        the server no longer has it. The caller then lists again. Raises `UnreadableAnswer` for a list without an end,
        or with an item that is too long.
        """
        token, number, left = "", 0, MOST_LISTED

        def believed(body: bytes) -> tuple[bytes, str]:
            return body, the_page(body, path, f"GET {path}", after=token)

        while left > 0:
            wanted = {**(query or {}), "limit": str(page_size)} | ({"continue": token} if token else {})
            request = Request(method="GET", path=path, query=wanted, timeout_seconds=timeout_seconds)
            try:
                body, token = await self._read(request, believed)
            except AnswerTooLong:
                if page_size == 1:
                    raise
                page_size //= 2
                continue
            number, left = number + 1, left - page_size
            yield body
            if not token:
                return
        raise UnreadableAnswer(f"GET {path}: the list does not end after {number} pages")

    async def items(self, path: str, kind: type[T], *, query: Mapping[str, str] | None = None) -> list[T]:
        """All items of a list. If it expires between two pages, it is requested once more."""
        return await self.views(path, kind, lambda item: item, query=query)

    async def views(
        self, path: str, kind: type[T], view: Callable[[T], V], *, query: Mapping[str, str] | None = None
    ) -> list[V]:
        """`items` with `view` applied to each, page by page, so that a long list does not block the event loop."""
        for last in (False, True):
            try:
                found: list[V] = []
                async for body in self.pages(path, query=query):
                    found.extend(view(item) for item in decoded(body, list_of(kind), f"GET {path}").items)
            except Expired:
                if last:
                    raise
            else:
                return found
        raise AssertionError("this line is unreachable: the second attempt returns or raises an error")

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
        """Sends the write again only after `NotSent` and, with `wait_when_busy`, after 429; never after a lost
        response.

        Raises `Refused` if nothing changed; `Unclear` or `ServerFailed` if the server may have applied it, so that the
        caller must read the object again.
        """
        request = Request(
            method=method,
            path=path,
            query=query or {},
            body=msgspec.json.encode(body),
            content_type=content_type,
            timeout_seconds=timeout_seconds,
        )
        again = (NotSent, TooManyRequests) if wait_when_busy else (NotSent,)
        return await self._persistently(
            functools.partial(self._send, request), lambda error: isinstance(error, again), WRITE_PATIENCE_SECONDS
        )

    async def merge_patch(
        self, path: str, patch: object, kind: type[T], *, query: Mapping[str, str] | None = None
    ) -> T:
        """Sends a JSON merge patch: null removes a key, lists are replaced whole. Returns the object after it."""
        response = await self.write("PATCH", path, patch, content_type=MERGE_PATCH, query=query)
        return the_object(response.body, path, kind, f"PATCH {path}")

    async def replace(self, path: str, body: object, kind: type[T]) -> T:
        """Replaces the whole object. `body` carries the resourceVersion that was read."""
        return the_object((await self.write("PUT", path, body)).body, path, kind, f"PUT {path}")

    async def post(self, path: str, body: object, kind: type[T], *, query: Mapping[str, str] | None = None) -> T:
        """Creates an object, and returns it as stored."""
        return the_object((await self.write("POST", path, body, query=query)).body, path, kind, f"POST {path}")

    async def review(self, path: str, body: object, kind: type[T]) -> T:
        """A review changes nothing, so it is retried like a read."""
        request = Request(method="POST", path=path, body=msgspec.json.encode(body), content_type=JSON)
        return await self._read(request, lambda answer: the_review(answer, path, kind, f"POST {path}"))

    async def _read(self, request: Request, believed: Callable[[bytes], T]) -> T:
        async def read() -> T:
            return believed((await self._send(request)).body)

        return await self._persistently(read, _may_pass, READ_PATIENCE_SECONDS)

    async def _persistently(
        self, attempt: Callable[[], Awaitable[T]], again: Callable[[BaseException], bool], patience_seconds: float
    ) -> T:
        give_up_at = self.clock.monotonic() + patience_seconds
        retrying = AsyncRetrying(
            retry=retry_if_exception(again),
            wait=self._pause,
            stop=lambda state: self.clock.monotonic() + state.upcoming_sleep > give_up_at,
            sleep=self.clock.sleep,
            reraise=True,
        )
        return await retrying(attempt)

    def _pause(self, state: RetryCallState) -> float:
        """In seconds: the server's `Retry-After`, plus one half to the whole of a limit at random. The limit is a
        quarter of a second, doubles with each retry, and ends at 5 s."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after_seconds or 0.0 if isinstance(error, Refused) else 0.0
        if isinstance(error, TooManyRequests) and error.retry_after_seconds is None:
            asked = BUSY_SECONDS  # a webhook's 429; the API server itself says how long
        longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** (state.attempt_number - 1))
        # Added to the wait that the server requests, so that a thousand agents do not return at the same moment.
        return asked + longest * (0.5 + 0.5 * self._chance())

    async def _send(self, request: Request) -> Response:
        if why := self.withheld(request):
            raise Withheld(f"{request.method} {request.path}", why)
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
        theirs = http_date(response.headers.get("date", ""))
        if theirs is not None:
            # The Date header is cut to whole seconds, so on average it is half a second old.
            self.clock_skew_seconds = (self.clock.now() - theirs - timedelta(seconds=0.5)).total_seconds()


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, NotSent | Unclear | UnreadableAnswer | TooManyRequests | ServerFailed) and not isinstance(
        error, AnswerTooLong
    )

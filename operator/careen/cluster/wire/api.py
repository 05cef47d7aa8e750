"""Sends requests to the API server, with JSON bodies, and retries them if a retry is safe.

A read is retried after every error that may be temporary, including a response with another object than the requested
one (`answers.py`). A write is retried only if it certainly had no effect. After a write whose outcome is unknown, the
caller (`nodes.py`, `lock_store.py`) decides what to do, because it knows the content of the write.
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
READ_PATIENCE_SECONDS = 10.0
WRITE_PATIENCE_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 5.0

Observer = Callable[[Request, "Response | None"], None]


class ClusterApi:
    """A client of one cluster's API server: `get`, `pages`, `write`. Every failure is an error of `errors.py`."""

    def __init__(
        self, transport: Transport, clock: Clock, *, chance: Callable[[], float], observer: Observer | None = None
    ) -> None:
        """`chance` is a function that returns a random number 0 ≤ x < 1, used for jitter. `observer` is called with
        each request and its response, or with None if the response was lost."""
        self.transport = transport
        self.clock = clock
        self.clock_skew_seconds: float | None = None
        """The local clock minus the API server's clock, in seconds. The value comes from the last response with a Date
        header and is accurate to about a second."""
        self.withheld: Callable[[Request], str] = lambda _: ""
        """A function that returns why the API server would answer a request with 403; such a request is not sent. The
        function returns an empty text for a request that is to be sent."""
        self._chance = chance
        self._observer = observer

    async def get(
        self, path: str, kind: type[T], *, query: Mapping[str, str] | None = None, timeout_seconds: float = 15.0
    ) -> T:
        """Reads the object at `path`, consistently: a GET without resourceVersion is served at the latest state."""
        request = Request(method="GET", path=path, query=query or {}, timeout_seconds=timeout_seconds)
        return await self._read(request, lambda body: the_object(body, path, kind, f"GET {path}"))

    async def get_plain(self, path: str, kind: type[T]) -> T:
        """Reads the response at a `path` that is not a resource, such as `/version`. `kind` defines the required
        fields."""
        return await self._read(Request(method="GET", path=path), lambda body: decoded(body, kind, f"GET {path}"))

    async def ask(self, request: Request) -> Response:
        """Reads an API path that is not an object, and returns the response whatever its status. Sends the request only
        once and never retries it, because the caller can also use a response with an error status. Raises `NotSent` or
        `Unclear`."""
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
        """Yields the raw bodies of a list, page after page. The list is consistent: the request has no resourceVersion,
        so the first page is a quorum read, and the following pages show the same resourceVersion.

        Raises `Expired` if the caller read the pages so slowly that the server no longer has that resourceVersion. The
        caller then lists again.
        """
        wanted, token = {**(query or {}), "limit": str(page_size)}, ""

        def believed(body: bytes) -> tuple[bytes, str]:
            return body, the_page(body, path, f"GET {path}", after=token)

        while True:
            request = Request(method="GET", path=path, query=wanted, timeout_seconds=timeout_seconds)
            body, token = await self._read(request, believed)
            yield body
            if not token:
                return
            wanted = {**wanted, "continue": token}

    async def items(self, path: str, kind: type[T], *, query: Mapping[str, str] | None = None) -> list[T]:
        """Returns all items of a list, each decoded as `kind`. If the list expires between two pages, requests the
        whole list again, but only once."""
        return await self.views(path, kind, lambda item: item, query=query)

    async def views(
        self, path: str, kind: type[T], view: Callable[[T], V], *, query: Mapping[str, str] | None = None
    ) -> list[V]:
        """Lists as `items` does, and applies the function `view` to each object. Works page by page, so that a long
        list does not block the event loop."""
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
        """Sends one write. Sends it again only after `NotSent` and, if `wait_when_busy` is true, after 429. If the
        response was lost, the write is never sent again.

        Raises `Refused` if nothing changed. Raises `Unclear` or `ServerFailed` if the server may have applied the
        write; the caller must then read the object again.
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
        """Sends a JSON merge patch (null removes a key, lists are replaced whole). Returns the object after the
        patch."""
        response = await self.write("PATCH", path, patch, content_type=MERGE_PATCH, query=query)
        return the_object(response.body, path, kind, f"PATCH {path}")

    async def replace(self, path: str, body: object, kind: type[T]) -> T:
        """Replaces the whole object by `body`, which carries the resourceVersion that was read. Returns the object
        after the write."""
        return the_object((await self.write("PUT", path, body)).body, path, kind, f"PUT {path}")

    async def post(self, path: str, body: object, kind: type[T], *, query: Mapping[str, str] | None = None) -> T:
        """Creates an object, and returns the object as the server has stored it."""
        return the_object((await self.write("POST", path, body, query=query)).body, path, kind, f"POST {path}")

    async def review(self, path: str, body: object, kind: type[T]) -> T:
        """Posts a review, such as a SelfSubjectAccessReview. A review changes nothing, so it is retried like a read."""
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
        """Returns the pause before a retry, in seconds. The pause is the server's `Retry-After` (0 if the server sent
        none) plus a random time. The random time is between one half of a limit and the whole limit. The limit is a
        quarter of a second before the first retry, then doubles with each retry, and is never more than 5 s."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after_seconds or 0.0 if isinstance(error, Refused) else 0.0
        longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** (state.attempt_number - 1))
        # Jitter is added to the wait that the server requests, so that a thousand agents do not return at the same
        # moment.
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
    return isinstance(error, NotSent | Unclear | UnreadableAnswer | TooManyRequests | ServerFailed)

"""The embedded API server over HTTP; read this file first.

One request: authentication, authorization, faults, execution, audit. Verbs are in `verbs.py`, paths in
`requests/info.py`, discovery in `kinds/discovery.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import msgspec
from aiohttp import web

from drydock.rollout.scale import scale_of, with_scale
from drydock.server import api_errors
from drydock.server.api_errors import ApiError
from drydock.server.audit import RequestRecord
from drydock.server.evictions import evict
from drydock.server.faults import Fault, FaultKind, FaultPlan, no_faults
from drydock.server.kinds.access_reviews import (
    Authorizer,
    allow_everything,
    answer_review,
    refuse_unless_allowed,
    user_of,
)
from drydock.server.kinds.discovery import discovery_answer
from drydock.server.kinds.event_versions import is_converted, to_served, to_stored
from drydock.server.kinds.printed_columns import as_table
from drydock.server.kinds.resources import resource_named
from drydock.server.requests.info import RequestInfo, ReviewRequest, request_info
from drydock.server.requests.patches import json_patch, merge_patch
from drydock.server.requests.reading import (
    body_of,
    decoded,
    delete_options,
    is_dry_run,
    number,
    selected,
    wants_table,
    watch_request,
)
from drydock.server.requests.strategic_merge import strategic_merge_patch
from drydock.server.store import Store, Stored
from drydock.server.verbs import DeleteOptions, Verbs
from drydock.server.watch_stream import StreamEvent, watch_events

_encode = msgspec.json.Encoder().encode
_PATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "application/merge-patch+json": merge_patch,
    "application/json-patch+json": json_patch,
    "application/strategic-merge-patch+json": strategic_merge_patch,
}
_MOST_RECORDS = 500_000


@dataclass(slots=True, kw_only=True)
class _Exchange:
    request: web.Request
    started: float
    user: str = ""
    info: RequestInfo | None = None
    fault: Fault | None = None


class ApiServer:
    """Serves one Store on a loopback port. Time, randomness and access rights are arguments.

    `users` maps tokens to user names; without it, any token is the user's name. `plan` injects faults. `date_offset`
    shifts the Date header, as on a server with a wrong clock.
    """

    def __init__(
        self,
        store: Store,
        verbs: Verbs,
        *,
        users: Mapping[str, str] | None = None,
        authorizer: Authorizer = allow_everything,
        plan: FaultPlan = no_faults,
        bookmark_seconds: float = 30.0,
    ) -> None:
        self.store = store
        self.verbs = verbs
        self.users = dict(users or {})
        self.authorizer = authorizer
        self.plan = plan
        self.bookmark_seconds = bookmark_seconds
        self.date_offset = timedelta()
        # While true every connection is cut without an answer: the server is down.
        self.is_down = False
        self.requests: deque[RequestRecord] = deque(maxlen=_MOST_RECORDS)
        self.url = ""
        self._runner: web.AppRunner | None = None
        self._late: set[asyncio.Task[None]] = set()

    async def start(self, port: int = 0) -> str:
        """Listens on 127.0.0.1 and returns the URL. Port 0: any free port."""
        application = web.Application(client_max_size=8 * 1024 * 1024)
        application.router.add_route("*", "/{path:.*}", self._answer)
        # Cancelling a handler when its client leaves is what ends idle watches.
        self._runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self.url

    async def stop(self) -> None:
        for task in tuple(self._late):
            task.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    # One request ---------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if self.is_down:
            return _cut(request)
        exchange = _Exchange(request=request, started=self.store.clock())
        try:
            response = await self._way_through(exchange)
        except ApiError as refusal:
            response = self._json(refusal.status(), refusal.code, refusal.headers)
        if exchange.fault is not None and exchange.fault.kind is FaultKind.LOST_AFTER:
            response = _cut(request)
        elif exchange.fault is not None and exchange.fault.kind is FaultKind.ERROR_AFTER and response.status < 400:
            response = self._json(
                ApiError(504, "Timeout", "request did not complete within the allotted timeout").status(), 504
            )
        if exchange.info is not None and not response.prepared:
            self._record(exchange, response.status)
        return response

    async def _way_through(self, exchange: _Exchange) -> web.StreamResponse:
        request = exchange.request
        exchange.user = user_of(request.headers.get("Authorization", ""), self.users)
        if (known := self._asked_first(request)) is not None:
            return known
        asked = request_info(request.method, request.path, request.query)
        if isinstance(asked, ReviewRequest):
            return self._json(answer_review(asked.kind, await body_of(request), exchange.user, self.authorizer), 201)
        exchange.info = asked
        refuse_unless_allowed(self.authorizer, exchange.user, asked)
        exchange.fault = self.plan(
            asked, exchange.user, asked.verb == "list" and request.query.get("resourceVersion") == "0"
        )
        if exchange.fault is not None and exchange.fault.kind is FaultKind.LATE:
            return await self._do_it_later(exchange, asked, exchange.fault.seconds)
        if exchange.fault is not None and (spoilt := await self._spoil(request, exchange.fault)) is not None:
            return spoilt
        if asked.verb == "watch":
            # Recorded at the start, because the client may be gone at the end.
            self._record(exchange, 200)
            return await self._watch(request, asked)
        return await self._act(exchange, asked)

    def _asked_first(self, request: web.Request) -> web.Response | None:
        if request.path in ("/healthz", "/readyz", "/livez"):
            return web.Response(text="ok", headers=self._dated())
        if request.method != "GET":
            return None
        if request.path == "/openapi/v2" and "json" not in request.headers.get("Accept", "json"):
            # The request is for schemas in protobuf; there are none, and clients then read v3.
            return self._json(ApiError(406, "NotAcceptable", "the server serves only application/json").status(), 406)
        document = discovery_answer(request.path)
        return None if document is None else self._json(document)

    async def _spoil(self, request: web.Request, fault: Fault) -> web.StreamResponse | None:
        """Applies a fault that strikes before the execution. The response, or None if the execution goes on."""
        match fault.kind:
            case FaultKind.SLOW:
                await asyncio.sleep(fault.seconds)
                return None
            case FaultKind.LOST_BEFORE:
                return _cut(request)
            case FaultKind.CONFLICT:
                refusal = ApiError(
                    409,
                    "Conflict",
                    "the object has been modified; please apply your changes to the latest version and try again",
                )
            case FaultKind.THROTTLED:
                refusal = api_errors.too_many_requests(
                    "the server has received too many requests and has asked us to try again later",
                    retry_after_seconds=int(fault.seconds),
                )
            case FaultKind.SERVER_ERROR:
                refusal = ApiError(
                    fault.code,
                    "InternalError" if fault.code == 500 else "ServiceUnavailable",
                    "etcdserver: request timed out",
                )
            case FaultKind.STALE_LIST | FaultKind.LOST_AFTER | FaultKind.ERROR_AFTER | FaultKind.LATE:
                return None
        return self._json(refusal.status(), refusal.code, refusal.headers)

    async def _do_it_later(self, exchange: _Exchange, info: RequestInfo, seconds: float) -> web.StreamResponse:
        """Closes the connection now, and writes some seconds later, when the client has given up."""
        await exchange.request.read()

        async def later() -> None:
            await asyncio.sleep(seconds)
            # A refusal has no effect: the object may have changed by then, and the client is gone.
            with contextlib.suppress(ApiError):
                await self._act(exchange, info)

        task = asyncio.create_task(later())
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        return _cut(exchange.request)

    def _record(self, exchange: _Exchange, code: int) -> None:
        request, info, fault = exchange.request, exchange.info, exchange.fault
        if info is None:
            return
        answered = request.transport is not None and not request.transport.is_closing()
        self.requests.append(
            RequestRecord(
                at=exchange.started,
                user=exchange.user,
                agent=request.headers.get("User-Agent", ""),
                verb=info.verb,
                resource=info.resource.plural,
                subresource=info.subresource,
                namespace=info.namespace,
                name=info.name,
                code=code if answered else 0,
                seconds=self.store.clock() - exchange.started,
                dry_run=is_dry_run(request.query),
                fault=fault.kind.value if fault else "",
            )
        )

    # The request ---------------------------------------------------------------------------------------------

    async def _act(self, exchange: _Exchange, info: RequestInfo) -> web.Response:
        request, user, fault = exchange.request, exchange.user, exchange.fault
        match info.verb:
            case "get":
                return self._get(request, info)
            case "list":
                return self._list(request, info, fault)
            case "create":
                return await self._create(request, info, user)
            case "update":
                return await self._update(request, info, user)
            case "patch":
                return await self._patch(request, info, user)
            case "delete":
                return await self._delete(request, info, user)
            case _:
                return await self._delete_collection(request, info, user)

    def _get(self, request: web.Request, info: RequestInfo) -> web.Response:
        found = self.verbs.read(info.resource, info.namespace, info.name)
        if info.subresource == "scale":
            return self._json(scale_of(found.content))
        if wants_table(request):
            return self._json(as_table(info.resource, [found.content], found.version, self.verbs.wall_clock()))
        return self._object(info, found)

    def _list(self, request: web.Request, info: RequestInfo, fault: Fault | None) -> web.Response:
        query = request.query
        stale_version = (
            self._version_before(info, fault.seconds)
            if fault is not None and fault.kind is FaultKind.STALE_LIST
            else None
        )
        page = self.verbs.page(
            info.resource,
            info.namespace,
            selected=selected(query, info),
            limit=number(query, "limit"),
            token=query.get("continue", ""),
            at_version=stale_version,
        )
        metadata: dict[str, Any] = {"resourceVersion": str(page.version)}
        if page.next_token:
            metadata["continue"] = page.next_token
            if page.remaining is not None:
                metadata["remainingItemCount"] = page.remaining
        if wants_table(request):
            return self._json(
                as_table(
                    info.resource,
                    [item.content for item in page.items],
                    page.version,
                    self.verbs.wall_clock(),
                    list_metadata=metadata,
                )
            )
        if is_converted(info.resource):
            items = [_encode(to_served(info.resource, item.content)) for item in page.items]
        else:
            items = [item.as_item for item in page.items]
        head = _encode(
            {"kind": f"{info.resource.kind}List", "apiVersion": info.resource.api_version, "metadata": metadata}
        )
        return self._bytes(head[:-1] + b',"items":[' + b",".join(items) + b"]}")

    def _version_before(self, info: RequestInfo, seconds: float) -> int | None:
        """The newest resourceVersion that is at least `seconds` old, as a lagging cache would serve it; None if the
        history is too short."""
        horizon = self.store.clock() - seconds
        older = [
            c.version
            for c in self.store.changes_after(info.resource.storage, self.store.floor(info.resource.storage))
            if c.at <= horizon
        ]
        return older[-1] if older else None

    async def _create(self, request: web.Request, info: RequestInfo, user: str) -> web.Response:
        body, dry_run = await body_of(request), is_dry_run(request.query)
        if info.subresource == "eviction":
            options = DeleteOptions.from_body(
                body.get("deleteOptions") or {}, dry_run=dry_run or "All" in (body.get("dryRun") or [])
            )
            evict(self.verbs, info.namespace, info.name, options, actor=user)
            return self._success(201)
        if info.subresource == "binding":
            self.verbs.bind(info.namespace, info.name, body, actor=user, dry_run=dry_run)
            return self._success(201)
        kind = body.get("kind")
        if kind not in (None, info.resource.kind):
            raise api_errors.bad_request(
                f"the kind of the object ({kind}) does not match the resource of the request ({info.resource.plural})"
            )
        obj = to_stored(body) if is_converted(info.resource) else body
        namespace = info.namespace
        if info.resource.namespaced and not namespace:
            raise api_errors.bad_request("an empty namespace may not be set during creation")
        return self._object(info, self.verbs.create(info.resource, namespace, obj, actor=user, dry_run=dry_run), 201)

    async def _update(self, request: web.Request, info: RequestInfo, user: str) -> web.Response:
        body, dry_run = await body_of(request), is_dry_run(request.query)
        if info.subresource == "scale":
            changed = self.verbs.change(
                info.resource,
                info.namespace,
                info.name,
                lambda old: with_scale(old, body),
                actor=user,
                dry_run=dry_run,
                verb="update",
            )
            return self._json(scale_of(changed.content))
        obj = to_stored(body) if is_converted(info.resource) else body
        return self._object(
            info,
            self.verbs.replace(
                info.resource, info.namespace, info.name, obj, actor=user, subresource=info.subresource, dry_run=dry_run
            ),
        )

    async def _patch(self, request: web.Request, info: RequestInfo, user: str) -> web.Response:
        content_type, dry_run = request.content_type, is_dry_run(request.query)
        apply_patch = _PATCHES.get(content_type)
        if apply_patch is None:
            raise api_errors.unsupported_media_type(content_type, tuple(_PATCHES))
        patch = decoded(await request.read())
        if info.subresource == "scale":
            changed = self.verbs.change(
                info.resource,
                info.namespace,
                info.name,
                lambda old: with_scale(old, apply_patch(scale_of(old), patch)),
                actor=user,
                dry_run=dry_run,
            )
            return self._json(scale_of(changed.content))
        if is_converted(info.resource):
            edited = self.verbs.change(
                info.resource,
                info.namespace,
                info.name,
                lambda old: to_stored(apply_patch(to_served(info.resource, old), patch)),
                actor=user,
                dry_run=dry_run,
            )
        else:
            edited = self.verbs.change(
                info.resource,
                info.namespace,
                info.name,
                lambda old: apply_patch(old, patch),
                actor=user,
                subresource=info.subresource,
                dry_run=dry_run,
            )
        return self._object(info, edited)

    async def _delete(self, request: web.Request, info: RequestInfo, user: str) -> web.Response:
        options = delete_options(await body_of(request), request.query)
        gone = self.verbs.delete(info.resource, info.namespace, info.name, options, actor=user)
        # The real server answers a pod's graceful deletion with the Pod, everything else with Success.
        if info.resource.plural == "pods" or "deletionTimestamp" in gone.content["metadata"]:
            return self._object(info, gone)
        details = {
            "name": info.name,
            "group": info.resource.group,
            "kind": info.resource.plural,
            "uid": gone.content["metadata"]["uid"],
        }
        return self._json(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        )

    async def _delete_collection(self, request: web.Request, info: RequestInfo, user: str) -> web.Response:
        options = delete_options(await body_of(request), request.query)
        page = self.verbs.page(info.resource, info.namespace, selected=selected(request.query, info))
        for item in page.items:
            self.verbs.delete(info.resource, item.key[0], item.key[1], options, actor=user)
        head = {
            "kind": f"{info.resource.kind}List",
            "apiVersion": info.resource.api_version,
            "metadata": {"resourceVersion": str(self.store.version)},
        }
        return self._bytes(_encode(head)[:-1] + b',"items":[' + b",".join(item.as_item for item in page.items) + b"]}")

    # Watching ------------------------------------------------------------------------------------------------

    async def _watch(self, request: web.Request, info: RequestInfo) -> web.StreamResponse:
        watch = watch_request(request.query, info)
        response = web.StreamResponse(headers={"Content-Type": "application/json", **self._dated()})
        response.enable_chunked_encoding()
        await response.prepare(request)
        loop = asyncio.get_running_loop()
        as_tables = wants_table(request)
        try:
            async for event in watch_events(self.store, watch, bookmark_seconds=self.bookmark_seconds, now=loop.time):
                if self.is_down:
                    return _cut(request)
                await response.write(self._watch_line(info, event, as_tables=as_tables))
            await response.write_eof()
        except (ConnectionResetError, ConnectionError):
            pass  # The client disconnected in the middle of a line.
        return response

    def _watch_line(self, info: RequestInfo, event: StreamEvent, *, as_tables: bool) -> bytes:
        content = event.content
        if event.kind in ("ADDED", "MODIFIED", "DELETED"):
            if is_converted(info.resource):
                content = to_served(info.resource, content)
            if as_tables:
                content = as_table(
                    info.resource, [event.content], int(content["metadata"]["resourceVersion"]), self.verbs.wall_clock()
                )
        return _encode({"type": event.kind, "object": content}) + b"\n"

    # Answers -------------------------------------------------------------------------------------------------

    def _dated(self) -> dict[str, str]:
        return {"Date": format_datetime((self.verbs.wall_clock() + self.date_offset).astimezone(UTC), usegmt=True)}

    def _json(self, content: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
        return self._bytes(_encode(content), code, headers)

    def _bytes(self, body: bytes, code: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
        return web.Response(
            body=body, status=code, content_type="application/json", headers={**self._dated(), **(headers or {})}
        )

    def _object(self, info: RequestInfo, stored: Stored, code: int = 200) -> web.Response:
        if is_converted(info.resource):
            return self._json(to_served(info.resource, stored.content), code)
        return self._bytes(stored.whole, code)

    def _success(self, code: int) -> web.Response:
        return self._json(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}, code
        )


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=503)


def embedded_api(
    *,
    clock: Callable[[], float],
    wall_clock: Callable[[], datetime],
    seed: int = 0,
    history_length: int = 20_000,
    journal_length: int | None = None,
    **server_options: Any,
) -> ApiServer:
    """A server that does not listen yet, with only the namespaces that every cluster has."""
    store = Store(clock=clock, history_length=history_length, journal_length=journal_length)
    verbs = Verbs(store, wall_clock=wall_clock, chance=random.Random(seed))
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        verbs.create(resource_named("namespaces"), "", {"metadata": {"name": name}}, actor="system:apiserver")
    return ApiServer(store, verbs, **server_options)

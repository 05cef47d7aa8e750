"""Watches the ConfigMap of the settings with kopf. No other module imports kopf.

kopf runs in its own thread and event loop, because it may end at any time, for example after its rights are revoked. It
then cancels the tasks of its event loop, and must not cancel a turn during a drain. Only `on.event` is used: every
other handler writes annotations or finalizers on the object.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from careen.cluster.wire.client import MOST_BYTES, Credentials
from careen.cluster.wire.errors import UnreadableAnswer, retry_after
from careen.cluster.wire.lean_imports import load_lean_kopf
from careen.cluster.wire.transport import Response
from careen.settings.live import SeenConfigMap

if TYPE_CHECKING:
    import kopf

_LOG = logging.getLogger("careen.config")

# An idle agent renews its watch once an hour. kopf detects a dead connection by missing bookmarks after 70 s (its
# inactivity timeout).
_WATCH_SECONDS = 3600
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0


class Forever:
    """An endless sequence of pauses between retries, in seconds. kopf's own ends after 54 s, and kopf with it."""

    def __iter__(self) -> Iterator[float]:
        """Yields 1, 2, 4, … 30, 30, …"""
        pause = 1.0
        while True:
            yield pause
            pause = min(pause * 2, 30.0)


class FewRetries(logging.Filter):
    """Of kopf's failed attempts in a row, logs the fifth and every hundredth, as a warning. kopf would log each as an
    error."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the line."""
        attempt = re.match(r"Request attempt #(\d+) failed; will retry", record.getMessage())
        if attempt is None:
            return True
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return int(attempt[1]) == 5 or int(attempt[1]) % 100 == 0


_FEW_RETRIES = FewRetries()


def follow_config_map(
    *,
    namespace: str,
    name: str,
    credentials: Callable[[], Credentials],
    on_change: Callable[[SeenConfigMap | None], None],
) -> None:
    """Starts a daemon thread that calls `on_change` with the ConfigMap's data, first at its start and then after each
    change; with None after a deletion. `on_change` runs in that thread."""
    threading.Thread(
        target=_follow_for_ever, args=(namespace, name, credentials, on_change), name="kopf", daemon=True
    ).start()


def _follow_for_ever(
    namespace: str, name: str, credentials: Callable[[], Credentials], on_change: Callable[[SeenConfigMap | None], None]
) -> None:
    pause = _FIRST_PAUSE_SECONDS
    while True:
        began = time.monotonic()
        try:
            asyncio.run(_follow(namespace, name, credentials, on_change))
            _LOG.warning("the watch of ConfigMap %s/%s ended; the agent starts it again", namespace, name)
        except Exception:
            # kopf raises its watchers' errors; the settings stay in force until it works again.
            _LOG.warning(
                "the watch of ConfigMap %s/%s failed; the agent starts it again in %.0f s",
                namespace,
                name,
                pause,
                exc_info=_LOG.isEnabledFor(logging.DEBUG),
            )
        pause = (
            _FIRST_PAUSE_SECONDS
            if time.monotonic() - began > _LONGEST_PAUSE_SECONDS
            else min(2 * pause, _LONGEST_PAUSE_SECONDS)
        )
        time.sleep(pause)


async def _follow(
    namespace: str, name: str, credentials: Callable[[], Credentials], on_change: Callable[[SeenConfigMap | None], None]
) -> None:
    aiohttp = load_lean_kopf()
    import kopf  # after the first turn, and not at all without a ConfigMap

    # Outside the main thread kopf does not handle signals, as intended, and warns about it each time.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
    for name_of_logger in ("kopf._cogs.clients.watching", "kopf._core.reactor.observation"):
        logging.getLogger(name_of_logger).addFilter(_FEW_RETRIES)
    _bound_retry_after()
    _bound_discovery()
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        # Called again after a 401: the token file is read afresh.
        return _bounded(kopf, aiohttp, _connection(kopf, credentials(), namespace))

    @kopf.on.event("", "v1", "configmaps", registry=registry)
    async def changed(type: str | None, body: Mapping[str, Any], **_: Any) -> None:  # noqa: A002 - kopf's name
        # The server already selects; a server that ignores the selector must not supply other settings.
        if _is_named(body, name):
            on_change(None if type == "DELETED" else _seen(body))

    await kopf.operator(registry=registry, settings=_settings(kopf, name), namespaces=[namespace])


def _is_named(body: Mapping[str, Any], name: str) -> bool:
    """Whether the object has this name and is complete: one without uid or resourceVersion did not come from an API
    server."""
    metadata = body.get("metadata") or {}
    return metadata.get("name") == name and bool(metadata.get("uid")) and bool(metadata.get("resourceVersion"))


def _seen(body: Mapping[str, Any]) -> SeenConfigMap:
    metadata = body["metadata"]
    return SeenConfigMap(
        uid=metadata.get("uid", ""),
        resource_version=metadata.get("resourceVersion", ""),
        data=dict(body.get("data") or {}),
    )


def _bound_retry_after() -> None:
    """Limits kopf's wait after a 429 to a minute. Otherwise kopf sleeps as long as Retry-After says, and ends if that
    is a date.

    kopf has no setting for it. Does nothing if another release of kopf has moved its error class.
    """
    try:
        from kopf._cogs.clients.errors import APITooManyRequestsError
    except ImportError:
        return

    def headers(error: Any) -> dict[str, str]:
        answer = Response(status=429, headers={name.lower(): value for name, value in error._headers.items()}, body=b"")
        asked = retry_after(answer, now=datetime.now(UTC))
        return {} if asked is None else {"Retry-After": str(asked)}

    bounds: dict[str, Any] = {
        "headers": property(headers),
        "details": None,
    }  # the details hold the same number once more
    for name, bound in bounds.items():
        setattr(APITooManyRequestsError, name, bound)


def _bound_discovery() -> None:
    """Limits kopf's discovery to the API group of ConfigMaps and namespaces. Otherwise kopf discovers four API groups
    first, with five requests at each start of an agent.

    kopf has no setting for it. Does nothing if another release of kopf has no `scanning._read_version`.
    """
    try:
        from kopf._cogs.clients import scanning

        read_version = scanning._read_version
    except (ImportError, AttributeError):
        return

    async def scan_resources(*, settings: Any, logger: Any, **_: Any) -> Any:
        return await read_version(
            url="/api/v1", group="", version="v1", preferred=True, settings=settings, logger=logger
        )

    scanning.scan_resources = scan_resources


def _connection(library: Any, found: Credentials, namespace: str) -> kopf.ConnectionInfo:
    scheme, _, token = (found.authorization or "").partition(" ")
    connection: kopf.ConnectionInfo = library.ConnectionInfo(
        server=found.server,
        scheme=scheme or None,
        token=token or None,
        ca_path=found.ca_file,
        certificate_path=found.certificate_file,
        private_key_path=found.key_file,
        insecure=found.insecure or None,
        default_namespace=namespace,
    )
    return connection


def _bounded(library: Any, aiohttp: Any, found: kopf.ConnectionInfo) -> kopf.AiohttpSession:
    """A session as kopf itself would make it, whose answers have a limit."""

    class Answer(aiohttp.ClientResponse):  # type: ignore[misc]
        async def start(self, connection: Any) -> Any:
            started = await super().start(connection)
            self.content: Any = _Limited(self.content)
            return started

    session: kopf.AiohttpSession = library.AiohttpSession(
        server=found.server,
        default_namespace=found.default_namespace,
        aiohttp_session=aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=found.as_ssl_context()),
            headers=found.as_http_headers(),
            response_class=Answer,
        ),
    )
    return session


class _Limited:
    """The body of an answer to kopf. Raises `UnreadableAnswer` for more than `MOST_BYTES` of a watch's line, or of all
    of another answer."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def read(self) -> bytes:
        body = bytearray()
        async for piece in self._content.iter_any():
            body += piece
            _refuse(len(body))
        return bytes(body)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """For watches."""
        length = 0
        async for piece in self._content.iter_chunked(size):
            length = len(piece) - piece.rfind(b"\n") - 1 if b"\n" in piece else length + len(piece)
            _refuse(length)
            yield piece


def _refuse(length: int) -> None:
    if length > MOST_BYTES:
        raise UnreadableAnswer(f"the answer about the ConfigMap is longer than {MOST_BYTES // 2**20} MiB")


def _settings(kopf: Any, name: str) -> Any:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.networking.error_backoffs = Forever()
    settings.networking.request_timeout, settings.networking.connect_timeout = 30, 5
    settings.networking.enforce_retry_after = True
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.field_selectors["configmaps"] = f"metadata.name={name}"
    return settings

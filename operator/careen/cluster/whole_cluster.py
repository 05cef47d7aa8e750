"""Reads a snapshot page by page: the next page is requested while one is parsed, and none is kept.

Loads numpy, so it is separate from snapshot_reader.py, which the agent's own process may import.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from careen.cluster.snapshot_reader import again_if_expired, pages
from careen.cluster.wire.api import ClusterApi
from scheduler_core.snapshot.loading import PageReader
from scheduler_core.snapshot.snapshot import Snapshot


async def read_cluster(api: ClusterApi) -> Snapshot:
    """Raises `ClusterError` if any list fails: a partial cluster would give a wrong forecast."""
    return await again_if_expired(lambda: _read(api))


async def _read(api: ClusterApi) -> Snapshot:
    reader = PageReader()
    async for page in _one_ahead(pages(api)):
        reader.add(page)
    return reader.snapshot()


async def _one_ahead(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Requests the next page while the caller decodes one."""
    following = asyncio.ensure_future(_next(source))
    try:
        while (page := await following) is not None:
            following = asyncio.ensure_future(_next(source))
            await asyncio.sleep(0)  # lets the request go out
            yield page
    finally:
        following.cancel()


async def _next(source: AsyncIterator[bytes]) -> bytes | None:
    return await anext(source, None)

"""What the API server says of itself, etcd among it: `/readyz?verbose` names every check.

The path is open to every account (ClusterRole system:public-info-viewer); `/readyz/etcd` alone would need a right of
its own. Behind a load balancer one of the API servers answers for itself, and for the etcd member that it asks."""

from __future__ import annotations

import re

from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import raise_unless_ok
from careen.cluster.wire.transport import Request

PATH = "/readyz"
_FAILED = re.compile(r"^\[-\]([^\s:]+)", re.MULTILINE)  # `[-]etcd failed: reason withheld`
_MOST_TOLD = 5


async def failing_checks(api: ClusterApi) -> tuple[str, ...]:
    """The checks that fail; none when the server is ready. Raises `ClusterError` when that cannot be told."""
    request = Request(method="GET", path=PATH, query={"verbose": "true"}, accept="*/*", timeout_seconds=10.0)
    response = await api.ask(request)
    found = tuple(dict.fromkeys(_FAILED.findall(response.body[:65536].decode("utf-8", "replace"))))
    if found and response.status in (200, 500):
        return found[:_MOST_TOLD]
    raise_unless_ok(request, response, now=api.clock.now())
    return ()

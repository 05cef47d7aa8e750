"""Reads the API server's own readiness, which includes its etcd: `/readyz?verbose` names every check.

Every account may read this path (ClusterRole system:public-info-viewer); `/readyz/etcd` would need another rule. Behind
a load balancer, the API server that answers reports only itself and its own etcd member."""

from __future__ import annotations

import re

from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import raise_unless_ok
from careen.cluster.wire.transport import Request

PATH = "/readyz"
_FAILED = re.compile(r"^\[-\]([^\s:]+)", re.MULTILINE)  # `[-]etcd failed: reason withheld`
_MOST_TOLD = 5


async def failing_checks(api: ClusterApi) -> tuple[str, ...]:
    """Returns the failing checks; none if the server is ready. Raises `ClusterError` if the server gives no answer."""
    request = Request(method="GET", path=PATH, query={"verbose": "true"}, accept="*/*", timeout_seconds=10.0)
    response = await api.ask(request)
    found = tuple(dict.fromkeys(_FAILED.findall(response.body[:65536].decode("utf-8", "replace"))))
    if found and response.status in (200, 500):
        return found[:_MOST_TOLD]
    raise_unless_ok(request, response, now=api.clock.now())
    return ()

"""Whether the API server and its etcd are ready: `/readyz?verbose` lists every check.

Every account may read this path (ClusterRole system:public-info-viewer), while `/readyz/etcd` would need another RBAC
rule. Behind a load balancer, the server that answers reports only itself and its own etcd member.
"""

from __future__ import annotations

import re

from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import raise_unless_ok
from careen.cluster.wire.transport import Request

PATH = "/readyz"
_FAILED = re.compile(r"^\[-\]([^\s:]+)", re.MULTILINE)  # `[-]etcd failed: reason withheld`
_MOST_TOLD = 5


async def failing_checks(api: ClusterApi) -> tuple[str, ...]:
    """The failing checks. Raises `ClusterError` if the server gives no answer."""
    request = Request(method="GET", path=PATH, query={"verbose": "true"}, accept="*/*", timeout_seconds=10.0)
    response = await api.ask(request)
    found = tuple(dict.fromkeys(_FAILED.findall(response.body[:65536].decode("utf-8", "replace"))))
    if found and response.status in (200, 500):
        return found[:_MOST_TOLD]
    raise_unless_ok(request, response, now=api.clock.now())
    return ()

"""Tests how careen parses the page of `/readyz?verbose`. The test pages are written as the apiserver's healthz handler
writes them.
"""

from __future__ import annotations

import pytest

from careen.cluster.wire.errors import ClusterError
from careen.cluster.wire.transport import Request, Response
from careen.services.api_readiness import failing_checks
from tests.careen.cluster.conftest import Cluster, cluster

__all__ = ["cluster"]  # a fixture

READY = b"[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync ok\nreadyz check passed\n"
NO_ETCD = (
    b"[+]ping ok\n[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\n[+]informer-sync ok\n"
    b"[-]shutdown failed: reason withheld\nreadyz check failed\n"
)


class Page:
    """A fake API server that returns one fixed page."""

    def __init__(self, status: int, body: bytes) -> None:
        self.asked: list[Request] = []
        self._response = Response(status=status, headers={}, body=body)

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        return self._response


@pytest.mark.parametrize(
    ("status", "body", "failing"),
    [
        (200, READY, ()),
        (200, b"ok", ()),
        (500, NO_ETCD, ("etcd", "etcd-readiness", "shutdown")),
        (200, NO_ETCD, ("etcd", "etcd-readiness", "shutdown")),
        (500, b"[-]a:b failed: reason withheld\n" * 9, ("a",)),
        (500, b"".join(b"[-]c%d failed\n" % number for number in range(9)), ("c0", "c1", "c2", "c3", "c4")),
    ],
)
async def test_the_failing_checks_on_the_readyz_page_are_listed(
    cluster: Cluster, status: int, body: bytes, failing: tuple[str, ...]
) -> None:
    cluster.api.transport = server = Page(status, body)
    assert await failing_checks(cluster.api) == failing
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query, asked.accept) == ("GET", "/readyz", {"verbose": "true"}, "*/*")


@pytest.mark.parametrize(
    ("status", "body"), [(500, b""), (503, b"[-]etcd failed"), (401, b""), (403, NO_ETCD), (404, b""), (302, b"")]
)
async def test_a_page_that_is_not_a_list_of_readiness_checks_is_an_error(
    cluster: Cluster, status: int, body: bytes
) -> None:
    cluster.api.transport = Page(status, body)
    with pytest.raises(ClusterError):
        await failing_checks(cluster.api)

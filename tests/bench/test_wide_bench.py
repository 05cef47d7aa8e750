"""`python -m bench.wide` counts the requests of a whole roll-out by verb and resource."""

from __future__ import annotations

import pytest

from bench.wide.__main__ import kind_of
from careen.cluster.wire.transport import Request


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("GET", "/api/v1/nodes/n1", "GET nodes"),
        ("GET", "/api/v1/pods", "LIST pods"),
        ("GET", "/apis/apps/v1/namespaces/careen/daemonsets/careen", "GET daemonsets"),
        ("GET", "/api/v1/namespaces/shop/pods", "LIST pods"),
        ("POST", "/api/v1/namespaces/shop/pods/web-1/eviction", "POST eviction"),
        ("GET", "/readyz", "GET readyz"),
        ("GET", "/readyz?verbose", "GET readyz"),
    ],
)
def test_a_request_is_counted_by_its_verb_and_resource(method: str, path: str, kind: str) -> None:
    assert kind_of(Request(method=method, path=path)) == kind

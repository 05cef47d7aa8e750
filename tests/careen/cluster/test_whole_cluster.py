"""Tests that a snapshot shows the cluster at one moment, even if an object changes between two pages of a list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from careen.cluster import whole_cluster
from careen.cluster.snapshot_reader import ALWAYS
from careen.cluster.whole_cluster import read_cluster
from careen.cluster.wire.errors import Expired, Forbidden
from careen.cluster.wire.transport import Request
from drydock.server.kinds.resources import resource_named
from tests.careen.cluster.conftest import Cluster
from tests.careen.virtual_shell import methods


def many_pods(cluster: Cluster) -> None:
    cluster.put_node("n1", status={"allocatable": {"cpu": "64", "pods": "2000"}})
    for number in range(600):
        cluster.put_pod(f"p{number:03}")


async def test_a_snapshot_contains_every_page_of_every_list(cluster: Cluster) -> None:
    many_pods(cluster)
    snapshot = await read_cluster(cluster.api)
    assert ([node.name for node in snapshot.nodes], len(snapshot.placed_pods)) == (["n1"], 600)
    assert methods(cluster.wire.asked) == [f"GET {path}" for path in (*ALWAYS[:2], *ALWAYS[1:])]


async def test_a_snapshot_reads_an_expired_list_of_pods_again_from_the_start(cluster: Cluster) -> None:
    many_pods(cluster)
    expire_after(cluster, 1)
    snapshot = await read_cluster(cluster.api)
    assert sorted(pod.name for pod in snapshot.placed_pods) == [f"p{number:03}" for number in range(1, 600)]
    assert methods(cluster.wire.asked)[:4] == [
        "GET /api/v1/nodes",
        "GET /api/v1/pods",
        "GET /api/v1/pods",
        "GET /api/v1/nodes",
    ]


async def test_a_snapshot_fails_if_a_list_always_expires(cluster: Cluster) -> None:
    many_pods(cluster)
    expire_after(cluster, 99)
    with pytest.raises(Expired, match="/api/v1/pods"):
        await read_cluster(cluster.api)


def expire_after(cluster: Cluster, times: int) -> None:
    """Let the server return status 410 for the first `times` requests for the second page of pods. Before each of these
    responses, a pod is deleted and the server forgets its history."""
    doomed = [f"p{number:03}" for number in range(times)]

    def before(request: Request) -> None:
        if "continue" in request.query and doomed:
            cluster.server.store.remove(
                resource_named("pods").storage, ("shop", doomed.pop(0)), actor="test", verb="delete"
            )
            cluster.server.store.forget_history()

    cluster.wire.before = before


async def test_a_refused_list_ends_the_snapshot_and_cancels_its_other_requests(cluster: Cluster) -> None:
    cluster.server.api.authorizer = lambda user, verb, group, resource, namespace, name: resource != "services"
    with pytest.raises(Forbidden, match="services"):
        await read_cluster(cluster.api)
    assert [task for task in asyncio.all_tasks() if "_next" in repr(task)] == []


async def test_a_snapshot_requests_the_next_page_before_it_parses_the_current_page() -> None:
    events: list[str] = []

    async def source() -> AsyncIterator[bytes]:
        for number in range(3):
            events.append(f"asked {number}")
            yield b"page %d" % number

    async for page in whole_cluster._one_ahead(source()):
        read = page.decode()
        events.append(f"read {read}")
    assert events == ["asked 0", "asked 1", "read page 0", "asked 2", "read page 1", "read page 2"]

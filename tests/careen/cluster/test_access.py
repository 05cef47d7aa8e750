"""Missing rights are found by asking the server about each."""

from __future__ import annotations

import pytest

from careen.cluster.access import FORECAST_RIGHTS, Right, missing_rights, needed_rights
from careen.cluster.errors import ClusterError, Unclear
from tests.careen.cluster.conftest import Cluster

RIGHTS = needed_rights(node="n1", namespace="careen", daemonset="careen", config_map="careen", forecast=True)


async def test_with_every_right_nothing_is_missing(cluster: Cluster) -> None:
    assert await missing_rights(cluster.api, RIGHTS) == ()
    assert len(cluster.wire.asked) == len(RIGHTS)


async def test_each_missing_right_is_named_with_what_it_is_for(cluster: Cluster) -> None:
    def without_evictions(user: str, verb: str, group: str, resource: str, namespace: str, name: str) -> bool:
        return not (verb == "create" and resource.startswith("pods")) and not (verb == "patch" and resource == "daemonsets")

    cluster.server.api.authorizer = without_evictions
    missing = await missing_rights(cluster.api, RIGHTS)
    assert [right.title for right in missing] == ["patch daemonsets.apps careen/careen", "create pods/eviction"]
    assert missing[1].because == "pods are evicted, never deleted"


async def test_a_server_that_does_not_answer_says_nothing_about_rights(cluster: Cluster) -> None:
    cluster.wire.after = lambda _: Unclear("down")
    with pytest.raises(ClusterError):
        await missing_rights(cluster.api, RIGHTS[:1])


def test_without_a_forecast_its_lists_are_not_needed() -> None:
    without = needed_rights(node="n1", namespace="careen", daemonset="careen", config_map="careen", forecast=False)
    assert set(RIGHTS) - set(without) == set(FORECAST_RIGHTS)


def test_no_right_reaches_other_nodes_pods_or_daemonsets_than_it_must() -> None:
    """The agent never deletes pods and changes no other Node."""
    writing = {(right.verb, right.resource, right.subresource, right.name) for right in RIGHTS if right.verb not in ("get", "list", "watch")}
    assert writing == {
        ("patch", "nodes", "", "n1"), ("patch", "daemonsets", "", "careen"), ("create", "pods", "eviction", ""), ("create", "events", "", ""),
    }


def test_a_right_reads_like_kubectl() -> None:
    assert Right(verb="list", resource="nodes", because="").title == "list nodes"
    assert Right(verb="get", group="apps", resource="daemonsets", namespace="a", name="b", because="").title == "get daemonsets.apps a/b"

"""Tests how the agent asks the API server for its own rights and finds the missing rights."""

from __future__ import annotations

import pytest

from careen.cluster.access import FORECAST_RIGHTS, Right, missing_rights, needed_rights
from careen.cluster.wire.errors import ClusterError, Unclear
from careen.cluster.wire.transport import Response
from tests.careen.cluster.conftest import Cluster
from tests.careen.virtual_shell import Scripted, answer, api_on

RIGHTS = needed_rights(node="n1", namespace="careen", daemonset="careen", config_map="careen", forecast=True)


async def test_no_right_is_reported_missing_if_the_server_grants_all_rights(cluster: Cluster) -> None:
    assert await missing_rights(cluster.api, RIGHTS) == ()


def rules(*rows: dict[str, list[str]]) -> Response:
    return answer(
        201,
        {
            "kind": "SelfSubjectRulesReview",
            "metadata": {},
            "spec": {},
            "status": {"resourceRules": list(rows), "incomplete": False},
        },
    )


EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
NODES = Right(verb="list", resource="nodes", because="")
EVICT = Right(verb="create", resource="pods", subresource="eviction", because="")
LOCK = Right(verb="patch", resource="daemonsets", group="apps", namespace="careen", name="careen", because="")


async def test_an_agent_that_has_all_rights_sends_only_two_requests_to_check_them() -> None:
    """All agents of a fleet may start at once, so each agent must send few requests."""
    server = Scripted(rules(EVERYTHING), rules(EVERYTHING))
    assert await missing_rights(api_on(server), RIGHTS) == ()
    assert [body["spec"] for body in server.bodies] == [{"namespace": "careen"}, {"namespace": "default"}]


@pytest.mark.parametrize(
    ("right", "rule", "is_shown"),
    [
        (NODES, {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "nodes"]}, True),
        (NODES, {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}, False),
        (NODES, {"verbs": ["list"], "apiGroups": ["apps"], "resources": ["nodes"]}, False),
        (NODES, {"verbs": ["list"], "apiGroups": [""], "resources": ["nodes"], "resourceNames": ["n1"]}, False),
        (EVICT, {"verbs": ["create"], "apiGroups": [""], "resources": ["pods/eviction"]}, True),
        (EVICT, {"verbs": ["create"], "apiGroups": [""], "resources": ["pods"]}, False),
        (EVICT, {"verbs": ["create"], "apiGroups": [""], "resources": ["*/eviction"]}, True),
        (
            LOCK,
            {"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["daemonsets"], "resourceNames": ["careen"]},
            True,
        ),
        (
            LOCK,
            {"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["daemonsets"], "resourceNames": ["other"]},
            False,
        ),
        (LOCK, {"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["daemonsets"]}, True),
    ],
)
async def test_a_right_that_a_rules_review_does_not_show_is_checked_by_an_access_review(
    right: Right, rule: dict[str, list[str]], is_shown: bool
) -> None:
    namespaces = 2 if right.namespace else 1
    asked = Scripted(
        *[rules(rule)] * namespaces,
        *(
            []
            if is_shown
            else [
                answer(
                    201, {"kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {}, "status": {"allowed": False}}
                )
            ]
        ),
    )
    assert await missing_rights(api_on(asked), (right,)) == (() if is_shown else (right,))
    assert asked.answers == []


async def test_a_role_in_one_namespace_does_not_grant_a_cluster_wide_right() -> None:
    """A Role lets the agent list the pods of its own namespace, but a drain must list the pods of all namespaces."""
    in_ours = {"verbs": ["*"], "apiGroups": ["", "apps"], "resources": ["*"]}
    asked = Scripted(
        rules(in_ours),
        rules(),
        answer(201, {"kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {}, "status": {"allowed": False}}),
    )
    assert await missing_rights(api_on(asked), (NODES, LOCK)) == (NODES,)
    assert asked.answers == []


async def test_the_agent_reports_each_missing_right_with_its_purpose(cluster: Cluster) -> None:
    def without_evictions(user: str, verb: str, group: str, resource: str, namespace: str, name: str) -> bool:
        return not (verb == "create" and resource.startswith("pods")) and not (
            verb == "patch" and resource == "daemonsets"
        )

    cluster.server.api.authorizer = without_evictions
    missing = await missing_rights(cluster.api, RIGHTS)
    assert [right.title for right in missing] == ["patch daemonsets.apps careen/careen", "create pods/eviction"]
    assert missing[1].because == "the agent evicts pods, and never deletes them"


async def test_an_unanswered_rights_review_raises_an_error(cluster: Cluster) -> None:
    cluster.wire.after = lambda _: Unclear("down")
    with pytest.raises(ClusterError):
        await missing_rights(cluster.api, RIGHTS[:1])


def test_an_agent_that_makes_no_forecast_does_not_need_the_rights_for_the_forecast() -> None:
    without = needed_rights(node="n1", namespace="careen", daemonset="careen", config_map="careen", forecast=False)
    assert set(RIGHTS) - set(without) == set(FORECAST_RIGHTS)


def test_rights_to_write_are_limited_to_the_objects_that_need_them() -> None:
    """The agent never deletes pods, and changes no Node except its own."""
    writing = {
        (right.verb, right.resource, right.subresource, right.name)
        for right in RIGHTS
        if right.verb not in ("get", "list", "watch")
    }
    assert writing == {
        ("patch", "nodes", "", "n1"),
        ("patch", "daemonsets", "", "careen"),
        ("create", "pods", "eviction", ""),
        ("create", "events", "", ""),
    }


def test_a_missing_right_is_written_as_kubectl_writes_it() -> None:
    assert Right(verb="list", resource="nodes", because="").title == "list nodes"
    assert (
        Right(verb="get", group="apps", resource="daemonsets", namespace="a", name="b", because="").title
        == "get daemonsets.apps a/b"
    )

"""Missing rights are found by asking the server about each."""

from __future__ import annotations

import pytest

from careen.cluster.access import FORECAST_RIGHTS, Right, missing_rights, needed_rights
from careen.cluster.wire.errors import ClusterError, Unclear
from careen.cluster.wire.transport import Response
from tests.careen.cluster.conftest import Cluster
from tests.careen.virtual_shell import Scripted, answer, api_on

RIGHTS = needed_rights(node="n1", namespace="careen", daemonset="careen", config_map="careen", forecast=True)


async def test_with_every_right_nothing_is_missing(cluster: Cluster) -> None:
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


async def test_complete_rules_cost_two_requests() -> None:
    """A fleet that starts at once sends few requests."""
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
async def test_a_rule_is_read_as_by_the_authorizer_and_doubts_are_checked(
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


async def test_a_cluster_wide_right_granted_by_a_role_is_checked() -> None:
    """A Role in the own namespace allows a list of the pods there; a drain needs a list of all pods."""
    in_ours = {"verbs": ["*"], "apiGroups": ["", "apps"], "resources": ["*"]}
    asked = Scripted(
        rules(in_ours),
        rules(),
        answer(201, {"kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {}, "status": {"allowed": False}}),
    )
    assert await missing_rights(api_on(asked), (NODES, LOCK)) == (NODES,)
    assert asked.answers == []


async def test_each_missing_right_is_named_with_its_purpose(cluster: Cluster) -> None:
    def without_evictions(user: str, verb: str, group: str, resource: str, namespace: str, name: str) -> bool:
        return not (verb == "create" and resource.startswith("pods")) and not (
            verb == "patch" and resource == "daemonsets"
        )

    cluster.server.api.authorizer = without_evictions
    missing = await missing_rights(cluster.api, RIGHTS)
    assert [right.title for right in missing] == ["patch daemonsets.apps careen/careen", "create pods/eviction"]
    assert missing[1].because == "the agent evicts pods, and never deletes them"


async def test_an_unanswered_review_reports_no_missing_rights(cluster: Cluster) -> None:
    cluster.wire.after = lambda _: Unclear("down")
    with pytest.raises(ClusterError):
        await missing_rights(cluster.api, RIGHTS[:1])


def test_without_a_forecast_the_rights_for_its_lists_are_not_needed() -> None:
    without = needed_rights(node="n1", namespace="careen", daemonset="careen", config_map="careen", forecast=False)
    assert set(RIGHTS) - set(without) == set(FORECAST_RIGHTS)


def test_every_right_is_limited_to_the_objects_that_need_it() -> None:
    """The agent never deletes pods and changes no other Node."""
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


def test_a_right_is_written_as_by_kubectl() -> None:
    assert Right(verb="list", resource="nodes", because="").title == "list nodes"
    assert (
        Right(verb="get", group="apps", resource="daemonsets", namespace="a", name="b", because="").title
        == "get daemonsets.apps a/b"
    )

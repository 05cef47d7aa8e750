"""Tests how careen reads Nodes, and the patch that changes a Node only if its resourceVersion is unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from careen.cluster.nodes import list_nodes, merge_patch, patch_node, read_node
from careen.cluster.wire.errors import Forbidden, Unclear
from careen.cluster.wire.transport import Request
from careen.cluster.wire.writes import Landed, Rejected, Stale, StillUnclear
from careen.core.actions import PatchNode
from careen.core.facts.observation import Gone, NodeView, Taint
from tests.careen.cluster.conftest import Cluster
from tests.careen.virtual_shell import methods

OURS = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
THEIRS = Taint(key="team", effect="NoSchedule", value="db", time_added="2026-03-04T11:00:00Z")


async def seen(cluster: Cluster, name: str = "n1") -> NodeView:
    node = await read_node(cluster.api, name)
    assert isinstance(node, NodeView)
    return node


async def test_a_node_is_read_with_all_fields(cluster: Cluster) -> None:
    cluster.put_node(
        "n1",
        labels={"topology.kubernetes.io/zone": "a"},
        annotations={"careen.dev/hold": "why"},
        spec={
            "unschedulable": True,
            "taints": [{"key": "team", "effect": "NoSchedule", "value": "db", "timeAdded": "2026-03-04T11:00:00Z"}],
        },
        status={"conditions": [{"type": "Ready", "status": "Unknown"}], "nodeInfo": {"bootID": "b1"}},
    )
    node = await seen(cluster)
    assert (node.name, node.uid, node.boot_id, node.unschedulable, node.ready, node.zone) == (
        "n1",
        "uid-nodes--n1",
        "b1",
        True,
        False,
        "a",
    )
    assert node.taints == (THEIRS,)
    assert dict(node.annotations) == {"careen.dev/hold": "why"}


async def test_a_node_without_conditions_is_not_ready(cluster: Cluster) -> None:
    cluster.put_node("n1", status={})
    node = await seen(cluster)
    assert (node.ready, node.boot_id, node.taints, dict(node.labels), node.unschedulable) == (False, "", (), {}, False)


async def test_a_read_of_a_missing_node_reports_that_the_node_does_not_exist(cluster: Cluster) -> None:
    assert await read_node(cluster.api, "n9") == Gone()


async def test_nodes_are_requested_in_their_latest_state(cluster: Cluster) -> None:
    cluster.put_node("n1")
    await seen(cluster)
    await list_nodes(cluster.api)
    assert all("resourceVersion" not in request.query for request in cluster.wire.asked)


async def test_a_list_of_nodes_leaves_out_annotations_of_other_programs(cluster: Cluster) -> None:
    cluster.put_node(
        "n1", labels={"careen.dev/reboot": "in-progress"}, annotations={"careen.dev/progress": "{}", "big": "x" * 1000}
    )
    cluster.put_node("n2", labels={"careen.dev/reboot": "failed"})
    cluster.put_node("n3", labels={"careen.dev/reboot": "ready"})
    cluster.put_node("n4")
    busy = await list_nodes(cluster.api, reboot_label=("in-progress", "failed"))
    assert [node.name for node in busy] == ["n1", "n2"]
    assert dict(busy[0].annotations) == {"careen.dev/progress": "{}"}
    assert [node.name for node in await list_nodes(cluster.api)] == ["n1", "n2", "n3", "n4"]


async def test_a_patch_changes_exactly_the_given_fields_of_a_node(cluster: Cluster) -> None:
    cluster.put_node(
        "n1",
        labels={"keep": "1", "drop": "1"},
        annotations={"gone": "x"},
        spec={
            "podCIDR": "10.0.0.0/24",
            "taints": [{"key": "team", "effect": "NoSchedule", "value": "db", "timeAdded": "2026-03-04T11:00:00Z"}],
        },
    )
    before = await seen(cluster)
    patch = PatchNode(
        purpose="cordon",
        resource_version=before.resource_version,
        labels={"drop": None, "careen.dev/reboot": "in-progress"},
        annotations={"gone": None, "careen.dev/phase": "Draining"},
        taints=(*before.taints, OURS),
        unschedulable=True,
    )
    landed = await patch_node(cluster.api, "n1", patch)
    node = cluster.node("n1")
    assert node["metadata"]["labels"] == {"keep": "1", "careen.dev/reboot": "in-progress"}
    assert node["metadata"]["annotations"] == {"careen.dev/phase": "Draining"}
    assert node["spec"] == {
        "podCIDR": "10.0.0.0/24",
        "unschedulable": True,
        "taints": [
            {"key": "team", "effect": "NoSchedule", "value": "db", "timeAdded": "2026-03-04T11:00:00Z"},
            {"key": "careen.dev/reboot", "effect": "PreferNoSchedule"},
        ],
    }
    assert landed == Landed(await seen(cluster))


async def test_the_undo_patch_removes_taint_and_cordon(cluster: Cluster) -> None:
    cluster.put_node(
        "n1", spec={"unschedulable": True, "taints": [{"key": "careen.dev/reboot", "effect": "PreferNoSchedule"}]}
    )
    before = await seen(cluster)
    await patch_node(
        cluster.api,
        "n1",
        PatchNode(purpose="undo", resource_version=before.resource_version, taints=(), unschedulable=False),
    )
    assert cluster.node("n1")["spec"] == {}


def test_an_uncordon_is_written_as_kubectl_writes_it() -> None:
    """A schedulable Node has no field `unschedulable` in the API, so the patch removes the field instead of setting it
    to false."""
    assert merge_patch(PatchNode(purpose="", resource_version="7", unschedulable=False), "7")["spec"] == {
        "unschedulable": None
    }


def test_a_patch_does_not_contain_fields_that_are_not_given() -> None:
    assert merge_patch(PatchNode(purpose="", resource_version="7"), "7") == {"metadata": {"resourceVersion": "7"}}


async def test_a_patch_with_an_old_resource_version_does_not_change_the_node(cluster: Cluster) -> None:
    before = cluster.put_node("n1")
    patch = PatchNode(purpose="", resource_version="1", annotations={"a": "b"})
    assert isinstance(await patch_node(cluster.api, "n1", patch), Stale)
    assert cluster.node("n1") == before


async def test_a_patch_of_a_deleted_node_does_not_create_the_node(cluster: Cluster) -> None:
    assert isinstance(
        await patch_node(cluster.api, "n9", PatchNode(purpose="", resource_version="1", annotations={"a": "b"})), Stale
    )
    assert cluster.server.get("nodes", "n9") is None


async def test_the_outcome_of_a_refused_patch_contains_the_http_status(cluster: Cluster) -> None:
    before = cluster.put_node("n1")
    patch = PatchNode(purpose="", resource_version=before["metadata"]["resourceVersion"], labels={"bad key!": "x"})
    outcome = await patch_node(cluster.api, "n1", patch)
    assert isinstance(outcome, Rejected)
    assert "422" in outcome.why


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_patch_whose_answer_was_lost_is_applied_exactly_once(cluster: Cluster, arrives: bool) -> None:
    """The connection breaks before or after the server carries out the patch, so careen cannot know whether to repeat
    the patch."""
    version = cluster.put_node("n1")["metadata"]["resourceVersion"]
    lost = [Unclear("connection reset")]

    def once(request: Request) -> Unclear | None:
        return lost.pop() if lost and request.method == "PATCH" else None

    if arrives:
        cluster.wire.after = once
    else:
        cluster.wire.before = once
    outcome = await patch_node(
        cluster.api,
        "n1",
        PatchNode(
            purpose="", resource_version=version, annotations={"careen.dev/phase": "Draining"}, unschedulable=True
        ),
    )
    assert isinstance(outcome, Landed)
    assert outcome.seen.unschedulable
    path = "/api/v1/nodes/n1"
    again = [] if arrives else [f"PATCH {path}"]
    assert methods(cluster.wire.asked) == [f"PATCH {path}", f"GET {path}", *again]


@pytest.mark.parametrize(
    "change", [{"unschedulable": True}, {"taints": (OURS,)}, {"labels": {"a": "b"}}, {"annotations": {"a": "b"}}]
)
async def test_a_lost_patch_of_any_field_is_sent_again(cluster: Cluster, change: dict[str, Any]) -> None:
    version = cluster.put_node("n1")["metadata"]["resourceVersion"]
    lost = [Unclear("connection reset")]
    cluster.wire.before = lambda request: lost.pop() if lost and request.method == "PATCH" else None
    assert isinstance(
        await patch_node(cluster.api, "n1", PatchNode(purpose="", resource_version=version, **change)), Landed
    )
    assert methods(cluster.wire.asked).count("PATCH /api/v1/nodes/n1") == 2


@pytest.mark.parametrize(
    ("before", "after"), [(["cordon", "ours", "team"], ["team"]), (["ours", "team"], ["team", "cordon"])]
)
async def test_an_applied_patch_with_a_lost_answer_is_recognised_although_other_taints_changed(
    cluster: Cluster, before: list[str], after: list[str]
) -> None:
    """The node controller removes the taint of a cordon right after the uncordon, and may add a taint at any time.
    Therefore careen recognises careen's own taints by their keys.
    """
    rows = {
        "cordon": {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        "ours": {"key": OURS.key, "effect": OURS.effect},
        "team": {"key": THEIRS.key, "effect": THEIRS.effect, "value": THEIRS.value, "timeAdded": THEIRS.time_added},
    }
    cluster.put_node("n1", spec={"taints": [rows[each] for each in before]})
    node = await seen(cluster)
    lost = [Unclear("connection reset")]

    def follow(request: Request) -> Exception | None:
        if request.method != "PATCH" or not lost:
            return None
        cluster.put_node("n1", annotations={"k": "v"}, spec={"taints": [rows[each] for each in after]})
        return lost.pop()

    cluster.wire.after = follow
    without_ours = tuple(taint for taint in node.taints if taint.key != OURS.key)
    written = await patch_node(
        cluster.api,
        "n1",
        PatchNode(purpose="test", resource_version=node.resource_version, annotations={"k": "v"}, taints=without_ours),
    )
    assert isinstance(written, Landed)


async def test_a_delayed_patch_that_arrives_after_its_repetition_is_a_conflict(cluster: Cluster) -> None:
    """The agent stops waiting for the response to a patch and sends the same patch again. The patch that arrives first
    changes the Node's resource version, so the other patch fails with a conflict."""
    version = cluster.put_node("n1")["metadata"]["resourceVersion"]
    late: list[Request] = []

    def hold_back(request: Request) -> Unclear | None:
        if request.method == "PATCH" and not late:
            late.append(request)
            return Unclear("timed out")
        return None

    cluster.wire.before = hold_back
    assert isinstance(
        await patch_node(cluster.api, "n1", PatchNode(purpose="", resource_version=version, annotations={"a": "1"})),
        Landed,
    )
    after = cluster.node("n1")
    assert (await cluster.wire.inner.send(late[0])).status == 409
    assert cluster.node("n1") == after


async def test_the_outcome_of_a_lost_patch_is_unclear_if_the_node_cannot_be_read_again(cluster: Cluster) -> None:
    version = cluster.put_node("n1")["metadata"]["resourceVersion"]
    cluster.wire.after = lambda _: Unclear("down")
    assert isinstance(
        await patch_node(cluster.api, "n1", PatchNode(purpose="", resource_version=version, annotations={"a": "1"})),
        StillUnclear,
    )


async def test_the_error_about_a_forbidden_read_of_a_node_shows_the_resource(cluster: Cluster) -> None:
    cluster.put_node("n1")
    cluster.server.api.authorizer = lambda *_: False
    with pytest.raises(Forbidden, match="nodes"):
        await read_node(cluster.api, "n1")


async def test_node_names_are_url_quoted_in_paths(cluster: Cluster) -> None:
    await read_node(cluster.api, "a/b?c")
    assert methods(cluster.wire.asked) == ["GET /api/v1/nodes/a%2Fb%3Fc"]


def test_a_patch_writes_taints_of_other_clients_unchanged() -> None:
    patch = merge_patch(PatchNode(purpose="", resource_version="1", taints=(THEIRS,)), "1")
    assert json.loads(json.dumps(patch))["spec"]["taints"] == [
        {"key": "team", "effect": "NoSchedule", "value": "db", "timeAdded": "2026-03-04T11:00:00Z"}
    ]


@pytest.mark.parametrize(("unschedulable", "manager"), [(True, "careen-agent"), (False, "careen-agent"), (None, None)])
async def test_a_cordon_or_uncordon_is_written_with_careens_field_manager(
    cluster: Cluster, unschedulable: bool | None, manager: str | None
) -> None:
    cluster.put_node("n1")
    node = await seen(cluster)
    await patch_node(
        cluster.api,
        "n1",
        PatchNode(purpose="x", resource_version=node.resource_version, labels={"a": "b"}, unschedulable=unschedulable),
    )
    assert cluster.wire.asked[-1].query.get("fieldManager") == manager


@pytest.mark.parametrize(("adds_taint", "manager"), [(True, "careen-taint"), (False, None)])
async def test_a_patch_that_adds_careens_taint_uses_a_separate_field_manager(
    cluster: Cluster, adds_taint: bool, manager: str | None
) -> None:
    """managedFields name one field manager for the whole list of taints. A patch that only removes careen's taint must
    not make careen the manager of the remaining taints."""
    cluster.put_node("n1")
    node = await seen(cluster)
    patch = PatchNode(purpose="x", resource_version=node.resource_version, taints=(THEIRS,), adds_taint=adds_taint)
    await patch_node(cluster.api, "n1", patch)
    assert cluster.wire.asked[-1].query.get("fieldManager") == manager

"""Tests that careen writes Events where `kubectl describe` finds them."""

from __future__ import annotations

from careen.cluster.events import Subject, event, post_event
from careen.cluster.wire.errors import Unclear
from careen.cluster.wire.transport import Request
from tests.careen.cluster.conftest import Cluster
from tests.careen.virtual_shell import Scripted, api_on, status

NODE = Subject(kind="Node", name="n1", uid="u1")


async def test_an_event_of_a_node_is_written_where_kubectl_describe_finds_it(cluster: Cluster) -> None:
    cluster.server.seed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    assert (
        await post_event(cluster.api, NODE, reason="DrainTimeout", sentence="took too long", is_warning=True, host="n1")
        == ""
    )
    (change,) = [
        each
        for each in cluster.server.store.journal
        if each.after is not None and each.after.content.get("kind") == "Event"
    ]
    assert change.after is not None
    posted = change.after.content
    assert posted["metadata"]["namespace"] == "default"
    assert posted["involvedObject"] == {"kind": "Node", "name": "n1", "uid": "u1", "apiVersion": "v1"}
    assert (posted["type"], posted["reason"], posted["message"], posted["source"]) == (
        "Warning",
        "DrainTimeout",
        "took too long",
        {"component": "careen", "host": "n1"},
    )
    assert posted["firstTimestamp"] == "2026-03-04T12:00:00Z"


def test_an_event_of_a_config_map_is_written_to_its_namespace() -> None:
    made = event(
        Subject(kind="ConfigMap", name="careen", uid="u", namespace="careen"),
        reason="BadSettings",
        sentence="x",
        is_warning=False,
        host="n1",
        at="2026-03-04T12:00:00Z",
    )
    assert made["metadata"] == {"generateName": "careen.", "namespace": "careen"}
    assert made["involvedObject"]["namespace"] == "careen"
    assert made["type"] == "Normal"


async def test_agents_with_the_same_finding_share_one_event(cluster: Cluster) -> None:
    subject = Subject(kind="ConfigMap", name="careen", uid="u1", namespace="careen")
    cluster.server.seed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "careen"}})
    for host, edit in (("n1", "u1/7"), ("n2", "u1/7"), ("n1", "u1/8"), ("n2", "u1/8"), ("n1", "")):
        assert (
            await post_event(
                cluster.api,
                subject,
                reason="BadSettings",
                sentence=f"seen by {host}",
                is_warning=True,
                host=host,
                once=edit,
            )
            == ""
        )
    posted = [
        each.after.content
        for each in cluster.server.store.journal
        if each.after is not None and each.after.content.get("kind") == "Event"
    ]
    assert [(content["message"], content["metadata"]["name"].startswith("careen.")) for content in posted] == [
        ("seen by n1", True)
    ] * 3


def test_a_long_event_message_is_cut_to_the_servers_limit() -> None:
    made = event(NODE, reason="R", sentence="ä" * 2000, is_warning=False, host="n1", at="2026-03-04T12:00:00Z")
    assert made["message"] == "ä" * 500


async def test_an_event_that_cannot_be_posted_is_logged_without_an_exception() -> None:
    assert "403" in await post_event(
        api_on(Scripted(status(403, "Forbidden"))), NODE, reason="R", sentence="s", is_warning=False, host="n1"
    )


async def test_an_event_whose_answer_was_lost_is_posted_again_and_exists_once(cluster: Cluster) -> None:
    cluster.server.seed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    lost = []

    def lose(request: Request) -> Exception | None:
        if len(lost) < 2:
            lost.append(request)
            return Unclear("connection reset")
        return None

    cluster.wire.after = lose
    why = await post_event(
        cluster.api,
        Subject(kind="Node", name="n1", uid="u"),
        reason="Released",
        sentence="given back",
        is_warning=False,
        host="n1",
        pauses=(1.0, 2.0),
    )
    names = {
        change.key
        for change in cluster.server.store.journal
        if change.after is not None and change.after.content.get("kind") == "Event"
    }
    assert (why, len(cluster.wire.asked), len(names)) == ("", 3, 1)

"""Tests the lock annotation and its compare-and-swap writes, with responses that are lost or late."""

from __future__ import annotations

import asyncio

import pytest

from careen.cluster.lock_store import LockStore
from careen.cluster.wire.errors import NotFound, Unclear
from careen.cluster.wire.transport import Request
from careen.cluster.wire.writes import Landed, Stale
from careen.core.actions import WriteLock
from careen.core.lock.reading import LockReading
from tests.careen.cluster.conftest import Cluster
from tests.careen.virtual_shell import methods

KEY = "weave.works/kured-node-lock"


def store(cluster: Cluster) -> LockStore:
    return LockStore(cluster.api, namespace="careen", name="careen", annotation=KEY)


def to_write(reading: LockReading, content: str | None) -> WriteLock:
    return WriteLock(
        purpose="take a claim",
        expected_resource_version=reading.resource_version,
        daemonset_uid=reading.daemonset_uid,
        content=content,
    )


async def test_a_read_of_the_lock_returns_the_latest_state_with_its_resource_version(cluster: Cluster) -> None:
    cluster.put_daemonset(uid="ds1", annotations={KEY: "{}"})
    reading = await store(cluster).read()
    assert (reading.text, reading.daemonset_uid, reading.annotation) == ("{}", "ds1", KEY)
    assert "resourceVersion" not in cluster.wire.asked[0].query


@pytest.mark.parametrize(("scheduled", "agents"), [(5000, 5000), (0, None), (None, None)])
async def test_a_read_of_the_lock_includes_the_number_of_agents(
    cluster: Cluster, scheduled: int | None, agents: int | None
) -> None:
    cluster.put_daemonset(scheduled=scheduled)
    assert (await store(cluster).read()).agents == agents


async def test_a_read_of_the_lock_includes_the_cluster_wide_gate_annotations(cluster: Cluster) -> None:
    cluster.put_daemonset(annotations={"careen.dev/gate.db": "failover", "careen.dev/gates": "x", KEY: "{}"})
    assert (await store(cluster).read()).gates == {"careen.dev/gate.db": "failover"}


async def test_a_missing_lock_annotation_is_read_as_none_and_a_missing_daemonset_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(NotFound):
        await store(cluster).read()
    cluster.put_daemonset()
    assert (await store(cluster).read()).text is None


async def test_a_write_of_the_lock_changes_only_the_lock_annotation(cluster: Cluster) -> None:
    cluster.put_daemonset(annotations={"other": "1"})
    reading = await store(cluster).read()
    outcome = await store(cluster).write(to_write(reading, "claimed"))
    assert outcome == Landed(await store(cluster).read())
    after = cluster.server.get("daemonsets", "careen", "careen")
    assert after is not None
    assert after["metadata"]["annotations"] == {"other": "1", KEY: "claimed"}
    assert after["spec"]["template"]["spec"]["containers"][0]["image"] == "careen:1"


async def test_writing_none_as_the_lock_removes_the_lock_annotation(cluster: Cluster) -> None:
    cluster.put_daemonset(annotations={KEY: "x"})
    await store(cluster).write(to_write(await store(cluster).read(), None))
    assert (await store(cluster).read()).text is None


async def test_only_one_of_many_writers_of_the_same_lock_version_succeeds(cluster: Cluster) -> None:
    cluster.put_daemonset()
    reading = await store(cluster).read()
    outcomes = await asyncio.gather(
        *(store(cluster).write(to_write(reading, f"claim-{number}")) for number in range(8))
    )
    (winner,) = [each for each in outcomes if isinstance(each, Landed)]
    assert [type(each) for each in outcomes].count(Stale) == 7
    assert (await store(cluster).read()).text == winner.seen.text


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_claim_whose_write_got_no_answer_is_in_the_lock_exactly_once(cluster: Cluster, arrives: bool) -> None:
    cluster.put_daemonset()
    reading = await store(cluster).read()
    lost = [Unclear("reset")]

    def once(request: Request) -> Unclear | None:
        return lost.pop() if lost and request.method == "PATCH" else None

    if arrives:
        cluster.wire.after = once
    else:
        cluster.wire.before = once
    outcome = await store(cluster).write(to_write(reading, "claimed"))
    assert isinstance(outcome, Landed)
    assert (outcome.seen.text, (await store(cluster).read()).text) == ("claimed", "claimed")
    assert methods(cluster.wire.asked).count("PATCH /apis/apps/v1/namespaces/careen/daemonsets/careen") == (
        1 if arrives else 2
    )


async def test_a_repeated_write_of_the_lock_does_not_overwrite_another_nodes_claim(cluster: Cluster) -> None:
    cluster.put_daemonset()
    reading = await store(cluster).read()
    lost = [Unclear("reset")]

    def overtaken(request: Request) -> Unclear | None:
        if not lost or request.method != "PATCH":
            return None
        found = cluster.server.get("daemonsets", "careen", "careen")
        assert found is not None
        found["metadata"]["annotations"] = {KEY: "theirs"}
        cluster.server.seed(found)
        return lost.pop()

    cluster.wire.before = overtaken
    assert isinstance(await store(cluster).write(to_write(reading, "ours")), Stale)
    assert (await store(cluster).read()).text == "theirs"


async def test_a_write_of_the_lock_to_a_recreated_daemonset_is_a_conflict(cluster: Cluster) -> None:
    """A claim in the annotation of the deleted DaemonSet is not a claim in the recreated DaemonSet, even if both
    annotations have the same text."""
    cluster.put_daemonset(uid="old")
    reading = await store(cluster).read()
    lost = [Unclear("reset")]

    def recreated(request: Request) -> Unclear | None:
        if not lost or request.method != "PATCH":
            return None
        cluster.put_daemonset(uid="new", annotations={KEY: "ours"})
        return lost.pop()

    cluster.wire.before = recreated
    assert isinstance(await store(cluster).write(to_write(reading, "ours")), Stale)

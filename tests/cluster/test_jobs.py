"""Tests Jobs with pods on a drained node. Agents do not wait for a Job that has completed or failed."""

from __future__ import annotations

import pytest

from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.observer import PodLife
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import SHOP, cron_job, job, path_of

pytestmark = pytest.mark.cluster


def pods_of(story: Story, owner: str) -> list[PodLife]:
    return [
        life
        for life in story.observer.pods()
        if life.owner == f"Job/{owner}" and life.deleting_at is None and not life.finished
    ]


def put_on(story: Story, host: Host, others: list[Host]) -> None:
    """Start four Jobs on this node. One Job will complete, one Job fails when its pod is evicted, one Job belongs to a
    CronJob, and one Job is deleted as soon as it has ended.
    """
    for other in others:
        story.cordon(other)
    story.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
    cron = cron_job("nightly", job("nightly"))
    made = story.admin.create(path_of(cron), cron)
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "nightly",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    nightly = job("nightly-1")
    nightly["metadata"]["ownerReferences"] = [owner]
    cleared = job("cleared")
    cleared["spec"]["ttlSecondsAfterFinished"] = 0
    story.apply(job("completes"), job("fails", backoff_limit=0), nightly, cleared)
    jobs = ("completes", "fails", "nightly-1", "cleared")
    story.wait_for("the Jobs run", lambda: all(any(life.ready_at for life in pods_of(story, each)) for each in jobs))
    for other in others:
        story.cordon(other, cordoned=False)
    assert {life.node for each in jobs for life in pods_of(story, each)} == {host.name}


def ends(story: Story, name: str, away_from: Host) -> None:
    """Wait until the Job has a ready pod on another node, and let this pod complete."""

    def replaced() -> PodLife | None:
        return next((life for life in pods_of(story, name) if life.node != away_from.name and life.ready_at), None)

    story.end_pod(story.wait_for(f"{name} runs on another node", replaced), "Succeeded")


def test_jobs_that_ended_before_the_node_settled_do_not_halt_the_roll_out(story: Story) -> None:
    """One Job completed on another node, one Job failed because its pod was evicted, one Job of a CronJob completed,
    and one Job was deleted after its end.
    """
    first, second = hosts = story.nodes(
        2, "--settle-timeout=15s", change=lambda host: setattr(host, "boot_seconds", 8.0)
    )
    put_on(story, first, [second])
    story.need_reboot([first])
    for name in ("completes", "nightly-1", "cleared"):
        ends(story, name, away_from=first)
    story.wait_for(
        "the Jobs are over",
        lambda: not any(pods_of(story, each) for each in ("completes", "fails", "nightly-1", "cleared")),
    )
    story.finishes([first])
    story.need_reboot([second])
    story.finishes(hosts)
    story.judge()
    status = story.admin.get(f"/apis/batch/v1/namespaces/{SHOP}/jobs/fails")["status"]
    assert status.get("failed") == 1
    assert not story.events("SettleTimeout")

"""Tests `careen scheduler` with the rights of its manifests: pods that name it get a node, and a pod that fits nowhere
gets one as soon as there is room.
"""

from __future__ import annotations

from collections import Counter
from urllib.request import urlopen

import pytest

from tests.cluster.harness.machines.schedulers import NAME, PODS, Schedulers, condition, manifests
from tests.cluster.harness.measures.drains import apply
from tests.patience import wait_until

pytestmark = pytest.mark.cluster

EVENTS = "/apis/events.k8s.io/v1/namespaces/shop/events"


def test_pods_that_name_the_scheduler_are_bound_and_others_are_left_alone(schedulers: Schedulers) -> None:
    schedulers.nodes(5)
    scheduler = schedulers.start(elects=True)
    schedulers.pods(f"web-{number}" for number in range(16))
    schedulers.pods(["theirs"], schedulerName="somebody-else")
    wait_until(lambda: schedulers.unbound() == ["theirs"], scheduler.program.tail)
    schedulers.judge()
    assert {each["user"]["username"] for each in schedulers.bindings()} == {f"system:serviceaccount:careen:{NAME}"}
    scheduler.says('"Successfully bound pod to node" pod="shop/web-15"')  # after the answer, which may come late
    with urlopen(f"http://127.0.0.1:{scheduler.port}/metrics", timeout=30) as metrics:
        assert f'attempts_total{{profile="{NAME}",result="scheduled"}} 16.0' in metrics.read().decode()
    assert "theirs" not in scheduler.program.log.read_text()


def test_a_pod_that_fits_nowhere_is_told_why_and_is_bound_when_another_leaves(schedulers: Schedulers) -> None:
    schedulers.nodes(2)
    schedulers.start()
    schedulers.pods(f"web-{number}" for number in range(8))
    schedulers.all_bound()
    schedulers.pods(["late"])
    wait_until(lambda: condition(schedulers.listed()["late"]))
    assert condition(schedulers.listed()["late"])["message"] == (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )
    wait_until(lambda: _events_about(schedulers, "late")["FailedScheduling"] == 1)
    schedulers.delete("web-3")
    schedulers.all_bound()
    wait_until(lambda: _events_about(schedulers, "late")["Scheduled"] == 1)
    schedulers.judge()


def test_a_preemptor_evicts_a_victim_with_a_disruption_condition_and_takes_its_place(schedulers: Schedulers) -> None:
    apply(
        schedulers.plane.admin,
        [
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "urgent"},
                "value": 1000,
            }
        ],
    )
    schedulers.nodes(1)
    schedulers.start()
    schedulers.pods(f"web-{number}" for number in range(4))
    schedulers.all_bound()
    schedulers.pods(["urgent"], priorityClassName="urgent")
    schedulers.all_bound()
    assert len(schedulers.listed()) == 4
    schedulers.judge()
    patches = [str(each.get("requestObject")) for each in schedulers.requests() if each["verb"] == "patch"]
    assert sum("PreemptionByScheduler" in each for each in patches) == 1


def test_the_scheduler_lists_once_and_then_only_watches(schedulers: Schedulers) -> None:
    schedulers.nodes(3)
    scheduler = schedulers.start()
    scheduler.says("careen schedules")
    before = len(schedulers.requests())
    schedulers.pods(f"web-{number}" for number in range(12))
    schedulers.all_bound()
    wait_until(lambda: len(schedulers.plane.admin.list(EVENTS)) >= 12)
    calls = Counter(
        (each["verb"], each["objectRef"].get("subresource") or each["objectRef"]["resource"])
        for each in schedulers.requests()[before:]
        if each["verb"] != "watch"
    )
    assert calls == {("create", "binding"): 12, ("create", "events"): 12}


def test_a_finished_pod_makes_room_and_is_not_watched(schedulers: Schedulers) -> None:
    schedulers.nodes(1)
    schedulers.start()
    schedulers.pods(f"web-{number}" for number in range(4))
    schedulers.all_bound()
    schedulers.pods(["late"])
    wait_until(lambda: condition(schedulers.listed()["late"]))
    merge = "application/strategic-merge-patch+json"
    schedulers.plane.admin.patch(f"{PODS}/web-2/status", {"status": {"phase": "Succeeded"}}, merge)
    schedulers.all_bound()
    watches = [each["requestURI"] for each in schedulers.requests() if each["objectRef"]["resource"] == "pods"]
    assert all("fieldSelector=status.phase" in each for each in watches if "watch=true" in each or "limit=" in each)


def test_the_manifests_are_accepted_by_the_api_server(schedulers: Schedulers) -> None:
    (deployment,) = (each for each in manifests(with_deployment=True) if each["kind"] == "Deployment")
    made = schedulers.plane.admin.create("/apis/apps/v1/namespaces/careen/deployments?dryRun=All", deployment)
    assert made["spec"]["replicas"] == 2
    assert schedulers.plane.admin.list(PODS) == []


def _events_about(schedulers: Schedulers, pod: str) -> Counter[str]:
    return Counter(
        each["reason"] for each in schedulers.plane.admin.list(EVENTS) if each["regarding"].get("name") == pod
    )

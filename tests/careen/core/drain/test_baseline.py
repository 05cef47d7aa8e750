"""The baseline: the health of a node's workloads before the drain, which an annotation of the Node stores."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.drain import baseline
from careen.core.facts.observation import Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.progress import from_annotation, to_annotation
from tests.careen.core.builders import (
    a_daemon_pod,
    a_marked_node,
    a_pod,
    a_progress,
    a_reading,
    a_situation,
    an_entry,
    an_owner,
    held,
)

DRAINING = a_progress(Phase.DRAINING)


def test_the_health_comparison_after_a_reboot_ignores_jobs_and_daemonsets() -> None:
    rows = (an_owner(), an_owner("j", kind="Job"), an_owner("d", kind="DaemonSet"), an_owner("s", kind="StatefulSet"))
    assert [row.kind for row in baseline.services(rows)] == ["ReplicaSet", "StatefulSet"]


def test_the_health_comparison_knows_the_kinds_of_other_api_groups() -> None:
    rows = tuple(
        an_owner(kind[0], kind=f"{kind}.apps.kruise.io") for kind in ("Job", "DaemonSet", "StatefulSet", "CloneSet")
    )
    assert [row.name for row in baseline.services(rows)] == ["S", "C"]
    assert [row.name for row in rows if baseline.is_of_the_node(row)] == ["D"]
    pod = a_daemon_pod(owner_api_version="apps.kruise.io/v1alpha1")
    (row,) = baseline.taken(a_situation(a_marked_node(DRAINING), pods=(pod,)), ())
    assert row.kind == "DaemonSet.apps.kruise.io"
    record = replace(DRAINING, owners=(row,))
    assert baseline.missing(a_situation(a_marked_node(record)), ()) == (row,)
    assert baseline.missing(a_situation(a_marked_node(record)), (pod,)) == ()


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.sampled_from(["", "a", "b"])), max_size=8))
def test_the_stored_baseline_says_which_pods_were_ready(given_pods: list[tuple[int, bool, str]]) -> None:
    """A DaemonSet is stored as ready if at least one of its pods on the node was ready."""
    pods = tuple(
        a_daemon_pod(
            f"p{n}",
            owner_uid=f"ds-{owner}",
            is_ready=ready,
            labels={"controller-revision-hash": revision} if revision else {},
        )
        for n, (owner, ready, revision) in enumerate(given_pods)
    )
    record = replace(DRAINING, owners=baseline.taken(a_situation(a_marked_node(DRAINING), pods=pods), ()))
    assert from_annotation(to_annotation(record)) == record
    afterwards = a_situation(a_marked_node(record))
    for pod in pods:
        same = [each for each in pods if each.owner_uid == pod.owner_uid]
        if len(same) == 1:
            assert baseline.was_ready(afterwards, pod) is pod.is_ready
        elif not any(each.is_ready for each in same):
            assert baseline.was_ready(afterwards, pod) is False


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        pytest.param(
            a_daemon_pod(owner_uid="another"), None, id="a pod of a DaemonSet that had no pod here before the drain"
        ),
        pytest.param(
            a_daemon_pod(labels={"controller-revision-hash": "new"}),
            None,
            id="a pod whose template changed during the drain",
        ),
        pytest.param(a_daemon_pod(), True, id="a pod of the same template was ready before the drain"),
    ],
)
def test_the_baseline_tells_whether_a_daemonset_pod_of_the_same_template_was_ready(pod: Any, told: bool | None) -> None:
    """The result is unknown (None) in two cases: the DaemonSet had no pod on the node before the drain, or the
    DaemonSet's pod was ready before the drain but had another template."""
    record = replace(DRAINING, owners=baseline.taken(a_situation(a_marked_node(DRAINING), pods=(a_daemon_pod(),)), ()))
    assert baseline.was_ready(a_situation(a_marked_node(record)), pod) is told


def test_the_baseline_omits_a_replicaset_without_an_evicted_pod() -> None:
    situation = a_situation(a_marked_node(DRAINING), owners=(an_owner(), an_owner("other")), pods=())
    assert baseline.taken(situation, (a_pod(),)) == (an_owner(),)


def test_the_baseline_has_a_row_for_each_static_pod() -> None:
    mirror = {"owner_kind": "Node", "owner_uid": "n1", "is_mirror": True}
    pods = (
        a_pod("etcd-n1", containers=7, **mirror),
        a_pod("apiserver-n1", is_ready=False, **mirror),
        a_pod("old-n1", phase="Failed", **mirror),
        *(a_pod(f"x{number}", **mirror) for number in range(30)),
    )
    rows = baseline.taken(a_situation(a_marked_node(DRAINING), pods=pods), ())
    assert [(row.kind, row.name, row.ready, row.containers) for row in rows[:2]] == [
        ("StaticPod", "apiserver-n1", 0, 0),
        ("StaticPod", "etcd-n1", 1, 7),
    ]
    assert len(rows) == 20
    record = replace(DRAINING, owners=rows)
    assert from_annotation(to_annotation(record)) == record
    assert baseline.services(rows) == ()


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        pytest.param(an_owner(), 7, id="every release reads the row"),
        pytest.param(an_owner(parent="uid-web"), 8, id="with a parent"),
        pytest.param(an_owner(selector="app=web"), 9, id="with a selector"),
        pytest.param(an_owner(containers=7), 10, id="with a checksum"),
    ],
)
def test_a_row_has_no_columns_with_defaults_at_its_end(row: Any, columns: int) -> None:
    record = replace(DRAINING, owners=(row,))
    text = to_annotation(record)
    assert len(json.loads(text)["owners"][0]) == columns
    assert from_annotation(text) == record


def worse(before: Any, now: Any) -> list[tuple[str, int, int]]:
    return [(row.name, have, need) for row, have, need in baseline.worse(before, now)]


OLD, NEW = an_owner("old", parent="uid-web"), an_owner("new", parent="uid-web")


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param((OLD,), (replace(OLD, replicas=0, ready=0), replace(NEW, ready=3)), [], id="a good roll-out"),
        pytest.param(
            (OLD,), (replace(OLD, replicas=0, ready=0), replace(NEW, ready=0)), [("old", 0, 3)], id="a bad roll-out"
        ),
        pytest.param(
            (OLD, NEW), (OLD, replace(NEW, ready=1)), [("old", 4, 6)], id="a roll-out that was already in progress"
        ),
        pytest.param((replace(OLD, ready=0),), (replace(OLD, ready=0),), [], id="no pod was ready before"),
        pytest.param(
            (replace(OLD, ready=1),), (replace(OLD, ready=0),), [("old", 0, 1)], id="one pod was ready before"
        ),
        pytest.param(
            (OLD, an_owner("other")), (OLD, an_owner("other", ready=2)), [("other", 2, 3)], id="each workload by itself"
        ),
        pytest.param((OLD,), (an_owner("other", parent="another", ready=0),), [], id="another workload is unhealthy"),
    ],
)
def test_a_workload_is_worse_with_fewer_ready_pods_than_before_and_than_are_wanted(
    before: Any, now: Any, expected: Any
) -> None:
    assert worse(before, now) == expected


def test_the_cordon_message_lists_at_most_three_unready_daemonsets() -> None:
    rows = [an_owner(name, kind="DaemonSet", ready=0) for name in "abcde"]
    assert baseline.said(rows).endswith("DaemonSet shop/a, DaemonSet shop/b, DaemonSet shop/c and 2 more")
    assert baseline.said([an_owner("a", kind="DaemonSet", ready=1)]) == ""


@pytest.mark.parametrize(
    ("row", "earlier", "ready"),
    [
        pytest.param(an_owner(ready=1), (an_owner(ready=3),), 3, id="it did not recover"),
        pytest.param(an_owner(ready=3), (an_owner(ready=1),), 3, id="it is healthier now"),
        pytest.param(an_owner(ready=1), (an_owner("other"),), 1, id="another workload did not recover"),
        pytest.param(replace(NEW, ready=0), (OLD,), 3, id="a roll-out has replaced it since"),
        pytest.param(an_owner(kind="Job", ready=0), (an_owner(kind="Job"),), 0, id="a Job"),
    ],
)
def test_a_baseline_does_not_begin_with_the_state_after_an_earlier_drain(row: Any, earlier: Any, ready: int) -> None:
    assert [each.ready for each in baseline.with_earlier((row,), earlier)] == [ready]


def test_two_replicasets_of_one_deployment_owe_the_earlier_health_once() -> None:
    rows = baseline.with_earlier((replace(OLD, ready=1), replace(NEW, ready=0)), (OLD,))
    assert [row.ready for row in rows] == [3, 0]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param((an_owner(ready=1),), ["db", "web"], id="it is still worse"),
        pytest.param((an_owner(),), ["db"], id="it recovered"),
        pytest.param(None, ["db", "web"], id="its health is unknown"),
    ],
)
def test_workloads_that_have_not_recovered_are_kept_for_the_next_baselines(now: Any, expected: list[str]) -> None:
    earlier = (an_owner("db"), an_owner(ready=2))
    assert [row.name for row in baseline.still_owed(earlier, (an_owner(),), now)] == expected


def at_work(phase: Phase, *rows: Any, **changes: Any) -> Any:
    return a_progress(phase, owners=rows, **changes)


CLUSTER = an_owner(kind="Cluster", generation=0)


@pytest.mark.parametrize(
    ("row", "records", "ready", "lent"),
    [
        pytest.param(an_owner(ready=2), (), 2, 0, id="nobody is at work"),
        pytest.param(an_owner(ready=2), (at_work(Phase.REBOOTING, an_owner(ready=3)),), 3, 1, id="another took one"),
        pytest.param(an_owner(ready=3), (at_work(Phase.REBOOTING, an_owner(ready=2)),), 3, 0, id="healthier now"),
        pytest.param(
            an_owner(ready=1),
            (at_work(Phase.DRAINING, an_owner(ready=3)), at_work(Phase.SETTLING, an_owner(ready=2))),
            3,
            2,
            id="two took pods of the same workload",
        ),
        pytest.param(an_owner(ready=2), (at_work(Phase.DRAINING, an_owner("db", ready=3)),), 2, 0, id="of another"),
        pytest.param(
            replace(CLUSTER, ready=2), (at_work(Phase.DRAINING, replace(CLUSTER, ready=1)),), 1, 0, id="it is moved now"
        ),
        pytest.param(
            replace(CLUSTER, ready=2),
            (at_work(Phase.FAILED, replace(CLUSTER, ready=1), is_releasing=True),),
            1,
            0,
            id="it is moved although the drain was undone",
        ),
        pytest.param(
            replace(CLUSTER, ready=2), (at_work(Phase.REBOOTING, replace(CLUSTER, ready=1)),), 2, 0, id="it has grown"
        ),
        pytest.param(
            an_owner(ready=2), (at_work(Phase.DRAINING, an_owner(ready=1)),), 2, 0, id="its controller says how many"
        ),
    ],
)
def test_a_baseline_does_not_begin_with_what_other_nodes_drains_have_changed(
    row: Any, records: Any, ready: int, lent: int
) -> None:
    (found,) = baseline.with_earlier((row,), (), records)
    assert (found.ready, found.containers) == (ready, lent)
    assert found.replicas == (ready if baseline.is_foreign(row) and ready < row.ready else row.replicas)


def test_a_baseline_lends_nothing_that_an_earlier_drain_still_owes() -> None:
    row, earlier = an_owner(ready=1, replicas=1), (an_owner(ready=2),)
    (found,) = baseline.with_earlier((row,), earlier, (at_work(Phase.REBOOTING, an_owner(ready=3)),))
    assert (found.ready, found.containers, found.replicas) == (3, 1, 3)


def test_what_was_lent_is_due_once_no_older_claim_is_left() -> None:
    row = an_owner(ready=3, containers=1)
    record = a_progress(Phase.SETTLING, owners=(row, an_owner("log", kind="DaemonSet", ready=1, containers=7)))
    young, old = an_entry(created="2026-03-04T11:00:00Z"), an_entry("n2", "c2", created="2026-03-04T10:00:00Z")
    for others, ready in (((), 3), ((old,), 2), ((replace(old, created="2026-03-04T11:30:00Z"),), 3)):
        situation = a_situation(a_marked_node(record), lock=a_reading(held(young, *others)))
        assert [each.ready for each in baseline.due(situation)] == [ready, 1], others


@pytest.mark.parametrize(
    ("row", "alive", "expected"),
    [
        (CLUSTER, 4, "pods of these workloads are still being moved: Cluster shop/web (4 pods instead of 3)"),
        (CLUSTER, 3, ""),
        (replace(CLUSTER, ready=0), 4, ""),
        (an_owner(), 4, ""),
    ],
)
def test_an_operators_workload_with_more_pods_than_before_is_still_being_moved(
    row: Any, alive: int, expected: str
) -> None:
    assert baseline.what_moves((row,), (replace(row, alive=alive),)) == expected
    assert baseline.what_moves((row,), None) == ""


def test_a_static_pod_whose_manifest_was_removed_before_the_reboot_is_not_missed() -> None:
    etcd, proxy = a_pod("etcd-n1", is_mirror=True), a_pod("proxy-n1", is_mirror=True)
    rows = (*baseline.taken(a_situation(pods=(etcd, proxy)), ()), an_owner())
    node = a_marked_node(a_progress(Phase.DRAINING, owners=rows))
    left = baseline.at_reboot(a_situation(node, pods=(proxy,)))
    assert [row.name for row in left] == ["proxy-n1", "web"]
    assert baseline.at_reboot(a_situation(node, pods=Unknown("503"))) == rows

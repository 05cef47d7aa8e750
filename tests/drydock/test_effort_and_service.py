"""Tests the checker's rules `effort` and `service`: what breaks them, and what is not the agents' fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from drydock.checker import rules_of_the_effort, rules_of_the_service
from drydock.checker.journal import AgentEvent, Entry, HostEvent, Journal, Object, Write, in_order

DAY, PAUSE = 1000.0, 20.0


def a_write(at: float, plural: str, key: tuple[str, str], before: Object, after: Object, actor: str) -> Write:
    return Write(at=at, actor=actor, verb="patch", plural=plural, key=key, before=before, after=after)


def a_node(*, cordoned: bool = False, **annotations: str) -> dict[str, Any]:
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"annotations": annotations},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": ready},
    }


def cordon(at: float, node: str = "n1") -> Write:
    return a_write(at, "nodes", ("", node), a_node(), a_node(cordoned=True), f"careen-agent-{node}")


def uncordon(at: float, node: str = "n1", actor: str = "") -> Write:
    return a_write(at, "nodes", ("", node), a_node(cordoned=True), a_node(), actor or f"careen-agent-{node}")


def undone(*times: float) -> tuple[Write, ...]:
    return tuple(write for at in times for write in (cordon(at), uncordon(at + 5)))


def asked(at: float, what: str = "asked", host: str = "n1") -> HostEvent:
    return HostEvent(at=at, host=host, what=what, boot_id="b")


def a_person_writes(at: float, annotation: str) -> Write:
    return a_write(at, "nodes", ("", "n1"), a_node(), a_node(**{annotation: "x"}), "person")


# Effort -----------------------------------------------------------------------------------------------------------


def effort(*entries: Entry) -> list[str]:
    journal = Journal(entries=in_order(entries), concurrency=1, pause_seconds=PAUSE, day_seconds=DAY)
    return [breach.sentence for breach in rules_of_the_effort.effort.breaches(journal)]


def test_a_pause_that_is_too_short_after_a_drain_that_was_undone_breaks_the_rule() -> None:
    assert effort(*undone(0, 5 + PAUSE)) == []
    assert effort(*undone(0, 4 + PAUSE)) == [
        "n1 was cordoned again 19 s after a drain that did not end in a reboot; the pause is 20 s"
    ]


def test_the_fourth_drain_a_day_that_ends_without_a_reboot_breaks_the_rule() -> None:
    assert effort(*undone(0, 100, 200)) == []
    assert effort(*undone(0, 100, 200, 300)) == [
        "4 drains of n1 ended without a reboot within 300 s; at most 3 may within 1000 s"
    ]
    assert effort(*undone(0, 100, 200, DAY)) == []


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(a_person_writes(302, "careen.dev/hold"), id="a hold"),
        pytest.param(a_person_writes(292, "careen.dev/hold"), id="a hold just before the cordon"),
        pytest.param(
            a_write(302, "daemonsets", ("careen", "careen"), {}, {"metadata": {}}, "person"), id="the lock by hand"
        ),
        pytest.param(asked(302, "lost"), id="a crash"),
        pytest.param(AgentEvent(at=302, node="n1", what="ordered"), id="a setting"),
        pytest.param(asked(250), id="a reboot between"),
        pytest.param(a_person_writes(250, "careen.dev/retry"), id="a retry between"),
    ],
)
def test_an_undo_that_somebody_ordered_does_not_count(order: Entry) -> None:
    assert effort(*undone(0, 100, 200, 300)) != []
    assert effort(*undone(0, 100, 200, 300), order) == []


def test_what_a_kubelet_reports_orders_nothing() -> None:
    report = a_write(
        302, "nodes", ("", "n1"), a_node(cordoned=True), {**a_node(cordoned=True), "status": {}}, "kubelet"
    )
    assert len(effort(*undone(0, 100, 200, 300), report)) == 1


def a_pod(uid: str, *, node: str = "n1", ready: bool = True, owner: str = "web", kind: str = "ReplicaSet") -> Object:
    return {
        "metadata": {
            "namespace": "shop",
            "name": uid,
            "uid": uid,
            "labels": {"app": owner},
            "ownerReferences": [{"uid": f"uid-{owner}", "kind": kind, "name": owner, "controller": True}],
        },
        "spec": {"nodeName": node},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def made(at: float, pod: Object) -> Write:
    return a_write(at, "pods", ("shop", pod["metadata"]["name"]), {}, pod, "kubelet")


def gone(at: float, pod: Object, *, actor: str = "kubelet") -> Write:
    return a_write(at, "pods", ("shop", pod["metadata"]["name"]), pod, {}, actor)


def evicted(at: float, pod: Object, node: str = "n1") -> Write:
    ends = {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "now"}}
    write = a_write(at, "pods", ("shop", pod["metadata"]["name"]), pod, ends, f"careen-agent-{node}")
    return replace(write, verb="evict")


def test_a_second_eviction_of_the_same_pod_in_one_drain_breaks_the_rule() -> None:
    pod, new = a_pod("a"), a_pod("b")
    once = (made(0, pod), cordon(1), evicted(2, pod))
    assert effort(*once) == []
    assert effort(*once, made(3, new), evicted(4, new)) == []  # it came to the node after the cordon
    assert effort(*once, evicted(3, pod)) == ["the agent of n1 had 2 evictions accepted in one drain of 1 pods"]


# Service ----------------------------------------------------------------------------------------------------------

START = 100.0


def service(*entries: Entry, budget: dict[str, Any] | None = None) -> list[str]:
    """Whether n2 may start at `START`."""
    spec = {"selector": {"matchLabels": {"app": "web"}}, **(budget or {})}
    made_budget = a_write(
        0, "poddisruptionbudgets", ("shop", "b"), {}, {"metadata": {"namespace": "shop"}, "spec": spec}, ""
    )
    more = (made_budget,) if budget else ()
    journal = Journal(entries=in_order(entries, more, [cordon(START, "n2")]), concurrency=2)
    return [breach.sentence for breach in rules_of_the_service.service.breaches(journal)]


def claims(at: float, *nodes: str) -> Write:
    rows = ",".join(f'{{"nodeID":"{node}"}}' for node in nodes)
    lock = {"metadata": {"annotations": {"weave.works/kured-node-lock": f'{{"locks":[{rows}]}}'}}}
    return a_write(at, "daemonsets", ("careen", "careen"), {}, lock, "careen-agent-n1")


ONE, TWO = a_pod("a"), a_pod("b", node="n3")
DRAINED = (made(0, ONE), made(0, TWO), cordon(1), evicted(2, ONE))
LACKS = "n2 started while ReplicaSet web lacked 1 pods because of n1; the nodes with a claim (none) held 0"


def test_an_evicted_pod_without_a_ready_successor_breaks_the_rule_when_the_next_node_starts() -> None:
    assert service(*DRAINED) == [LACKS]
    assert service(*DRAINED, made(50, a_pod("c", node="n3"))) == []
    assert service(*DRAINED, made(50, a_pod("c", node="n3", ready=False))) == [LACKS]


@pytest.mark.parametrize("kind", ["StatefulSet", "CloneSet", "Cluster", "DaemonSet"])
def test_the_kind_of_the_owner_does_not_matter(kind: str) -> None:
    pod = a_pod("a", owner="db", kind=kind)
    assert len(service(made(0, pod), cordon(1), evicted(2, pod))) == 1


def test_pods_of_jobs_and_pods_without_an_owner_are_no_service() -> None:
    job = a_pod("a", kind="Job")
    bare: Object = {**ONE, "metadata": {"namespace": "shop", "name": "a", "uid": "a"}}
    for pod in (job, bare):
        assert service(made(0, pod), cordon(1), evicted(2, pod)) == []


def test_what_the_nodes_with_a_claim_held_may_be_unready() -> None:
    assert service(*DRAINED, claims(1, "n1")) == []
    other = a_pod("c", node="n4")
    assert len(service(made(0, other), *DRAINED, evicted(3, other, "n4"), claims(1, "n1"))) == 1


@pytest.mark.parametrize(
    ("budget", "is_broken"),
    [
        ({"maxUnavailable": 1}, False),
        ({"maxUnavailable": 0}, True),
        ({"minAvailable": 1}, False),
        ({"minAvailable": "51%"}, True),
        ({"maxUnavailable": 0, "selector": {"matchLabels": {"app": "other"}}}, True),
        ({"maxUnavailable": 1, "selector": {}}, False),
        ({"maxUnavailable": 1, "selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}, True),
    ],
)
def test_a_budget_says_how_many_may_be_unready(budget: dict[str, Any], *, is_broken: bool) -> None:
    assert bool(service(*DRAINED, budget=budget)) is is_broken


def test_a_budget_counts_even_if_the_nodes_with_a_claim_held_more() -> None:
    assert len(service(*DRAINED, claims(1, "n1"), budget={"maxUnavailable": 0})) == 1


def test_a_pod_lost_in_a_reboot_that_an_agent_asked_for_counts_and_one_lost_in_a_crash_does_not() -> None:
    node = a_write(0, "nodes", ("", "n1"), {}, a_node(), "kubelet")
    daemon = a_pod("d", owner="net", kind="DaemonSet")
    failed = a_pod("d", owner="net", kind="DaemonSet", ready=False)
    unready = a_write(5, "pods", ("shop", "d"), daemon, failed, "kubelet")
    lost = (node, made(0, daemon), unready)
    assert len(service(*lost, asked(4), asked(6, "down"), asked(9, "booted"), asked(10, "ready"))) == 1
    assert service(*lost, asked(4, "lost"), asked(9, "booted"), asked(10, "ready")) == []


def test_static_pods_of_one_name_are_one_set() -> None:
    node = a_write(0, "nodes", ("", "n1"), {}, a_node(), "kubelet")
    etcd = {
        "metadata": {
            "namespace": "kube-system",
            "name": "etcd-n1",
            "annotations": {"kubernetes.io/config.mirror": "x"},
        },
        "spec": {"nodeName": "n1"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    made_etcd = a_write(0, "pods", ("kube-system", "etcd-n1"), {}, etcd, "kubelet")
    gone_etcd = a_write(5, "pods", ("kube-system", "etcd-n1"), etcd, {}, "kubelet")
    (sentence,) = service(node, made_etcd, asked(4), gone_etcd, asked(10, "ready"))
    assert sentence.startswith("n2 started while the static pods kube-system/etcd-* lacked 1 pods because of n1;")


@pytest.mark.parametrize("actor", ["person", "system:controller"])
def test_a_pod_that_somebody_else_deleted_does_not_count(actor: str) -> None:
    assert service(made(0, ONE), made(0, TWO), cordon(1), gone(2, ONE, actor=actor)) == []


def test_an_owner_that_wants_fewer_pods_now_lacks_fewer() -> None:
    def wants(at: float, replicas: int) -> Write:
        owner = {"metadata": {"uid": "uid-web"}, "spec": {"replicas": replicas}}
        return a_write(at, "replicasets", ("shop", "web"), owner, owner, "person")

    assert service(*DRAINED, wants(0, 2), wants(50, 1)) == []
    removed = replace(wants(50, 1), after={})
    assert service(*DRAINED, removed) == []


def test_a_loss_that_the_agent_could_not_have_read_yet_does_not_count() -> None:
    late = (made(0, ONE), made(0, TWO), cordon(1), evicted(START - 9, ONE))
    assert service(*late) == []


@pytest.mark.parametrize("plural", ["strimzipodsets", "statefulsets"])
def test_an_owner_of_any_kind_that_was_deleted_or_wants_fewer_pods_lacks_fewer(plural: str) -> None:
    def wrote(before: Object, after: Object) -> Write:
        return a_write(50, plural, ("shop", "web"), before, after, "person")

    two = {"metadata": {"uid": "uid-web"}, "spec": {"replicas": 2}}
    one = {"metadata": {"uid": "uid-web"}, "spec": {"replicas": 1}}
    assert service(*DRAINED, wrote(two, two)) == [LACKS]
    assert service(*DRAINED, wrote(two, one)) == []
    assert service(*DRAINED, wrote(two, {})) == []


def test_what_a_drain_took_whose_claim_or_record_a_person_removed_does_not_count() -> None:
    def lock(at: float, before: Write, after: Object, actor: str) -> Write:
        return a_write(at, "daemonsets", ("careen", "careen"), before.after, after, actor)

    held = claims(1, "n1")
    record: Object = {"metadata": {"annotations": {"careen.dev/progress": '{"claim":"c1"}'}}}
    wiped = a_write(5, "nodes", ("", "n1"), record, a_node(cordoned=True), "person")
    assert service(*DRAINED, held, lock(5, held, {}, "careen-agent-n1")) == [LACKS]
    assert service(*DRAINED, held, lock(5, held, {}, "person")) == []
    assert service(*DRAINED, held, lock(1.5, held, {}, "person")) == []
    assert service(*DRAINED, wiped) == []
    assert service(*DRAINED, replace(wiped, actor="careen-agent-n1")) == [LACKS]
    assert service(*DRAINED, replace(wiped, key=("", "n3"))) == [LACKS]


def test_a_claim_that_the_agent_took_after_a_person_removed_one_counts() -> None:
    held = claims(1, "n1")
    by_hand = a_write(1.2, "daemonsets", ("careen", "careen"), held.after, {}, "person")
    again = claims(1.4, "n1")
    released = a_write(5, "daemonsets", ("careen", "careen"), again.after, {}, "careen-agent-n1")
    assert service(*DRAINED, held, by_hand, again, released) == [LACKS]

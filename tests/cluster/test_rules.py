"""Tests the journal that is made of an API server's audit log and of the machines, and the figures of a roll-out. The
tests need no cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from drydock.checker import judge
from drydock.checker.journal import LOCK_ANNOTATION, AgentEvent, Journal, Write
from tests.cluster.harness.cluster import CAREEN
from tests.cluster.harness.machines.hosts import Host, Reboot
from tests.cluster.harness.measures.audit import requests_of
from tests.cluster.harness.measures.figures import Span, down_spans, most_at_once, moves, rollout
from tests.cluster.harness.observer import LockSeen, NodeSeen, PodLife, Seen
from tests.cluster.harness.rules import broken, journal_of, not_cleaned_up

END = 100.0


def node(at: float, name: str = "n00", *, cordoned: bool = False, ready: bool = True, **more: object) -> NodeSeen:
    values: dict[str, object] = {
        "uid": "u",
        "exists": True,
        "boot_id": "b",
        "taints": (),
        "labels": {},
        "annotations": {},
    }
    return NodeSeen(at=at, name=name, unschedulable=cordoned, ready=ready, **{**values, **more})  # type: ignore[arg-type]


def lock(at: float, *holders: str) -> LockSeen:
    rows = ", ".join(f'{{"nodeID": "{name}"}}' for name in holders)
    return LockSeen(at=at, uid="d", text=f'{{"maxOwners": 1, "locks": [{rows}]}}' if holders else None)


def pod(name: str, **more: object) -> PodLife:
    values: dict[str, object] = {
        "owner": "Deployment/web",
        "created_at": 1.0,
        "scheduled_at": 1.0,
        "ready_at": 2.0,
        "node": "n00",
    }
    return PodLife(uid=name, namespace="shop", name=name, labels={}, **{**values, **more})  # type: ignore[arg-type]


def host(*reboots: Reboot, name: str = "n00") -> Host:
    return Host(name=name, zone="z", folder=Path("/nonexistent"), reboots=list(reboots))


REBOOT = Reboot(asked_at=20.0, boot_left="b", by_agent=True, boot="c", ready_at=30.0)


def a_good_story() -> Seen:
    return Seen(
        nodes=[
            node(0),
            node(10, cordoned=True),
            node(22, cordoned=True, ready=False),
            node(30, cordoned=True),
            node(40),
        ],
        locks=[lock(0), lock(9, "n00"), lock(41)],
        pods={"web-1": pod("web-1", deleting_at=11.0, gone_at=13.0), "log-1": pod("log-1", owner="DaemonSet/log")},
    )


# An audit log -----------------------------------------------------------------------------------------------------

Event = dict[str, Any]
EVICTION: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-1"}}
DONE: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def event(
    at: float,
    verb: str,
    resource: str,
    name: str,
    answer: dict[str, Any],
    *,
    by: str = "admin",
    sub: str = "",
    version: int = 0,
    body: dict[str, Any] | None = None,
    code: int = 200,
    query: str = "",
    took: float = 0.01,
) -> Event:
    """One line of an API server's audit log, written when the answer was sent. `by` is a user, or the node of an
    agent."""
    namespace = {"pods": "shop", "daemonsets": "careen", "events": "default"}.get(resource, "")
    user: dict[str, Any] = {"username": by}
    if by.startswith("n0"):
        node = {"authentication.kubernetes.io/node-name": [by]}
        user = {"username": CAREEN.user, "groups": ["system:serviceaccounts"], "extra": node}
    asked = {"resource": resource, "namespace": namespace, "name": name, "subresource": sub}
    metadata = {**answer.get("metadata", {}), **({"resourceVersion": str(version or int(at * 100))} if answer else {})}
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "stage": "ResponseComplete",
        "requestURI": f"/api/v1/{resource}/{name}{query}",
        "verb": verb,
        "user": user,
        "objectRef": {key: value for key, value in asked.items() if value},
        "responseStatus": {"metadata": {}, "code": code},
        "requestObject": body or {},
        "responseObject": {**answer, "metadata": {} if answer is DONE else metadata},
        "requestReceivedTimestamp": stamp(at),
        "stageTimestamp": stamp(at + took),
    }


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def a_node(
    name: str = "n00", *, cordoned: bool = False, ready: bool = True, boot: str = "b", claim: str = "c1"
) -> dict[str, Any]:
    annotations = {"careen.dev/progress": f'{{"claim": "{claim}"}}'} if claim else {}
    return {
        "kind": "Node",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "nodeInfo": {"bootID": boot},
        },
    }


def a_lock(*holders: str) -> dict[str, Any]:
    rows = ", ".join(f'{{"nodeID": "{name}", "id": "c1"}}' for name in holders)
    annotations = {LOCK_ANNOTATION: f'{{"nodeID": "", "locks": [{rows}]}}'} if holders else {}
    return {"kind": "DaemonSet", "metadata": {"name": "careen", "namespace": "careen", "annotations": annotations}}


def a_pod(name: str = "web-1", *, daemon: bool = False, **metadata: Any) -> dict[str, Any]:
    kind = "DaemonSet" if daemon else "ReplicaSet"
    owner = {"kind": kind, "name": "web", "uid": "u", "controller": True}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "ownerReferences": [owner], **metadata},
        "spec": {},
        "status": {"phase": "Running"},
    }


def node_of(pod: str) -> dict[str, Any]:
    return {"kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": "n00"}}


def the_log(*left_out: float) -> list[Event]:
    """The audit log of a correct roll-out of one node, without the requests at these seconds."""
    terminating = a_pod(deletionTimestamp=stamp(11), deletionGracePeriodSeconds=30)
    terminating["spec"] = {"nodeName": "n00"}
    log = [
        event(0, "create", "nodes", "n00", a_node(claim="")),
        event(1, "create", "daemonsets", "careen", a_lock()),
        event(2, "create", "pods", "web-1", a_pod()),
        event(2.1, "create", "pods", "web-1", DONE, sub="binding", by="scheduler", body=node_of("web-1")),
        event(3, "create", "pods", "log-1", a_pod("log-1", daemon=True)),
        event(3.1, "create", "pods", "log-1", DONE, sub="binding", by="scheduler", body=node_of("log-1")),
        event(8, "patch", "nodes", "n00", a_node(), by="n00"),
        event(9, "patch", "daemonsets", "careen", a_lock("n00"), by="n00"),
        event(10, "patch", "nodes", "n00", a_node(cordoned=True), by="n00"),
        event(11, "create", "pods", "web-1", DONE, sub="eviction", by="n00", body=EVICTION, code=201),
        event(12, "patch", "pods", "web-1", terminating, sub="status", by="kwok"),
        event(13, "delete", "pods", "web-1", terminating, by="kwok", body={"gracePeriodSeconds": 0}, version=1200),
        event(22, "patch", "nodes", "n00", a_node(cordoned=True, ready=False), sub="status"),
        event(29.9, "patch", "nodes", "n00", a_node(cordoned=True, boot="c"), sub="status"),
        event(40, "patch", "nodes", "n00", a_node(boot="c"), by="n00"),
        event(41, "patch", "daemonsets", "careen", a_lock(), by="n00"),
        event(42, "create", "events", "", {}, by="n00", body={"reason": "Released"}, code=201),
    ]
    return [each for each in log if each["requestReceivedTimestamp"] not in map(stamp, left_out)]


def the_journal(log: Iterable[Event], *hosts: Host, concurrency: int = 1, **more: Any) -> Journal:
    return journal_of(
        log, {each.name: each for each in hosts or (host(REBOOT),)}, CAREEN, concurrency=concurrency, **more
    )


def rules(log: Iterable[Event], *hosts: Host, **more: Any) -> set[str]:
    return {sentence.partition(":")[0] for sentence in broken(the_journal(log, *hosts, **more))}


def test_the_rules_find_nothing_in_the_audit_log_of_a_correct_roll_out() -> None:
    assert broken(the_journal(the_log())) == []


def test_rules_about_facts_that_a_real_cluster_cannot_tell_are_not_judged() -> None:
    unjudged = set(judge(the_journal(the_log())).unjudged)
    assert unjudged == {
        "budgets",
        "loop",
        "once",
        "taint",
        "reported",
        "finished",
        "broken-turns",
        "tidy",
        "end",
        "service",
    }
    assert unjudged - set(judge(the_journal(the_log(), groups={"n00": {"zone": 1}})).unjudged) == {"budgets"}


TWO_DOWN = (
    event(0, "create", "nodes", "n01", a_node("n01", claim="")),
    event(25, "patch", "nodes", "n01", a_node("n01", cordoned=True, claim=""), by="n01"),
    event(26, "patch", "nodes", "n01", a_node("n01", claim=""), by="n01"),
)


def test_the_rules_report_two_nodes_that_are_down_at_once() -> None:
    log = [*the_log(), *TWO_DOWN]
    hosts = host(REBOOT), host(name="n01")
    assert rules(log, *hosts) == {"nodes-down", "out-of-service"}
    assert rules(log, *hosts, concurrency=2) == set()
    groups = {name: {"zone-a": 1} for name in ("n00", "n01")}
    assert rules(log, *hosts, concurrency=2, groups=groups) == {"budgets"}


def test_a_node_that_people_may_take_down_counts_only_when_an_agent_cordons() -> None:
    by_a_person = event(25, "patch", "nodes", "n01", a_node("n01", cordoned=True))
    assert rules([*the_log(), by_a_person], host(REBOOT)) == set()
    assert rules([*the_log(), by_a_person], host(REBOOT), host(name="n01")) == {"out-of-service"}


@pytest.mark.parametrize(
    ("log", "found"),
    [
        pytest.param(the_log(9), {"claim", "reboot"}, id="a reboot without a claim in the lock"),
        pytest.param(
            [*the_log(9), event(9, "patch", "daemonsets", "careen", a_lock("n01"), by="n01")],
            {"claim", "reboot"},
            id="a reboot while only another node has a claim",
        ),
        pytest.param(
            [*list(the_log(10, 29.9)), event(29.9, "patch", "nodes", "n00", a_node(boot="c"), sub="status")],
            {"cordoned"},
            id="a reboot without a cordon",
        ),
        pytest.param(the_log(13), {"drained"}, id="a reboot with a pod left on the node"),
        pytest.param(
            [*the_log(41), event(25, "patch", "daemonsets", "careen", a_lock(), by="n00")],
            {"release", "early"},
            id="a release before the node is back",
        ),
        pytest.param(
            [*the_log(11), event(11, "delete", "pods", "web-1", DONE, by="n00")],
            {"eviction"},
            id="a pod that an agent deletes",
        ),
        pytest.param(
            [*the_log(), event(50, "patch", "nodes", "n00", a_node(), by="n01")],
            {"own-node"},
            id="an agent that writes another Node",
        ),
    ],
)
def test_the_rules_report_what_the_audit_log_shows(log: list[Event], found: set[str]) -> None:
    assert rules(log) == found


def test_the_rules_require_no_claim_for_a_machine_that_crashes() -> None:
    alone = Reboot(asked_at=20.0, boot_left="b", by_agent=False, boot="c", ready_at=30.0)
    log = [event(0, "create", "nodes", "n00", a_node()), event(22, "patch", "nodes", "n00", a_node(ready=False))]
    assert rules(log, host(alone)) == set()


@pytest.mark.parametrize("recorded_at", [29.8, 41.2], ids=["before the log has the write", "after the release"])
def test_the_rules_take_the_time_of_a_boot_from_the_log_where_the_record_of_the_reboot_came_late(
    recorded_at: float,
) -> None:
    assert rules(the_log(), host(replace(REBOOT, ready_at=recorded_at))) == set()
    too_early = [*the_log(41), event(29.85, "patch", "daemonsets", "careen", a_lock(), by="n00")]
    assert "release" in rules(too_early, host(replace(REBOOT, ready_at=recorded_at)))


def test_the_rules_report_a_claim_that_is_released_while_the_node_is_not_ready() -> None:
    log = [
        event(0, "create", "nodes", "n00", a_node(ready=False)),
        event(1, "patch", "daemonsets", "careen", a_lock("n00"), by="n00"),
        event(2, "patch", "daemonsets", "careen", a_lock(), by="n00"),
    ]
    assert rules(log, host()) == {"release"}


def test_the_rules_report_an_agent_that_exited_by_itself_even_before_the_observers_history() -> None:
    crashed = host(REBOOT)
    crashed.crashes.append((12.0, 1))
    sentences = ["exits: 12.0: the agent of n00 exited by itself with code 1"]
    assert broken(the_journal(the_log(), crashed), since=60.0) == sentences
    assert broken(the_journal(the_log(), crashed), but=("exits",)) == []


def writes(log: Iterable[Event], plural: str = "") -> list[Write]:
    return list(the_journal(log, host()).writes(plural))


def test_answers_that_are_logged_the_other_way_round_are_put_in_order() -> None:
    cordon = event(10, "patch", "nodes", "n00", a_node(cordoned=True), by="n00", version=1001, took=0.5)
    status = event(10.1, "patch", "nodes", "n00", a_node(cordoned=True, boot="c"), sub="status", version=1002)
    found = writes([event(0, "create", "nodes", "n00", a_node()), status, cordon])
    assert [(write.actor, write.cordons) for write in found[1:]] == [("careen-agent-n00", True), ("admin", False)]
    assert [write.at for write in found] == sorted(write.at for write in found)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"query": "?dryRun=All"}, id="a dry run"),
        pytest.param({"body": {**EVICTION, "deleteOptions": {"dryRun": ["All"]}}}, id="a dry run of an eviction"),
        pytest.param({"code": 429}, id="a refused request"),
    ],
)
def test_a_request_that_changes_nothing_is_no_entry(more: dict[str, Any]) -> None:
    assert writes([event(1, "create", "pods", "web-1", DONE, sub="eviction", by="n00", **more)]) == []


def test_the_journal_knows_what_the_api_server_does_on_its_own() -> None:
    bound, evicted = [each for each in writes(the_log(), "pods") if each.verb in ("bind", "evict")][::2]
    assert bound.after["spec"]["nodeName"] == "n00"
    assert evicted.agent == "n00"
    assert evicted.after["metadata"]["deletionTimestamp"]
    gone = event(60, "deletecollection", "pods", "", {"kind": "PodList", "items": [a_pod("log-1")]})
    assert [(each.name, each.after) for each in writes([*the_log(), gone], "pods")][-1] == ("log-1", {})
    part = {"kind": "PartialObjectMetadata", "metadata": {"name": "n00", "labels": {"a": "b"}}}
    last = writes([*the_log(), event(60, "patch", "nodes", "n00", part)], "nodes")[-1]
    assert (last.after["metadata"]["labels"], last.after["status"]["nodeInfo"]) == ({"a": "b"}, {"bootID": "c"})


def test_an_object_with_a_finalizer_is_gone_with_its_last_finalizer() -> None:
    ends = {"deletionTimestamp": stamp(5), "deletionGracePeriodSeconds": 0}
    log = [
        event(1, "create", "pods", "web-1", a_pod()),
        event(5, "delete", "pods", "web-1", a_pod(finalizers=["x"], **ends), body={"gracePeriodSeconds": 0}),
        event(6, "patch", "pods", "web-1", a_pod(**ends)),
    ]
    assert [bool(write.after) for write in writes(log)] == [True, True, False]


def test_objects_from_before_the_log_are_known() -> None:
    before = {**a_pod(), "spec": {"nodeName": "n00"}}
    evicted = event(2, "create", "pods", "web-1", DONE, sub="eviction", by="n00", body=EVICTION, code=201)
    known = [("nodes", a_node(cordoned=True)), ("daemonsets", a_lock("n00")), ("pods", before)]
    assert rules([evicted], host(), known=known) == set()
    assert rules([evicted], host()) == {"own-node"}


def test_the_events_of_agents_are_entries_of_the_journal() -> None:
    assert the_journal(the_log()).agents("sent") == [AgentEvent(at=42.0, node="n00", what="sent", reason="Released")]


@pytest.mark.parametrize(
    ("state", "left"),
    [
        (node(1), []),
        (node(1, annotations={"careen.dev/last-reboot": "{}", "other": ""}), []),
        (node(1, annotations={"careen.dev/phase": "Waiting"}), ["n00 still carries careen.dev/phase"]),
        (node(1, labels={"careen.dev/reboot": "required"}), ["n00 still carries careen.dev/reboot"]),
        (
            node(1, taints=(("careen.dev/reboot", "PreferNoSchedule"),)),
            ["n00 still carries careen.dev/reboot:PreferNoSchedule"],
        ),
        (node(1, cordoned=True), ["n00 is cordoned"]),
        (None, ["the node is gone"]),
    ],
)
def test_the_rules_report_careens_labels_annotations_and_taints_on_an_idle_node(
    state: NodeSeen | None, left: list[str]
) -> None:
    assert not_cleaned_up(state) == left


@pytest.mark.parametrize(
    ("text", "holders"),
    [
        (None, ()),
        ('{"nodeID": "n1"}', ("n1",)),
        ('{"maxOwners": 2, "locks": [{"nodeID": "n1"}, {"nodeID": "n2"}]}', ("n1", "n2")),
        ('{"nodeID": "n1", "locks": [{"nodeID": "n1"}]}', ("n1",)),
        ('{"nodeID": "manual"}', ()),
        ('{"maxOwners": 2, "locks": []}', ()),
        ("nonsense", ()),
    ],
)
def test_the_observer_finds_the_holders_in_each_format_of_the_lock(text: str | None, holders: tuple[str, ...]) -> None:
    assert LockSeen(at=0, uid="d", text=text).holders == holders


def test_the_figures_count_a_node_as_down_until_it_is_ready_and_schedulable_again() -> None:
    assert down_spans(a_good_story().nodes, END) == [Span(start=10, end=40)]
    assert down_spans([node(0), node(5, ready=False)], END) == [Span(start=5, end=END)]


def test_time_spans_that_only_touch_do_not_overlap() -> None:
    assert most_at_once([Span(start=1, end=2), Span(start=2, end=3)]) == 1
    assert most_at_once([Span(start=1, end=2.5), Span(start=2, end=3), Span(start=2.4, end=9)]) == 3


def test_repeated_moves_of_pods_are_counted_in_the_total_and_separately() -> None:
    lives = [
        pod("web-1", gone_at=13.0, deleting_at=11.0),
        pod("web-2", node="n01"),
        pod("web-3", created_at=11.0, scheduled_at=11.5, ready_at=15.0, node="n01", deleting_at=50.0, gone_at=51.0),
        pod("web-4", created_at=50.0, scheduled_at=50.0, ready_at=53.0, node="n00"),
        pod("log-1", owner="DaemonSet/log", created_at=50.0),
        pod("by-hand", owner="", created_at=50.0),
    ]
    found = moves(lives, start=10.0, end=END)
    assert (found.total, found.repeat, found.floor, found.pending_seconds, found.unscheduled_seconds) == (
        2,
        1,
        3,
        7.0,
        0.5,
    )


def test_the_durations_of_the_steps_add_up_to_the_duration_of_the_roll_out() -> None:
    found = rollout(a_good_story(), {"n00": [REBOOT]}, start=5.0, end=45.0)
    assert (found.idle_lock, found.drain, found.boot, found.ready_but_cordoned, found.settling) == (
        8.0,
        11.0,
        10.0,
        10.0,
        1.0,
    )
    assert found.wall == 40.0
    assert (found.most_down, found.node_seconds_down) == (1, 30.0)


def test_the_delay_of_the_taint_is_measured_from_the_creation_of_the_sentinel() -> None:
    seen = Seen(nodes=[node(6.0), node(12.0, taints=(("ours", "PreferNoSchedule"),))])
    late = rollout(seen, {"n00": []}, start=5.0, end=45.0, asked={"n00": 9.0})
    at_once = rollout(seen, {"n00": []}, start=5.0, end=45.0)
    assert [found.sentinel_to_taint.median for found in (late, at_once) if found.sentinel_to_taint] == [3.0, 7.0]


def request(
    verb: str,
    resource: str = "nodes",
    *,
    user: str = "agent",
    stage: str = "ResponseComplete",
    code: int = 200,
    **more: str,
) -> dict[str, object]:
    asked = {"objectRef": {"resource": resource, **more}} if resource else {}
    return {
        "verb": verb,
        "stage": stage,
        "user": {"username": user},
        "requestURI": "/version",
        "responseStatus": {"code": code},
        **asked,
    }


def test_the_audit_counts_requests_by_verb_and_resource() -> None:
    found = requests_of(
        [
            request("create", "pods", subresource="eviction", code=429),
            request("create", "pods", subresource="eviction"),
            request("watch", "configmaps", stage="ResponseStarted"),
            request("watch", "configmaps"),
            request("get", resource=""),
            request("get", user="somebody else"),
        ],
        "agent",
    )
    assert found.by_call == {"create pods/eviction": 2, "watch configmaps": 1, "get /version": 1}
    assert (found.total, found.by_verb, found.too_many) == (4, {"create": 2, "watch": 1, "get": 1}, 1)

"""Tests the rules that are checked at the end of each test with nodes, and the figures of a roll-out. The tests need no
cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.harness.machines.hosts import Host, Reboot
from tests.cluster.harness.measures.audit import requests_of
from tests.cluster.harness.measures.figures import Span, down_spans, most_at_once, moves, rollout
from tests.cluster.harness.observer import LockSeen, NodeSeen, PodLife, Seen
from tests.cluster.harness.rules import broken, not_cleaned_up

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


def sentences(seen: Seen, *hosts: Host, concurrency: int = 1) -> list[str]:
    return broken(seen, {each.name: each for each in hosts or (host(REBOOT),)}, concurrency=concurrency, end=END)


def test_the_rules_find_nothing_in_a_recording_of_a_correct_roll_out() -> None:
    assert sentences(a_good_story()) == []


def test_the_rules_report_two_nodes_that_are_down_at_once() -> None:
    seen = a_good_story()
    seen.nodes += [node(0, "n01"), node(25, "n01", cordoned=True), node(26, "n01")]
    assert sentences(seen, host(REBOOT), host(name="n01")) == [
        "2 nodes were down at once, the limit is 1: n00 10.0–40.0, n01 25.0–26.0"
    ]
    assert sentences(seen, host(REBOOT), host(name="n01"), concurrency=2) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(
            {"locks": [lock(0)]},
            "n00 rebooted at 20.0 without a claim in the lock",
            id="a reboot without a claim in the lock",
        ),
        pytest.param(
            {"locks": [lock(0), lock(9, "n01")]},
            "n00 rebooted at 20.0 without a claim in the lock",
            id="a reboot while only another node has a claim",
        ),
        pytest.param(
            {"nodes": [node(0), node(22, ready=False), node(30)]},
            "n00 rebooted at 20.0 without a cordon",
            id="a reboot without a cordon",
        ),
        pytest.param(
            {"pods": {"web-1": pod("web-1")}},
            "n00 rebooted at 20.0 with web-1 on it",
            id="a reboot with a pod left on the node",
        ),
    ],
)
def test_the_rules_report_each_kind_of_unsafe_reboot(change: dict[str, object], sentence: str) -> None:
    seen = a_good_story()
    for key, value in change.items():
        setattr(seen, key, value)
    assert any(sentence in one for one in sentences(seen))


def test_the_rules_require_no_claim_for_a_machine_that_crashes() -> None:
    alone = Reboot(asked_at=20.0, boot_left="b", by_agent=False, boot="c", ready_at=30.0)
    assert sentences(Seen(nodes=[node(0), node(22, ready=False), node(30)], locks=[lock(0)]), host(alone)) == []


def test_the_rules_report_a_node_that_released_its_claim_before_it_is_back_in_service() -> None:
    seen = a_good_story()
    seen.locks[-1] = lock(25)
    assert sentences(seen) == [
        "n00 released its claim at 25.0, before it returned from the reboot requested at 20.0",
        "n00 released its claim at 25.0 without being Ready",
    ]


def test_the_rules_report_an_agent_that_exited_by_itself() -> None:
    crashed = host(REBOOT)
    crashed.crashes.append((12.0, 1))
    assert sentences(a_good_story(), crashed) == ["the agent of n00 exited by itself (time, exit code): [(12.0, 1)]"]


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

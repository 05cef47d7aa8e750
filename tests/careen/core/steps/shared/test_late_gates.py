"""What a refusal after the drain costs: an order undoes the drain at once, what the drain caused does not refuse, and
everything else gets some time and is then a failure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from careen.core.actions import PatchNode
from careen.core.decide import decide
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import Memory, RebootMemory, RebootOutcome
from careen.core.facts.observation import Alert, Fleet, Sample, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import AlertPolicy, HealthQuery, LatePolicy, Policy
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.facts.windows import Window
from careen.core.gates.gate_annotations import gate_annotations
from careen.core.lock import changes
from careen.core.steps.shared import late_gates
from tests.careen.core.builders import (
    NOW,
    UPTIME,
    a_marked_node,
    a_pod,
    a_policy,
    a_progress,
    a_reading,
    an_entry,
    an_observation,
    held,
    remembering,
    the_record,
)

CEPH = HealthQuery(name="ceph", query="ceph_health_status", comparison="==", bound=0, fresh_seconds=120)
LATE_CEPH = replace(CEPH, late_comparison="<=", late_bound=1.0)
ALERTS = a_policy(alerts=AlertPolicy())
DISK = Alert(name="DiskFull", labels={"node": "n2"})
GATE = f"{keys.GATE_PREFIX}backup"


class Node:
    """One node and its agent's decisions. `turn` applies each patch to the Node."""

    def __init__(self, policy: Policy, record: Progress | None = None, **at_the_claim: Any) -> None:
        """`at_the_claim`: what the agent sees when it cordons the node; the drain evicts the pod web-1."""
        self.policy = policy
        self.uptime = UPTIME
        self.memory: Memory = remembering()
        self.node = a_marked_node(a_progress(Phase.CLAIMING))
        self.seen: dict[str, Any] = {}
        if record is None:
            assert self.turn(0, pods=(a_pod(),), **at_the_claim).phase is Phase.DRAINING
        else:
            self.node = a_marked_node(record)

    def turn(self, after: float = 2.0, **seen: Any) -> Decision:
        self.uptime += after
        now = NOW + timedelta(seconds=self.uptime - UPTIME)
        given = {"lock": held(an_entry()), "now": now, "uptime": self.uptime, "queries": {}, **seen}
        given["fleet"] = Fleet(nodes=(self.node,), read_at_uptime=self.uptime)
        record = self.node.record
        assert isinstance(record, Progress)
        if record.is_releasing or not record.claim:
            given["lock"] = held()
        decision = decide(an_observation(self.node, memory=self.memory, **given), self.policy)
        assert not decision.wants, decision.wants
        self.memory = decision.memory
        for patch in decision.actions:
            if isinstance(patch, PatchNode):
                both = {**self.node.annotations, **patch.annotations}
                cordon = self.node.unschedulable if patch.unschedulable is None else patch.unschedulable
                annotations = {key: value for key, value in both.items() if value is not None}
                labels = {key: value for key, value in patch.labels.items() if value is not None}
                self.node = replace(self.node, annotations=annotations, unschedulable=cordon, labels=labels)
        return decision

    def until_failed(self, most: float, **seen: Any) -> float:
        """Return how many seconds the drained node waits before its drain has failed."""
        began = self.uptime
        look = 0.0
        while self.uptime - began < most:
            decision = self.turn(look, **seen)
            if decision.phase is Phase.FAILED:
                assert decision.reason.code is Code.LATE_REFUSAL
                return self.uptime - began
            assert decision.phase is not Phase.REBOOTING
            look = decision.look_again_seconds
            assert 2.0 <= look <= 15.0
        raise AssertionError(f"the node still waits after {most:.0f} s")


def ceph(value: float, **labels: str) -> Sample:
    return Sample(value=value, age_seconds=5, evaluated_at=NOW.timestamp(), labels=labels)


def answers(*samples: Sample, after: float = 0.0) -> dict[str, tuple[Sample, ...]]:
    return {"ceph": tuple(replace(each, evaluated_at=each.evaluated_at + after) for each in samples)}


ORDERS: dict[str, tuple[Policy, dict[str, Any], Code]] = {
    "a hold": (ALERTS, {"annotations": {keys.HOLD: "fan"}}, Code.HELD),
    "a closed window": (replace(ALERTS, window=Window(days=frozenset())), {}, Code.LATE_REFUSAL),
}


@pytest.mark.parametrize(("policy", "changes", "code"), ORDERS.values(), ids=ORDERS.keys())
def test_an_order_undoes_the_drain_at_once_and_is_no_failure(
    policy: Policy, changes: dict[str, Any], code: Code
) -> None:
    """Even while the node waits for something else."""
    node = Node(ALERTS)
    node.turn(alerts=(DISK,))
    node.policy = policy
    node.node = replace(
        node.node, annotations={**node.node.annotations, GATE: "dump", **changes.get("annotations", {})}
    )
    decision = node.turn(alerts=(DISK,))
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, code)
    assert (the_record(decision).failures, the_record(decision).tries) == (0, 0)


def test_a_pause_undoes_the_drain_at_once() -> None:
    decision = Node(ALERTS).turn(lock=changes.pause(held(an_entry()), "", 1), alerts=(DISK,))
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.PAUSED)


@pytest.mark.parametrize("seconds", [2, 300, 590])
def test_a_foreign_alert_that_ends_within_ten_minutes_lets_the_node_reboot(seconds: int) -> None:
    node = Node(ALERTS)
    first = node.turn(alerts=(DISK,))
    assert (first.phase, first.reason.code) == (Phase.DRAINING, Code.ALERT)
    assert first.reason.sentence == "the node is drained and waits up to 10m: these alerts are active: DiskFull"
    assert node.turn(seconds).phase is Phase.REBOOTING


def test_a_foreign_alert_that_does_not_end_is_a_failure_after_ten_minutes() -> None:
    node = Node(ALERTS)
    assert node.until_failed(700, alerts=(DISK,)) == pytest.approx(600, abs=16)
    assert "these alerts are active: DiskFull, for 10m after the drain" in node.node.annotations[keys.REASON]
    record = node.node.record
    assert isinstance(record, Progress)
    assert (record.failures, record.tries, record.failed) == (1, 1, "late-refusal")
    assert node.node.unschedulable is False


def test_the_wait_of_a_restarted_agent_continues() -> None:
    node, waited = Node(ALERTS), 0.0
    while waited < 590:
        node.memory = Memory()
        assert node.turn(59, alerts=(DISK,)).phase is Phase.DRAINING
        waited += 59
    node.memory = Memory()
    assert node.turn(70, alerts=(DISK,)).phase is Phase.FAILED


def test_a_wait_that_began_in_the_future_begins_now() -> None:
    """Somebody else wrote the annotation; the node must not wait for ever."""
    node = Node(ALERTS)
    node.turn(alerts=(DISK,))
    text = node.node.annotations[keys.KNOWN_AT_THE_CLAIM].replace('"foreign":', '"foreign":1e9,"was":')
    node.node = replace(node.node, annotations={**node.node.annotations, keys.KNOWN_AT_THE_CLAIM: text})
    assert node.until_failed(700, alerts=(DISK,)) == pytest.approx(600, abs=16)


def test_one_foreign_refusal_after_another_does_not_extend_the_wait() -> None:
    node = Node(replace(ALERTS, health_queries=(CEPH,)), queries=answers(ceph(0)))
    node.turn(alerts=(DISK,), queries=answers(ceph(0)))
    assert node.turn(590, queries=answers(ceph(2), after=592)).phase is Phase.DRAINING
    assert node.turn(20, alerts=(DISK,), queries=answers(ceph(0), after=612)).phase is Phase.FAILED


def test_a_waiting_node_writes_nothing_while_nothing_changes() -> None:
    node = Node(ALERTS)
    node.turn(alerts=(DISK,))
    for _ in range(20):
        assert not [each for each in node.turn(15, alerts=(DISK,)).actions if isinstance(each, PatchNode)]


def test_pods_that_come_back_during_the_wait_are_evicted() -> None:
    node = Node(ALERTS)
    node.turn(alerts=(DISK,))
    decision = node.turn(pods=(a_pod("web-9"),), alerts=(DISK,))
    assert (decision.phase, decision.reason.code) == (Phase.DRAINING, Code.DRAINING)


def test_an_alert_that_the_drain_caused_does_not_refuse_and_is_named_in_the_reason() -> None:
    node = Node(ALERTS)
    ours = Alert(name="KubeDeploymentReplicasMismatch", labels={"namespace": "shop", "deployment": "web"})
    decision = node.turn(alerts=(ours, replace(ours, name="KubeNodeUnschedulable", labels={"node": "n1"})))
    assert decision.phase is Phase.REBOOTING
    assert decision.reason.sentence.endswith(
        "the drain caused these alerts: KubeDeploymentReplicasMismatch, KubeNodeUnschedulable"
    )
    assert Node(ALERTS).turn(alerts=(ours, DISK)).reason.sentence.endswith("these alerts are active: DiskFull")


def test_an_alert_that_did_not_block_the_claim_and_blocks_later_is_foreign() -> None:
    """It was pending at the claim, and only firing alerts count."""
    pending = Alert(name="KubeNodeNotReady", state="pending", labels={"node": "n1"})
    policy = a_policy(alerts=AlertPolicy(firing_only=True))
    firing = (replace(pending, state="firing"),)
    assert Node(policy, alerts=(pending,)).turn(alerts=firing).reason.code is Code.ALERT
    assert Node(policy).turn(alerts=firing).phase is Phase.REBOOTING


def test_a_drain_that_began_under_an_earlier_release_has_only_foreign_alerts() -> None:
    node = Node(ALERTS, record=a_progress(Phase.DRAINING))
    assert node.until_failed(700, alerts=(Alert(name="A", labels={"node": "n1"}),)) == pytest.approx(600, abs=16)


def test_the_condition_for_drained_nodes_decides_after_the_drain_only() -> None:
    policy = a_policy(health_queries=(LATE_CEPH,))
    good, warn, error = (answers(ceph(value)) for value in (0, 1, 2))
    claiming = an_observation(a_marked_node(a_progress(Phase.CLAIMING)), lock=held(an_entry()), queries=warn)
    assert decide(claiming, policy).reason.code is Code.HEALTH_QUERY
    warned = Node(policy, queries=good).turn(queries=warn)
    assert warned.phase is Phase.REBOOTING
    assert warned.reason.sentence.endswith("these health queries may be bad while the node is drained: ceph")
    refused = Node(policy, queries=good).turn(queries=error)
    assert (refused.phase, refused.reason.code) == (Phase.DRAINING, Code.HEALTH_QUERY)
    assert "ceph is 2; the value must be <= 1" in refused.reason.sentence


@pytest.mark.parametrize("at", [0, 1])
def test_one_bad_sample_of_several_refuses(at: int) -> None:
    """Also if the samples differ only in the pod that reported them."""
    samples = [ceph(0, pod="mgr-a"), ceph(0, pod="mgr-b")]
    node = Node(a_policy(health_queries=(LATE_CEPH,)), queries=answers(*samples))
    samples[at] = replace(samples[at], value=2.0)
    assert node.turn(queries=answers(*samples)).reason.code is Code.HEALTH_QUERY


UNKNOWN: dict[str, dict[str, Any]] = {
    "the alerts": {"alerts": Unknown("refused")},
    "one of the queries": {"queries": {"ceph": Unknown("refused")}},
    "a query without a sample": {"queries": {"ceph": ()}},
}


@pytest.mark.parametrize("changes", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_stays_unknown_for_longer_than_the_patience_is_a_failure_without_a_try(
    changes: dict[str, Any],
) -> None:
    policy = replace(ALERTS, health_queries=(CEPH,), unknown_patience_seconds=100)
    node = Node(policy, queries=answers(ceph(0)))
    assert node.until_failed(200, **{"queries": answers(ceph(0)), **changes}) == pytest.approx(102, abs=2)
    record = node.node.record
    assert isinstance(record, Progress)
    assert (record.failures, record.tries) == (1, 0)


def test_alerts_that_are_briefly_unknown_do_not_extend_the_wait_for_a_foreign_one() -> None:
    node = Node(ALERTS)
    for _ in range(10):
        assert node.turn(29, alerts=(DISK,)).phase is Phase.DRAINING
        assert node.turn(29, alerts=Unknown("refused")).phase is Phase.DRAINING
    assert node.turn(60, alerts=(DISK,)).phase is Phase.FAILED


def hooked(node: Node, reason: str | None) -> Node:
    annotations = {key: value for key, value in node.node.annotations.items() if key != GATE}
    node.node = replace(node.node, annotations={**annotations, **({GATE: reason} if reason is not None else {})})
    return node


def test_a_gate_annotation_set_since_the_claim_is_a_hook_that_gets_an_hour() -> None:
    node = hooked(Node(ALERTS), "dump")
    first = node.turn()
    assert (first.phase, first.reason.code) == (Phase.DRAINING, Code.GATE_ANNOTATION)
    assert node.turn(1200).phase is Phase.DRAINING
    assert hooked(node, None).turn().phase is Phase.REBOOTING
    left = hooked(Node(ALERTS), "dump")
    assert left.until_failed(4000) == pytest.approx(3600, abs=16)
    assert "gate backup: dump, for 1h after the drain" in left.node.annotations[keys.REASON]


def test_a_gate_annotation_of_the_whole_cluster_is_a_hook_too() -> None:
    reading = replace(a_reading(held(an_entry())), gates={GATE: "etcd backup"})
    node = Node(ALERTS)
    assert node.turn(lock=reading).reason.code is Code.GATE_ANNOTATION
    assert node.turn(1200, lock=reading).phase is Phase.DRAINING


def test_an_alert_after_a_long_hook_gets_its_own_ten_minutes() -> None:
    node = hooked(Node(ALERTS), "dump")
    node.turn()
    node.turn(3000)
    assert hooked(node, None).until_failed(700, alerts=(DISK,)) == pytest.approx(600, abs=16)


def test_of_two_drained_nodes_that_wait_for_each_other_the_younger_claim_gives_way() -> None:
    older = an_entry("n2", "c2", created="2026-03-04T11:00:00Z")
    younger = an_entry("n2", "c2", created="2026-03-04T11:59:30Z")
    waits = {
        each.created: Node(ALERTS).until_failed(700, alerts=(DISK,), lock=held(an_entry(), each))
        for each in (older, younger)
    }
    assert waits == {
        older.created: pytest.approx(300, abs=16),
        younger.created: pytest.approx(600, abs=16),
    }


def test_with_late_policy_reboot_only_orders_and_facts_about_host_and_lock_stop_the_reboot() -> None:
    policy = replace(ALERTS, late_policy=LatePolicy.REBOOT)
    decision = hooked(Node(policy), "dump").turn(alerts=(DISK,))
    assert decision.phase is Phase.REBOOTING
    assert "caused" not in decision.reason.sentence
    assert late_gates.undoes(gate_annotations, policy) is False


def test_a_reboot_that_the_host_was_not_asked_for_waits_in_the_same_way() -> None:
    """The reboot is announced, and the claim could not be confirmed, so the agent asks its gates again."""
    node = Node(ALERTS, record=a_progress(Phase.REBOOTING, announced=None))
    node.memory = remembering(reboot=RebootMemory(claim="c1", announcement=1, outcome=RebootOutcome.NOT_ASKED))
    assert node.turn(alerts=(DISK,)).phase is Phase.REBOOTING
    assert node.turn(590, alerts=(DISK,)).reason.code is Code.ALERT
    assert node.turn(20, alerts=(DISK,)).phase is Phase.FAILED


def test_the_drain_is_tried_again_after_the_back_off_as_often_as_reboot_tries_says() -> None:
    node = Node(ALERTS)
    for tries in (1, 2, 3):
        if tries > 1:
            node.node = a_marked_node(a_progress(Phase.DRAINING, tries=tries - 1, failures=tries - 1))
        node.until_failed(700, alerts=(DISK,))
        node.turn(2)
        decision = node.turn(3600)
        assert decision.phase is (Phase.WAITING if tries < 3 else Phase.FAILED)

"""Tests the model of the roll-out: states, causes, obstacles, and what the present lock and Nodes disprove."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from careen.core.drain.forecast_objection import ROOM
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Mark, Progress, to_annotation
from careen.core.lock.content import Entry, Garbage, LockContent
from careen.rollout.as_json import rollout_json
from careen.rollout.model import State
from careen.rollout.reading import rollout
from scheduler_core.values import replace_value as replace
from tests.careen.core.builders import a_node

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
NEVER = (
    "1 of 3 pods can never be evicted: shop/{pod} (disruption budget shop/{app} wants 3 healthy of 3 pods, has 3, and "
    "allows no eviction now; waiting cannot help: raise maxUnavailable, lower minAvailable or add a replica)"
)


def waiting(name: str, *rows: tuple[str, str, str], since: str = "2026-03-04T11:00:00Z", **more: str) -> NodeView:
    refusals = [{"gate": gate, "code": code, "sentence": sentence, "since": since} for gate, code, sentence in rows]
    return a_node(name, annotations={keys.PHASE: "Waiting", keys.REFUSALS: json.dumps(refusals), **more})


def holder(name: str, phase: Phase, **changes: object) -> NodeView:
    progress = Progress(
        phase=phase.value,
        claim="c",
        boot_left="b",
        need_since="2026-03-04T10:00:00Z",
        drain_started=Mark(boot="b", uptime=1.0),
        drain_started_at="2026-03-04T11:58:00Z",
    )
    more = dict(changes.pop("annotations", {}))  # type: ignore[call-overload]
    given = {keys.PHASE: phase.value, keys.PROGRESS: to_annotation(progress), keys.SINCE: "2026-03-04T11:58:00Z"}
    return a_node(name, annotations={**given, **more}, **changes)


def lock(*names: str) -> LockContent:
    return LockContent(
        entries=tuple(Entry(node=name, id="c", created="2026-03-04T11:58:00Z") for name in names), max_owners=1
    )


def last_reboot(name: str, at: str) -> NodeView:
    return a_node(name, annotations={keys.LAST_REBOOT: json.dumps({"at": at, "seconds": 300})})


def test_a_roll_out_that_moves_has_counts_and_a_finish_and_no_obstacle() -> None:
    nodes = [
        last_reboot("n1", "2026-03-04T11:00:00Z"),
        last_reboot("n2", "2026-03-03T11:00:00Z"),
        holder("n3", Phase.DRAINING),
        waiting("n4"),
        waiting("n5"),
    ]
    found = rollout(nodes, lock("n3"), NOW)
    assert [each.state for each in found.nodes] == [State.DONE, State.IDLE, State.WORKING, State.QUEUED, State.QUEUED]
    assert found.obstacles == ()
    assert (found.counts.done, found.counts.working, found.counts.queued) == (1, 1, 2)
    assert found.counts.finish == datetime(2026, 3, 4, 12, 13, tzinfo=UTC)  # n3 is back at 12:03, then two of 300 s


def test_nodes_that_the_same_budget_holds_have_one_cause_and_a_node_with_two_budgets_has_two() -> None:
    nodes = [
        waiting("n1", ("forecast", "forecast-refuses", NEVER.format(pod="a-1", app="a"))),
        waiting("n2", ("forecast", "forecast-refuses", NEVER.format(pod="a-2", app="a"))),
        waiting(
            "n3",
            ("forecast", "forecast-refuses", f"{NEVER.format(pod='a-3', app='a')}; {NEVER.format(pod='b', app='b')}"),
        ),
    ]
    found = rollout(nodes, LockContent(), NOW)
    assert [(each.subject, each.nodes, each.alone) for each in found.causes] == [
        ("budget shop/a", ("n1", "n2", "n3"), ("n1", "n2")),
        ("budget shop/b", ("n3",), ()),
    ]
    assert found.causes[0].since == datetime(2026, 3, 4, 11, 0, tzinfo=UTC)
    assert found.nodes[2].causes == (
        "forecast/forecast-refuses/budget shop/a",
        "forecast/forecast-refuses/budget shop/b",
    )


def test_the_remedy_for_a_pod_that_can_never_be_evicted_permits_no_pending_pods() -> None:
    found = rollout(
        [waiting("n1", ("forecast", "forecast-refuses", NEVER.format(pod="a", app="a")))], LockContent(), NOW
    )
    assert "the disruption budget shop/a" in found.causes[0].remedy
    assert "--forecast-pending-allowed" not in found.causes[0].remedy


def test_a_refusal_that_the_present_nodes_disprove_holds_nothing() -> None:
    down = (
        "budgets",
        "nodes-down",
        "n2 is cordoned by somebody, not by careen; with this node 2 nodes would be down; the limit is 1",
    )
    back = rollout([waiting("n1", down), a_node("n2")], LockContent(), NOW)
    assert (back.causes, back.nodes[0].state) == ((), State.QUEUED)
    still = rollout([waiting("n1", down), a_node("n2", unschedulable=True)], LockContent(), NOW)
    assert [each.subject for each in still.causes] == ["node n2"]


def refused(name: str, row: dict[str, object]) -> NodeView:
    return a_node(name, annotations={keys.PHASE: "Waiting", keys.REFUSALS: json.dumps([row])})


@pytest.mark.parametrize(("lacks", "is_over"), [(1, True), (2, False)])
def test_a_refusal_is_over_when_as_many_nodes_as_it_lacks_are_in_service_again(lacks: int, is_over: bool) -> None:
    for code in ("nodes-down", "budget-spent", "quorum"):
        row = {"gate": "budgets", "code": code, "sentence": "told otherwise", "down": ["n2", "n3"], "lacks": lacks}
        nodes = [refused("n1", row), a_node("n2"), a_node("n3", ready=False)]
        assert (rollout(nodes, LockContent(), NOW).causes == ()) is is_over, code


@pytest.mark.parametrize(
    ("gate", "code"), [("cluster-interval", "cluster-interval"), ("undone-drains", "undone-drains")]
)
def test_a_refusal_whose_time_is_over_holds_nothing_and_one_that_ends_soon_is_no_obstacle(gate: str, code: str) -> None:
    for at, causes, obstacles in (
        ("2026-03-04T11:59:00Z", 0, 0),
        ("2026-03-04T12:01:00Z", 1, 0),
        ("2026-03-04T13:00:00Z", 1, 1),
    ):
        row = {"gate": gate, "code": code, "sentence": "too early", "since": "2026-03-04T11:00:00Z", "ends": at}
        found = rollout([refused("n1", row)], LockContent(), NOW)
        assert (len(found.causes), len(found.obstacles)) == (causes, obstacles if code != "cluster-interval" else 0), at


def test_a_pause_that_is_over_holds_nothing() -> None:
    paused = waiting("n1", ("hold", "paused", "a person paused the lock"))
    assert rollout([paused], LockContent(), NOW).causes == ()
    assert rollout([paused], LockContent(is_paused=True), NOW).causes != ()


def test_a_holder_that_is_not_ready_outside_its_reboot_is_stuck_and_becomes_the_obstacle() -> None:
    dead = holder("n3", Phase.DRAINING, ready=False, ready_since=NOW - timedelta(seconds=107))
    found = rollout([dead, waiting("n4")], lock("n3"), NOW)
    assert found.nodes[0].state is State.STUCK
    assert found.nodes[0].trouble == "n3 has been NotReady for 1m47s, outside its reboot"
    assert found.obstacles[0].code == "holder-overdue"
    assert "n3 has been NotReady for 1m47s" in found.obstacles[0].why
    assert found.counts.finish is None


def test_a_node_that_reboots_may_be_not_ready() -> None:
    found = rollout([holder("n3", Phase.REBOOTING, ready=False), waiting("n4")], lock("n3"), NOW)
    assert (found.nodes[0].state, found.obstacles) == (State.WORKING, ())


def test_a_drain_for_maintenance_is_no_reboot_and_has_no_expected_end() -> None:
    asked = {keys.REQUEST: '{"want":"maintenance","reason":"disk swap"}'}
    found = rollout(
        [holder("n3", Phase.DRAINING, annotations=asked), last_reboot("n1", "2026-03-04T11:00:00Z")], lock("n3"), NOW
    )
    assert found.nodes[0].state is State.KEPT_DOWN
    assert found.nodes[0].doing == "draining for maintenance"
    assert found.nodes[0].expected is None


def test_what_ends_within_two_minutes_is_no_obstacle() -> None:
    soon = (
        "minimum-interval",
        "minimum-interval",
        "the last reboot of this node was at x; its next reboot may begin at {}",
    )
    for at, is_told in (("2026-03-04T12:01:00Z", False), ("2026-03-04T13:00:00Z", True)):
        found = rollout([waiting("n1", (*soon[:2], soon[2].format(at)))], LockContent(), NOW)
        assert bool(found.obstacles) is is_told, at


def test_the_json_form_reaches_every_node_by_its_causes() -> None:
    found = rollout_json(
        rollout([waiting("n1", ("alerts", "alert", "these alerts are active: A, B"))], LockContent(), NOW)
    )
    assert [each["key"] for each in found["causes"]] == ["alerts/alert/alert A", "alerts/alert/alert B"]
    assert found["nodes"][0]["causes"] == [each["key"] for each in found["causes"]]
    json.dumps(found)


def test_the_way_back_from_maintenance_is_no_reboot_either() -> None:
    def settling(**changes: object) -> NodeView:
        progress = Progress(phase=Phase.SETTLING.value, claim="c", boot_left="b", **changes)  # type: ignore[arg-type]
        return a_node("n3", annotations={keys.PHASE: "Settling", keys.PROGRESS: to_annotation(progress)})

    (back,) = rollout([settling()], lock("n3"), NOW).nodes
    assert (back.state, back.shown_phase) == (State.KEPT_DOWN, "Settling (maintenance)")
    (rebooted,) = rollout([settling(drain_started_at="2026-03-04T11:58:00Z")], lock("n3"), NOW).nodes
    assert (rebooted.state, rebooted.shown_phase) == (State.WORKING, "Settling")


def test_a_cause_is_what_the_gate_says_it_is_about() -> None:
    names = ["alert A", "alert B, C and D"]
    row = {"gate": "alerts", "code": "alert", "sentence": "these alerts are active: A and 2 more", "about": names}
    node = a_node("n1", annotations={keys.PHASE: "Waiting", keys.REFUSALS: json.dumps([row])})
    assert [each.subject for each in rollout([node], LockContent(), NOW).causes] == names


def test_nodes_without_room_for_their_pods_have_one_cause() -> None:
    rows = [
        {
            "gate": "forecast",
            "code": "forecast-refuses",
            "sentence": f"1 of 9 pods would not find room: shop/web-{place} (0/3 nodes fit)",
            "about": [ROOM],
        }
        for place in range(2)
    ]
    nodes = [
        a_node(f"n{place}", annotations={keys.PHASE: "Waiting", keys.REFUSALS: json.dumps([row])})
        for place, row in enumerate(rows)
    ]
    (cause,) = rollout(nodes, LockContent(), NOW).causes
    assert (cause.subject, cause.nodes) == (ROOM, ("n0", "n1"))
    assert "--forecast-pending-allowed=1" in cause.remedy
    assert "maxUnavailable" not in cause.remedy


def test_a_node_that_waits_for_its_maintenance_is_no_part_of_the_roll_out() -> None:
    asked = {keys.REQUEST: '{"want":"drain"}'}
    alert = ("alerts", "alert", "these alerts are active: DiskFull")
    found = rollout([waiting("n1", **asked), waiting("n2", alert, **asked)], LockContent(), NOW)
    assert [(each.state, each.shown_phase) for each in found.nodes] == [(State.KEPT_DOWN, "Waiting (maintenance)")] * 2
    assert (found.counts.open, found.counts.finish) == (0, None)
    assert [each.nodes for each in found.causes] == [("n2",)]


def test_a_holder_whose_record_cannot_be_read_is_stuck_and_the_obstacle_says_what_to_do() -> None:
    broken = holder("n3", Phase.DRAINING, annotations={keys.PROGRESS: "nonsense"})
    found = rollout([broken, waiting("n4")], lock("n3"), NOW)
    assert found.nodes[0].state is State.STUCK
    (obstacle,) = found.obstacles
    assert "is not JSON that careen wrote, so its agent does nothing" in obstacle.why
    assert any("careen.dev/progress-" in way for way in obstacle.ways_out)
    assert not any("lock release" in way for way in obstacle.ways_out)


def test_a_halted_roll_out_names_the_dead_holder_too_because_the_failure_may_be_its_consequence() -> None:
    failed = Entry(node="n1", id="c", created="2026-03-04T11:58:00Z", failed="settle-timeout")
    dead = holder("n3", Phase.DRAINING, ready=False, ready_since=NOW - timedelta(seconds=107))
    content = lock("n3")
    found = rollout([dead, waiting("n4")], LockContent(entries=(failed, *content.entries), max_owners=2), NOW)
    (obstacle,) = found.obstacles
    assert "n1 failed (settle-timeout)" in obstacle.why
    assert "n3 has been NotReady for 1m47s, outside its reboot" in obstacle.why
    assert obstacle.ways_out == (
        "Look at the host of n3. Only if it is down for good: `careen lock release n3`.",
        "Repair n1 and run `careen retry n1`, or run `careen lock release n1`.",
    )


@pytest.mark.parametrize("before", ["", ": run `careen retry n1`"], ids=["this release", "an earlier release"])
def test_the_remedy_of_a_halt_names_the_failed_node(before: str) -> None:
    sentence = "n1 failed (settle-timeout) and keeps its claim, so the roll-out halts"
    row = {"gate": "halt", "code": "halted", "sentence": f"{sentence}{before}"}
    row |= {} if before else {"remedy": "run `careen retry n1`", "about": ["failed node n1"]}
    halted = LockContent(entries=(Entry(node="n1", id="c", created="", failed="settle-timeout"),))
    node = a_node("n2", annotations={keys.PHASE: "Waiting", keys.REFUSALS: json.dumps([row])})
    (cause,) = rollout([node], halted, NOW).causes
    assert (cause.sentence, cause.remedy) == (sentence, "Run `careen retry n1`.")


def dead_holder(phase: Phase) -> NodeView:
    return holder("n3", phase, ready=False, ready_since=NOW - timedelta(seconds=200))


@pytest.mark.parametrize("phase", [Phase.CLAIMING, Phase.DRAINING, Phase.SETTLING, Phase.WAITING, Phase.IDLE])
def test_a_dead_holder_looks_dead_in_every_phase_outside_its_reboot(phase: Phase) -> None:
    given = dead_holder(phase)
    if phase in {Phase.WAITING, Phase.IDLE}:  # a claim without a record
        given = a_node("n3", annotations={keys.PHASE: phase.value}, ready=False, ready_since=given.ready_since)
    found = rollout([given, waiting("n4")], lock("n3"), NOW)
    assert found.nodes[0].state is State.STUCK
    (obstacle,) = found.obstacles
    assert "n4 must wait for a free claim; n3 holds the only claim: n3 has been NotReady for 3m20s" in obstacle.why
    assert "Look at the host of n3. Only if it is down for good: `careen lock release n3`." in obstacle.ways_out


@pytest.mark.parametrize("phase", [Phase.REBOOTING, Phase.VERIFYING])
def test_a_host_that_boots_is_no_dead_holder(phase: Phase) -> None:
    found = rollout([dead_holder(phase), waiting("n4")], lock("n3"), NOW)
    assert (found.nodes[0].state, found.obstacles) == (State.WORKING, ())


def test_a_pause_hides_no_dead_holder() -> None:
    found = rollout([dead_holder(Phase.DRAINING), waiting("n4")], replace(lock("n3"), is_paused=True), NOW)
    (obstacle,) = found.obstacles
    assert "paused the lock, so n4 must wait until the pause ends; besides, n3 has been NotReady" in obstacle.why
    assert [way for way in obstacle.ways_out if "lock resume" in way or "host of n3" in way] == list(obstacle.ways_out)


def test_a_failed_holder_whose_host_is_dead_is_both() -> None:
    failed = LockContent(entries=(Entry(node="n3", id="c", created="", failed="never-ready"),))
    found = rollout([dead_holder(Phase.FAILED), waiting("n4")], failed, NOW)
    (obstacle,) = found.obstacles
    assert "n3 failed (never-ready) and keeps its claim" in obstacle.why
    assert "besides, n3 has been NotReady for 3m20s" in obstacle.why


def test_a_claim_whose_node_is_gone_is_an_obstacle_if_no_other_is_free() -> None:
    (obstacle,) = rollout([waiting("n4")], lock("gone"), NOW).obstacles
    assert "n4 must wait for a free claim; gone holds the only claim: there is no Node gone" in obstacle.why
    assert obstacle.ways_out == ("Only if the host of gone is down or idle: `careen lock release gone`.",)
    assert rollout([waiting("n4")], replace(lock("gone"), max_owners=2), NOW).obstacles == ()


def test_who_waits_for_a_maintenance_is_told_how_to_end_it() -> None:
    asked = {keys.REQUEST: '{"want":"maintenance","reason":"disk swap"}', keys.REASON: "disk swap"}
    (obstacle,) = rollout(
        [holder("n3", Phase.MAINTENANCE, annotations=asked), waiting("n4")], lock("n3"), NOW
    ).obstacles
    assert "n3 is down for maintenance (disk swap)" in obstacle.why
    assert "`careen maintenance n3 --end` ends the maintenance of n3." in obstacle.ways_out


@pytest.mark.parametrize("stop", ["paused", "halted", "garbage"])
def test_no_finish_is_promised_to_nodes_that_cannot_begin(stop: str) -> None:
    nodes = [last_reboot("n1", "2026-03-04T11:00:00Z"), holder("n3", Phase.DRAINING), waiting("n4")]
    failed = Entry(node="n2", id="c", created="", failed="never-ready")
    content = {
        "paused": replace(lock("n3"), is_paused=True),
        "halted": replace(lock("n3"), entries=(*lock("n3").entries, failed), max_owners=2),
        "garbage": Garbage("not JSON"),
    }[stop]
    assert rollout(nodes, lock("n3"), NOW).counts.finish is not None
    assert rollout(nodes, content, NOW).counts.finish is None


def test_a_finish_counts_on_no_claim_of_a_maintenance_or_of_a_node_that_is_gone() -> None:
    asked = {keys.REQUEST: '{"want":"maintenance","reason":"disk swap"}'}
    nodes = [
        last_reboot("n1", "2026-03-04T11:00:00Z"),
        holder("n3", Phase.DRAINING),
        *(waiting(f"n{number}") for number in range(4, 8)),
    ]
    two = replace(lock("n3"), max_owners=2)
    assert rollout(nodes, two, NOW).counts.finish == datetime(2026, 3, 4, 12, 13, tzinfo=UTC)  # 12:03, then twice 300 s
    kept = holder("n9", Phase.MAINTENANCE, annotations=asked)
    both = replace(lock("n3", "n9"), max_owners=2)
    for others in ([kept], []):
        assert rollout([*nodes, *others], both, NOW).counts.finish == datetime(2026, 3, 4, 12, 23, tzinfo=UTC)


def test_a_roll_out_that_has_begun_is_not_said_to_have_started_nothing() -> None:
    down = ("budgets", "nodes-down", "n2 is not ready; with this node 2 nodes would be down; the limit is 1")
    refused, others = waiting("n1", down, label="ready"), [a_node("n2", ready=False), waiting("n5")]
    (obstacle,) = rollout([refused, *others], LockContent(), NOW).obstacles
    assert obstacle.why.startswith("No reboot has started so far: ")
    done = last_reboot("n9", "2026-03-04T11:00:00Z")
    needing = waiting(
        "n6", **{keys.PROGRESS: to_annotation(Progress(phase="Waiting", need_since="2026-03-04T10:00:00Z"))}
    )
    (obstacle,) = rollout([refused, *others, needing, done], LockContent(), NOW).obstacles
    assert obstacle.why.startswith("No further reboot has started so far: ")


def test_an_agent_has_seen_a_cause_when_it_wrote_it_at_the_latest() -> None:
    made = json.dumps({"at": "2026-03-04T10:00:00Z"})
    refused = waiting("n1", ("alerts", "alert", "these alerts are active: DiskFull"), **{keys.FORECAST: made})
    (cause,) = rollout([refused], LockContent(), NOW).causes
    assert (cause.since, cause.seen) == (datetime(2026, 3, 4, 11, tzinfo=UTC),) * 2


def test_a_reboot_under_way_is_expected_to_take_as_long_as_the_last_one_from_cordon_to_release() -> None:
    report = {"at": "2026-03-03T12:00:00Z", "seconds": 300, "settleSeconds": 60}
    other = a_node("n2", annotations={keys.LAST_REBOOT: json.dumps({**report, "seconds": 200})})
    again = holder("n1", Phase.DRAINING, annotations={keys.LAST_REBOOT: json.dumps(report)})
    found = rollout([again, other], lock("n1"), NOW)
    assert found.nodes[0].expected is not None
    assert (found.nodes[0].expected.seconds, found.nodes[0].expected.basis) == (360, "its last reboot")


def test_the_reboot_that_still_settles_is_no_measure_of_itself() -> None:
    report = {"at": "2026-03-04T11:59:00Z", "seconds": 60}
    settling = holder("n1", Phase.SETTLING, annotations={keys.LAST_REBOOT: json.dumps(report)})
    other = a_node("n2", annotations={keys.LAST_REBOOT: json.dumps({**report, "seconds": 200, "settleSeconds": 30})})
    found = rollout([settling, other], lock("n1"), NOW).nodes[0].expected
    assert found is not None
    assert (found.seconds, found.basis) == (230, "the last reboots of 1 node")


def test_the_remedy_for_a_gate_annotation_names_the_annotation() -> None:
    row = {
        "gate": "gate-annotations",
        "code": "gate-annotation",
        "sentence": "gate backup: dump",
        "since": "2026-03-04T11:00:00Z",
        "about": ["annotation careen.dev/gate.backup"],
    }
    node = a_node("n1", annotations={keys.PHASE: "Waiting", keys.REFUSALS: json.dumps([row])})
    still = replace(node, annotations={**node.annotations, "careen.dev/gate.backup": "dump"})
    assert rollout([node], LockContent(), NOW).causes == ()  # the annotation is gone
    another = replace(node, annotations={**node.annotations, "careen.dev/gate.other": "dump"})
    assert len(rollout([another], LockContent(), NOW).causes) == 1
    on_daemon_set = {**row, "about": ["annotation careen.dev/gate.backup on the DaemonSet"]}
    assert len(rollout([refused("n1", on_daemon_set)], LockContent(), NOW).causes) == 1
    found = rollout([still], LockContent(), NOW)
    told = "`kubectl annotate node n1 careen.dev/gate.backup-`"
    assert told in found.causes[0].remedy
    assert told in found.obstacles[0].ways_out[0]


def test_a_waiting_node_whose_record_cannot_be_read_is_held_back_by_it() -> None:
    found = rollout([waiting("n1", **{keys.PROGRESS: "nonsense"})], LockContent(), NOW)
    assert found.nodes[0].state is State.HELD_BACK
    assert [(each.code, each.nodes) for each in found.causes] == [("progress-unreadable", ("n1",))]
    assert "`kubectl annotate node n1 careen.dev/progress-`" in found.causes[0].remedy


def test_the_nodes_that_are_down_are_read_from_the_data_of_a_refusal() -> None:
    row = {"gate": "budgets", "code": "nodes-down", "sentence": "told otherwise", "about": ["node n2", "node n3"]}
    node = a_node("n1", annotations={keys.PHASE: "Waiting", keys.REFUSALS: json.dumps([row])})
    down = a_node("n2", unschedulable=True)
    assert [each.subject for each in rollout([node, down, a_node("n3")], LockContent(), NOW).causes] == [
        "node n2",
        "node n3",
    ]
    assert rollout([node, a_node("n2"), a_node("n3")], LockContent(), NOW).causes == ()

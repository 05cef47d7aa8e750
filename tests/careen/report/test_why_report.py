from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from careen.core.drain.forecast_objection import ROOM
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Taint, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.gates import GATES
from careen.core.gates.question import When
from careen.core.lock.content import Entry, Garbage, LockContent
from careen.report.gate_answers import Answer, NodeStory, gate_answers
from careen.report.why_report import (
    agent_remark,
    cordon_sentence,
    remedy_for,
    why_json,
    why_text,
)
from tests.careen.core.builders import a_policy

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def story(phase: Phase, lock: LockContent | Garbage | Unknown | None = None) -> NodeStory:
    annotations = {} if phase is Phase.IDLE else {keys.PHASE: phase.value}
    node = NodeView(name="n1", uid="u", resource_version="1", annotations=annotations)
    return NodeStory(node=node, lock=lock or LockContent(), agents=Unknown("403"), now=NOW)


@pytest.mark.parametrize("phase", list(Phase), ids=str)
def test_careen_why_gives_a_verdict_for_every_gate_in_every_phase(phase: Phase) -> None:
    assert [each.gate for each in gate_answers(story(phase))] == [gate.name for gate in GATES]


def test_careen_why_marks_the_gates_that_only_the_agent_of_a_holder_asks() -> None:
    later = {gate.name for gate in GATES if When.READY not in gate.when}
    assert later
    assert {
        each.gate
        for each in gate_answers(story(Phase.WAITING))
        if each.sentence == "only the agent of a node with a claim asks this gate"
    } == later


def test_careen_why_shows_an_unreadable_lock_before_the_agent_reports_it() -> None:
    first = gate_answers(story(Phase.WAITING, Garbage("the text of the lock is not JSON")))[0]
    assert (first.answer, first.code, first.sentence) == (
        Answer.WILL_REFUSE,
        Code.LOCK_GARBAGE,
        "the lock's content cannot be understood: the text of the lock is not JSON",
    )


def test_careen_why_shows_another_nodes_failure_before_the_agent_reports_it() -> None:
    def halted_by(name: str) -> list[Answer]:
        lock = LockContent(entries=(Entry(node=name, failed="never-ready"),))
        return [
            each.answer
            for each in gate_answers(story(Phase.WAITING, lock))
            if each.gate == "halt" and "lock release n2" in each.remedy
        ]

    assert (halted_by("n2"), halted_by("n1")) == ([Answer.WILL_REFUSE], [])


def test_careen_why_prints_no_remark_about_the_agent_if_the_pods_could_not_be_listed() -> None:
    assert agent_remark(story(Phase.IDLE)) == ""


@pytest.mark.parametrize("code", list(Code), ids=str)
def test_the_remedy_for_a_reason_contains_the_name_of_the_node(code: Code) -> None:
    assert "NODE" not in remedy_for(code, "n1")
    assert remedy_for(code, "NODE") == code.remedy


@pytest.mark.parametrize(
    ("by", "record", "words"),
    [
        (
            ("careen-agent",),
            Progress(phase="Draining", claim="c", boot_left="b", is_cordoned_by_us=True),
            "careen cordoned n1, because n1 holds a claim",
        ),
        (
            ("careen-agent",),
            None,
            "careen cordoned n1, which no longer holds a claim: the node's agent removes the cordon",
        ),
        (("kubectl-cordon",), None, "kubectl-cordon cordoned n1, and careen leaves the node cordoned"),
        (("argo", "careen-agent"), None, "argo cordoned n1, and careen leaves the node cordoned"),
        (
            (),
            None,
            (
                "n1 is cordoned, but the API server does not report which client cordoned n1. The cordon may be left "
                "over from a claim whose record was removed; `kubectl uncordon n1` removes the cordon"
            ),
        ),
    ],
)
def test_careen_why_shows_who_cordoned_the_node(by: tuple[str, ...], record: Progress | None, words: str) -> None:
    annotations = {keys.PROGRESS: to_annotation(record), keys.PHASE: record.phase} if record else {}
    node = NodeView(
        name="n1", uid="u", resource_version="1", unschedulable=True, cordoned_by=by, annotations=annotations
    )
    told = NodeStory(node=node, lock=LockContent(), agents=(), now=NOW)
    assert words in cordon_sentence(told)
    assert f"Cordon: {cordon_sentence(told)}." in why_text(told)
    assert why_json(told)["cordon"] == {"by": list(by), "sentence": cordon_sentence(told)}


@pytest.mark.parametrize(
    "record", ["garbage", '{"version":2}', '{"version":1,"phase":"Elsewhere"}', '{"version":1,"phase":"Draining"}']
)
def test_careen_why_shows_how_to_remove_an_annotation_with_an_unreadable_record(record: str) -> None:
    node = NodeView(name="n1", uid="u", resource_version="1", annotations={keys.PROGRESS: record})
    text = why_text(NodeStory(node=node, lock=LockContent(), agents=(), now=NOW))
    assert "the Node n1 shows the phase Idle, but the annotation careen.dev/progress" in text
    assert "`kubectl annotate node n1 careen.dev/progress-`" in text
    assert "while it cannot read the record" not in text
    assert "… and 26 gates that the agent does not ask (`--all`)." in text


def test_careen_why_does_not_promise_that_an_agent_with_an_unreadable_record_removes_the_cordon() -> None:
    node = NodeView(
        name="n1",
        uid="u",
        resource_version="1",
        unschedulable=True,
        cordoned_by=("careen-agent",),
        annotations={keys.PROGRESS: "garbage"},
    )
    told = NodeStory(node=node, lock=LockContent(), agents=(), now=NOW)
    assert cordon_sentence(told) == "careen cordoned n1, and leaves it cordoned until its record can be read"


@pytest.mark.parametrize("phase", [Phase.IDLE, Phase.WAITING])
def test_careen_why_names_a_request_that_the_agent_does_not_understand(phase: Phase) -> None:
    node = NodeView(
        name="n1", uid="u", resource_version="1", annotations={keys.PHASE: phase.value, keys.REQUEST: "rebot"}
    )
    text = why_text(NodeStory(node=node, lock=LockContent(), agents=Unknown(""), now=NOW))
    assert "does not understand rebot; it understands reboot, drain, maintenance." in text


def test_careen_why_says_nothing_about_the_cordon_of_an_uncordoned_node() -> None:
    assert cordon_sentence(story(Phase.WAITING)) == ""
    assert why_json(story(Phase.WAITING))["cordon"] is None


def test_careen_why_shows_the_nodes_warning_above_the_gates() -> None:
    annotations = {
        keys.PHASE: "Waiting",
        keys.REASON: "waits",
        keys.WARNING: "the kubelet would miss the shutdown",
    }
    node = NodeView(name="n1", uid="u", resource_version="1", annotations=annotations)
    text = why_text(NodeStory(node=node, lock=LockContent(), agents=(), now=NOW))
    assert "Warning: the kubelet would miss the shutdown." in text[: text.index("GATE")]


def test_careen_why_shows_above_the_gates_whether_the_node_used_its_prepared_forecast() -> None:
    prepared = "the forecast and the dry runs were thrown away: the Node n7 is new"
    annotations = {keys.PHASE: "Waiting", keys.REASON: "waits", keys.PREPARED: prepared}
    node = NodeView(name="n1", uid="u", resource_version="1", annotations=annotations)
    told = NodeStory(node=node, lock=LockContent(), agents=(), now=NOW)
    text = why_text(told)
    assert f"Prepared: {prepared}." in text[: text.index("GATE")]
    assert why_json(told)["prepared"] == prepared


def test_careen_why_marks_a_node_that_an_autoscaler_removes() -> None:
    node = NodeView(
        name="n1",
        uid="u",
        resource_version="1",
        taints=(Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule"),),
    )
    text = why_text(NodeStory(node=node, lock=LockContent(), agents=Unknown("403"), now=NOW))
    assert text.startswith("n1 is Idle: the cluster autoscaler is removing this node, so careen leaves the node alone")


@pytest.mark.parametrize(
    ("since", "longest", "words"),
    [
        ("2026-03-04T09:59:59Z", 7200, "; the refusal has lasted longer than the limit of 2h in --blocking-pods"),
        ("2026-03-04T10:00:01Z", 7200, ""),
        ("2026-03-04T09:00:00Z", None, ""),
        ("later", 7200, ""),
    ],
)
def test_careen_why_marks_a_refusal_that_has_lasted_longer_than_configured(
    since: str, longest: float | None, words: str
) -> None:
    refusal = {"gate": "blocking-pods", "code": "blocking-pod", "sentence": "shop/db-0 matches app=db", "since": since}
    annotations = {
        keys.PHASE: "Waiting",
        keys.REFUSALS: json.dumps([refusal | ({"longest": longest} if longest else {})]),
    }
    node = NodeView(name="n1", uid="u", resource_version="1", annotations=annotations)
    found = NodeStory(node=node, lock=LockContent(), agents=Unknown("403"), now=NOW)
    (answer,) = (each for each in gate_answers(found) if each.code is Code.BLOCKING_POD)
    assert answer.sentence == f"shop/db-0 matches app=db{words}"
    (row,) = (each for each in why_json(found)["gates"] if each["code"] == "blocking-pod")
    assert (row["sentence"], row["longestSeconds"]) == (answer.sentence, longest)


def test_careen_why_says_first_that_the_node_is_not_ready_and_promises_no_next_turn() -> None:
    dead = replace(
        story(Phase.DRAINING).node,
        ready=False,
        ready_since=NOW - timedelta(minutes=5),
        agent_wrote=NOW - timedelta(seconds=107),
    )
    told = replace(story(Phase.DRAINING), node=dead, policy=a_policy())
    text = why_text(told)
    assert text.splitlines()[0] == ("n1 has been NotReady for 5m, outside its reboot; its agent last wrote 1m47s ago.")
    assert "Next:" not in text
    assert why_json(told)["notReady"] == text.splitlines()[0].rstrip(".")


def test_careen_why_says_what_to_do_about_a_dead_holder_and_no_remedy_twice() -> None:
    failed = Entry(node="n2", id="c", created="", failed="settle-timeout")
    content = LockContent(entries=(Entry(node="n1", id="d", created=""), failed), max_owners=2)
    dead = replace(story(Phase.DRAINING).node, ready=False, ready_since=NOW - timedelta(minutes=5))
    text = why_text(replace(story(Phase.DRAINING, content), node=dead))
    assert "Look at the host of n1. Only if it is down for good: `careen lock release n1`." in text
    assert "halted:" not in text


def test_careen_why_proposes_no_pending_pods_for_a_pod_that_can_never_be_evicted() -> None:
    never = {
        "gate": "forecast",
        "code": "forecast-refuses",
        "about": ["budget shop/a"],
        "since": "2026-03-04T11:00:00Z",
    }
    text = why_text(a_waiting_story({**never, "sentence": "1 of 2 pods can never be evicted: shop/a"}))
    assert "maxUnavailable or lower minAvailable of the disruption budget shop/a" in text
    assert "--forecast-pending-allowed" not in text
    room = {**never, "about": [ROOM], "lacks": 2, "sentence": "2 of 2 pods would not find room: shop/a"}
    text = why_text(a_waiting_story(room))
    assert "--forecast-pending-allowed=2" in text
    assert "maxUnavailable" not in text


def a_waiting_story(*rows: dict[str, object], **more: object) -> NodeStory:
    annotations = {keys.PHASE: "Waiting", keys.SINCE: "2026-03-04T11:00:00Z", keys.REFUSALS: json.dumps(rows)}
    annotations[keys.REASON] = str(rows[0]["sentence"])
    wrote = NOW - timedelta(seconds=29)
    node = NodeView(name="n1", uid="u", resource_version="1", annotations=annotations, agent_wrote=wrote)
    return replace(story(Phase.WAITING), node=node, **more)  # type: ignore[arg-type]


DOWN = {
    "gate": "budgets",
    "code": "nodes-down",
    "sentence": "n2 is cordoned by somebody, not by careen; with this node 2 nodes would be down; the limit is 1",
    "since": "2026-03-04T11:30:00Z",
}


def test_careen_why_says_how_old_the_answers_are() -> None:
    text = why_text(a_waiting_story(DOWN))
    assert "Seen: the answers are as the node's agent wrote them 29s ago; it writes what has changed.\n" in text


def test_careen_why_strikes_what_the_present_nodes_disprove() -> None:
    back = NodeView(name="n2", uid="u2", resource_version="1")
    told = a_waiting_story(DOWN, named=(back,))
    (answer,) = (each for each in gate_answers(told) if each.gate == "budgets")
    assert (answer.answer, answer.code) == (Answer.IS_OVER, None)
    assert answer.sentence.startswith("n2 is in service; its agent has not looked again since it found: n2 is cordoned")
    assert "n2 is in service, so this is over: n2 is cordoned" in why_text(told).splitlines()[0]
    assert "What you can do" not in why_text(told)
    cordoned = replace(back, unschedulable=True)
    (still,) = (each for each in gate_answers(a_waiting_story(DOWN, named=(cordoned,))) if each.gate == "budgets")
    assert still.answer is Answer.REFUSES


def test_careen_why_calls_a_drain_for_maintenance_one() -> None:
    record = Progress(phase="Draining", claim="c", boot_left="b", drain_started_at="2026-03-04T11:58:00Z")
    annotations = {
        keys.PHASE: "Draining",
        keys.SINCE: "2026-03-04T11:58:00Z",
        keys.REASON: "3 pods have to leave",
        keys.PROGRESS: to_annotation(record),
        keys.REQUEST: '{"want":"maintenance","reason":"disk swap"}',
    }
    node = NodeView(name="n1", uid="u", resource_version="1", annotations=annotations)
    told = why_text(replace(story(Phase.DRAINING), node=node))
    assert told.startswith("n1 has been Draining (maintenance) for 2m: 3 pods have to leave.\n")


def test_careen_why_names_who_cordoned_the_node_that_a_refusal_names() -> None:
    at = NOW - timedelta(hours=3)
    down = NodeView(
        name="n2", uid="u2", resource_version="1", unschedulable=True, cordoned_by=("kubectl",), cordoned_at=at
    )
    (answer,) = (each for each in gate_answers(a_waiting_story(DOWN, named=(down,))) if each.gate == "budgets")
    assert answer.sentence.startswith("n2 is cordoned by kubectl 3h ago, not by careen; with this node")


def test_careen_why_shows_no_gates_of_a_dead_holder_that_none_refuses() -> None:
    node = NodeView(
        name="n1", uid="u", resource_version="1", annotations={keys.PHASE: "Draining"}, ready=False, ready_since=NOW
    )
    told = replace(story(Phase.DRAINING), node=node)
    assert why_text(told).startswith("n1 has been NotReady for 0s, outside its reboot.\n")
    assert "GATE" not in why_text(told)
    assert "GATE" in why_text(told, is_whole=True)


def test_careen_why_of_a_failed_node_looks_first_at_another_holder_whose_host_is_dead() -> None:
    record = Progress(phase="Failed", claim="c", boot_left="b", failed="settle-timeout")
    failed = replace(story(Phase.FAILED).node, annotations={keys.PHASE: "Failed", keys.PROGRESS: to_annotation(record)})
    dead = replace(story(Phase.DRAINING).node, name="n9", ready=False, ready_since=NOW - timedelta(minutes=5))
    told = replace(story(Phase.FAILED), node=failed, holders=(dead,))
    text = why_text(told)
    first = text.index("Look at the host of n9. Only if it is down for good: `careen lock release n9`.")
    assert first < text.index("settle-timeout: ")
    assert "host of n9" not in why_text(replace(told, holders=(replace(dead, ready=True, ready_since=None),)))

"""Each command as requests, and each answer as an outcome."""

from __future__ import annotations

import json
from typing import Any

import pytest

from careen.scheduler.wire.calls import calls, outcome
from careen.scheduler.wire.lanes import HttpAnswer
from scheduler_core.running.commands import Answered, Bind, DeleteVictim, LookAtPod, PatchVolume, WriteStatus
from scheduler_core.running.failures import LOST, Meaning, meaning
from scheduler_core.values import replace_value

AT = "2026-11-27T10:00:00Z"
BIND = Bind(number=1, pod="shop/web-1", uid="u1", node="n1")
LOOK = LookAtPod(number=2, pod="shop/web-1", uid="u1")
VICTIM = DeleteVictim(number=3, pod="shop/old", uid="u2", message="make room", preemptor="shop/web-1")
STATUS = WriteStatus(number=4, pod="shop/web-1", uid="u1", reason="Unschedulable", message="no", version=7)
CLAIM = PatchVolume(
    number=5,
    kind="PersistentVolumeClaim",
    key="shop/data",
    pod_uid="u1",
    version=9,
    annotations=(("volume.kubernetes.io/selected-node", "n1"),),
)
POD = {"kind": "Pod", "metadata": {"uid": "u1", "resourceVersion": "42"}, "spec": {"nodeName": "n1"}}
DONE = {"kind": "Status", "status": "Success", "code": 201}


def body_of(command: Answered, which: int = 0) -> Any:
    body = calls(command, AT)[which].body
    assert body is not None
    return json.loads(body)


def test_a_binding_names_the_pod_with_its_uid_and_the_node() -> None:
    (call,) = calls(BIND, AT)
    assert (call.method, call.path) == ("POST", "/api/v1/namespaces/shop/pods/web-1/binding")
    assert body_of(BIND)["metadata"]["uid"] == "u1"
    assert body_of(BIND)["target"] == {"kind": "Node", "name": "n1"}


def test_a_status_carries_uid_and_version_so_that_it_never_follows_the_binding() -> None:
    (call,) = calls(STATUS, AT)
    assert (call.method, call.path) == ("PATCH", "/api/v1/namespaces/shop/pods/web-1/status")
    assert body_of(STATUS)["metadata"] == {"uid": "u1", "resourceVersion": "7"}
    (condition,) = body_of(STATUS)["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["message"]) == ("PodScheduled", "False", "no")
    assert "nominatedNodeName" not in body_of(STATUS)["status"]


def test_the_time_of_the_condition_changes_only_with_its_status() -> None:
    again = WriteStatus(number=4, pod="shop/web-1", uid="u1", reason="Unschedulable", message="no")
    first = replace_value(again, changes_condition=True)
    (before,), (after,) = (body_of(each)["status"]["conditions"] for each in (first, again))
    assert before["lastTransitionTime"] == AT
    assert "lastTransitionTime" not in after


@pytest.mark.parametrize(("node", "written"), [("n2", "n2"), ("", None)])
def test_a_nomination_is_set_or_cleared_without_a_condition(node: str, written: str | None) -> None:
    command = WriteStatus(number=4, pod="shop/web-1", uid="u1", nominated_node=node)
    assert body_of(command)["status"] == {"nominatedNodeName": written}


def test_a_victim_gets_its_condition_before_it_is_deleted_by_uid() -> None:
    first, second = calls(VICTIM, AT)
    assert (first.method, second.method) == ("PATCH", "DELETE")
    assert body_of(VICTIM)["status"]["conditions"][0]["type"] == "DisruptionTarget"
    assert body_of(VICTIM, 1) == {"preconditions": {"uid": "u2"}}


def test_a_volume_is_patched_at_the_version_that_the_decision_saw() -> None:
    (call,) = calls(CLAIM, AT)
    assert call.path == "/api/v1/namespaces/shop/persistentvolumeclaims/data"
    assert body_of(CLAIM)["metadata"]["resourceVersion"] == "9"
    assert body_of(CLAIM)["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n1"}


@pytest.mark.parametrize(
    ("command", "status", "body", "means"),
    [
        pytest.param(BIND, 201, DONE, Meaning.DONE, id="bound"),
        pytest.param(BIND, 200, {}, Meaning.UNKNOWN, id="an empty object"),
        pytest.param(BIND, 200, POD, Meaning.UNKNOWN, id="another kind"),
        pytest.param(BIND, 409, {"kind": "Status", "status": "Failure"}, Meaning.CONFLICT, id="a conflict"),
        pytest.param(BIND, 500, {"kind": "Status", "status": "Failure"}, Meaning.UNKNOWN, id="a failed server"),
        pytest.param(STATUS, 200, POD, Meaning.DONE, id="a status"),
        pytest.param(STATUS, 200, DONE, Meaning.UNKNOWN, id="no pod"),
        pytest.param(VICTIM, 200, POD, Meaning.DONE, id="a terminating victim"),
        pytest.param(VICTIM, 200, DONE, Meaning.DONE, id="a victim that is gone at once"),
        pytest.param(CLAIM, 200, {**POD, "kind": "PersistentVolumeClaim"}, Meaning.DONE, id="a claim"),
        pytest.param(CLAIM, 200, POD, Meaning.UNKNOWN, id="no claim"),
    ],
)
def test_only_the_expected_object_is_success(command: Answered, status: int, body: object, means: Meaning) -> None:
    assert meaning(outcome(command, HttpAnswer(status=status, body=json.dumps(body).encode()))) is means


def test_a_text_that_is_no_json_is_not_success() -> None:
    assert meaning(outcome(BIND, HttpAnswer(status=200, body=b"<html>"))) is Meaning.UNKNOWN


def test_a_request_that_was_sent_and_not_answered_may_have_landed() -> None:
    assert outcome(BIND, HttpAnswer(status=0, was_sent=True)) is LOST


def test_a_request_that_was_not_sent_is_sent_again() -> None:
    assert meaning(outcome(BIND, HttpAnswer(status=0, was_sent=False))) is Meaning.BUSY


def test_a_look_tells_which_pod_is_where() -> None:
    found = outcome(LOOK, HttpAnswer(status=200, body=json.dumps(POD).encode()))
    assert (found.found_uid, found.found_node, found.version) == ("u1", "n1", 42)


@pytest.mark.parametrize(("header", "seconds"), [("3", 3.0), ("99999", 60.0), ("", 0.0), ("soon", 0.0), ("-1", 0.0)])
def test_retry_after_is_bounded(header: str, seconds: float) -> None:
    assert outcome(BIND, HttpAnswer(status=429, retry_after=header)).retry_after_seconds == seconds

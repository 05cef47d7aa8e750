"""Tests the JSON of the extender protocol, without any transport."""

import json
from typing import Any

import pytest

from scheduler_core.extenders.protocol import (
    ExtenderError,
    FilterAnswer,
    binding_request,
    nodes_request,
    preemption_request,
    read_binding_answer,
    read_filter_answer,
    read_preemption_answer,
    read_priorities,
)
from scheduler_core.model.pod import Pod
from scheduler_core.preemption.victims import Victims

POD = {"metadata": {"name": "p"}}
VICTIM = Pod(name="v", uid="uid-v")


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


# ---- requests ----


def test_an_extender_that_is_not_cache_capable_gets_whole_nodes() -> None:
    body = json.loads(nodes_request(POD, names=["n1"], nodes=[{"metadata": {"name": "n1"}}]))
    assert body == {"Pod": POD, "Nodes": {"metadata": {}, "items": [{"metadata": {"name": "n1"}}]}, "NodeNames": None}


def test_a_cache_capable_extender_gets_node_names() -> None:
    assert json.loads(nodes_request(POD, names=["n1", "n2"], nodes=None)) == {
        "Pod": POD,
        "Nodes": None,
        "NodeNames": ["n1", "n2"],
    }


def test_victims_are_sent_as_pods_or_as_uids() -> None:
    candidates = {"n1": Victims(pods=(VICTIM,), budget_violations=2)}
    whole = json.loads(preemption_request(POD, candidates, {"uid-v": {"metadata": {"name": "v"}}}))
    by_uid = json.loads(preemption_request(POD, candidates, None))
    assert whole == {
        "Pod": POD,
        "NodeNameToVictims": {"n1": {"Pods": [{"metadata": {"name": "v"}}], "NumPDBViolations": 2}},
        "NodeNameToMetaVictims": None,
    }
    assert by_uid == {
        "Pod": POD,
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-v"}], "NumPDBViolations": 2}},
    }


def test_a_binding_request_contains_pod_and_node() -> None:
    assert json.loads(binding_request(Pod(name="p", namespace="ns", uid="u"), "n1")) == {
        "PodName": "p",
        "PodNamespace": "ns",
        "PodUID": "u",
        "Node": "n1",
    }


# ---- answers ----


@pytest.mark.parametrize(
    ("answer", "by_name", "expected"),
    [
        pytest.param(
            {"NodeNames": ["n2", "n1"]},
            True,
            FilterAnswer(passed=("n2", "n1")),
            id="node names keep the extender's order",
        ),
        pytest.param(
            {"nodenames": ["n1"]}, True, FilterAnswer(passed=("n1",)), id="keys are read case-insensitively, as by Go"
        ),
        pytest.param(
            {"NodeNames": ["n1"]},
            False,
            FilterAnswer(passed=()),
            id="node names from an extender that is not cache-capable are ignored",
        ),
        pytest.param(
            {"Nodes": {"items": [{"metadata": {"name": "n1"}}]}},
            False,
            FilterAnswer(passed=("n1",)),
            id="an extender that is not cache-capable returns whole Node objects",
        ),
        pytest.param(
            {"Nodes": {"items": [{"metadata": {"name": "n1"}}]}},
            True,
            FilterAnswer(passed=("n1",)),
            id="a cache-capable extender may return whole Node objects",
        ),
        pytest.param(
            {}, True, FilterAnswer(passed=()), id="no node passes if the response has neither nodes nor node names"
        ),
        pytest.param(
            {"Nodes": None, "NodeNames": [], "FailedNodes": None, "Error": ""},
            True,
            FilterAnswer(passed=()),
            id="null fields are treated as absent",
        ),
        pytest.param(
            {"NodeNames": [], "FailedNodes": {"n1": "busy"}, "FailedAndUnresolvableNodes": {"n2": "broken"}},
            True,
            FilterAnswer(passed=(), refused={"n1": "busy"}, refused_for_good={"n2": "broken"}),
            id="the reasons of failed and unresolvable nodes are read",
        ),
    ],
)
def test_each_form_of_a_filter_response_is_read(answer: dict[str, Any], by_name: bool, expected: FilterAnswer) -> None:
    assert read_filter_answer(encoded(answer), asked=["n1", "n2"], by_name=by_name) == expected


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (encoded({"Error": "out of licences"}), "out of licences"),
        (encoded({"NodeNames": ["n9"]}), 'claims a filtered node "n9" which is not found in the input node list'),
        (encoded({"NodeNames": "n1"}), "NodeNames: expected a JSON array, got str"),
        (encoded({"NodeNames": [1]}), "NodeNames: expected a string, got int"),
        (encoded([]), "filter result: expected a JSON object, got list"),
        (b"<html>", "the answer is not JSON: "),
        (b"", "the answer is not JSON: "),
        (b"[" * 100_000, "the answer is not JSON: "),
        (b'{"\xff": 1}', "the answer is not JSON: "),
        (encoded({"Nodes": {"items": [{"metadata": 5}]}}), "Nodes.items.metadata: expected a JSON object, got int"),
    ],
)
def test_an_invalid_filter_answer_is_an_error(body: bytes, problem: str) -> None:
    with pytest.raises(ExtenderError) as found:
        read_filter_answer(body, asked=["n1"], by_name=True)
    assert str(found.value).startswith(problem)


def test_the_priorities_of_a_response_keep_their_order_and_duplicates() -> None:
    assert read_priorities(encoded([{"Host": "n1", "Score": 3}, {"host": "n2"}, {"Host": "n1", "Score": 11}])) == [
        ("n1", 3),
        ("n2", 0),
        ("n1", 11),
    ]


@pytest.mark.parametrize(
    "body",
    [{"Host": "n1"}, [{"Host": "n1", "Score": 1.5}], [{"Host": 1, "Score": 1}], [{"Host": "n1", "Score": True}], [3]],
)
def test_invalid_priorities_are_an_error(body: Any) -> None:
    with pytest.raises(ExtenderError):
        read_priorities(encoded(body))


def test_victims_in_an_extenders_response_are_found_by_uid() -> None:
    answer = {
        "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-v"}], "NumPDBViolations": 1}, "n2": {"Pods": None}}
    }
    assert read_preemption_answer(encoded(answer), {"n1": [VICTIM], "n2": []}) == {
        "n1": Victims(pods=(VICTIM,), budget_violations=1),
        "n2": Victims(pods=()),
    }


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"NodeNameToMetaVictims": {"n9": {}}}, 'nodeinfo not found for node name "n9"'),
        (
            {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "x"}]}}},
            "claims to preempt pod (UID: x) on node: n1, but the pod is not found on that node",
        ),
        (
            {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": [1]}]}}},
            "claims to preempt pod (UID: [1]) on node: n1, but the pod is not found on that node",
        ),
        (
            {"NodeNameToMetaVictims": {"n1": {"NumPDBViolations": "x"}}},
            "MetaVictims.NumPDBViolations: expected an integer, got str",
        ),
    ],
)
def test_a_preemption_answer_with_unknown_pods_or_nodes_is_an_error(answer: dict[str, Any], problem: str) -> None:
    with pytest.raises(ExtenderError) as found:
        read_preemption_answer(encoded(answer), {"n1": [VICTIM]})
    assert str(found.value) == problem


def test_a_failed_binding_is_an_error_with_the_extenders_message() -> None:
    read_binding_answer(encoded({"Error": ""}))
    with pytest.raises(ExtenderError, match="node is full"):
        read_binding_answer(encoded({"Error": "node is full"}))

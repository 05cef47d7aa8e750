"""Tests rules that read one field of a node. Each rule is evaluated once for each value of the field, and the result
applies to all nodes with this value."""

from __future__ import annotations

import numpy as np

from scheduler_core.framework.by_value import refusals_by_value, scores_by_value
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SUCCESS, Verdict, unresolvable, unschedulable
from scheduler_core.model.taints import Taint
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.testing.builders import a_node, manifests

SNAPSHOT = [a_node("a").tainted("x"), a_node("b"), a_node("c").tainted("y"), a_node("d").tainted("x")]
NO_X, NO_Y = unresolvable("x"), unschedulable("y")


def nodes_in(*rows: int) -> NodeList:
    snapshot = load_objects(manifests(list(SNAPSHOT)))
    return NodeList(snapshot, np.array(rows, dtype=np.intp) if rows else None)


def verdicts(refusals: Refusals) -> list[Verdict]:
    return [refusals.verdict(int(code)) for code in refusals.codes]


def of_taints(taints: tuple[Taint, ...]) -> Verdict:
    return {"x": NO_X, "y": NO_Y}[taints[0].key] if taints else SUCCESS


def test_a_node_gets_the_verdict_that_the_rule_returns_for_the_taints_of_the_node() -> None:
    for rows, expected in (((), [NO_X, SUCCESS, NO_Y, NO_X]), ((3, 1), [NO_X, SUCCESS]), ((1,), [SUCCESS])):
        nodes = nodes_in(*rows)
        assert verdicts(refusals_by_value(nodes, nodes.columns.taint_sets, of_taints, "q")) == expected


def test_a_rule_is_evaluated_once_for_each_value_and_cache_key() -> None:
    nodes, asked = nodes_in(), list[str]()

    def rule(taints: tuple[Taint, ...]) -> Verdict:
        asked.append(taints[0].key if taints else "")
        return SUCCESS

    for question in ("one", "one", "another"):
        refusals_by_value(nodes, nodes.columns.taint_sets, rule, question)
    assert asked == ["x", "", "y"] * 2


def test_each_node_gets_the_score_for_the_value_of_its_field() -> None:
    for rows, expected in (((), [1, 0, 1, 1]), ((1, 2), [0, 1])):
        nodes = nodes_in(*rows)
        scores = scores_by_value(nodes, nodes.columns.taint_sets, len, "q")
        assert (scores.tolist(), scores.dtype) == (expected, np.int64)


def test_verdicts_are_unchanged_after_they_were_stored_as_refusals() -> None:
    assert verdicts(Refusals.of_each([SUCCESS, NO_Y, NO_X, NO_Y])) == [SUCCESS, NO_Y, NO_X, NO_Y]
    assert verdicts(Refusals.of_each([SUCCESS, NO_Y])) == [SUCCESS, NO_Y]
    assert verdicts(Refusals.of_each([SUCCESS])) == [SUCCESS]
    assert verdicts(Refusals.of_each([])) == []

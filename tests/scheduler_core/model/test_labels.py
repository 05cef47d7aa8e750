from __future__ import annotations

import pytest

from scheduler_core.model.labels import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    Requirement,
    is_label_key,
    is_label_value,
    parse_int64,
)
from scheduler_core.model.manifests.fields import label_selector, node_selector_term
from scheduler_core.model.manifests.from_manifest import spread_constraint_from_manifest
from scheduler_core.model.manifests.wire import WireExpression, WireNodeTerm, WireSelector


@pytest.mark.parametrize(
    ("operator", "values", "value", "meets"),
    [
        ("In", ("a", "b"), "a", True),
        ("In", ("a",), "c", False),
        ("In", ("a",), None, False),
        ("NotIn", ("a",), "a", False),
        ("NotIn", ("a",), None, True),
        ("Exists", (), "", True),
        ("Exists", (), None, False),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), "x", False),
        ("Gt", ("5",), "6", True),
        ("Gt", ("5",), "5", False),
        ("Gt", ("5",), "-6", False),
        ("Lt", ("5",), "4", True),
        ("Lt", ("5",), None, False),
        ("Gt", ("5",), "6.5", False),
        ("Gt", ("5",), "0x10", False),
        ("Gt", ("5", "6"), "7", False),
        ("Gt", ("5",), "9223372036854775808", False),
    ],
)
def test_a_label_requirement_matches_as_in_kubernetes(
    operator: str, values: tuple[str, ...], value: str | None, meets: bool
) -> None:
    labels = {} if value is None else {"k": value}
    assert Requirement("k", operator, values).matches(labels) is meets


def test_a_missing_selector_selects_nothing_and_an_empty_selector_everything() -> None:
    assert label_selector(None) == NOTHING
    assert label_selector(WireSelector()) == EVERYTHING
    assert not NOTHING.matches({"a": "b"})
    assert EVERYTHING.matches({})
    assert EVERYTHING.is_empty
    assert not NOTHING.is_empty


def test_added_labels_narrow_a_selector() -> None:
    assert EVERYTHING.and_labels([("a", "1")]) == LabelSelector((Requirement("a", "In", ("1",)),))
    assert NOTHING.and_labels([("a", "1")]) == NOTHING
    assert EVERYTHING.and_labels([]) == EVERYTHING


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        (WireExpression("app", "Near", ("a",)), '"Near" is not a valid label selector operator'),
        (WireExpression("app", "In"), "needs values"),
        (WireExpression("app", "Exists", ("a",)), "takes no values"),
        (WireExpression("not a key", "Exists"), "is not a valid label key"),
        (WireExpression("app", "In", ("not a value",)), "is not a valid label value"),
    ],
)
def test_an_unreadable_selector_selects_nothing_and_reports_why(expression: WireExpression, part: str) -> None:
    selector = label_selector(WireSelector(None, (expression,)))
    assert selector.requirements is None
    assert part in selector.problem


@pytest.mark.parametrize(
    ("term", "labels", "name", "chosen"),
    [
        (WireNodeTerm(), {"a": "1"}, "n", False),
        (WireNodeTerm((WireExpression("a", "Exists"),)), {"a": "1"}, "n", True),
        (WireNodeTerm((WireExpression("a", "Exists"), WireExpression("b", "Exists"))), {"a": "1"}, "n", False),
        (WireNodeTerm((WireExpression("a", "Gt", ("x",)),)), {"a": "1"}, "n", False),
        (WireNodeTerm(None, (WireExpression("metadata.name", "In", ("n",)),)), {}, "n", True),
        (WireNodeTerm(None, (WireExpression("metadata.name", "NotIn", ("n",)),)), {}, "n", False),
        (WireNodeTerm(None, (WireExpression("metadata.name", "In", ("n", "m")),)), {}, "n", False),
        (WireNodeTerm(None, (WireExpression("metadata.name", "Exists"),)), {}, "n", False),
        (
            WireNodeTerm((WireExpression("a", "Exists"),), (WireExpression("metadata.name", "In", ("m",)),)),
            {"a": "1"},
            "n",
            False,
        ),
    ],
)
def test_a_node_selector_term_matches_as_in_kubernetes(
    term: WireNodeTerm, labels: dict[str, str], name: str, chosen: bool
) -> None:
    assert node_selector_term(term).matches(labels, name) is chosen


def test_an_unreadable_expression_disables_only_its_own_term() -> None:
    term = node_selector_term(WireNodeTerm((WireExpression("a", "Exists"), WireExpression("b", "Nonsense"))))
    assert term.problem
    assert not term.matches({"a": "1"}, "n")


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("-7", -7), ("+7", 7), ("", None), ("7.0", None), (" 7", None), ("1_0", None), (None, None)],
)
def test_the_operators_gt_and_lt_read_integers_as_go_does(text: str | None, number: int | None) -> None:
    assert parse_int64(text) == number


@pytest.mark.parametrize(
    ("key", "fits"),
    [
        ("app", True),
        ("a.b/c_d-e", True),
        ("/x", False),
        ("A.b/c", False),
        ("x" * 64, False),
        ("", False),
        ("a/b/c", False),
    ],
)
def test_label_keys_are_validated_as_in_kubernetes(key: str, fits: bool) -> None:
    assert is_label_key(key) is fits


@pytest.mark.parametrize(
    ("value", "fits"), [("", True), ("a-b", True), ("-a", False), ("x" * 64, False), ("a b", False)]
)
def test_label_values_are_validated_as_in_kubernetes(value: str, fits: bool) -> None:
    assert is_label_value(value) is fits


def test_a_spread_constraint_honours_affinity_and_ignores_taints_by_default() -> None:
    plain = spread_constraint_from_manifest({"maxSkew": 2, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"})
    assert (plain.honors_affinity, plain.honors_taints, plain.min_domains, plain.selector) == (
        True,
        False,
        None,
        NOTHING,
    )
    other = spread_constraint_from_manifest(
        {"maxSkew": 2, "topologyKey": "z", "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}
    )
    assert (other.honors_affinity, other.honors_taints) == (False, True)

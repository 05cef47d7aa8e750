"""Tests the reading of single fields of a configuration: types, ranges, paths, durations."""

from typing import Any

import pytest

from scheduler_core.config.fields import Section, parse_duration_seconds


def section(**values: Any) -> Section:
    return Section(values=values, path="profiles[0]", problems=[])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5.0),
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("-2s", -2.0),
        ("0", 0.0),
        ("10us", 1e-05),
        ("1h0m1s", 3601.0),
    ],
)
def test_a_go_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "1d", "five", "1s2", "1..5s"])
def test_an_invalid_duration_is_read_as_none(text: str) -> None:
    assert parse_duration_seconds(text) is None


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (lambda s: s.text("x"), "profiles[0].x: the value must be a string, not an integer"),
        (lambda s: s.flag("x"), "profiles[0].x: the value must be true or false, not an integer"),
        (lambda s: s.sections("x"), "profiles[0].x: the value must be a list, not an integer"),
        (lambda s: s.section("x"), "profiles[0].x: the value must be a mapping, not an integer"),
        (lambda s: s.texts("x"), "profiles[0].x: the value must be a list, not an integer"),
    ],
)
def test_a_value_of_the_wrong_type_is_reported_with_its_path(read: Any, problem: str) -> None:
    fields = section(x=3)
    read(fields)
    assert fields.problems == [problem]


def test_an_integer_must_be_a_whole_number_in_range() -> None:
    fields = section(a=16.0, b="16", c=True, d=2**31, e=2**31)
    assert [
        fields.integer("a", 1),
        fields.integer("b", 1),
        fields.integer("c", 1),
        fields.integer("d", 1),
        fields.integer("e", 1, bits=64),
    ] == [16, 1, 1, 1, 2**31]
    assert fields.problems == [
        "profiles[0].b: the value must be an integer, not a string",
        "profiles[0].c: the value must be an integer, not a boolean",
        "profiles[0].d: 2147483648 does not fit into 32 bits",
    ]


def test_a_null_field_is_treated_as_absent() -> None:
    fields = section(x=None)
    assert (fields.text("x", "default"), fields.has("x"), fields.optional_integer("x"), fields.problems) == (
        "default",
        False,
        None,
        [],
    )


def test_a_problem_in_a_list_contains_the_index() -> None:
    fields = section(names=["a", 2], things=[{}, "b"])
    fields.texts("names")
    fields.sections("things")
    assert fields.problems == [
        "profiles[0].names[1]: the value must be a string, not an integer",
        "profiles[0].things[1]: the value must be a mapping, not a string",
    ]


def test_a_field_that_was_not_read_is_reported_as_unknown() -> None:
    fields = section(known=1, misspelt=2, skipped=3)
    fields.integer("known", 0)
    fields.refuse_unknown("skipped")
    assert fields.problems == ["profiles[0].misspelt: unknown field"]

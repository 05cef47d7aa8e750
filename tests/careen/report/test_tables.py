from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from careen.core.facts.times import age, duration
from careen.report.tables import as_json, listed, paragraph, table
from scheduler_core.sentences import count_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def test_table_columns_are_aligned_and_an_empty_cell_is_a_dash() -> None:
    assert table(["NODE", "PHASE", "REASON"], [["n1", "Waiting", "held by a person"], ["node-12", "", ""]]) == (
        "NODE      PHASE     REASON\nn1        Waiting   held by a person\nnode-12   -         -"
    )


def test_the_last_column_is_wrapped_within_the_column() -> None:
    assert table(
        ["NODE", "REASON"], [["n1", "the pods shop/cart-1 and shop/cart-2 would not find room"]], width=40
    ) == ("NODE   REASON\nn1     the pods shop/cart-1 and\n       shop/cart-2 would not find room")


def test_a_very_narrow_terminal_gets_lines_without_wrapping() -> None:
    sentence = "one two three four five six seven eight nine ten"
    assert table(["NODE", "REASON"], [["n1", sentence]], width=20).splitlines()[1] == f"n1     {sentence}"


def test_a_paragraph_is_indented_and_wrapped() -> None:
    assert (
        paragraph("one two three four five six seven eight nine", indent="    ", width=40)
        == "    one two three four five six seven\n    eight nine"
    )


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(seconds=0), "0s"),
        (timedelta(seconds=59, milliseconds=900), "59s"),
        (timedelta(minutes=12, seconds=5), "12m5s"),
        (timedelta(minutes=12), "12m"),
        (timedelta(hours=3, minutes=12, seconds=50), "3h12m"),
        (timedelta(hours=3, seconds=50), "3h"),
        (timedelta(days=4, hours=3, minutes=59), "4d3h"),
        (timedelta(days=400), "400d"),
        (timedelta(days=-1), "0s"),
    ],
    ids=str,
)
def test_a_duration_is_printed_with_its_two_largest_units(span: timedelta, text: str) -> None:
    assert duration(span) == text


def test_an_age_is_printed_as_a_duration_and_an_unknown_age_as_a_dash() -> None:
    assert age(None, NOON) == "-"
    assert age(NOON - timedelta(hours=1), NOON) == "1h"


def test_json_output_keeps_the_order_of_fields_and_formats_times_as_rfc_3339() -> None:
    assert as_json({"b": NOON, "a": ["ü"]}) == '{\n  "b": "2026-03-04T12:00:00Z",\n  "a": [\n    "ü"\n  ]\n}'


def test_json_refuses_values_of_unknown_types() -> None:
    with pytest.raises(TypeError, match="careen cannot write a timedelta as JSON"):
        as_json({"a": timedelta(1)})


def test_a_count_has_a_singular_or_plural_noun_and_a_long_list_is_cut() -> None:
    assert (count_of(1, "node"), count_of(3, "node"), count_of(0, "entry", "entries")) == (
        "1 node",
        "3 nodes",
        "0 entries",
    )
    assert listed(["a", "b", "c"], most=2) == "a, b and 1 more"
    assert listed(["a", "b"], most=2) == "a, b"

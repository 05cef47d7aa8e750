"""Tests that a YAML parser reads exactly the values that were written."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from careen.report.programs.yaml_text import as_yaml
from careen.report.tables import plain

TRICKY = ["yes", "No", "null", "~", "1e3", "2026-03-04T12:00:00Z", "a: b", "- a", "#x", " a ", "ü", "\x1b[31m", "a\nb"]
VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text() | some.sampled_from(TRICKY),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_a_yaml_parser_reads_back_every_value(value: Any) -> None:
    assert yaml.safe_load(as_yaml(value)) == plain(value)


@pytest.mark.parametrize("text", TRICKY)
def test_terminal_control_sequences_are_escaped_in_yaml(text: str) -> None:
    written = as_yaml({"a": text})
    assert written.isprintable()
    assert yaml.safe_load(written) == {"a": text}


def test_yaml_output_has_the_layout_of_kubectl() -> None:
    value = {"lock": {"state": "free", "holders": []}, "nodes": [{"name": "n1", "ready": True, "hold": ""}]}
    assert as_yaml(value) == ("lock:\n  state: free\n  holders: []\nnodes:\n- name: n1\n  ready: true\n  hold: null")

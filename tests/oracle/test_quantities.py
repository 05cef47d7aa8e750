"""Tests that scheduler_core reads every quantity as Kubernetes's own code does."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from scheduler_core.model.quantity import LARGEST, QuantityError, nanos_to_millis, nanos_to_units, parse_nanos

with gzip.open(Path(__file__).parents[1] / "goldens" / "quantities.jsonl.gz", "rt") as lines:
    READ = [json.loads(line) for line in lines]


def in_range(text: str) -> bool:
    """Whether an API object can contain this quantity. Validation refuses negative amounts, and Go's sums overflow
    beyond 2^63."""
    return not text.startswith("-") and parse_nanos(text) <= LARGEST * 10**6


def test_scheduler_core_reads_every_quantity_as_the_api_server_does() -> None:
    wanted = [(text, millis, units) for text, millis, units in READ if units is not None and in_range(text)]
    assert len(wanted) > 1000
    assert [
        (text, nanos_to_millis(parse_nanos(text)), nanos_to_units(parse_nanos(text))) for text, _, _ in wanted
    ] == wanted


@pytest.mark.parametrize("text", [text for text, _, units in READ if units is None])
def test_quantities_that_the_api_server_refuses_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_nanos(text)


def test_the_table_of_texts_has_many_invalid_quantities() -> None:
    assert sum(units is None for _, _, units in READ) > 15

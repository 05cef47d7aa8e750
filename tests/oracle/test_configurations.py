"""Tests that scheduler_core accepts the configurations with which the real scheduler starts, and runs the same plugins
in the same order."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.oracle.configurations import read_by_us, settled

with gzip.open(Path(__file__).parents[1] / "goldens" / "configurations.jsonl.gz", "rt") as lines:
    READ = [json.loads(line) for line in lines]


def test_kube_scheduler_and_scheduler_core_read_or_refuse_the_same_configurations() -> None:
    departures = [
        f"{json.dumps(written)}\n  theirs {answer}\n  ours   {ours}"
        for written, answer in READ
        if settled(answer) != settled(ours := read_by_us(written))
    ]
    assert not departures, f"{len(departures)} differences, the first ones:\n" + "\n".join(departures[:3])


def test_the_generated_table_has_many_valid_and_many_invalid_configurations() -> None:
    refused = sum("error" in answer for _, answer in READ)
    assert 200 < refused < len(READ) - 200


def test_the_error_of_a_refused_configuration_begins_with_a_field_path() -> None:
    words = [read_by_us(written)["error"] for written, answer in READ if "error" in answer]
    fields = (
        "profiles",
        "apiVersion",
        "kind",
        "parallelism",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "extenders",
        "unknownField",
    )
    assert [text for text in words if not text.startswith(fields)] == []

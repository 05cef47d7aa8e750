"""scheduler_core starts with the configurations the real scheduler starts with, and runs the same plugins in
the same order."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.oracle.configurations import read_by_us, settled

with gzip.open(Path(__file__).parents[1] / "goldens" / "configurations.jsonl.gz", "rt") as lines:
    READ = [json.loads(line) for line in lines]


def test_every_configuration_comes_to_the_same_plugins_and_weights_or_is_refused_by_both() -> None:
    departures = [
        f"{json.dumps(written)}\n  theirs {answer}\n  ours   {ours}"
        for written, answer in READ
        if settled(answer) != settled(ours := read_by_us(written))
    ]
    assert not departures, f"{len(departures)} departures, the first ones:\n" + "\n".join(departures[:3])


def test_the_table_holds_many_that_are_good_and_many_that_are_refused() -> None:
    refused = sum("error" in answer for _, answer in READ)
    assert 200 < refused < len(READ) - 200


def test_what_is_refused_is_refused_with_the_path_of_a_field() -> None:
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

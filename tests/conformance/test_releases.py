"""Tests that scheduler_core repeats the recorded decisions of the schedulers of 1.32 to 1.37."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.judge.answer import judge
from scheduler_core.judge.cases import read_case
from tests.oracle.comparison import differences, first_difference
from tests.oracle.release_goldens import cases_of

RELEASES = Path(__file__).parent / "releases"
VERSIONS = sorted(path.name.removesuffix(".jsonl.gz") for path in RELEASES.glob("*.jsonl.gz"))
# docs/versions.md says why. `case pod field`.
KNOWN: dict[str, set[str]] = {}


def _answers(version: str) -> dict[str, dict[str, Any]]:
    text = gzip.decompress((RELEASES / f"{version}.jsonl.gz").read_bytes()).decode()
    return {each["id"]: each["answers"] for each in map(json.loads, text.splitlines())}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_decision_equals_that_of_the_release_but_for_what_is_known(version: str) -> None:
    expected, found = _answers(version), {}
    for case in cases_of(version):
        if case["id"] not in expected:
            continue
        for pod, answer in judge(read_case(json.dumps(case))).items():
            want = expected[case["id"]][pod]
            for field in differences(want, answer):
                found[f"{case['id']} {pod} {field}"] = first_difference(want, answer, field)
    assert {key: found[key] for key in found.keys() - KNOWN.get(version, set())} == {}
    assert found.keys() >= KNOWN.get(version, set())


def test_each_release_has_hundreds_of_recorded_decisions() -> None:
    assert VERSIONS == ["1.32", "1.33", "1.34", "1.35", "1.37"]
    assert min(sum(len(pods) for pods in _answers(version).values()) for version in VERSIONS) >= 600

"""Tests that scheduler_core repeats all recorded decisions of the real scheduler."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.__main__ import answer_line
from scheduler_core.judge.answer import judge
from scheduler_core.judge.cases import read_case
from tests.oracle.comparison import differences, first_difference

HERE = Path(__file__).parent


def _lines(name: str) -> list[str]:
    return gzip.decompress((HERE / name).read_bytes()).decode().splitlines()


@cache
def _expected() -> Mapping[str, Mapping[str, Any]]:
    return {answer["id"]: answer["answers"] for answer in map(json.loads, _lines("answers.jsonl.gz"))}


CASES = _lines("cases.jsonl.gz")
GROUPS = [CASES[start : start + 25] for start in range(0, len(CASES), 25)]


@pytest.mark.parametrize("lines", GROUPS, ids=lambda lines: json.loads(lines[0])["id"])
def test_every_decision_equals_the_decision_of_kube_scheduler(lines: list[str]) -> None:
    found = []
    for line in lines:
        case = read_case(line)
        for pod, answer in judge(case).items():
            want = _expected()[case.id][pod]
            found += [
                f"{case.id} {pod} {field}: {first_difference(want, answer, field)}"
                for field in differences(want, answer)
            ]
    assert found == []


def test_the_recording_contains_400_cases_and_1600_pods() -> None:
    assert len(CASES) == len(_expected()) == 400
    assert sum(len(pods) for pods in _expected().values()) == 1600


def test_the_comparison_detects_an_altered_decision() -> None:
    case = read_case(CASES[0])
    pod, answer = next((pod, answer) for pod, answer in judge(case).items() if "scores" in answer)
    node, score = next(iter(answer["scores"].items()))
    altered = {**answer, "scores": {**answer["scores"], node: {**score, "total": score["total"] + 1}}}
    assert differences(_expected()[case.id][pod], altered) == ["scores"]


def test_the_order_of_pods_services_and_volumes_does_not_matter() -> None:
    """An API server returns pods, services and volumes in any order."""
    for line in CASES[:40]:
        case = json.loads(line)
        nodes = [o for o in case["objects"] if o["kind"] == "Node"]
        others = [
            o for o in case["objects"] if o["kind"] not in {"Node", "PodDisruptionBudget", "Pod", "PersistentVolume"}
        ]
        rest = [o for o in case["objects"] if o["kind"] in {"PodDisruptionBudget", "Pod", "PersistentVolume"}]
        shuffled = {**case, "objects": [*reversed(others), *nodes, *rest]}
        assert answer_line(json.dumps(shuffled)) == answer_line(line), case["id"]


def test_the_judge_command_prints_the_same_output_with_one_or_two_processes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from scheduler_core.__main__ import main

    answers = []
    for processes in ("1", "2"):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(CASES[:20]) + "\n"))
        assert main(["judge", "--processes", processes]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert [json.loads(line)["id"] for line in answers[0].splitlines()] == [
        json.loads(line)["id"] for line in CASES[:20]
    ]

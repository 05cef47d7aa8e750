"""The library answers as kube-scheduler's plugins answered their own unit tests."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache

import pytest

from tests.scheduler_core.peer_tables.__main__ import PAGE, judged
from tests.scheduler_core.peer_tables.calls import Question, questions
from tests.scheduler_core.peer_tables.explained import DIFFERENT, REASONS
from tests.scheduler_core.peer_tables.page import page
from tests.scheduler_core.peer_tables.results import RECORDINGS, Outcome, judge, rows


@cache
def by_plugin() -> dict[tuple[str, str], list[Question]]:
    found: dict[tuple[str, str], list[Question]] = {}
    for version, recording in RECORDINGS.items():
        for question in questions(recording):
            found.setdefault((version, question.plugin), []).append(question)
    return found


@pytest.mark.parametrize(("version", "plugin"), sorted(by_plugin()))
def test_every_row_that_differs_has_a_known_reason(version: str, plugin: str) -> None:
    unknown = [
        f"{question.test} {question.kind}: {json.dumps(row.answers)}"
        for question in by_plugin()[version, plugin]
        if (row := judge(question, version)).outcome is Outcome.DIFFERENT and not row.why
    ]
    assert unknown == []


def test_the_page_has_the_rows_as_they_are_judged() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(judged()), "python -m tests.scheduler_core.peer_tables"


@pytest.mark.parametrize(("version", "number", "equal"), [("1.36", 1751, 1446), ("1.37", 2114, 1686)])
def test_each_recording_has_its_rows_and_most_are_equal(version: str, number: int, equal: int) -> None:
    counts = Counter(row.outcome for row in rows(version))
    assert (counts.total(), counts[Outcome.EQUAL], counts[Outcome.DIFFERENT]) == (number, equal, len(DIFFERENT))


def test_every_explanation_is_needed() -> None:
    """Otherwise it could hide a difference later."""
    used = [row.question.test for each in RECORDINGS for row in rows(each) if row.outcome is Outcome.EXPLAINED]
    parts = [part for pattern, _ in REASONS for part in _alternatives(pattern)]
    assert [part for part in parts if not any(re.search(part, test) for test in used)] == []


def _alternatives(pattern: str) -> list[str]:
    """Split at every | outside of parentheses."""
    return re.split(r"\|(?![^(]*\))", pattern)


@pytest.mark.parametrize(
    "kind", ["Filter", "PreFilter", "Score", "Hint", "SelectVictimsOnNode", "SelectCandidate", "schedulePod"]
)
def test_an_altered_answer_is_found(kind: str) -> None:
    equal = next(r.question for r in rows("1.36") if r.question.kind == kind and r.outcome is Outcome.EQUAL)
    assert judge(_altered(equal), "1.36").outcome is not Outcome.EQUAL


def _altered(question: Question) -> Question:
    call = dict(question.calls[0])
    if question.kind == "Score":
        return question._replace(calls=({**call, "score": call["score"] + 1}, *question.calls[1:]))
    changes = {
        "schedulePod": {"feasible": -1, "error": "altered" if call.get("error") != "<nil>" else "<nil>"},
        "PreFilter": {"status": {"code": "Unschedulable", "reasons": ["altered"]}},
        "Filter": {"status": {"code": "Unschedulable", "reasons": ["altered"]}},
        "Hint": {"hint": 1 - call.get("hint", 0)},
        "SelectVictimsOnNode": {"victims": [{"metadata": {"name": "altered"}}], "status": {"code": "Success"}},
        "SelectCandidate": {"chosen": {"node": "altered"}},
    }
    return question._replace(calls=({**call, **changes[question.kind]},))

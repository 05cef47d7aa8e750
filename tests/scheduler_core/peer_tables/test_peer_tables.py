"""The library answers as kube-scheduler's plugins answered their own unit tests."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache

import pytest

from tests.scheduler_core.peer_tables.__main__ import PAGE
from tests.scheduler_core.peer_tables.calls import Question, questions
from tests.scheduler_core.peer_tables.explained import DIFFERENT, REASONS
from tests.scheduler_core.peer_tables.page import page
from tests.scheduler_core.peer_tables.queue_rows import queue_rows
from tests.scheduler_core.peer_tables.results import RECORDINGS, Outcome, judge, rows


@cache
def by_plugin() -> dict[str, list[Question]]:
    found: dict[str, list[Question]] = {}
    for question in questions(RECORDINGS["1.36"]):
        found.setdefault(question.plugin, []).append(question)
    return found


@pytest.mark.parametrize("plugin", sorted(by_plugin()))
def test_every_row_that_differs_has_a_known_reason(plugin: str) -> None:
    unknown = [
        f"{question.test} {question.kind}: {json.dumps(row.answers)}"
        for question in by_plugin()[plugin]
        if (row := judge(question, "1.36")).outcome is Outcome.DIFFERENT and not row.why
    ]
    assert unknown == []


def test_the_page_has_the_rows_as_they_are_judged() -> None:
    assert PAGE.read_text(encoding="utf-8") == page([*rows("1.36"), *queue_rows()]), (
        "python -m tests.scheduler_core.peer_tables"
    )


def test_the_recording_has_1702_rows_of_which_1434_are_equal() -> None:
    counts = Counter(row.outcome for row in rows("1.36"))
    assert (counts.total(), counts[Outcome.EQUAL], counts[Outcome.DIFFERENT]) == (1702, 1434, len(DIFFERENT))


def test_every_explanation_is_needed() -> None:
    """Otherwise it could hide a difference later."""
    used = [row.question.test for row in rows("1.36") if row.outcome is Outcome.EXPLAINED]
    parts = [part for pattern, _ in REASONS for part in _alternatives(pattern)]
    assert [part for part in parts if not any(re.search(part, test) for test in used)] == []


def _alternatives(pattern: str) -> list[str]:
    """Split at every | outside of parentheses."""
    return re.split(r"\|(?![^(]*\))", pattern)


@pytest.mark.parametrize("kind", ["Filter", "Score", "Hint", "SelectVictimsOnNode", "SelectCandidate"])
def test_an_altered_answer_is_found(kind: str) -> None:
    equal = next(r.question for r in rows("1.36") if r.question.kind == kind and r.outcome is Outcome.EQUAL)
    assert judge(_altered(equal), "1.36").outcome is not Outcome.EQUAL


def _altered(question: Question) -> Question:
    call = dict(question.calls[0])
    if question.kind == "Score":
        return question._replace(calls=({**call, "score": call["score"] + 1}, *question.calls[1:]))
    changes = {
        "Filter": {"status": {"code": "Unschedulable", "reasons": ["altered"]}},
        "Hint": {"hint": 1 - call.get("hint", 0)},
        "SelectVictimsOnNode": {"victims": [{"metadata": {"name": "altered"}}], "status": {"code": "Success"}},
        "SelectCandidate": {"chosen": {"node": "altered"}},
    }
    return question._replace(calls=({**call, **changes[question.kind]},))

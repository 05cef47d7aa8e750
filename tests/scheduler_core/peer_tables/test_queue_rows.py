"""The queue does what kube-scheduler's queue did in its own unit tests."""

from __future__ import annotations

import copy
import re
from collections import Counter
from typing import Any

import pytest

from tests.scheduler_core.peer_tables.calls import Question
from tests.scheduler_core.peer_tables.queue_rows import EXPLAINED, QUEUE_RECORDINGS, judge_call, queue_rows
from tests.scheduler_core.peer_tables.results import Outcome


@pytest.mark.parametrize("version", QUEUE_RECORDINGS)
def test_no_row_of_the_queue_differs_without_a_known_reason(version: str) -> None:
    different = [row for row in queue_rows(version) if row.outcome is Outcome.DIFFERENT]
    assert [(row.question.test, row.question.kind, row.why) for row in different] == []


@pytest.mark.parametrize(("version", "number", "equal", "impossible"), [("1.36", 767, 695, 65), ("1.37", 625, 588, 27)])
def test_each_recording_of_the_queue_has_its_rows_and_most_are_equal(
    version: str, number: int, equal: int, impossible: int
) -> None:
    counts = Counter(row.outcome for row in queue_rows(version))
    assert (counts.total(), counts[Outcome.EQUAL], counts[Outcome.IMPOSSIBLE]) == (number, equal, impossible)


def test_every_explanation_of_the_queue_is_needed() -> None:
    rows = [row for version in QUEUE_RECORDINGS for row in queue_rows(version) if row.outcome is Outcome.EXPLAINED]
    used = [f"{row.question.test} [{row.question.kind}]" for row in rows]
    assert [pattern for pattern, _ in EXPLAINED if not any(re.search(pattern, test) for test in used)] == []


def altered(call: dict[str, Any]) -> dict[str, Any] | None:
    """With another number of attempts of one pod."""
    changed = copy.deepcopy(call)
    for room in ("active", "backoff", "failed", "waiting"):
        if changed["after"][room]:
            changed["after"][room][0]["attempts"] += 1
            return changed
    return None


@pytest.mark.parametrize(
    "method", ["Add", "Update", "moveToActiveQ", "AddUnschedulableIfNotPresent", "MoveAllToActiveOrBackoffQueue", "Pop"]
)
def test_an_altered_queue_is_found(method: str) -> None:
    rows = queue_rows("1.36")
    equal = [row.question for row in rows if row.question.kind == method and row.outcome is Outcome.EQUAL]
    found = next(other for question in equal if (other := altered(question.calls[0])) is not None)
    assert judge_call(Question("an altered row", "queue", method, (found,)), "1.36").outcome is Outcome.DIFFERENT

"""Judges every row of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.oracle.releases import RELEASES
from tests.scheduler_core.peer_tables.answers import Answers, ask
from tests.scheduler_core.peer_tables.calls import Question, questions
from tests.scheduler_core.peer_tables.explained import DIFFERENT, LATER, explained
from tests.scheduler_core.peer_tables.objects import ImpossibleError

HERE: Final = Path(__file__).parent
# The patch releases are those of tests/oracle/releases.py.
RECORDINGS: Final = {
    version: HERE / f"calls-{RELEASES[version]}.txt.gz"
    for version in RELEASES
    if (HERE / f"calls-{RELEASES[version]}.txt.gz").exists()
}


class Outcome(StrEnum):
    EQUAL = "equal"
    IMPOSSIBLE = "impossible"
    EXPLAINED = "explained"
    LATER = "a later gate"
    DIFFERENT = "different"


class Row(NamedTuple):
    """`why` is empty for equal rows, and for rows that differ for an unknown reason."""

    question: Question
    outcome: Outcome
    why: str = ""
    answers: Answers | None = None


@cache
def rows(version: str) -> tuple[Row, ...]:
    """In the order of the recording."""
    return tuple(_judged(version))


def _judged(version: str) -> Iterator[Row]:
    for question in questions(RECORDINGS[version]):
        yield judge(question, version)


def judge(question: Question, version: str) -> Row:
    try:
        answers = ask(question, version)
    except ImpossibleError as why:
        return Row(question, Outcome.IMPOSSIBLE, str(why))
    if _are_equal(answers):
        return Row(question, Outcome.EQUAL, answers=answers)
    if why := explained(question.test):
        return Row(question, Outcome.EXPLAINED, why, answers)
    if version != LATER and _are_equal(ask(question, LATER)):
        return Row(question, Outcome.LATER, f"the row switches a gate on that is on since {LATER}", answers)
    return Row(question, Outcome.DIFFERENT, DIFFERENT.get(question.test, ""), answers)


def _are_equal(answers: Answers) -> bool:
    return bool(_settled(answers.real) == _settled(answers.ours))


def _settled(answer: Any) -> Any:
    """The order of scalar resources among the reasons is that of a Go map."""
    if isinstance(answer, dict) and "reasons" in answer:
        return {"nodes": None, **answer, "reasons": sorted(answer["reasons"])}
    return answer

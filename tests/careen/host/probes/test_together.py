"""Several answers as one: a table of all pairs."""

from __future__ import annotations

from itertools import product

import pytest

from careen.core.facts.observation import Need, NeedAnswer
from careen.host.probes.said import a_few, together

YES, NO, UNKNOWN = NeedAnswer.YES, NeedAnswer.NO, NeedAnswer.UNKNOWN


@pytest.mark.parametrize(("first", "second"), list(product(NeedAnswer, NeedAnswer)))
def test_one_yes_is_enough_and_a_no_takes_that_nobody_doubts(first: NeedAnswer, second: NeedAnswer) -> None:
    pair = {first, second}
    expected = YES if YES in pair else UNKNOWN if UNKNOWN in pair else NO
    assert together([Need(answer=first), Need(answer=second)]).answer is expected


def test_what_could_not_be_told_stands_beside_a_yes() -> None:
    said = together(
        [Need(answer=YES, detail="a asks"), Need(answer=UNKNOWN, detail="b hangs"), Need(answer=NO, detail="c")]
    )
    assert said.detail == "a asks; besides, b hangs"


def test_one_answer_stays_as_it_is() -> None:
    for answer in NeedAnswer:
        need = Need(answer=answer, detail="x", package_manager="dpkg")
        assert together([need]) == need


def test_nobody_asked_is_unknown() -> None:
    assert together([]).answer is UNKNOWN


def test_the_package_manager_of_any_answer_counts() -> None:
    assert together([Need(answer=YES), Need(answer=NO, package_manager="rpm")]).package_manager == "rpm"


def test_a_few_names_are_told_and_the_others_counted() -> None:
    assert a_few(["a", "b"]) == "a, b"
    assert a_few(list("abcdefg")) == "a, b, c, d, e and 2 more"

"""Tests that each reason code has a meaning, and a remedy that a person can apply."""

from __future__ import annotations

import pytest

from careen.core.facts.reasons import Code, event_reason


@pytest.mark.parametrize("code", list(Code), ids=str)
def test_every_reason_code_has_a_meaning_and_a_remedy(code: Code) -> None:
    assert code.meaning.endswith(".")
    assert code.remedy.endswith(".")


def test_the_reason_of_an_event_is_the_reason_code_in_camel_case() -> None:
    assert event_reason(Code.REBOOT_NOT_HAPPENED) == "RebootNotHappened"

"""Tests how careen displays text that other clients wrote, with every Unicode character and with generated texts."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.actions import Notify, Occasion, PatchNode, PostEvent
from careen.core.decision import Reason, Refusal
from careen.core.facts.reasons import Code
from careen.core.plain_text import LONGEST_LINE, annotation, json_text, lines, one_line
from tests.careen.poisoned_texts import LONG, POISON, unfit, unfit_json

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
EVERY_CHARACTER = "".join(map(chr, range(sys.maxunicode + 1)))
# Of the characters that are neither controls nor formats, Unicode's Default_Ignorable_Code_Point.
DRAWS_NOTHING = {
    *"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0",
    *map(chr, range(0xFE00, 0xFE10)),
    *map(chr, range(0xE0100, 0xE01F0)),
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain – text, ü 漢 🙂", "plain – text, ü 漢 🙂"),
        ("", ""),
        ("one\ntwo\r\nthree\tfour", "one two  three four"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("\x9b2J", "\ufffd2J"),
        ("user\u202etxt.exe", "user\ufffdtxt.exe"),
        ("ze\u200bro", "ze\ufffdro"),
        ("half \ud800 pair", "half \ufffd pair"),
        ("next\u2028line\u2029and\x85more", "next line and more"),
        ("[red]no markup[/]", "[red]no markup[/]"),
        ("⚠\ufe0f draining %s, 👨\u200d💻", "⚠\ufe0f draining %s, 👨\u200d💻"),
        ("❤\ufe0f\u200d🔥 1\ufe0f\u20e3", "❤\ufe0f\u200d🔥 1\ufe0f\u20e3"),
        ("می\u200cخواهم, क्\u200dष", "می\u200cخواهم, क्\u200dष"),
        ("n\u200d1, n\u200c2, n\ufe0f3, é\u200d4, 5\u200dé", "n\ufffd1, n\ufffd2, n\ufffd3, é\ufffd4, 5\ufffdé"),
        ("é\u200c\u200dé, é\ufe0f\ufe0f", "é\ufffd\ufffdé, é\ufe0f\ufffd"),
        ("é\u202e\u200dé", "é\ufffd\ufffdé"),
    ],
)
def test_a_text_is_shown_on_one_line_without_control_characters(text: str, shown: str) -> None:
    assert one_line(text) == shown


def test_no_control_character_format_character_or_line_separator_is_shown() -> None:
    shown = "".join(one_line(each) for each in EVERY_CHARACTER)
    assert {unicodedata.category(each) for each in set(shown)} & {"Cc", "Cf", "Cs", "Zl", "Zp"} == set()
    assert not DRAWS_NOTHING & set(shown)


def test_letters_marks_digits_and_symbols_are_unchanged() -> None:
    kept = [
        each
        for each in EVERY_CHARACTER
        if unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co") and one_line(each) != each
    ]
    assert set(kept) == DRAWS_NOTHING


@given(ANY_TEXT)
def test_a_cleaned_text_is_not_changed_again(text: str) -> None:
    """If a second cleaning changed a cleaned text, the agent would write this text again and again."""
    assert one_line(one_line(text)) == one_line(text)
    assert annotation(annotation(text)) == annotation(text)
    assert lines(lines(text)) == lines(text)


@pytest.mark.parametrize("length", [LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 1_000_000])
def test_a_long_text_is_cut_to_the_maximum_length(length: int) -> None:
    shown = one_line("ü" * length)
    assert len(shown) == min(length, LONGEST_LINE)
    assert shown.endswith("…") == (length > LONGEST_LINE)


@given(ANY_TEXT)
def test_a_report_keeps_line_breaks_and_no_other_control_characters(text: str) -> None:
    assert lines(text).count("\n") == text.count("\n")
    assert [each for each in unfit(lines(text)) if not each.startswith("a forged")] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


# The function escapes the characters that a terminal could obey. The parsed JSON has the same values as before.
@given(JSON, st.sampled_from([None, 2]))
def test_json_keeps_its_values_without_terminal_control_sequences(value: object, indent: int | None) -> None:
    text = json_text(json.dumps(value, ensure_ascii=False, indent=indent))
    assert json.loads(text) == value
    assert unfit_json(text) == []


@pytest.mark.parametrize("text", [POISON, LONG], ids=["a short text", "a long text"])
def test_every_message_of_a_decision_is_safe_to_display(text: str) -> None:
    """The test collects every sentence of a decision: the reason of the phase, the refusals of gates, and the error of
    a failed round of the agent's loop."""
    refusal = Refusal(gate=text, code=Code.HELD, sentence=text, remedy=text)
    said = [
        Reason(code=Code.HELD, sentence=text).sentence,
        refusal.gate,
        refusal.sentence,
        refusal.remedy,
        PostEvent(code=Code.HELD, sentence=text, is_warning=False).sentence,
        Notify(occasion=Occasion.FAILED, sentence=text).sentence,
        PatchNode(purpose="p", resource_version="1", annotations={"a": text, "b": None}).annotations["a"],
    ]
    assert [unfit(each or "") for each in said] == [[]] * len(said)


def test_an_annotation_with_json_keeps_its_content() -> None:
    text = json.dumps([{"sentence": POISON}], ensure_ascii=False, separators=(",", ":"))
    written = PatchNode(purpose="p", resource_version="1", annotations={"a": text}).annotations["a"]
    assert written is not None
    assert json.loads(written) == [{"sentence": POISON}]
    assert unfit(written) == []

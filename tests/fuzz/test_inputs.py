"""Tests that any text from outside becomes a value or a refusal with a message, and that reading it needs memory in
proportion to its size. `make fuzz EXAMPLES=…` tries more texts and counts them.
"""

from __future__ import annotations

import gzip
import tracemalloc
import warnings
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from careen.core.plain_text import one_line
from tests.careen.poisoned_texts import LONG, POISON, unfit
from tests.fuzz.conftest import EXAMPLES
from tests.fuzz.inputs import INPUTS, Input

pytestmark = pytest.mark.fuzz

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)
WORDS = st.sampled_from(
    ["", "0", "-1", "9" * 30, "1e9", "NaN", "null", "true", "[]", "{}", "a", "=", ",", ":", "(", ")", "!", "\\", "*",
     "%", "\n", " ", "\t", "\x00", "\u202e", "é", "٣", "2026-03-04T12:00:00Z", "24:00", "mon", "1h", "1.5", "..", "/",
     "&a ", "*a", "- ", "? ", '"', "'", '{"', '":', "https://", "@", "\ud800"]
)  # fmt: skip


def texts(known: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Draw random text, pieces of grammar, or a valid text with parts removed, repeated or inserted."""
    base = st.sampled_from([*known, ""])
    spliced = st.builds(_spliced, base, st.integers(0, 200), st.integers(0, 60), WORDS | ANY_TEXT)
    return ANY_TEXT | st.lists(WORDS, max_size=12).map("".join) | spliced | base


def _spliced(text: str, at: int, length: int, piece: str) -> str:
    at = min(at, len(text))
    return text[:at] + piece + text[at + length :]


def raw(known: tuple[str, ...]) -> st.SearchStrategy[bytes]:
    """Draw texts as `texts` does, and return them as bytes. Some are compressed. Some end too early, even in the middle
    of a character."""
    encoded = texts(known).map(lambda text: text.encode("utf-8", "surrogatepass"))
    packed = encoded.map(lambda plain: gzip.compress(plain, mtime=0))
    cut = st.builds(lambda whole, at: whole[: max(0, len(whole) - at)], encoded | packed, st.integers(0, 30))
    return encoded | packed | cut | st.binary(max_size=80)


def judged(each: Input, given_text: object) -> None:
    """Read the text with `each.read`. Fails if that function raises an exception of a type that is not in
    `each.refusals`, or if the message of the exception is empty or unsafe to display.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a library's advice about a strange text is no fault
        said = refused(each, given_text)
    assert said is None or said.strip(), "a refusal without a message"
    assert unfit(said or "") == []


def refused(each: Input, given_text: object) -> str | None:
    """Return the message of the refusal as careen would display it, or None for a valid text."""
    try:
        each.read(given_text)
    except each.refusals as refusal:
        return one_line(str(refusal))
    return None


@pytest.mark.parametrize("each", INPUTS, ids=lambda each: each.name)
def test_any_text_from_outside_gives_a_value_or_a_refusal(each: Input, count_example: Callable[[str], None]) -> None:
    strategy: st.SearchStrategy[object] = raw(each.known) if each.is_bytes else texts(each.known)

    @settings(
        max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], database=None
    )
    @given(strategy)
    def law(given_text: object) -> None:
        count_example(each.name)
        judged(each, given_text)

    law()


# The number of characters in a large text. It is more than 4,300 in both cases, because Python refuses to convert a
# text with more than 4,300 digits to a number.
SIZE = 60_000 if EXAMPLES >= 1_000 else 6_000
LARGE = {
    "one letter": "a" * SIZE,
    "digits": "9" * SIZE,
    "signs": "-" * SIZE,
    "an opening": "(" * SIZE,
    "nested lists": "[" * SIZE,
    "nested objects": '{"a":' * (SIZE // 5),
    "commas": "a," * (SIZE // 2),
    "requirements": "a=b," * (SIZE // 4),
    "lines": "a: b\n" * (SIZE // 5),
    "spaces": " " * SIZE,
    "escapes": "\x1b[31m" * (SIZE // 5),
    "poison": LONG[:SIZE],
    "hours": "1h" * (SIZE // 2),
    "a long value": f'{{"nodeID":"{"n" * SIZE}"}}',
}


@pytest.mark.parametrize("each", INPUTS, ids=lambda each: each.name)
def test_reading_a_large_text_needs_memory_in_proportion_to_its_size(
    each: Input, count_example: Callable[[str], None]
) -> None:
    """The memory that is allocated at once must stay below 2,000 bytes times `SIZE`, plus 2 MB. YAML texts have only an
    eighth of `SIZE` characters, because the YAML parser is slow."""
    for text in (whole[: SIZE // 8] if each.is_yaml else whole for whole in LARGE.values()):
        count_example(each.name)
        wanted: object = text.encode("utf-8", "surrogatepass") if each.is_bytes else text
        tracemalloc.start()
        try:
            judged(each, wanted)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 2_000 * SIZE + 2_000_000


def test_every_parser_handles_text_with_control_characters_and_forged_lines(
    count_example: Callable[[str], None],
) -> None:
    for each in INPUTS:
        count_example(each.name)
        judged(each, POISON.encode() if each.is_bytes else POISON)

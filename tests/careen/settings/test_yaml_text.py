"""Tests how careen reads YAML that people wrote: the result is a value, or a message with the position of the error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.settings.live import parse
from careen.settings.sources import BadSettings
from careen.settings.yaml_text import BadYaml, load

LAUGHS = "a: &a [lol]\n" + "\n".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
CHAIN = "a0: &a0 [x]\n" + "\n".join(f"a{number}: &a{number} [*a{number - 1}]" for number in range(1, 200))

UNREADABLE = {
    "no YAML": "a: [",
    "a date that no calendar has": "at: 2026-13-45",
    "a time zone with an offset of a hundred hours": "at: 2001-12-14t21:59:43.10-99:99",
    "an invalid number": "n: !!int abc",
    "an empty number": "n: !!int ''",
    "an invalid float": "n: !!float abc",
    "an invalid boolean": "b: !!bool maybe",
    "an invalid instant": "at: !!timestamp soon",
    "invalid bytes": "b: !!binary 'é'",
    "a tag of Python": "a: !!python/object/apply:os.system ['true']",
    "a key that is a list": "? [a]\n: b",
    "infinity": "n: .inf",
    "no number": "n: .nan",
    "a number of 5000 digits": "n: " + "9" * 5000,
    "a number of 5000 hexadecimal digits": "n: 0x" + "f" * 5000,
    "a very long number in base 60": "n: 1" + ":59" * 500,
    "brackets without end": "a: " + "[" * 100_000,
    "braces without end": "{a: " * 5_000,
    "blocks without end": "- " * 3_000 + "a",
    "a billion laughs": LAUGHS,
    "aliases that nest deeply": CHAIN,
    "a list that contains itself": "a: &a [*a]",
    "a mapping that merges itself": "a: &a\n  <<: *a",
    "a key twice": "a: 1\nb: 2\na: 3",
    "a key twice below another": "a:\n- {b: 1, 'b': 2}",
    "an alias without an anchor": "a: *b",
    "two documents": "a: 1\n---\nb: 2",
    "a character that YAML does not allow": "a: \x00",
    "half of a surrogate pair": "a: \ud800",
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_invalid_yaml_is_an_invalid_setting_with_a_message(text: str) -> None:
    with pytest.raises(BadYaml) as caught:
        load(text)
    assert str(caught.value)
    with pytest.raises(BadSettings) as refused:
        parse(text, "careen/careen")
    assert refused.value.problems[0].startswith("`config.yaml` in ConfigMap careen/careen is not YAML: ")


def test_a_key_that_appears_twice_is_refused_with_its_line() -> None:
    with pytest.raises(BadYaml, match=r"^line 3: the key profiles appears twice$"):
        load("profiles: []\nparallelism: 4\nprofiles: []\n")


def test_common_yaml_texts_are_parsed_correctly() -> None:
    assert load("period: 1m\nreboot-days: [mo, tu]\nconcurrency: 2\n") == {
        "period": "1m",
        "reboot-days": ["mo", "tu"],
        "concurrency": 2,
    }
    assert load("a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n") == {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}
    assert load("") is None


@given(st.text(max_size=200) | st.text(alphabet="&*[]{}:-<? \n!|>'\"ab1.,#%@`~", max_size=60))
def test_every_yaml_text_is_read_or_refused_with_a_message(text: str) -> None:
    try:
        load(text)
    except BadYaml as error:
        assert str(error)  # noqa: PT017 - either outcome is right


def test_a_text_that_takes_long_to_read_is_refused() -> None:
    assert load("a: 1\n" + "#" * (2**17 - 5)) == {"a": 1}
    with pytest.raises(BadYaml, match="the text has more than 131072 characters"):
        load("- a\n" * 2**16)

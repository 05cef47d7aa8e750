"""Texts with characters that must be escaped on a terminal, and functions that check displayed texts. These functions
use Python's Unicode tables and no code of `core/plain_text.py`, because they test that code."""

from __future__ import annotations

import json
import re
import unicodedata

MARK = "poison"
"""The beginning of every poisoned text. A test finds it in the output only if the poisoned text was really printed."""

FORGED = "FORGED"
"""The text after each line break in a poisoned text. An output with a line that begins with it shows a forged line.
Tracebacks are indented by four columns, so that none of their lines looks like one."""

POISON = (
    f"{MARK}\x1b[31m\x1b]0;title\x07\n{FORGED} all is well\r{FORGED}\u2028{FORGED}\x85{FORGED}\x9b2J\x08\x00\x7f"
    "\u202e\u2066\u200b\u200f\ufeff\U000e0041 [red]markup[/] [/] %s {0} <b>"
)
LONG = f"{POISON}{'x' * 150_000}{POISON}"

LONGEST_LINE = 20_000

_JOINED = re.compile("(?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])")
"""Zero-width joiners between two characters beyond ASCII, as inside a word or an emoji. They are safe to display."""


def unfit(text: str, *, longest: int = LONGEST_LINE) -> list[str]:
    """Return the reasons why the displayed text is unsafe, or an empty list."""
    found = {
        f"U+{ord(each):04X} {unicodedata.name(each, '')}"
        for each in set(_JOINED.sub("", text)) - {"\n"}
        if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
    lines = text.split("\n")
    found |= {f"a forged line: {line[:80]!r}" for line in lines if re.match(rf" {{0,3}}{FORGED}", line)}
    found |= {f"a line of {len(line)} characters" for line in lines if len(line) > longest}
    return sorted(found)


def strings_in(value: object) -> list[str]:
    """Return every string in a JSON value, including its keys."""
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in (key, *strings_in(each))]
    if isinstance(value, list):
        return [text for each in value for text in strings_in(each)]
    return [value] if isinstance(value, str) else []


def unfit_json(text: str) -> list[str]:
    """Return the reasons why displayed JSON is unsafe on a terminal, or an empty list. Raises ValueError for invalid
    JSON.
    """
    json.loads(text)
    return [each for each in unfit(text, longest=10**9) if not each.startswith("a forged")]

"""Makes text from outside safe to show: no control characters, no forged lines, limited length.

Names, annotations, messages of servers and output of commands may contain escape sequences for a terminal, line breaks
that make one log line look like two, and characters that reorder or hide their neighbours. Decisions read such text
unchanged; whatever shows it, or writes it for other readers, passes it through one of these functions.
"""

from __future__ import annotations

import re

LONGEST_LINE = 4_000
LONGEST_CELL = 1_000  # a namespace, a slash and a name of the API have 317 characters; a setting may have more
REPLACEMENT = "\ufffd"

# Unicode's Cc, Cf, Cs, Zl, Zp, the other characters that draw nothing (Default_Ignorable_Code_Point), and the
# noncharacters of the first plane. U+0085, U+2028 and U+2029 break lines in many viewers.
_BREAKS = "\\t-\\r\\x1c-\\x1f\\x85\\u2028\\u2029"
_UNFIT = (
    "\\x00-\\x1f\\x7f-\\x9f\\xad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u115f\\u1160"
    "\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ud800-\\udfff\\ufe00-\\ufe0f"
    "\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff\\U000110bd\\U000110cd\\U00013430-\\U0001343f\\U0001bca0-\\U0001bca3"
    "\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
)
_BREAK = re.compile(f"[{_BREAKS}]")
# Emoji and several scripts need joiners between letters, and U+FE0E and U+FE0F after a sign. Next to ASCII these
# characters would only make two names look alike: names in the API are ASCII.
_SEEN = f"[^\\x00-\\x7f{_UNFIT}]"
_JOINS = f"(?:(?<={_SEEN})|(?<=[\\ufe0e\\ufe0f]))[\\u200c\\u200d](?={_SEEN})"
_VARIES = f"(?<={_SEEN})[\\ufe0e\\ufe0f]|[\\ufe0e\\ufe0f](?=\\u20e3)"
_CONTROL = re.compile(f"(?!{_JOINS}|{_VARIES})[{_UNFIT}]")
_IN_JSON = re.compile(f"(?!\\n)[{_UNFIT}]")


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """The text on one line: line breaks and tabs become spaces, other unsafe characters U+FFFD, except joiners inside
    emoji and non-ASCII words. Text longer than `longest` is cut and ends with `…`."""
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return cut if cut.isascii() and cut.isprintable() else _CONTROL.sub(REPLACEMENT, _BREAK.sub(" ", cut))


def lines(text: str) -> str:
    """Each line cleaned as in `one_line`, but not cut: for text whose line breaks careen wrote, such as a table."""
    return "\n".join(one_line(line, max(len(line), 1)) for line in text.split("\n"))


def json_text(text: str) -> str:
    r"""JSON with unsafe characters escaped as `\uXXXX`, because a terminal could obey them; the values stay the
    same."""
    return text if text.isascii() and text.isprintable() else _IN_JSON.sub(_escaped, text)


def annotation(value: str) -> str:
    """The value as careen writes it into an annotation: JSON escaped, other text on one line."""
    return json_text(value) if value.startswith(("{", "[")) else one_line(value)


def _escaped(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

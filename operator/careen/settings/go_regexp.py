"""People's regular expressions, in the syntax and by the engine of kured's: RE2, which takes linear time for every
expression and text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from scheduler_core.values import Value

SYNTAX = "https://github.com/google/re2/wiki/Syntax"
_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
_MOST_MEMORY = 2**20  # of one compiled expression; RE2 refuses a larger one
_LONGEST = 4096  # characters: while RE2 reads an expression, a character may need 10 KiB


class GoRegexp(Value):
    """A valid expression. RE2 takes 3 MB, which only an agent with an expression loads."""

    text: str

    def steps(self, texts: Iterable[str]) -> int:
        """The most that matching all of them may take: each instruction of the expression once for each byte."""
        return int(_compiled(self.text).programsize) * sum(len(_encoded(text)) + 1 for text in texts)

    def search(self, text: str) -> bool:
        """Whether it matches anywhere in the text."""
        return _compiled(self.text).search(_encoded(text)) is not None

    def fullmatch(self, text: str) -> bool:
        """Whether it matches the whole text."""
        return _compiled(self.text).fullmatch(_encoded(text)) is not None


def checked(text: str) -> GoRegexp:
    """Raises ValueError with RE2's reason."""
    if why := _why_not(text):
        raise ValueError(f"expected a regular expression in Go's syntax ({SYNTAX}): {why}")
    return GoRegexp(text)


def _why_not(text: str) -> str:
    import re2

    if len(text) > _LONGEST:
        return f"pattern too large: it has more than {_LONGEST} characters"
    if _ONE_BYTE.search(text):  # C++'s RE2 has it, Go's has not
        return "invalid escape sequence: \\C"
    try:
        _compiled(text)
    except re2.error as error:
        return b" ".join(error.args).decode(errors="replace")
    return ""


@lru_cache(maxsize=64)
def _compiled(text: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    return re2.compile(_encoded(text), options)


def _encoded(text: str) -> bytes:
    """RE2 reads UTF-8. Half of a surrogate pair, which JSON may contain, has none."""
    return text.encode(errors="replace")

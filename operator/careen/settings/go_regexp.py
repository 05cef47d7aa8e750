"""People's regular expressions, in the syntax and by the engine of kured's: RE2, which takes linear time for every
expression and text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from scheduler_core.values import Value

SYNTAX = "https://github.com/google/re2/wiki/Syntax"
_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
_MOST_MEMORY = 2**20  # of one expression; RE2 refuses a larger one


class GoRegexp(Value):
    """A valid expression. RE2 takes 3 MB, which only an agent with an expression loads."""

    text: str

    def search(self, text: str) -> bool:
        """Whether it matches anywhere in the text."""
        return _compiled(self.text).search(_encoded(text)) is not None

    def fullmatch(self, text: str) -> bool:
        """Whether it matches the whole text."""
        return _compiled(self.text).fullmatch(_encoded(text)) is not None


def checked(text: str) -> GoRegexp:
    """Raises ValueError with RE2's reason."""
    import re2

    try:
        _compiled(text)
    except re2.error as error:
        why = b" ".join(error.args).decode(errors="replace")
        raise ValueError(f"expected a regular expression in Go's syntax ({SYNTAX}): {why}") from None
    if _ONE_BYTE.search(text):  # C++'s RE2 has it, Go's has not
        raise ValueError(f"expected a regular expression in Go's syntax ({SYNTAX}): invalid escape sequence: \\C")
    return GoRegexp(text)


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

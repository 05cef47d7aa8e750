"""Translates Go's regular expressions (RE2, https://github.com/google/re2/wiki/Syntax), which kured uses, to Python's.
A syntax that Python lacks is an error that names it. Python's own extensions, such as `(?!…)`, stay."""

from __future__ import annotations

import re
import sys
from functools import cache

from scheduler_core.values import Value


class GoRegexp(Value):
    """The original text, and the compiled pattern."""

    text: str
    pattern: re.Pattern[str]


def in_python(text: str) -> str:
    """In Python's syntax. Raises ValueError with the syntax that Python lacks."""
    return _Translation(text).whole()


# Classes with the same syntax in Go and Python but another meaning: Go's are ASCII only.
_PERL = {"d": "0-9", "s": r"\t\n\f\r ", "w": "0-9A-Za-z_"}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_GROUP = re.compile(r"\((?:\?(?:P?<(?![=!])|:|P=|[=!>#(]|<[=!]))?")
_ONE_CLASS = re.compile(r"\\([dswDSW])|\\([pP])(?:\{(\^?)([^}]*)\}|(.))|\[:(\^?)(\w*):\]")
_CODE = re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}|\\x([0-9A-Fa-f]{2})|\\([1-7][0-7]{1,2}|0[0-7]{0,2})")
_REPEAT = re.compile(r"\{\d+(,\d*)?\}")


class _Translation:
    """One pass from left to right, with the flags that apply before each piece: in Go a flag applies to the end of its
    group, even across a `|`, while Python's cannot begin inside a group."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags = frozenset[str]()
        self._outer: list[frozenset[str]] = []

    def whole(self) -> str:
        pieces = []
        while self._at < len(self._text):
            pieces.append(self._piece())
        return "".join(pieces)

    def _piece(self) -> str:
        if self._is_next(r"\Q"):
            return self._quoted()
        if found := self._take(_FLAGS):
            return self._set_flags(found)
        if found := self._take(_GROUP):
            if found[0] == "(" and self._is_next("?"):
                raise ValueError(f"expected a regular expression without ({self._text[self._at : self._at + 2]}")
            self._outer.append(self._flags)
            return "(?P<" if found[0] == "(?<" else found[0]
        if self._is_next("["):
            return self._cased(self._set())
        if found := self._take(_REPEAT):
            return found[0]
        if self._is_next("\\"):
            return self._escape()
        return self._plain()

    def _plain(self) -> str:
        character, self._at = self._text[self._at], self._at + 1
        if character == ")" and self._outer:
            self._flags = self._outer.pop()
        if character == ".":
            return "(?s:.)" if "s" in self._flags else "."
        if character == "^":
            return "(?m:^)" if "m" in self._flags else "^"
        if character == "$":  # Python's also matches before a final line break
            return "(?m:$)" if "m" in self._flags else r"\Z"
        if character == "{":  # not a repetition: in Go, this brace is a literal character
            return r"\{"
        return self._cased(character) if character not in "*+?|()" else character

    def _escape(self) -> str:
        if found := self._take(_CODE):
            return self._cased(re.escape(_character(found)))
        if found := self._take(_ONE_CLASS):
            return self._cased(f"[{_members(found)}]")
        pair = self._text[self._at : self._at + 2]
        self._at += 2
        if pair == r"\C":
            raise ValueError(r"expected a regular expression without \C (one byte): Python matches only characters")
        return {r"\z": r"\Z", r"\b": r"(?a:\b)", r"\B": r"(?a:\B)"}.get(pair) or self._cased(pair)

    def _quoted(self) -> str:
        end = self._text.find(r"\E", self._at)
        words = self._text[self._at + 2 : end if end >= 0 else None]
        self._at = end + 2 if end >= 0 else len(self._text)
        return "".join(self._cased(re.escape(each)) for each in words)

    def _set_flags(self, found: re.Match[str]) -> str:
        on, off, end = found[1], found[2] or "", found[3]
        if "U" in on + off:
            raise ValueError("expected a regular expression without (?U): write x*? for the fewest repetitions")
        if end == ":":
            self._outer.append(self._flags)
        self._flags = (self._flags | {*on}) - {*off}
        return "(?:" if end == ":" else "(?:)"

    def _set(self) -> str:
        """A class in brackets. Escapes what a later Python may read as set operations."""
        self._at += 1
        pieces = ["["]
        if self._is_next("^"):
            self._at += 1
            pieces.append("^")
        begins = self._at  # a ] that comes first is a member
        while self._at < len(self._text) and (not self._is_next("]") or self._at == begins):
            pieces.append(self._member())
        if self._at >= len(self._text):
            raise ValueError("expected a regular expression: a [ is not closed by a ]")
        self._at += 1
        return "".join([*pieces, "]"])

    def _member(self) -> str:
        if found := self._take(_ONE_CLASS):
            return _members(found)
        if found := self._take(_CODE):
            return re.escape(_character(found))
        length = 2 if self._is_next("\\") else 1
        member, self._at = self._text[self._at : self._at + length], self._at + length
        return f"\\{member}" if member in ("[", "]", "&", "|", "~") else member

    def _cased(self, piece: str) -> str:
        return f"(?i:{piece})" if "i" in self._flags else piece

    def _is_next(self, words: str) -> bool:
        return self._text.startswith(words, self._at)

    def _take(self, wanted: re.Pattern[str]) -> re.Match[str] | None:
        found = wanted.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found


def _character(found: re.Match[str]) -> str:
    long, short, octal = found.groups()
    code = int(octal, 8) if octal else int(long or short, 16)
    if code > sys.maxunicode:
        raise ValueError(f"expected a regular expression: Unicode has no character {found[0]}")
    return chr(code)


def _members(found: re.Match[str]) -> str:
    """The members of a named class such as `[:alpha:]`, for use in brackets."""
    perl, unicode, is_not, long, short, posix_not, posix = found.groups()
    if perl:
        return _complement(_PERL[perl.lower()]) if perl.isupper() else _PERL[perl]
    if unicode:
        is_without = (unicode == "P") != bool(is_not)
        return _category(long if short is None else short, is_without=is_without)
    if posix not in _POSIX:
        raise ValueError(f"expected a regular expression: there is no class [:{posix}:]")
    return _complement(_POSIX[posix]) if posix_not else _POSIX[posix]


@cache
def _complement(members: str) -> str:
    """As ranges, all characters outside this class of ASCII characters."""
    inside = re.compile(f"[{members}]")
    return _ranges([code for code in range(128) if not inside.match(chr(code))] + [128, sys.maxunicode], joins=True)


@cache
def _category(name: str, *, is_without: bool) -> str:
    """A general category such as L or Lu, as ranges. Scripts such as Greek are refused, because Python has no table of
    them."""
    if name not in _CATEGORIES:
        raise ValueError(
            f"expected a regular expression without \\p{{{name}}}: only Unicode's general categories "
            "are known, such as \\pL"
        )
    import unicodedata  # a megabyte of tables, imported only for this rare class

    every = range(sys.maxunicode + 1)
    return _ranges([code for code in every if unicodedata.category(chr(code)).startswith(name) != is_without])


_CATEGORIES = frozenset(
    major + minor
    for major, minors in {
        "C": "cfos",
        "L": "lmotu",
        "M": "cen",
        "N": "dlo",
        "P": "cdefios",
        "S": "ckmo",
        "Z": "lps",
    }.items()
    for minor in ("", *minors)
)


def _ranges(codes: list[int], *, joins: bool = False) -> str:
    """Sorted codes as ranges for use in brackets. With `joins`, the last two codes are the ends of one range."""
    runs: list[list[int]] = []
    for code in codes[:-2] if joins else codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    runs += [codes[-2:]] if joins else []
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in runs)

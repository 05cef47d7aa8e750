"""Tests Go's regular expressions in Python: what they match, and which unsupported syntax careen refuses. The expected
results follow `go doc regexp/syntax`.
"""

from __future__ import annotations

import pytest

from careen.settings.go_regexp import in_python
from careen.settings.kinds import go_regexp, regexp

MATCHES = [
    # expression, a text that it matches, a text that it does not match
    ("^RebootRequired$", ["RebootRequired"], ["RebootRequired\n", "xRebootRequired"]),
    (r"\ARebootRequired\z", ["RebootRequired"], ["RebootRequired\n"]),
    ("[[:alpha:]]+", ["x", "Z"], ["1", "é", "["]),
    ("^[[:^alpha:]]+$", ["1é"], ["1x"]),
    ("^[[:word:]-]+$", ["a_1-b"], ["a b"]),
    (r"^[^[:space:]\d]+$", ["ab"], ["a1", "a b"]),
    (r"^[]a]+$", ["]a"], ["b"]),
    (r"^[^]a]+$", ["b"], ["]"]),
    ("^[a^]$", ["a", "^"], ["b"]),
    (r"^[a\]b]$", ["]"], ["c"]),
    (r"^[a&&b]+$", ["a&b"], ["c"]),
    (r"^[[a]+$", ["[a"], ["b"]),
    (r"^\pL+$", ["aé", "ж"], ["1", "_"]),
    (r"^\p{Lu}\P{Lu}$", ["Éa"], ["aa", "AA"]),
    (r"^[\p{Nd}x]$", ["٣", "x"], ["a"]),
    (r"^\p{^L}$", ["1"], ["a"]),
    (r"^\d$", ["3"], ["٣"]),
    (r"^\D$", ["٣", "x"], ["3"]),
    (r"^\w+$", ["a_1"], ["é"]),
    (r"^\s$", [" ", "\n"], ["\v", "\u00a0"]),
    (r"é\b", ["éa"], ["é "]),
    ("(?i)watchdog", ["WatchDog"], ["Watch"]),
    ("a(?i)b|c$", ["aB", "C"], ["Ab"]),
    ("(a(?i)b)c", ["aBc"], ["aBC"]),
    ("(?i:a)b", ["Ab"], ["AB"]),
    ("(?i)a(?-i)b", ["Ab"], ["AB"]),
    ("a.b", ["axb"], ["a\nb"]),
    ("(?s)a.b", ["a\nb"], []),
    ("(?m)^b$", ["a\nb\nc"], ["ab"]),
    ("(?i)[a-c]{2,3}$", ["AbC"], ["d"]),
    (r"\Qa.b\E+$", ["a.bb"], ["axb"]),
    (r"\Qa.", ["a."], ["ab"]),
    (r"(?i)\Qa.b", ["A.B"], ["axb"]),
    ("(?P<x>a)(?<y>b)", ["ab"], ["a"]),
    (r"\x41\x{1F600}", ["A\U0001f600"], ["A"]),
    (r"(?i)\x41[\x42]", ["ab", "AB"], ["x41b"]),
    (r"(?i)\101\0", ["a\0"], ["1010"]),
    ("a{,2}$", ["a{,2}"], ["aa"]),
    ("a{2}", ["aa"], ["a"]),
    ("{a}", ["{a}"], ["a"]),
    (r"\.\*\[", [".*["], ["x"]),
    ("^(?!Watchdog)", ["Disk"], ["Watchdog"]),
]


@pytest.mark.parametrize(("text", "found", "not_found"), MATCHES, ids=[row[0] for row in MATCHES])
def test_a_regular_expression_matches_as_in_go(text: str, found: list[str], not_found: list[str]) -> None:
    pattern = regexp(text)
    assert pattern is not None
    assert [each for each in found if not pattern.search(each)] == []
    assert [each for each in not_found if pattern.search(each)] == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (r"\C", r"\C"),
        ("(?U)a*", "(?U)"),
        ("(?x)a b", "(?x"),
        (r"\p{Greek}", r"\p{Greek}"),
        (r"[\pQ]", r"\p{Q}"),
        ("[[:alphabet:]]", "[:alphabet:]"),
        ("[a", "a [ is not closed by a ]"),
        ("(", "unterminated subpattern"),
        (r"\x{110000}", "no character"),
        ("(?P<a>x)(?P<a>y)", "redefinition"),
        ("a{99999999999}", "a repeat count or the nesting is too large"),
        ("a" + "(" * 5000 + ")" * 5000, "regular expression"),
    ],
)
def test_the_refusal_of_unsupported_regular_expression_syntax_shows_the_syntax(text: str, named: str) -> None:
    with pytest.raises(ValueError, match="expected a regular expression") as caught:
        regexp(text)
    assert named in str(caught.value)


def test_a_simple_regular_expression_is_stored_and_shown_unchanged() -> None:
    assert in_python("^Watch.*dog|Info[a-z]+") == "^Watch.*dog|Info[a-z]+"
    found = go_regexp(r"[[:alpha:]]\z")
    assert found is not None
    assert found.text == r"[[:alpha:]]\z"
    assert go_regexp("") is None

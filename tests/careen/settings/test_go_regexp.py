"""Tests people's regular expressions: they match as in Go, and take linear time. The expected results follow `go doc
regexp/syntax`.
"""

from __future__ import annotations

import sys

import pytest

from careen.settings.go_regexp import GoRegexp
from careen.settings.kinds import regexp
from tests.patience import run

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
    (r"^\p{Greek}+$", ["αβ"], ["ab"]),
    ("^(?U)a+", ["aa"], ["b"]),
    ("^a.c$", ["aéc", "a\udc80c"], ["a\nc"]),  # half of a surrogate pair counts as one character
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
        ("^(?!Watchdog)", "invalid perl operator: (?!"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        (r"a\Z", r"invalid escape sequence: \Z"),
        (r"a\\\C", r"invalid escape sequence: \C"),  # C++'s RE2 accepts it
        ("(?x)a b", "(?x"),
        (r"[\pQ]", r"\pQ"),
        ("[[:alphabet:]]", "[:alphabet:]"),
        ("[a", "missing ]: [a"),
        ("(", "missing ): ("),
        ("x**", "bad repetition operator: **"),
        (r"\x{110000}", r"\x{110000"),
        ("a{1001}", "invalid repetition size: {1001}"),
        (r"((\pL{100}){100}){10}", "invalid repetition size"),
        ("a" * 2**20, "pattern too large"),
        ("\udc80(", "no argument for repetition operator: ?"),
    ],
    ids=lambda text: text[:20].encode(errors="replace").decode(),
)
def test_the_refusal_of_a_regular_expression_shows_why_and_where_the_syntax_is_described(text: str, named: str) -> None:
    with pytest.raises(ValueError, match="expected a regular expression in Go's syntax") as caught:
        regexp(text)
    assert named in str(caught.value)
    assert "https://github.com/google/re2/wiki/Syntax" in str(caught.value)


@pytest.mark.parametrize("text", [r"^(\w+\s?)+$", "(a+)+$", "^(a|aa)*$", "(.*)*x", "(x+x+)+y"])
def test_each_regular_expression_takes_linear_time(text: str) -> None:
    """With Python's engine, each takes seconds for 32 characters and twice as long for each further one."""
    pattern = regexp(text)
    assert pattern is not None
    assert not pattern.search("ax" * 10_000 + "!") or "x" in text


def test_a_regular_expression_needs_little_memory_while_it_is_read() -> None:
    """Each `\\pL` takes 20 KiB: without a limit, 64 KiB of them end the agent, again at each of its starts."""
    code = (
        "import resource, sys; from careen.settings.kinds import regexp; import re2\n"
        "size = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = size()\n"
        "for length in (2048, 2**16):\n"
        "    try: regexp(r'\\pL' * length)\n"
        "    except ValueError as error: assert 'pattern too large' in str(error)\n"
        "assert size() - before < 100 * 1024, size() - before"
    )
    done = run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr


def test_a_regular_expression_is_stored_and_shown_unchanged() -> None:
    assert regexp(r"[[:alpha:]]\z") == GoRegexp(r"[[:alpha:]]\z")
    assert regexp("") is None


def test_only_a_configured_regular_expression_loads_the_engine() -> None:
    code = "import sys, careen.settings.policy, careen.settings.tree as t; t.Settings(); print('re2' in sys.modules)"
    assert run([sys.executable, "-c", code]).stdout == "False\n"


@pytest.mark.parametrize("flag", ["--alert-filter-regexp", "--reboot-packages"])
def test_an_invalid_regular_expression_ends_the_agent_with_exit_code_2_and_says_what_to_do(flag: str) -> None:
    done = run([sys.executable, "-m", "careen", "agent", "--node-id=n1", f"{flag}=^(?!Watchdog)"])
    assert done.returncode == 2
    assert f"{flag}='^(?!Watchdog)': expected a regular expression in Go's syntax" in done.stderr

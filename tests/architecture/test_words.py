"""Tests that docstrings and comments use the glossary's words, and neither define nor paraphrase them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache

import pytest

from tests.architecture.source_tree import ROOT

FOLDERS = ("operator", "scheduler_core", "drydock", "bench")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()

# These need no definition in parentheses behind them: the glossary has it.
KNOWN_WORDS = (
    *("turn", "gate", "refusal", "hold", "holder", "pause", "soft taint", "forecast", "undo", "evidence", "baseline"),
    *("preparation", "announcement", "stale claim", "scenario", "row"),
)
DEFINED = re.compile(rf"\b({'|'.join(KNOWN_WORDS)})s? \((?!see |if |with|for example|such as |none)[a-z]")

# What docstrings wrote for strangers, and what to write instead.
PARAPHRASES = {
    r"rounds? of (the agent's|its|the) loop": "turn",
    r"rounds? of observe": "turn",
    r"returns? the decision to": "nothing: name and type say it",
    r"this gate refuses": "Refuses while …",
    r"(conditions?|checks?) (for|before) a reboot\)": "gate",
    r"a step is a function": "nothing: the glossary and the type say it",
    r"(the|other|all) nodes with (claims|a claim)": "holders",
    r"nodes? that holds? a claim": "holder",
    r"nodes? that holds? claims": "holders",
    r"the line of (the )?waiting nodes": "the line",
    r"\((taints? with )?(the )?(effect )?prefernoschedule\)": "soft taint, without its effect",
    r"claims? (on|in) the reboot lock": "claim",
    r"possible (sequence|course) of events": "scenario",
    r"\bghosts?\b(?!-)": "stale claim, or orphaned pod",
}
BANNED = {re.compile(pattern): instead for pattern, instead in PARAPHRASES.items()}


def prose(source: str) -> Iterator[str]:
    """Yield each docstring and each block of comments as one lower-case line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield " ".join(block)
                block = []
            last = token.start[0]
            block.append(token.string.lstrip("#"))
    yield " ".join(block)


def complaints(text: str) -> Iterator[str]:
    line = " ".join(text.lower().split())
    for found in DEFINED.finditer(line):
        yield f"“{line[found.start() : found.end() + 30]}…” defines a word of the glossary"
    for pattern, instead in BANNED.items():
        for found in pattern.finditer(line):
            yield f"“{found[0]}”: write {instead}"


@cache
def found_in(folder: str) -> dict[str, list[str]]:
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        said = [complaint for text in prose(path.read_text()) for complaint in complaints(text)]
        if said:
            found[str(path.relative_to(ROOT))] = said
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_and_comments_use_the_glossarys_words(folder: str) -> None:
    assert found_in(folder) == {}


@pytest.mark.parametrize("word", KNOWN_WORDS)
def test_the_glossary_defines_each_word_that_needs_no_definition(word: str) -> None:
    assert f"| **{word}** |" in GLOSSARY


@pytest.mark.parametrize(
    "text",
    [
        "Asks the gates (conditions for\n    a reboot) one after another.",
        "One turn (a round of the loop) of the agent.",
        "Sets the soft taint (effect PreferNoSchedule).",
        "What the agent reads in this round of its\n    loop.",
        "Return the decision to undo the drain.",
        "This gate refuses while a node is down.",
        "The lock names the nodes with claims.",
    ],
)
def test_the_test_finds_definitions_and_paraphrases(text: str) -> None:
    source = f'def a_step():\n    """{text}"""\n'
    assert [complaint for each in prose(source) for complaint in complaints(each)]
    comment = text.replace("\n    ", "\n# ")
    assert [complaint for each in prose(f"# {comment}\nx = 1\n") for complaint in complaints(each)]


def test_the_test_allows_the_words_themselves() -> None:
    text = "Refuses while a failed holder keeps its claim (see `crowd.py`); the gate (`halt`) undoes nothing this turn."
    assert list(complaints(text)) == []

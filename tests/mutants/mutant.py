"""A mutant: one mistake that a person could make, as a change at one place of one function.

The file, the function and a few words of code identify the place. White space and line breaks do not count, so a mutant
still applies to a reformatted function. A mutant whose words do not occur exactly once no longer applies.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import dis
import importlib
import io
import re
import textwrap
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "operator" / "careen"
LIBRARY = "scheduler_core/"
"""Places that begin with this are in the library; the others are in careen's package."""


class NoLongerApplies(Exception):
    """A mutant does not fit the current source. The message says why."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake. `name` describes the wrong behaviour. `at` is a function such as `core/lock/changes.py:remove`,
    `scheduler_core/queue/heap.py:KeyedHeap.put` or `…:Class.method`.

    `survives` says why no test can or should fail. If a test kills such a mutant, the report says so.
    """

    name: str
    at: str
    old: str
    new: str
    survives: str = ""

    @property
    def file(self) -> Path:
        """The file of the mutated module."""
        return path_of(self.at.partition(":")[0])

    @property
    def module(self) -> str:
        """The dotted name of the mutated module."""
        path = self.at.partition(":")[0].removesuffix(".py").removesuffix("/__init__")
        return ("" if path.startswith(LIBRARY) else "careen.") + path.replace("/", ".")

    @property
    def function(self) -> str:
        """The name of the mutated function within its module."""
        return self.at.partition(":")[2]


def path_of(name: str) -> Path:
    """Return the path of a file that a mutant names."""
    return (ROOT if name.startswith(LIBRARY) else PACKAGE) / name


def name_of(file: Path) -> str:
    """Return the name by which mutants call a file."""
    return file.relative_to(PACKAGE if file.is_relative_to(PACKAGE) else ROOT).as_posix()


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a mutant's text in the file, and the lines of the function around it."""

    start: int
    end: int
    lines: range
    function_lines: range


def place_of(mutant: Mutant) -> Place:
    """Return the position of the mutant's text in the file. Raises `NoLongerApplies` unless this text occurs exactly
    once in the function.
    """
    text = _text(mutant.file) if mutant.file.exists() else ""
    first, last = _function_lines(text, mutant)
    offsets = _line_offsets(text)
    begin, end = offsets[first - 1], offsets[last]
    found = list(_pattern(mutant.old).finditer(text, begin, end))
    if len(found) != 1:
        raise NoLongerApplies(
            f"{mutant.at}: the mutant's text occurs {len(found)} times in the function, not once: {mutant.old}"
        )
    start, stop = found[0].span()
    lines = range(text.count("\n", 0, start) + 1, text.count("\n", 0, stop) + 2)
    return Place(start, stop, lines, range(first, last + 1))


def codes(mutant: Mutant) -> tuple[CodeType, CodeType]:
    """Return the code of the function without and with the mistake. Raises `NoLongerApplies` if the mutated code is
    invalid Python, or does the same as the original.
    """
    place = place_of(mutant)
    try:
        before, after = (_code_of(text, mutant) for text in _with_and_without(mutant, place))
    except SyntaxError as error:
        raise NoLongerApplies(f"{mutant.at}: the mutated function is not valid Python: {error}") from error
    if _meaning(before) == _meaning(after):
        raise NoLongerApplies(f"{mutant.at}: the mutated function does the same as the original")
    return before, after


def _with_and_without(mutant: Mutant, place: Place) -> tuple[str, str]:
    """Return the source of the function, first without and then with the mistake. Blank lines in front give each line
    the number that it has in the file. Compiling whole files would take half a minute for all mutants.
    """
    text = _text(mutant.file)
    offsets = _line_offsets(text)
    begin, end = offsets[place.function_lines[0] - 1], offsets[place.function_lines[-1]]
    mutated = text[begin : place.start] + mutant.new + text[place.end : end]
    above = "\n" * (place.function_lines[0] - 1)
    return above + textwrap.dedent(text[begin:end]), above + textwrap.dedent(mutated)


@cache
def _text(file: Path) -> str:
    return file.read_text()


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _line_offsets(text: str) -> list[int]:
    offsets = [0]
    for line in text.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    return offsets


def _function_lines(text: str, mutant: Mutant) -> tuple[int, int]:
    scope: list[ast.stmt] = _parsed(text).body
    found: ast.stmt | None = None
    for name in mutant.function.split("."):
        found = next((each for each in scope if getattr(each, "name", None) == name), None)
        scope = getattr(found, "body", [])
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef) or found.end_lineno is None:
        raise NoLongerApplies(f"{mutant.at}: there is no such function")
    return found.lineno, found.end_lineno


@cache
def _pattern(words: str) -> re.Pattern[str]:
    """Return a regular expression for the tokens of `words`, with any white space and comments between the tokens. The
    expression also accepts the comma that a formatter adds before a closing bracket.
    """
    gap, found = r"(?:\s|#[^\n]*\n)*", ""
    for token in _tokens(words):
        found += ((r",?" + gap if token in ")]}" else gap) if found else "") + re.escape(token)
    return re.compile(found)


def _tokens(words: str) -> Iterator[str]:
    """Yield the tokens of a piece of source code. The piece may lack closing brackets."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(words).readline):
            if token.string.strip() and token.type not in (tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT):
                yield token.string
    except tokenize.TokenError:
        return


def _code_of(function: str, mutant: Mutant) -> CodeType:
    flags = __future__.annotations.compiler_flag
    code = compile(function, str(mutant.file), "exec", flags=flags, dont_inherit=True)
    return next(each for each in code.co_consts if isinstance(each, CodeType))


def unknown_names(mutant: Mutant) -> set[str]:
    """Return the global names that only the mutant uses and that its module lacks. A NameError would kill a mutant that
    uses such a name.
    """
    before, after = codes(mutant)
    known = vars(importlib.import_module(mutant.module)).keys() | vars(builtins).keys()
    return _globals_of(after) - _globals_of(before) - known


def _globals_of(code: CodeType) -> set[str]:
    inner = [_globals_of(each) for each in code.co_consts if isinstance(each, CodeType)]
    own = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*inner)


def _meaning(code: CodeType) -> object:
    """Return the content of a code object without its line numbers."""
    constants = tuple(
        _meaning(each) if isinstance(each, CodeType) else (type(each), repr(each)) for each in code.co_consts
    )
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars

"""Measures the source code: the parameters of functions, the fields of classes, the lines of packages.

`python -m tests.architecture.sizes` prints the largest measurements. `test_sizes.py` fails if a measurement exceeds its
limit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.architecture.source_tree import PACKAGES, ROOT, Module, all_modules

WITH_LINES = {**PACKAGES, "bench": ROOT / "bench", "tests": ROOT / "tests"}


class Size(NamedTuple):
    """How many parameters a function has, or how many fields a class has. `where` is the file and the name of that
    function or class.
    """

    number: int
    where: str


def signatures() -> list[Size]:
    """Return the number of parameters of every function, the largest first. `self` and `cls` do not count. `*args` and
    `**kwargs` count as one parameter each.
    """
    return _largest(_parameters(function) for function in _functions())


def classes() -> list[Size]:
    """Return the number of declared fields of every class, the largest first."""
    return _largest(
        (module, node, sum(isinstance(each, ast.AnnAssign) for each in node.body))
        for module in all_modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    )


def lines() -> dict[str, int]:
    """Count the lines, including blank lines and comments, of each package, of the tests and of the benches."""
    return {name: sum(map(_lines_of, folder.rglob("*.py"))) for name, folder in WITH_LINES.items()}


def _lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions() -> Iterator[tuple[Module, _Function]]:
    for module in all_modules():
        for node in ast.walk(module.tree):
            if isinstance(node, _Function):
                yield module, node


def _parameters(function: tuple[Module, _Function]) -> tuple[Module, _Function, int]:
    module, node = function
    given = node.args
    named = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    rest = [each for each in (given.vararg, given.kwarg) if each is not None]
    return module, node, len(named) - (named[:1] in (["self"], ["cls"])) + len(rest)


def _largest(found: Iterator[tuple[Module, ast.ClassDef | _Function, int]]) -> list[Size]:
    sizes = [Size(number, f"{module.where}:{node.name}") for module, node, number in found]
    return sorted(sizes, key=lambda size: (-size.number, size.where))


def main() -> None:
    """Print the largest functions and classes, and the number of lines of each package."""
    for title, found in (("parameters", signatures()), ("fields", classes())):
        print(f"| {title} | of |\n|---:|---|")
        print("".join(f"| {each.number} | {each.where} |\n" for each in found[:8]))
    print("| lines | of |\n|---:|---|")
    print("".join(f"| {number:,} | {name} |\n" for name, number in lines().items()))


if __name__ == "__main__":
    main()

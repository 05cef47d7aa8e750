"""Parses the source for the architecture tests without executing it, and finds the imports and calls of each module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "careen": ROOT / "operator" / "careen",
    "scheduler_core": ROOT / "scheduler_core",
    "drydock": ROOT / "drydock",
}


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name and its syntax tree."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def where(self) -> str:
        """The path of the file, relative to the top of the repository."""
        return str(self.path.relative_to(ROOT))

    def imports(self) -> Iterator[str]:
        """Yield the dotted name of each import in the file, including imports inside functions. `from a import b` gives
        a.b.
        """
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.where}:{node.lineno}: relative import"
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    def imported_libraries(self) -> set[str]:
        """Return the top-level name of each package that the file imports."""
        return {name.split(".")[0] for name in self.imports()}

    def strings(self) -> Iterator[str]:
        """Yield each string literal of the file, including f-strings with an underscore in place of each expression."""
        pieces = {piece for node in ast.walk(self.tree) if isinstance(node, ast.JoinedStr) for piece in node.values}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(piece.value) if isinstance(piece, ast.Constant) else "_" for piece in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in pieces:
                yield node.value

    def calls(self) -> Iterator[tuple[str, int]]:
        """Yield the dotted name and the line number of each call in the file, such as `datetime.now`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield ast.unparse(node.func), node.lineno


@cache
def modules(package: str) -> tuple[Module, ...]:
    top = PACKAGES[package]
    found = []
    for path in sorted(top.rglob("*.py")):
        parts = (package, *path.relative_to(top).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, path, ast.parse(path.read_text(), str(path))))
    return tuple(found)


def all_modules() -> tuple[Module, ...]:
    return tuple(module for package in PACKAGES for module in modules(package))

"""Compiles the modules of an image to bytecode without docstrings: `bytecode.py [--skip PATTERN] FOLDER`.

The agent's modules and their dependencies have two megabytes of docstrings that no agent reads. `python -OO` would
remove the assertions too. Modules whose path matches `--skip` get no bytecode. Needs only the standard library.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import marshal
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

_UNCHECKED_HASH = (0b01).to_bytes(4, "little")  # PEP 552: the interpreter does not compare it with the source
# The commands print their docstrings as help, and numpy.ma asserts that numpy's functions have docstrings.
_KEEPS_DOCSTRINGS = re.compile("/(careen/cli|numpy)/")
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def without_docstrings(tree: ast.Module) -> ast.Module:
    """Removes the docstrings in place; line numbers stay."""
    for each in ast.walk(tree):
        if isinstance(each, _WITH_DOCSTRING) and ast.get_docstring(each, clean=False) is not None:
            first = each.body.pop(0)
            if not each.body and not isinstance(each, ast.Module):
                each.body.append(ast.copy_location(ast.Pass(), first))
    return tree


def write(path: Path) -> int:
    """Compiles one module. The size of its bytecode; 0 if the file is not valid Python."""
    source = path.read_bytes()
    try:
        tree = ast.parse(source, str(path))
        if not _KEEPS_DOCSTRINGS.search(path.as_posix()):
            tree = without_docstrings(tree)
        code = marshal.dumps(compile(tree, str(path), "exec", dont_inherit=True))
    except (SyntaxError, ValueError):
        return 0
    target = Path(importlib.util.cache_from_source(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH + importlib.util.source_hash(source) + code)
    return len(code)


def main() -> int:
    """Compiles the modules and prints how many bytes were written."""
    parser = argparse.ArgumentParser(description="Writes the bytecode of an image, without docstrings.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--skip", type=re.compile, help="write no bytecode for modules with these paths")
    asked = parser.parse_args()
    paths = [each for each in asked.folder.rglob("*.py") if not (asked.skip and asked.skip.search(str(each)))]
    with ProcessPoolExecutor() as processes:
        sizes = list(processes.map(write, paths, chunksize=20))
    print(f"{len(sizes)} modules below {asked.folder}, {sum(sizes) / 1e6:.1f} MB of bytecode")
    return 0


if __name__ == "__main__":
    sys.exit(main())

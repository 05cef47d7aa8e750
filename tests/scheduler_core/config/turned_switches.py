"""Turns one version switch of `KubeVersion` after another, and prints those that no table test notices.

A table test with a release in its text ("1.33") is called directly, with each of its parameters.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from scheduler_core.config.kube_version import KubeVersion

HERE = Path(__file__).parents[1]
SWITCHES = {name: value for name, value in vars(KubeVersion).items() if isinstance(value, cached_property)}
TURNED = {True: False, False: True, "heap": "random", "random": "heap"}
Test = Callable[..., None]


def tests_of_releases() -> list[Test]:
    """Without those that need fixtures, and without this folder, which has only the table of the switches."""
    found: list[Test] = []
    for path in sorted(HERE.rglob("test_*.py")):
        functions = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef))
        names = [each.name for each in functions if re.search(r"['\"]1\.\d\d['\"]", ast.unparse(each))]
        # The peer tables judge thousands of rows: seconds for each switch.
        if names and path.parent.name not in ("config", "peer_tables"):
            module = import_module(".".join(path.relative_to(HERE.parents[1]).with_suffix("").parts))
            found += [getattr(module, name) for name in names if name.startswith("test_")]
    return [test for test in found if set(inspect.signature(test).parameters) == set(next(calls(test)))]


def calls(test: Test) -> Iterator[dict[str, Any]]:
    tables = []
    for mark in getattr(test, "pytestmark", ()):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        rows = [
            getattr(row, "values", row) if len(names) > 1 or hasattr(row, "values") else (row,) for row in mark.args[1]
        ]
        tables.append([dict(zip(names, row, strict=True)) for row in rows])
    for rows in product(*tables):
        yield {name: value for row in rows for name, value in row.items()}


def fails(test: Test) -> bool:
    for arguments in calls(test):
        try:
            test(**arguments)
        except AssertionError:
            return True
    return False


TESTS = tests_of_releases()


def is_noticed(switch: str) -> bool:
    of_release = SWITCHES[switch].func
    setattr(KubeVersion, switch, property(lambda version: TURNED[of_release(version)]))
    return any(map(fails, TESTS))


if __name__ == "__main__":
    # A process for each: what a test keeps in its module must not reach the next switch.
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        noticed = pool.map(is_noticed, SWITCHES, chunksize=1)
    print(*(switch for switch, was in zip(SWITCHES, noticed, strict=True) if not was))

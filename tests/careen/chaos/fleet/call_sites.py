"""Lists every place in careen's source that sends a request to the API server, and finds the place that sent a given
request.

The list comes from the source text, and the place of a request comes from the call stack. A test checks that both give
the same places."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import careen
from careen.cluster.wire.api import ClusterApi

_SOURCE = Path(careen.__file__).parent
_WIRE = "cluster/wire/"
"""The folder of the modules that transport requests. Calls in these modules are not listed."""
_RECEIVERS = frozenset({"api", "_api", "transport"})
QUESTIONS = frozenset(
    name for name, each in inspect.getmembers(ClusterApi, inspect.isfunction) if not name.startswith("_")
) | {"send", "watch"}
"""The methods that send a request."""


class CallSite(NamedTuple):
    """One call in careen's source that sends a request."""

    file: str  # below careen/
    function: str  # with the functions and classes around it
    method: str
    number: int  # the position among the calls of this method in the function, from 1

    def __str__(self) -> str:
        return f"{self.file}: {self.function}, {self.method} {self.number}"


@functools.cache
def all_call_sites() -> frozenset[CallSite]:
    """Return every call in careen's source that sends a request, except those of `careen scheduler`, which takes no
    part in a roll-out."""
    sites = (site for path in _SOURCE.rglob("*.py") for site, _ in _sites_of(path))
    return frozenset(site for site in sites if not site.file.startswith("scheduler/"))


def current_call_site() -> CallSite | str:
    """Return the place in careen's source that sends the current request. If `all_call_sites` lacks this place, return
    a text that describes where the request comes from."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_SOURCE) and not _relative(path).startswith(_WIRE):
            return _site_at(path, frame.f_lineno)
        frame = frame.f_back
    return "a request that no file of careen sends"


def _site_at(path: Path, line: int) -> CallSite | str:
    for site, lines in _sites_of(path):
        if line in lines:
            return site
    return f"{_relative(path)}:{line}"


@functools.cache
def _sites_of(path: Path) -> tuple[tuple[CallSite, range], ...]:
    if _relative(path).startswith(_WIRE):
        return ()
    found: list[tuple[CallSite, range]] = []
    for function, call in _calls(ast.parse(path.read_text(encoding="utf-8")), ""):
        assert isinstance(call.func, ast.Attribute)
        assert call.end_lineno is not None
        number = 1 + sum((site.function, site.method) == (function, call.func.attr) for site, _ in found)
        site = CallSite(_relative(path), function, call.func.attr, number)
        found.append((site, range(call.lineno, call.end_lineno + 1)))
    return tuple(found)


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{function}.{child.name}".removeprefix(".")
        if isinstance(child, ast.Call) and _sends(child):
            yield inside, child
        yield from _calls(child, inside)


def _sends(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in QUESTIONS:
        return False
    return ast.unparse(call.func.value).rpartition(".")[2] in _RECEIVERS


def _relative(path: Path) -> str:
    return path.relative_to(_SOURCE).as_posix()

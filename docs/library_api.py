"""Writes the page of scheduler_core's public names for this release: docs/api/scheduler_core-VERSION.md.

A release keeps the page of the one before, so that a diff of two pages says what changed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Final

import scheduler_core

PAGE: Final = f"docs/api/scheduler_core-{scheduler_core.__version__}.md"
_HEAD: Final = """\
<!-- Written by `make docs` from the docstrings of scheduler_core; edit those, not this page. -->
# The public names of scheduler_core {version}

`from scheduler_core import NAME`. Other modules may change with any release. A name that is to go warns
(`DeprecationWarning`) for one release before.
"""


def page() -> str:
    parts = [_HEAD.format(version=scheduler_core.__version__)]
    parts += ["\n".join(_entry(name, getattr(scheduler_core, name))) for name in scheduler_core.__all__]
    parts += [f"Deprecated: `{old}`, now `{new}`.\n" for old, new in scheduler_core._RENAMED.items()]
    return "\n".join(parts)


def _entry(name: str, value: Any) -> list[str]:
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return [f"## {name}", "", f"A `{type(value).__name__}`.", ""]
    lines = [f"## {name}{_signature(value)}", "", _text(value), ""]
    if inspect.isclass(value):
        for each, member in sorted(vars(value).items()):
            inner = getattr(member, "__func__", member)
            if not each.startswith("_") and inspect.isfunction(inner) and inspect.getdoc(inner):
                lines.append(f"* `{each}{_signature(inner)}`: {_first_sentence(_text(inner))}")
        lines += [""] if lines[-1] else []
    return lines


def _signature(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except ValueError:
        return ""
    shown = [each.replace(default=_default(each.default)) for each in signature.parameters.values()]
    text = str(signature.replace(parameters=shown)).replace("'", "")
    return re.sub(r"\b[a-z_]+(?:\.[a-z_]+)*\.(?=[A-Z])", "", text)  # types without their modules


class _Shown:
    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _default(value: Any) -> Any:
    """What is long, or differs in each process, is not shown."""
    if value is inspect.Parameter.empty:
        return value
    text = '""' if value == "" else repr(value)
    return _Shown(text if len(text) < 20 and "<" not in text else "…")


def _text(value: Any) -> str:
    return inspect.getdoc(value) or ""


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


PAGES: Final[dict[str, Callable[[], str]]] = {PAGE: page}

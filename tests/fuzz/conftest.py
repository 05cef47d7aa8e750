"""Counts how many texts of each kind (`Input`) the fuzz tests try, in all pytest-xdist workers together. Prints a line
such as `inputs fuzzed: 1,200 examples of 60 kinds of text` at the end of the run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "20"))
"""The number of examples for each input. `make fuzz EXAMPLES=…` sets this number."""

_TRIED: Counter[str] = Counter()


@pytest.fixture
def count_example() -> Callable[[str], None]:
    """Return a function that counts one example of the named input."""

    def count(name: str) -> None:
        _TRIED[name] += 1

    return count


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the main process how many examples this pytest-xdist worker has counted."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["fuzzed"] = dict(_TRIED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the numbers of a finished worker's examples to the totals of the main process."""
    _TRIED.update(getattr(node, "workeroutput", {}).get("fuzzed", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the totals on one line, which a document can quote."""
    if _TRIED:
        terminalreporter.write_line(f"inputs fuzzed: {sum(_TRIED.values()):,} examples of {len(_TRIED)} kinds of text")

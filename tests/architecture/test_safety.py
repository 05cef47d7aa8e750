"""Tests docs/safety.md: the page lists the unsafe paths (ways in which reboot coordinators harm a cluster) in order,
each of them once, and names existing tests for each path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/safety.md").read_text(encoding="utf-8")
PATHS = re.findall(r"^\* \*\*(S\d+), .+?(?=^\* \*\*S|\Z)", PAGE, re.MULTILINE | re.DOTALL)
PARAGRAPHS = re.split(r"^(?=\* \*\*S\d+, )", PAGE, flags=re.MULTILINE)[1:]
NUMBER = 25


def references(text: str) -> list[tuple[str, str]]:
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)


def test_each_unsafe_path_is_listed_once_and_in_order() -> None:
    assert [f"S{number}" for number in range(1, NUMBER + 1)] == PATHS
    assert len(PARAGRAPHS) == NUMBER


@pytest.mark.parametrize("paragraph", PARAGRAPHS, ids=PATHS)
def test_each_unsafe_path_has_an_existing_test(paragraph: str) -> None:
    named = references(paragraph)
    assert named, paragraph
    for file, function in named:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {function}\(", text, re.MULTILINE), f"{file} has no {function}"

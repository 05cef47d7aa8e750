"""Tests that docs/asks.md answers each request of kured's users once, and refers only to existing settings, commands
and tests.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from careen.cli import COMMANDS
from careen.settings.tree import SETTINGS, flag

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/asks.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)
]
NUMBER = 36


def test_the_page_of_requests_answers_each_request_once_and_in_order() -> None:
    assert [row[0] for row in ROWS] == [str(number) for number in range(1, NUMBER + 1)]
    assert {len(row) for row in ROWS} == {5}
    assert {row[2] for row in ROWS} <= {"yes", "in part", "no"}


def test_asks_md_states_how_many_requests_of_kureds_users_are_answered() -> None:
    counts = [sum(row[2] == answer for row in ROWS) for answer in ("yes", "in part", "no")]
    assert "{} are answered, {} in part, {} is not".format(*counts) in PAGE


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_each_answer_refers_to_existing_tests_settings_and_commands(row: list[str]) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row[4])
    assert named
    assert row[4] == ", ".join(f"`{file}::{function}`" for file, function in named)
    for file, function in named:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {function}\(", text, re.MULTILINE), f"{file} has no {function}"
    flags = {flag(each) for each in SETTINGS}
    for given in re.findall(r"`--([a-z-]+)[^`]*`", row[3]):
        assert given in flags or any(each.startswith(given) for each in flags), given
    for command in re.findall(r"`careen ([a-z-]+)", row[3]):
        assert command in {each.name for each in COMMANDS}, command

"""Tests the table of attacks in SECURITY.md. Each row must name an attack, the defence against the attack, and an
existing test of the defence.

The test of a defence runs against a real API server, unless settings, a gate or a client alone stops the attack.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from tests.architecture.source_tree import ROOT

HEADER = "| attacker | attack | what stops it | remaining risk | test |"


def rows() -> list[list[str]]:
    table = (ROOT / "SECURITY.md").read_text().partition(HEADER)[2].strip().splitlines()[1:]
    lines = [line for line in table if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def markers_of(file: str) -> dict[str, set[str]]:
    """Return the name of each test in the file, with its pytest markers."""
    tree = ast.parse((ROOT / file).read_text())
    return {
        each.name: {match for mark in each.decorator_list for match in re.findall(r"mark\.(\w+)", ast.unparse(mark))}
        for each in tree.body
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.name.startswith("test_")
    }


@pytest.mark.parametrize("row", rows(), ids=lambda row: " ".join(row[:2])[:60])
def test_each_attack_has_an_existing_test(row: list[str]) -> None:
    assert len(row) == 5
    assert all(row), "a row with an empty column"
    found = re.fullmatch(r"`(tests/(?:cluster|careen|scheduler_core)/[\w/]+\.py)::(\w+)`", row[4])
    assert found, row[4]
    file, name = found.groups()
    assert name in markers_of(file), row[4]


def test_each_attacker_has_an_attack_in_the_table() -> None:
    who = {re.split(r"[:,]", row[0])[0] for row in rows()}
    assert who == {
        "tenant",
        "server that agents ask",
        "editor of the ConfigMap",
        "kubelet",
        "agent's token",
        "node's root",
        "plugin of `careen scheduler`",
    }


EXPLOITS = ("test_exploits.py", "test_exploit_stories.py", "test_config_map_editor.py")


@pytest.mark.parametrize("file", [f"tests/cluster/{name}" for name in EXPLOITS])
def test_the_table_of_attacks_lists_each_exploit_test(file: str) -> None:
    named = {row[4].strip("`") for row in rows()}
    within = {
        "test_in_the_policies_a_dot_in_a_node_name_matches_only_a_dot"
    }  # one more form of an eviction without a claim
    assert {f"{file}::{name}" for name in markers_of(file) if name not in within} <= named


def test_each_attack_that_a_policy_stops_has_an_exploit_test() -> None:
    for row in rows():
        file, _, name = row[4].strip("`").partition("::")
        assert "policy" not in row[2].split(":")[0] or "exploit" in markers_of(file)[name], row


def test_the_page_about_safety_has_the_number_of_exploits() -> None:
    listed = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "exploit",
            "tests/cluster",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"^(\d+)/\d+ tests collected", listed.stdout, re.MULTILINE)
    assert found is not None, listed.stdout[-2000:]
    (said,) = re.findall(r"-m exploit'` \| (\d+) \|", (ROOT / "docs" / "safety.md").read_text())
    assert int(said) == int(found[1])

"""Tests the completions that careen prints when a person presses Tab after `kubectl careen`."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module

import pytest

from careen.cli import COMMANDS
from careen.cli.support.completion import completions
from tests.architecture.source_tree import ROOT
from tests.patience import run


def words(answer: str) -> list[str]:
    return [line.partition("\t")[0] for line in answer.splitlines()]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["sta"], ["status", ":4"]),
        (["lock", ""], ["pause", "release", "resume", "show", ":4"]),
        (["status", "--output", ""], ["table", "wide", "name", "json", "yaml", ":4"]),
        (["status", "--bu"], ["--busy", ":4"]),
        (["plan", "--order", "o"], ["oldest", ":4"]),
        (["nonsense", ""], None),
    ],
)
def test_a_partly_typed_command_is_completed(typed: list[str], offered: list[str] | None) -> None:
    answer = words(completions(typed))
    assert answer[-1].startswith(":")
    if offered is not None:
        assert answer == offered


@pytest.mark.parametrize("typed", [[], [""]])
def test_completion_offers_every_command_with_its_help(typed: list[str]) -> None:
    answer = completions(typed)
    assert words(answer) == [*(entry.name for entry in COMMANDS), ":4"]
    assert all("\t" in line for line in answer.splitlines()[:-1])


def test_file_names_are_completed_by_the_shell() -> None:
    assert words(completions(["forecast", "--from", ""]))[-1] == ":0"


def test_the_completion_program_for_kubectl_is_installed_with_the_package() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["kubectl_complete-careen"].partition(":")
    assert callable(getattr(import_module(module), name))
    program = f"import sys; sys.argv[1:] = ['unho']; from {module} import {name}; {name}()"
    assert words(run([sys.executable, "-c", program]).stdout) == ["unhold", ":4"]

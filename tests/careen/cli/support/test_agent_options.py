"""Tests that each setting of the agent is a command-line option, with the syntax that kured accepts."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from careen.cli.support.agent_options import agent_options, given_flags
from careen.settings.tree import SETTINGS, flag


def given(*arguments: str) -> dict[str, tuple[str, ...]]:
    found: list[dict[str, tuple[str, ...]]] = []

    @click.command()
    @agent_options
    def command(**values: object) -> None:
        found.append(given_flags(values))

    result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found[0]


def test_only_options_on_the_command_line_are_passed_to_the_settings() -> None:
    assert given() == {}
    assert given("--period=2h", "--reboot-days", "") == {"period": ("2h",), "reboot_days": ("",)}


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        (["--force-reboot"], ("true",)),
        (["--force-reboot=false"], ("false",)),
        (["--force-reboot=true"], ("true",)),
        (["--force-reboot", "--annotate-nodes"], ("true",)),
    ],
)
def test_boolean_options_follow_the_syntax_of_go_flags(written: list[str], texts: tuple[str, ...]) -> None:
    assert given(*written)["force_reboot"] == texts


def test_the_values_of_a_repeated_option_keep_their_order() -> None:
    assert given("--blocking-pod-selector=app=db", "--blocking-pod-selector", "app=cache") == {
        "blocking_pod_selector": ("app=db", "app=cache")
    }


def test_a_negative_number_can_be_the_value_of_an_option() -> None:
    assert given("--drain-grace-period", "-1") == {"drain_grace_period": ("-1",)}


def test_the_help_shows_every_setting_with_its_default() -> None:
    @click.command()
    @agent_options
    def command(**_: object) -> None:
        pass

    text = CliRunner().invoke(command, ["--help"], terminal_width=200, max_content_width=200).output
    assert [name for name in SETTINGS if f"--{flag(name)} " not in text] == []
    assert "default: /var/run/reboot-required" in " ".join(text.split())

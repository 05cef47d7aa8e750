"""Tests `careen drain` and `careen maintenance`, which request a drain, wait until the node is drained, and end the
request.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import RequestKind
from careen.core.facts.times import from_rfc3339
from tests.careen.cli.conftest import Desk
from tests.careen.cli.test_reboot import asked, booted, meanwhile

__all__ = ("meanwhile",)


@pytest.mark.parametrize("kind", RequestKind)
def test_the_commands_drain_and_maintenance_write_different_requests(desk: Desk, kind: RequestKind) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    desk.ok(kind.value, "n1", "--reason", "disk swap", "--no-wait")
    assert (asked(desk, "n1").kind, asked(desk, "n1").reason) == (kind, "disk swap")


def test_the_drain_command_waits_until_the_node_is_drained(desk: Desk, meanwhile: Callable[..., None]) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    standing = {keys.REQUEST: '{"want":"drain"}'}
    meanwhile(
        lambda: booted(desk, "n1", "boot-1", "Draining", **standing),
        lambda: booted(desk, "n1", "boot-1", "Maintenance", **standing),
    )
    assert desk.ok("drain", "n1").splitlines()[1:] == [
        "n1 is Idle",
        "n1 is Draining: the reason of Draining",
        "n1 is Maintenance: the reason of Maintenance",
    ]


def test_the_drain_command_stops_waiting_when_the_request_is_withdrawn(
    desk: Desk, meanwhile: Callable[..., None]
) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    meanwhile(lambda: booted(desk, "n1", "boot-1", "Waiting"))
    result = desk.run("drain", "n1")
    assert result.exit_code == 1
    assert "n1 does not stay drained: the request was withdrawn or has expired" in result.output


def test_the_command_that_ends_a_maintenance_fails_if_the_node_does_not_become_ready(
    desk: Desk, meanwhile: Callable[..., None]
) -> None:
    booted(desk, "n1", "boot-1", "Maintenance", **{keys.REQUEST: '{"want":"drain"}'})
    desk.lock()
    meanwhile(lambda: booted(desk, "n1", "boot-1", "Settling"), lambda: booted(desk, "n1", "boot-1", "Failed"))
    result = desk.run("drain", "n1", "--end")
    assert result.exit_code == 1
    assert "n1 failed" in result.output


def test_the_commands_drain_and_maintenance_write_no_request_on_a_failed_node(desk: Desk) -> None:
    booted(desk, "n1", "boot-1", "Failed")
    desk.lock()
    result = desk.run("drain", "n1")
    assert result.exit_code == 2
    assert "n1 failed; `careen why n1` shows the remedy; run `careen retry n1` before this command" in result.output


def test_a_maintenance_request_contains_the_given_end_time(desk: Desk) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    desk.ok("maintenance", "n1", "--reason", "x", "--until", "2100-01-01T00:00:00Z", "--no-wait")
    assert asked(desk, "n1").until == from_rfc3339("2100-01-01T00:00:00Z")


@pytest.mark.parametrize("until", ["soon", "2001-01-01T00:00:00Z", "9999999h", "-5m"])
def test_an_invalid_end_time_is_refused(desk: Desk, until: str) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    result = desk.run("maintenance", "n1", "--reason", "x", "--until", until)
    assert (result.exit_code, "--until" in result.output, desk.writes()) == (2, True, 0)


def test_maintenance_requires_a_reason(desk: Desk) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    assert desk.run("maintenance", "n1").exit_code == 2
    assert desk.run("maintenance", "n1", "--reason", " ").exit_code == 2
    assert desk.writes() == 0


def test_the_end_flag_of_maintenance_waits_until_the_node_is_idle(desk: Desk, meanwhile: Callable[..., None]) -> None:
    booted(desk, "n1", "boot-1", "Maintenance", **{keys.REQUEST: "maintenance"})
    desk.lock()
    meanwhile(lambda: booted(desk, "n1", "boot-1", "Settling"), lambda: booted(desk, "n1", "boot-1"))
    lines = desk.ok("maintenance", "n1", "--end").splitlines()
    assert lines[0].startswith("Requested: the agent uncordons n1")
    assert lines[-1] == "n1 is Idle"
    assert keys.REQUEST not in desk.annotations("n1")


def test_the_end_flag_of_drain_changes_nothing_if_no_drain_was_requested(desk: Desk) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    assert desk.ok("drain", "n1", "--end") == "There is no request for a drain of n1; nothing was changed.\n"
    assert desk.writes() == 0


def test_the_end_flag_of_drain_does_not_end_a_maintenance(desk: Desk) -> None:
    booted(desk, "n1", "boot-1", "Maintenance", **{keys.REQUEST: "maintenance"})
    desk.lock()
    result = desk.run("drain", "n1", "--end")
    assert (result.exit_code, "`careen maintenance n1 --end` ends this request" in result.output) == (2, True)
    assert keys.REQUEST in desk.annotations("n1")


def test_the_drain_command_replaces_or_removes_an_invalid_request_annotation(desk: Desk) -> None:
    booted(desk, "n1", "boot-1", **{keys.REQUEST: "what?"})
    desk.lock()
    desk.ok("drain", "n1", "--no-wait")
    assert asked(desk, "n1").kind is RequestKind.DRAIN
    booted(desk, "n1", "boot-1", **{keys.REQUEST: "what?"})
    desk.ok("drain", "n1", "--end", "--no-wait")
    assert keys.REQUEST not in desk.annotations("n1")

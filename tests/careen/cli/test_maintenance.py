"""`careen drain` and `careen maintenance`: ask, wait until the node is down, and hand it back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import Wish
from careen.core.facts.times import from_rfc3339
from tests.careen.cli.conftest import Desk
from tests.careen.cli.test_reboot import asked, booted, meanwhile

__all__ = ("meanwhile",)


@pytest.mark.parametrize("wish", Wish)
def test_each_command_asks_for_what_it_is_called(desk: Desk, wish: Wish) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    desk.ok(wish.value, "n1", "--reason", "disk swap", "--no-wait")
    assert (asked(desk, "n1").wish, asked(desk, "n1").reason) == (wish, "disk swap")


def test_it_waits_until_the_node_is_kept_down(desk: Desk, meanwhile: Callable[..., None]) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    standing = {keys.REQUEST: '{"want":"drain"}'}
    meanwhile(
        lambda: booted(desk, "n1", "boot-1", "Draining", **standing),
        lambda: booted(desk, "n1", "boot-1", "Maintenance", **standing),
    )
    assert desk.ok("drain", "n1").splitlines()[1:] == [
        "n1 is Idle",
        "n1 is Draining: is Draining",
        "n1 is Maintenance: is Maintenance",
    ]


def test_it_does_not_wait_for_a_request_that_is_taken_back(desk: Desk, meanwhile: Callable[..., None]) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    meanwhile(lambda: booted(desk, "n1", "boot-1", "Waiting"))
    result = desk.run("drain", "n1")
    assert result.exit_code == 1
    assert "n1 is not kept down: the request was taken back, or its end has come" in result.output


def test_a_hand_back_that_fails_is_no_success(desk: Desk, meanwhile: Callable[..., None]) -> None:
    booted(desk, "n1", "boot-1", "Maintenance", **{keys.REQUEST: '{"want":"drain"}'})
    desk.lock()
    meanwhile(lambda: booted(desk, "n1", "boot-1", "Settling"), lambda: booted(desk, "n1", "boot-1", "Failed"))
    result = desk.run("drain", "n1", "--end")
    assert result.exit_code == 1
    assert "n1 failed" in result.output


def test_a_failed_node_is_asked_for_nothing(desk: Desk) -> None:
    booted(desk, "n1", "boot-1", "Failed")
    desk.lock()
    result = desk.run("drain", "n1")
    assert result.exit_code == 2
    assert "`careen retry n1` comes first" in result.output


def test_an_end_stands_in_the_request(desk: Desk) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    desk.ok("maintenance", "n1", "--reason", "x", "--until", "2100-01-01T00:00:00Z", "--no-wait")
    assert asked(desk, "n1").until == from_rfc3339("2100-01-01T00:00:00Z")


@pytest.mark.parametrize("until", ["soon", "2001-01-01T00:00:00Z", "9999999h", "-5m"])
def test_an_end_that_is_none_is_refused(desk: Desk, until: str) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    result = desk.run("maintenance", "n1", "--reason", "x", "--until", until)
    assert (result.exit_code, "--until" in result.output, desk.writes()) == (2, True, 0)


def test_maintenance_wants_a_reason(desk: Desk) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    assert desk.run("maintenance", "n1").exit_code == 2
    assert desk.run("maintenance", "n1", "--reason", " ").exit_code == 2
    assert desk.writes() == 0


def test_the_node_is_handed_back_and_waited_for(desk: Desk, meanwhile: Callable[..., None]) -> None:
    booted(desk, "n1", "boot-1", "Maintenance", **{keys.REQUEST: "maintenance"})
    desk.lock()
    meanwhile(lambda: booted(desk, "n1", "boot-1", "Settling"), lambda: booted(desk, "n1", "boot-1"))
    lines = desk.ok("maintenance", "n1", "--end").splitlines()
    assert lines[0].startswith("Handed back: the agent of n1 uncordons it")
    assert lines[-1] == "n1 is Idle"
    assert keys.REQUEST not in desk.annotations("n1")


def test_handing_back_what_nobody_asked_for_changes_nothing(desk: Desk) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    assert desk.ok("drain", "n1", "--end") == "Nobody asks for a drain of n1; nothing was changed.\n"
    assert desk.writes() == 0


def test_one_does_not_end_the_other(desk: Desk) -> None:
    booted(desk, "n1", "boot-1", "Maintenance", **{keys.REQUEST: "maintenance"})
    desk.lock()
    result = desk.run("drain", "n1", "--end")
    assert (result.exit_code, "`careen maintenance n1 --end` ends that" in result.output) == (2, True)
    assert keys.REQUEST in desk.annotations("n1")


def test_nonsense_in_the_annotation_is_replaced_and_can_be_ended(desk: Desk) -> None:
    booted(desk, "n1", "boot-1", **{keys.REQUEST: "what?"})
    desk.lock()
    desk.ok("drain", "n1", "--no-wait")
    assert asked(desk, "n1").wish is Wish.DRAIN
    booted(desk, "n1", "boot-1", **{keys.REQUEST: "what?"})
    desk.ok("drain", "n1", "--end", "--no-wait")
    assert keys.REQUEST not in desk.annotations("n1")

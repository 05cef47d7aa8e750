"""Tests `careen reboot`: it requests a reboot, waits, and prints the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from careen.agent.clock import SystemClock
from careen.core.facts import keys
from careen.core.facts.observation import RequestKind
from careen.core.people.requests import request_of
from drydock.server.kinds.resources import resource_named
from tests.careen.cli.conftest import Desk
from tests.careen.core.builders import a_node

NODES = resource_named("nodes")


def booted(desk: Desk, name: str, boot: str, phase: str = "", **annotations: str) -> None:
    """Change the Node as its kubelet and its agent do after a reboot."""
    shown = {keys.PHASE: phase, keys.REASON: f"the reason of {phase}"} if phase else {}
    status = {"nodeInfo": {"bootID": boot}, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "annotations": {**shown, **annotations}}
    desk.server.seed({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})


def asked(desk: Desk, name: str) -> Any:
    """Return the parsed reboot request, which the command has written into an annotation of the Node."""
    return request_of(a_node(name, annotations=desk.annotations(name)))


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that makes `careen reboot` run code of the test instead of sleeping. After the call
    `meanwhile(first, second)`, the command's first sleep only calls `first`, and its second sleep only calls
    `second`."""

    def happens(*events: Callable[[], None]) -> None:
        left = list(events)

        async def sleep(self: SystemClock, seconds: float) -> None:
            left.pop(0)()

        monkeypatch.setattr(SystemClock, "sleep", sleep)

    return happens


def test_the_reboot_request_contains_the_current_boot_id_and_the_reason(desk: Desk) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    output = desk.ok("reboot", "n1", "--reason", "new\nkernel", "--no-wait")
    found = asked(desk, "n1")
    assert (found.kind, found.boot, found.reason, found.is_now) == (RequestKind.REBOOT, "boot-1", "new kernel", False)
    assert (
        output
        == "Requested: n1 reboots when it is next in line; an idle agent sees the request within seconds, or within "
        "five minutes if it stays awake.\n"
    )


def test_the_now_flag_of_reboot_ignores_the_maintenance_window(desk: Desk) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    assert "even outside its maintenance window" in desk.ok("reboot", "n1", "--now", "--no-wait")
    assert asked(desk, "n1").is_now is True


def test_reboot_waits_and_prints_each_change_once(desk: Desk, meanwhile: Callable[..., None]) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    request: dict[str, str] = {}

    def drains() -> None:
        request.update({keys.REQUEST: desk.annotations("n1")[keys.REQUEST]})
        booted(desk, "n1", "boot-1", "Draining", **request)

    meanwhile(
        drains,
        lambda: booted(desk, "n1", "boot-1", "Draining", **request),
        lambda: booted(desk, "n1", "boot-1", "Rebooting", **request),
        lambda: booted(desk, "n1", "boot-2", "Verifying"),
        lambda: booted(desk, "n1", "boot-2", "Settling"),
        lambda: booted(desk, "n1", "boot-2"),
    )
    assert desk.ok("reboot", "n1").splitlines()[1:] == [
        "n1 is Idle",
        "n1 is Draining: the reason of Draining",
        "n1 is Rebooting: the reason of Rebooting",
        "n1 is Verifying: the reason of Verifying",
        "n1 is Settling: the reason of Settling",
        "n1 is Idle",
        "n1 has rebooted and is back in service.",
    ]


def test_reboot_fails_if_the_request_is_withdrawn(desk: Desk, meanwhile: Callable[..., None]) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    meanwhile(lambda: booted(desk, "n1", "boot-1"))
    result = desk.run("reboot", "n1")
    assert (result.exit_code, "the request was withdrawn" in result.output) == (1, True)


@pytest.mark.parametrize("phase", ["Failed"])
def test_reboot_stops_waiting_when_the_node_has_failed(desk: Desk, meanwhile: Callable[..., None], phase: str) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    meanwhile(lambda: booted(desk, "n1", "boot-1", phase, **{keys.REQUEST: "reboot"}))
    result = desk.run("reboot", "n1")
    assert (result.exit_code, "`careen why n1` shows the remedy" in result.output) == (1, True)


def test_reboot_stops_waiting_when_the_node_is_deleted(desk: Desk, meanwhile: Callable[..., None]) -> None:
    booted(desk, "n1", "boot-1")
    desk.lock()
    meanwhile(lambda: desk.server.store.remove(NODES.storage, ("", "n1"), actor="test", verb="delete"))
    result = desk.run("reboot", "n1")
    assert (result.exit_code, "the Node n1 was deleted" in result.output) == (1, True)


def test_reboot_can_withdraw_a_request(desk: Desk) -> None:
    booted(desk, "n1", "boot-1", **{keys.REQUEST: "reboot"})
    desk.lock()
    assert desk.ok("reboot", "n1", "--end") == "The request for a reboot of n1 is withdrawn.\n"
    assert keys.REQUEST not in desk.annotations("n1")
    writes = desk.writes()
    assert desk.ok("reboot", "n1", "--end") == "There is no request for a reboot of n1.\n"
    assert desk.writes() == writes


def test_reboot_cannot_withdraw_a_request_after_the_agent_announced_the_reboot(desk: Desk) -> None:
    booted(desk, "n1", "boot-1", **{keys.REQUEST: "reboot", keys.PHASE: "Rebooting"})
    desk.lock()
    result = desk.run("reboot", "n1", "--end")
    assert (result.exit_code, desk.writes()) == (2, 0)
    assert "it is too late to withdraw the request: the reboot of n1 was announced" in result.output
    assert desk.annotations("n1")[keys.REQUEST] == "reboot"


def test_reboot_writes_no_request_if_the_boot_id_is_unknown(desk: Desk) -> None:
    desk.node("n1")
    desk.lock()
    result = desk.run("reboot", "n1")
    assert (result.exit_code, desk.writes()) == (2, 0)


def test_reboot_writes_no_request_on_a_node_in_maintenance(desk: Desk) -> None:
    booted(desk, "n1", "boot-1", **{keys.REQUEST: "maintenance"})
    desk.lock()
    result = desk.run("reboot", "n1")
    assert result.exit_code == 2
    assert "n1: a person asked for maintenance already; run `careen maintenance n1 --end` first" in result.output
    assert desk.writes() == 0

"""Tests the commands that take several nodes, by name or by a label selector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.times import from_rfc3339
from tests.careen.cli.conftest import Desk
from tests.careen.cli.test_reboot import asked, booted, meanwhile

__all__ = ("meanwhile",)

ZONE = "topology.kubernetes.io/zone"


def in_zone(desk: Desk, name: str, zone: str, **annotations: str) -> None:
    desk.server.seed(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {ZONE: zone}, "annotations": annotations},
            "status": {
                "nodeInfo": {"bootID": "boot-1"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )


@pytest.fixture
def fleet(desk: Desk) -> Desk:
    in_zone(desk, "n1", "a")
    in_zone(desk, "n2", "a", **{keys.PHASE: "Failed", keys.REASON: "x"})
    in_zone(desk, "n3", "b", **{keys.PHASE: "Failed", keys.REASON: "y"})
    desk.lock()
    return desk


def with_key(desk: Desk, key: str) -> list[str]:
    return [name for name in ("n1", "n2", "n3") if key in desk.annotations(name)]


def test_a_hold_of_two_names_leaves_the_third_node_alone(fleet: Desk) -> None:
    fleet.ok("hold", "n1", "n3", "n1", "--reason", "power")
    assert (with_key(fleet, keys.HOLD), fleet.writes()) == (["n1", "n3"], 2)


@pytest.mark.parametrize("option", [("-l", f"{ZONE}=a"), ("--selector", f"{ZONE} in (a)"), ("-l", f"{ZONE}!=b")])
def test_a_selector_holds_the_nodes_that_match(fleet: Desk, option: tuple[str, str]) -> None:
    fleet.ok("hold", *option, "--reason", "power")
    assert with_key(fleet, keys.HOLD) == ["n1", "n2"]


@pytest.mark.parametrize(
    "command",
    [
        ("hold", "--reason", "x"),
        ("unhold",),
        ("retry",),
        ("recheck",),
        ("reboot", "--no-wait"),
        ("drain", "--no-wait"),
        ("maintenance", "--reason", "x", "--no-wait"),
        ("maintenance", "--end"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ((), "name at least one NODE, or choose nodes with --selector"),
        (("n1", "-l", f"{ZONE}=a"), "give either NODE or --selector, not both"),
        (("-l", f"{ZONE}=c"), f"no Node matches the selector {ZONE}=c"),
        (("-l", ""), "the selector is empty and would match every node"),
        (("-l", "a=b=c"), "is not a label selector"),
        (("n1", "n12"), "there is no Node 'n12'; did you mean"),
    ],
    ids=["no node", "both", "no match", "an empty selector", "no selector", "an unknown name"],
)
def test_a_wrong_choice_of_nodes_changes_none(
    fleet: Desk, command: tuple[str, ...], nodes: tuple[str, ...], complaint: str
) -> None:
    result = fleet.run(*command, *nodes)
    assert (result.exit_code, fleet.writes()) == (2, 0), result.output
    assert complaint in " ".join(result.output.replace("│", " ").split())


def test_retry_with_a_selector_leaves_out_the_nodes_that_did_not_fail(fleet: Desk) -> None:
    output = fleet.ok("retry", "-l", ZONE)
    assert output.splitlines()[0] == "Nothing to do for 1 node (neither failed nor waiting): n1."
    assert with_key(fleet, keys.RETRY) == ["n2", "n3"]


def test_unhold_with_a_selector_leaves_out_the_nodes_without_a_hold(fleet: Desk) -> None:
    fleet.ok("hold", "n1", "--reason", "power")
    output = fleet.ok("unhold", "-l", ZONE)
    assert output.splitlines() == [
        "Nothing to do for 2 nodes (not held): n2, n3.",
        "n1 is no longer held. The hold was: power.",
    ]


def test_a_refusal_for_one_of_several_nodes_does_not_stop_the_others(fleet: Desk) -> None:
    result = fleet.run("reboot", "n2", "n1", "--no-wait")
    assert result.exit_code == 1
    assert "n2 failed; `careen why n2` shows the remedy" in result.output
    assert "1 of 2 nodes were not asked to reboot" in result.output
    assert with_key(fleet, keys.REQUEST) == ["n1"]


def test_a_request_that_every_node_refuses_is_an_error_of_the_caller(fleet: Desk) -> None:
    result = fleet.run("drain", "n2", "n3", "--no-wait")
    assert (result.exit_code, fleet.writes()) == (2, 0)


def test_reboot_waits_for_all_its_nodes_and_fails_if_one_fails(desk: Desk, meanwhile: Callable[..., None]) -> None:
    booted(desk, "n1", "boot-1")
    booted(desk, "n2", "boot-1")
    desk.lock()
    meanwhile(
        lambda: (booted(desk, "n1", "boot-1", "Failed", **{keys.REQUEST: "reboot"}), None)[1],
        lambda: booted(desk, "n2", "boot-2"),
    )
    result = desk.run("reboot", "n1", "n2")
    assert result.exit_code == 1
    assert "n1 failed; `careen why n1` shows the remedy" in result.output
    assert "n2 has rebooted and is back in service." in result.output
    assert "1 of 2 nodes did not reboot" in result.output


def test_maintenance_of_two_nodes_ends_when_both_are_drained_and_when_both_are_back(
    desk: Desk, meanwhile: Callable[..., None]
) -> None:
    for name in ("n1", "n2"):
        booted(desk, name, "boot-1")
    desk.lock()
    drained: dict[str, Any] = {keys.REQUEST: '{"want":"maintenance"}'}
    meanwhile(
        lambda: booted(desk, "n1", "boot-1", "Maintenance", **drained),
        lambda: booted(desk, "n2", "boot-1", "Maintenance", **drained),
    )
    desk.ok("maintenance", "n1", "n2", "--reason", "power")
    meanwhile(lambda: booted(desk, "n1", "boot-1"), lambda: booted(desk, "n2", "boot-1"))
    lines = desk.ok("maintenance", "n1", "n2", "--end").splitlines()
    assert lines[-2:] == ["n1 is Idle", "n2 is Idle"]
    assert asked(desk, "n1") is None


def test_recheck_asks_the_agents_to_look_again(fleet: Desk) -> None:
    assert fleet.ok("recheck", "n1", "n2").splitlines() == [
        (
            "Requested: the agent of n1 looks again in its next turn; an idle agent sees the request within seconds, "
            "or within five minutes if it stays awake."
        ),
        "Requested: the agent of n2 looks again in its next turn.",
    ]
    assert from_rfc3339(fleet.annotations("n1")[keys.RECHECK]) is not None
    assert with_key(fleet, keys.RECHECK) == ["n1", "n2"]

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.gates.hold import held_because, until_of
from tests.careen.cli.conftest import Desk


def test_the_agent_reads_the_hold_that_the_command_writes(desk: Desk) -> None:
    desk.node("n1")
    assert (
        desk.ok("hold", "n1", "--reason", "disk swap")
        == "Held: disk swap. n1 does not reboot until `careen unhold n1`.\n"
    )
    assert desk.annotations("n1")[keys.HOLD] == "disk swap"


def test_hold_joins_a_reason_of_several_lines_into_one_line(desk: Desk) -> None:
    desk.node("n1")
    desk.ok("hold", "n1", "--reason", "disk\n  swap\n")
    assert desk.annotations("n1")[keys.HOLD] == "disk swap"


def test_the_agent_reads_the_end_time_of_a_hold(desk: Desk) -> None:
    desk.node("n1")
    output = desk.ok("hold", "n1", "--reason", "disk swap", "--until", "2199-03-04T18:00:00+02:00")
    assert output == (
        "Held: disk swap until=2199-03-04T16:00:00Z. n1 does not reboot until 2199-03-04T16:00:00Z "
        "or until `careen unhold n1`.\n"
    )
    text = desk.annotations("n1")[keys.HOLD]
    assert until_of(text) == datetime(2199, 3, 4, 16, tzinfo=UTC)
    node = NodeView(name="n1", uid="u", resource_version="1", annotations={keys.HOLD: text})
    assert held_because(node, datetime(2199, 3, 4, 15, 59, tzinfo=UTC)) == "held: disk swap until=2199-03-04T16:00:00Z"
    assert held_because(node, datetime(2199, 3, 4, 16, 1, tzinfo=UTC)) == ""


def test_hold_refuses_an_end_time_that_agents_cannot_read(desk: Desk) -> None:
    """A hold keeps a node from rebooting, and may have an end time. If agents could not read the end time, the hold
    would last for ever, and nobody would notice."""
    desk.node("n1")
    for until in ("2000000h", "2999-03-04T18:00:00Z"):
        assert desk.run("hold", "n1", "--until", until).exit_code == 2
    assert keys.HOLD not in desk.annotations("n1")


def test_hold_adds_a_given_duration_to_the_current_time(desk: Desk) -> None:
    desk.node("n1")
    before = datetime.now(UTC).replace(microsecond=0)
    desk.ok("hold", "n1", "--reason", "disk swap", "--until", "1h30m")
    until = until_of(desk.annotations("n1")[keys.HOLD])
    assert until is not None
    assert until - before >= timedelta(minutes=90)


def test_hold_shows_the_hold_that_it_replaces(desk: Desk) -> None:
    desk.node("n1", hold="somebody else's reason")
    output = desk.ok("hold", "n1", "--reason", "mine")
    assert output.splitlines()[0] == "n1 was held already: somebody else's reason. The new hold replaces the old one."
    assert desk.annotations("n1")[keys.HOLD] == "mine"


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ("Waiting", "n1 does not reboot until `careen unhold n1`."),
        ("Draining", "n1 is draining: the node's agent undoes the drain in the next turn."),
        ("Rebooting", "n1 is Rebooting: the node completes this reboot, and the hold applies to the next reboot."),
    ],
)
def test_hold_explains_its_effect_in_the_current_phase_of_the_node(desk: Desk, phase: str, said: str) -> None:
    desk.node("n1", phase)
    assert desk.ok("hold", "n1", "--reason", "r").endswith(f"{said}\n")


def test_hold_keeps_the_other_annotations_of_the_node(desk: Desk) -> None:
    desk.node("n1", "Waiting", annotations={"example.com/mine": "1"})
    before = desk.annotations("n1")
    desk.ok("hold", "n1", "--reason", "r")
    assert desk.annotations("n1") == before | {keys.HOLD: "r"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["n1"], "Missing option '--reason'"),
        (["n1", "--reason", "  "], "the reason must not be empty"),
        (["n1", "--reason", "x until=2199-01-01T00:00:00Z"], "contain `until=`; give the end of the hold with --until"),
        (
            ["n1", "--reason", "x", "--until", "soon"],
            "'soon' is neither a duration such as 90m or 2h, nor a time with its offset",
        ),
        (["n1", "--reason", "x", "--until", "2199-01-01T00:00:00"], "nor a time with its offset"),
        (["n1", "--reason", "x", "--until", "2020-01-01T00:00:00Z"], "2020-01-01T00:00:00Z is not in the future"),
        (["n1", "--reason", "x", "--until", "0"], "is not in the future"),
        (["n12", "--reason", "x"], "there is no Node 'n12'; did you mean n1?"),
    ],
    ids=[
        "no reason",
        "blank reason",
        "an end time inside the reason",
        "an end time that is not a time",
        "an end time without a UTC offset",
        "an end time in the past",
        "a duration of zero",
        "a node that does not exist",
    ],
)
def test_an_invalid_hold_is_refused_and_changes_nothing(desk: Desk, arguments: list[str], complaint: str) -> None:
    desk.node("n1")
    result = desk.run("hold", *arguments)
    assert result.exit_code == 2
    assert complaint in " ".join(result.output.split())
    assert desk.writes() == 0


def test_unhold_removes_the_hold_and_shows_its_reason(desk: Desk) -> None:
    desk.node("n1", hold="disk swap")
    assert desk.ok("unhold", "n1") == "n1 is no longer held. The hold was: disk swap.\n"
    assert keys.HOLD not in desk.annotations("n1")


def test_unhold_of_a_node_without_a_hold_changes_nothing(desk: Desk) -> None:
    desk.node("n1")
    assert desk.ok("unhold", "n1") == "n1 is not held; nothing was changed.\n"
    assert desk.writes() == 0

from __future__ import annotations

import json

import pytest

from careen.core.lock.content import Entry, LockContent
from drydock.server.faults import Fault, FaultKind
from tests.careen.cli.conftest import Desk

HELD = LockContent(
    entries=(Entry(node="n3", id="c1", uid="uid-nodes--n3", groups=("zone=a",), created="2026-03-04T12:00:00Z"),),
    max_owners=2,
)


def test_lock_show_lists_each_node_with_a_claim_and_its_phase(desk: Desk) -> None:
    desk.node("n3", "Draining")
    desk.lock(HELD)
    lines = desk.ok("lock", "show").splitlines()
    assert lines[0].startswith("Lock on DaemonSet careen/careen: 1 of 2 claims held by n3 (")
    header, row = (line.split() for line in lines[2:])
    assert header == ["HOLDER", "SINCE", "PHASE", "CLAIM", "GROUPS"]
    assert [row[0], *row[2:]] == ["n3", "Draining", "c1", "zone=a"]


@pytest.mark.parametrize(
    ("uid", "exists", "phase"),
    [("uid-nodes--n3", False, "there is no such Node"), ("another", True, "another Node has this name")],
    ids=["a deleted Node", "a recreated Node"],
)
def test_lock_show_reports_a_claim_of_a_missing_node(desk: Desk, uid: str, exists: bool, phase: str) -> None:
    if exists:
        desk.node("n3", "Idle")
    desk.lock(LockContent(entries=(Entry(node="n3", id="c1", uid=uid),), max_owners=1))
    assert phase in desk.ok("lock", "show")


def test_lock_show_as_json_contains_the_raw_annotation(desk: Desk) -> None:
    desk.lock(HELD)
    value = desk.json("lock", "show")
    assert value["state"] == "held"
    assert json.loads(value["raw"]) == json.loads(desk.lock_text() or "")


def test_lock_show_prints_an_unreadable_lock_and_how_to_clear_the_lock(desk: Desk) -> None:
    desk.lock("not a lock")
    output = desk.ok("lock", "show")
    assert "The lock contains this text: not a lock" in output
    assert "`kubectl -n careen annotate daemonset careen weave.works/kured-node-lock-`" in output


def test_lock_pause_keeps_the_claims(desk: Desk) -> None:
    desk.lock(HELD)
    output = desk.ok("lock", "pause", "--reason", "freeze until Monday")
    assert output.splitlines() == [
        "The claims of n3 stay in the lock: a draining node undoes its drain, and a rebooting node finishes.",
        "The lock is paused: no node begins a reboot until `careen lock resume`.",
    ]
    content = desk.lock_content()
    assert (content.is_paused, content.pause_reason, content.holders) == (True, "freeze until Monday", ("n3",))
    assert json.loads(desk.lock_text() or "")["nodeID"] == "manual"


KEPT = "The lock is already paused for this reason: a. The reason stays, and nothing was changed."


@pytest.mark.parametrize(
    ("again", "told"),
    [
        (("--reason", "a"), f"{KEPT}\n"),
        ((), f"{KEPT}\n"),
        (("--reason", "b"), f"{KEPT} To give another reason, run `careen lock resume` first.\n"),
    ],
)
def test_a_second_lock_pause_keeps_and_reports_the_first_reason(desk: Desk, again: tuple[str, ...], told: str) -> None:
    desk.lock()
    desk.ok("lock", "pause", "--reason", "a")
    writes = desk.writes()
    assert desk.ok("lock", "pause", *again) == told
    assert (desk.writes(), desk.lock_content().pause_reason) == (writes, "a")


def test_a_second_lock_pause_adds_a_reason_if_the_first_pause_had_none(desk: Desk) -> None:
    desk.lock('{"nodeID":"manual"}')
    assert desk.ok("lock", "pause") == "The lock is already paused, without a reason; nothing was changed.\n"
    assert desk.writes() == 0
    desk.ok("lock", "pause", "--reason", "freeze")
    assert desk.lock_content().pause_reason == "freeze"


def test_lock_show_reports_the_reason_of_a_pause(desk: Desk) -> None:
    desk.lock()
    desk.ok("lock", "pause", "--reason", "freeze until Monday")
    assert "PAUSED: a person paused the lock (freeze until Monday)" in desk.ok("lock", "show")
    assert desk.json("lock", "show")["pauseReason"] == "freeze until Monday"


def test_lock_pause_joins_a_reason_of_several_lines_into_one_line(desk: Desk) -> None:
    desk.lock()
    desk.ok("lock", "pause", "--reason", "freeze\nuntil Monday")
    assert desk.lock_content().pause_reason == "freeze until Monday"


def test_lock_resume_removes_the_pause_completely(desk: Desk) -> None:
    desk.lock()
    desk.ok("lock", "pause", "--reason", "freeze")
    assert desk.ok("lock", "resume").splitlines() == [
        "The lock was paused for this reason: freeze.",
        "The lock is no longer paused: nodes may reboot again.",
    ]
    assert desk.lock_text() is None


def test_lock_resume_ends_a_pause_that_was_made_with_kubectl(desk: Desk) -> None:
    desk.lock('{"nodeID":"manual"}')
    desk.ok("lock", "resume")
    assert desk.lock_text() is None


def test_lock_resume_without_a_pause_changes_nothing(desk: Desk) -> None:
    desk.lock(HELD)
    assert desk.ok("lock", "resume") == "The lock is not paused; nothing was changed.\n"
    assert desk.writes() == 0


def test_lock_release_removes_the_claim_of_a_failed_node(desk: Desk) -> None:
    desk.node("n3", "Failed")
    desk.lock(HELD)
    assert desk.ok("lock", "release", "n3").splitlines() == [
        "This command frees the claim that n3 took at 2026-03-04T12:00:00Z.",
        "The claim of n3 was removed from the lock: the next node may take a claim.",
    ]
    assert desk.lock_content().holders == ()


def test_lock_release_removes_the_claim_of_a_deleted_node(desk: Desk) -> None:
    desk.lock(HELD)
    desk.ok("lock", "release", "n3")
    assert desk.lock_content().holders == ()


def test_lock_show_prints_an_unreadable_claim_and_lock_release_removes_it(desk: Desk) -> None:
    desk.lock('{"nodeID":"n3","maxOwners":2,"locks":[{"nodeID":"n3","id":"c3"},{"nodeID":7}]}')
    shown = desk.ok("lock", "show")
    assert "unreadable entry 1" in shown
    assert "the claim is unreadable, but treated as held" in shown
    desk.ok("lock", "release", "unreadable entry 1")
    assert desk.lock_content().holders == ("n3",)


@pytest.mark.parametrize("phase", ["Draining", "Rebooting", "Verifying"])
def test_lock_release_asks_before_it_removes_the_claim_of_a_rebooting_node(desk: Desk, phase: str) -> None:
    desk.node("n3", phase)
    desk.lock(HELD)
    result = desk.run("lock", "release", "n3", stdin="n\n")
    assert result.exit_code == 1
    assert f"n3 is {phase}: the node needs its claim in the lock and will take a claim again." in result.output
    assert desk.lock_content().holders == ("n3",)


def test_lock_release_removes_the_claim_of_a_draining_node_after_confirmation(desk: Desk) -> None:
    desk.node("n3", "Draining")
    desk.lock(HELD)
    desk.ok("lock", "release", "n3", stdin="y\n")
    assert desk.lock_content().holders == ()


def test_the_yes_flag_of_lock_release_suppresses_the_question(desk: Desk) -> None:
    desk.node("n3", "Draining")
    desk.lock(HELD)
    desk.ok("lock", "release", "n3", "--yes")
    assert desk.lock_content().holders == ()


def test_lock_release_of_a_node_without_a_claim_is_a_usage_error(desk: Desk) -> None:
    desk.node("n4")
    desk.lock(HELD)
    result = desk.run("lock", "release", "n4")
    assert result.exit_code == 2
    assert "n4 holds no claim in the lock of DaemonSet careen/careen; the lock is held by n3" in result.output
    assert desk.writes() == 0


def test_lock_release_of_a_draining_node_without_a_claim_asks_no_question(desk: Desk) -> None:
    desk.node("n4", "Draining")
    desk.lock(HELD)
    result = desk.run("lock", "release", "n4", stdin="y\n")
    assert result.exit_code == 2
    assert "Free the claim anyway?" not in result.output


def test_lock_release_with_an_unreadable_lock_asks_no_question(desk: Desk) -> None:
    desk.node("n3", "Draining")
    desk.lock("what?")
    result = desk.run("lock", "release", "n3", stdin="y\n")
    assert "the lock cannot be understood (the text of the lock is not JSON), so no reboot may start;" in result.output
    assert "Free the claim anyway?" not in result.output


@pytest.mark.parametrize("command", [["pause"], ["resume"], ["release", "n3"]], ids=" ".join)
def test_lock_commands_do_not_overwrite_an_unreadable_lock(desk: Desk, command: list[str]) -> None:
    desk.node("n3", "Failed")
    desk.lock("what?")
    result = desk.run("lock", *command)
    assert result.exit_code == 1
    assert "the lock cannot be understood (the text of the lock is not JSON), so no reboot may start;" in result.output
    assert desk.lock_text() == "what?"


@pytest.mark.parametrize("command", [["show"], ["pause"], ["resume"], ["release", "n3"]], ids=" ".join)
def test_lock_commands_report_a_missing_daemonset(desk: Desk, command: list[str]) -> None:
    result = desk.run("lock", *command)
    assert result.exit_code == 1
    assert (
        "Error: DaemonSet careen/careen does not exist, but this DaemonSet must carry the lock; name the "
        "DaemonSet with "
        "--ds-namespace and --ds-name" in result.output
    )


def test_lock_pause_reads_the_lock_again_after_a_conflict(desk: Desk) -> None:
    desk.lock()
    conflicts = iter([True])

    def once(info: object, user: str, may_be_stale: bool) -> Fault | None:
        return (
            Fault(kind=FaultKind.CONFLICT) if getattr(info, "verb", "") == "patch" and next(conflicts, False) else None
        )

    desk.server.api.plan = once
    assert desk.ok("lock", "pause").splitlines() == [
        "Another client changed the lock at the same moment; this command reads the lock again.",
        "The lock is paused: no node begins a reboot until `careen lock resume`.",
    ]
    assert desk.lock_content().is_paused


def test_lock_pause_reads_the_lock_again_after_a_lost_answer(desk: Desk) -> None:
    desk.lock()
    losses = iter([True])

    def once(info: object, user: str, may_be_stale: bool) -> Fault | None:
        return (
            Fault(kind=FaultKind.LOST_AFTER) if getattr(info, "verb", "") == "patch" and next(losses, False) else None
        )

    desk.server.api.plan = once
    assert desk.ok("lock", "pause") == "The lock is paused: no node begins a reboot until `careen lock resume`.\n"
    assert desk.lock_content().is_paused

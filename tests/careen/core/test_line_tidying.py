"""The lock contains a list of the next nodes (the line), all of which wait for their reboot. If an agent finds a node
in this list that does not wait for a reboot, it removes the node's name. Idle agents check the list regularly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.actions import WriteLock
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, Alert, Fleet, Need, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import AlertPolicy
from careen.core.facts.reasons import Code
from careen.core.lock import changes, order
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from careen.core.steps.shared.release import LATE_WRITE_SECONDS
from careen.core.steps.waiting import LEFT_LINE_SECONDS
from tests.careen.core.builders import (
    NO,
    UNKNOWN_NEED,
    UPTIME,
    YES,
    a_fleet,
    a_marked_node,
    a_node,
    a_policy,
    a_progress,
    an_entry,
    decided,
    held,
    kinds,
    remembering,
    the_lock,
)

RECORD = a_progress(Phase.WAITING)
NAMED = LockContent(line=Line(names=("n1", "n2"), at="2026-03-04T11:59:59Z", waiting=2))
N2 = a_marked_node(RECORD, name="n2", label="ready")
JUST_STARTED = remembering(is_reconciled=False)


def idle(**changes: Any) -> Decision:
    return decided(**{"need": NO, "lock": NAMED, "waiters": (N2,), "memory": JUST_STARTED, **changes})


@pytest.mark.parametrize("reading", [NAMED, Unknown("503"), "garbage"])
def test_a_node_that_no_longer_needs_a_reboot_reads_the_lock_again(reading: Any) -> None:
    """The agent removes its node's name from the lock's list of next nodes. This write may fail, so the agent later
    checks whether the list still contains the name."""
    home = decided(RECORD, need=NO, lock=reading, node={"labels": {keys.REBOOT_LABEL: "ready"}})
    assert (home.phase, home.reason.code) == (Phase.IDLE, Code.NEED_GONE)
    assert idle(memory=home.memory, lock=NOT_ASKED, uptime=UPTIME + LEFT_LINE_SECONDS - 1).wants == frozenset()
    assert idle(memory=home.memory, lock=NOT_ASKED, uptime=UPTIME + LEFT_LINE_SECONDS).wants == {Evidence.LOCK}
    assert the_lock(idle(memory=home.memory, uptime=UPTIME + LEFT_LINE_SECONDS)).line.names == ("n2",)


def test_a_node_that_leaves_the_line_still_checks_for_a_late_write_of_its_claim() -> None:
    memory = remembering(lock_due=UPTIME + LATE_WRITE_SECONDS)
    assert decided(RECORD, need=NO, lock=NAMED, memory=memory).memory.lock_due == UPTIME + LATE_WRITE_SECONDS


@pytest.mark.parametrize("need", [NO, UNKNOWN_NEED])
def test_an_idle_node_removes_itself_from_the_line_of_waiting_nodes(need: Need) -> None:
    assert the_lock(idle(need=need)).line.names == ("n2",)


def test_an_idle_node_reads_the_lock_until_it_has_left_the_line() -> None:
    left = idle()
    assert idle(memory=left.memory, lock=NOT_ASKED, uptime=UPTIME + 5).wants == {Evidence.LOCK}


def test_an_idle_node_that_needs_a_reboot_again_keeps_its_position_in_the_line() -> None:
    assert WriteLock not in kinds(idle(need=YES))


def test_an_idle_node_removes_deleted_nodes_from_the_line_of_waiting_nodes() -> None:
    assert idle(waiters=NOT_ASKED).wants == {Evidence.WAITERS}
    tidied = the_lock(
        idle(lock=replace(NAMED, line=replace(NAMED.line, names=("gone", "n2", "lost"), abreast=2)), waiters=(N2,))
    )
    assert (tidied.line.names, tidied.line.abreast) == (("n2",), 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"waiters": Unknown("503"), "lock": replace(NAMED, line=replace(NAMED.line, names=("n2", "n3")))},
        {"lock": replace(NAMED, line=replace(NAMED.line, names=("n2",)))},
        {"lock": changes.pause(NAMED, "", 1)},
    ],
    ids=["the waiting nodes are unknown", "every named node waits", "the lock is paused"],
)
def test_an_idle_node_changes_the_line_only_if_the_line_has_an_error_and_the_lock_is_not_paused(
    changes: dict[str, Any],
) -> None:
    assert WriteLock not in kinds(idle(**changes))


def test_all_idle_nodes_together_check_the_line_at_most_once_a_minute() -> None:
    def pause(agents: int | None) -> float:
        looked = idle(lock=LockContent(), memory=replace(JUST_STARTED, agents=agents))
        assert looked.memory.lock_due is not None
        return looked.memory.lock_due - UPTIME

    assert [pause(agents) for agents in (1, 3, 10, 5000, None)] == [3600, 1200, 1200, 300_000, 3600]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (
            {
                "policy": a_policy(taint_key=None, alerts=AlertPolicy()),
                "alerts": (Alert(name="Down"),),
                "fleet": a_fleet(),
            },
            Code.ALERT,
        ),
        ({"fleet": Fleet(nodes=(a_node("n1"), a_node("n7", ready=False)), read_at_uptime=UPTIME)}, Code.NODES_DOWN),
    ],
)
def test_the_first_node_in_line_removes_nodes_that_no_longer_wait(changes: dict[str, Any], code: Code) -> None:
    content = replace(NAMED, line=replace(NAMED.line, names=("n1", "gone", "n2")))
    given = {"policy": a_policy(taint_key=None), "lock": content, "waiters": (N2,), **changes}
    decision = decided(RECORD, node={"labels": {keys.REBOOT_LABEL: "ready"}, "annotations": {keys.MOVES: "0"}}, **given)
    assert [each.code for each in decision.refusals] == [code]
    assert the_lock(decision).line.names == ("n1", "n2")


def test_the_lock_forgets_nodes_that_were_passed_over_and_no_longer_wait() -> None:
    """The lock lists the nodes that were passed over when the next node was chosen. A node must not stay in this
    list when it no longer waits, for example because its Node was deleted."""
    content = held(an_entry("n9"), line=Line(passed=("gone", "n2")))
    assert order.name_next(content, (N2,), a_policy(), at="").line.passed == ("n2",)

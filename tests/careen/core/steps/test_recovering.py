"""An entry of ours in the lock that the Node's record does not know: adopted or released, never ignored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core import keys
from careen.core.actions import PatchNode, WriteLock
from careen.core.decision import Decision
from careen.core.observation import NOT_ASKED, Holders, Unknown
from careen.core.phases import Evidence, Phase
from careen.core.reasons import Code
from tests.careen.core.builders import (
    LOCK_OBJECT,
    NO,
    UPTIME,
    YES,
    a_marked_node,
    a_node,
    a_progress,
    an_entry,
    decided,
    held,
    kinds,
    remembering,
    the_lock,
    the_patch,
    the_record,
)

FRESH = remembering(is_reconciled=False)
KURED = '{"nodeID":"n1","metadata":{"unschedulable":false},"created":"2026-03-04T00:00:00Z","TTL":0}'
KURED_CORDONED = KURED.replace("false", "true")


def idle(**changes: Any) -> Decision:
    return decided(**{"need": NO, "memory": FRESH, "lock": held(an_entry()), "holders": Holders(nodes=(a_node(),)), **changes})


def test_the_node_is_read_once_more_after_the_lock() -> None:
    assert idle(holders=NOT_ASKED).wants == {Evidence.HOLDERS}


def test_an_entry_that_nothing_stands_behind_is_removed() -> None:
    decision = idle()
    assert (decision.phase, decision.reason.code, kinds(decision)) == (Phase.IDLE, Code.ENTRY_RELEASED, [WriteLock])
    assert the_lock(decision).entries == ()


def test_a_claim_that_the_node_got_meanwhile_is_no_ghost() -> None:
    newer = a_marked_node(a_progress(Phase.CLAIMING))
    assert kinds(idle(holders=Holders(nodes=(newer,)))) == []


def test_unreadable_holders_prove_nothing() -> None:
    assert kinds(idle(holders=Unknown("503"))) == []


def test_an_entry_from_before_the_boot_is_taken_up_and_proven_like_any_other() -> None:
    decision = idle(lock=held(an_entry(boot="boot-0")))
    assert (decision.phase, decision.reason.code) == (Phase.VERIFYING, Code.ENTRY_ADOPTED)
    record = the_record(decision)
    assert (record.claim, record.boot_left, record.lock, record.is_cordoned_by_us, record.reboots_for_need) == ("c1", "boot-0", LOCK_OBJECT, False, 1)


@pytest.mark.parametrize(("label", "cordoned_before", "is_ours"), [("in-progress", False, True), ("in-progress", True, False), (None, False, False)])
def test_its_cordon_is_ours_only_when_the_label_says_so_and_nobody_had_cordoned_before(label: str | None, cordoned_before: bool, is_ours: bool) -> None:
    node = {"unschedulable": True, "labels": {keys.REBOOT_LABEL: label} if label else {}}
    decision = idle(node=node, lock=held(an_entry(boot="boot-0", cordoned=cordoned_before)))
    assert the_record(decision).is_cordoned_by_us is is_ours


def test_a_working_node_whose_record_was_wiped_is_undone() -> None:
    node = {"unschedulable": True, "labels": {keys.REBOOT_LABEL: "in-progress"}}
    decision = idle(node=node, need=NO)
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.ENTRY_ADOPTED)
    assert the_patch(decision).unschedulable is False
    assert (the_record(decision).claim, the_record(decision).is_giving_back) == ("c1", True)


@pytest.mark.parametrize(("unschedulable", "cordoned_before"), [(True, True), (False, False), (False, True)])
def test_a_persons_cordon_from_before_the_claim_outlives_the_wiped_record(unschedulable: bool, cordoned_before: bool) -> None:
    node = {"unschedulable": unschedulable, "labels": {keys.REBOOT_LABEL: "in-progress"}}
    assert the_patch(idle(node=node, lock=held(an_entry(cordoned=cordoned_before)))).unschedulable is None


def test_the_claim_of_a_recreated_node_is_released_only_after_the_reboot_deadline() -> None:
    content = held(an_entry(uid="uid-former"))
    first = idle(lock=content)
    assert (first.reason.code, kinds(first)) == (Code.ENTRY_RELEASED, [])
    early = idle(lock=content, memory=replace(first.memory, holders_not_before=0), uptime=UPTIME + 899)
    assert kinds(early) == []
    late = idle(lock=content, memory=replace(first.memory, holders_not_before=0), uptime=UPTIME + 901)
    assert kinds(late) == [WriteLock]


def test_a_waiting_node_reconciles_in_every_turn() -> None:
    decision = decided(a_progress(Phase.WAITING), lock=held(an_entry(claim="late")), holders=Holders(nodes=(a_node(),)), need=YES)
    assert decision.reason.code is Code.ENTRY_RELEASED
    assert the_lock(decision).entries == ()


def test_the_need_of_an_idle_node_goes_before_its_leftovers() -> None:
    assert idle(need=YES).phase is Phase.WAITING


@pytest.mark.parametrize(("content", "unschedulable", "uncordons"), [(KURED, True, True), (KURED, False, False), (KURED_CORDONED, True, False)])
def test_what_kured_left_on_this_node_is_taken_back_as_kured_would(content: str, unschedulable: bool, uncordons: bool) -> None:
    decision = idle(lock=content, node={"unschedulable": unschedulable})
    assert kinds(decision) == ([PatchNode, WriteLock] if uncordons else [WriteLock])
    assert the_lock(decision).entries == ()
    if uncordons:
        assert the_patch(decision).unschedulable is False


@pytest.mark.parametrize("changes", [{"foreign": ("kured runs",)}, {"foreign": Unknown("403")}, {"node": {"ready": False}}])
def test_a_kured_that_still_runs_or_a_node_that_is_not_ready_is_left_alone(changes: dict[str, Any]) -> None:
    assert kinds(idle(lock=KURED, **changes)) == []


def test_whether_kured_still_runs_is_asked_first() -> None:
    assert idle(lock=KURED, foreign=NOT_ASKED).wants == {Evidence.FOREIGN}


def test_another_nodes_kured_entry_is_nobodys_business() -> None:
    assert kinds(idle(lock=KURED.replace("n1", "n9"))) == []

"""Idle: the soft taint follows the need at once, whatever anything else says; and only what is ours is touched."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core import keys, lock
from careen.core.actions import PostEvent
from careen.core.lock import LockContent
from careen.core.observation import NOT_ASKED, Need, NeedAnswer, Taint, Unknown
from careen.core.phases import Phase
from careen.core.policy import Window
from careen.core.progress import Progress, to_annotation
from careen.core.reasons import Code
from tests.careen.core.builders import (
    NO,
    UNKNOWN_NEED,
    YES,
    a_policy,
    an_entry,
    decided,
    held,
    kinds,
    the_patch,
    the_record,
)

OURS = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
THEIRS = Taint(key="dedicated", effect="NoSchedule", value="db", time_added="2026-01-01T00:00:00Z")


def test_the_need_is_tainted_labelled_and_recorded_in_one_patch() -> None:
    decision = decided(need=Need(answer=NeedAnswer.YES, detail="/run/reboot-required exists"), node={"taints": (THEIRS,)})
    patch = the_patch(decision)
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.NEED_SEEN)
    assert patch.taints == (THEIRS, OURS)
    assert patch.labels == {keys.REBOOT_LABEL: "required"}
    assert patch.annotations[keys.REASON] == "the host asks for a reboot: /run/reboot-required exists"
    assert patch.resource_version == "7"
    record = the_record(decision)
    assert (record.need_since, record.tainted_at, record.taint_key) == ("2026-03-04T12:00:00Z", "2026-03-04T12:00:00Z", keys.DEFAULT_TAINT_KEY)


@pytest.mark.parametrize("changes", [
    pytest.param({"lock": Unknown("503")}, id="the lock is unreadable"),
    pytest.param({"lock": lock.pause(LockContent(), "", 1)}, id="the cluster is paused"),
    pytest.param({"lock": held(an_entry("n2"))}, id="another node holds the lock"),
    pytest.param({"lock": NOT_ASKED}, id="nobody read the lock"),
    pytest.param({"policy": a_policy(window=Window(days=frozenset()))}, id="the window is closed"),
    pytest.param({"node": {"annotations": {keys.HOLD: "people"}}}, id="the node is held"),
    pytest.param({"clock_skew_seconds": 900.0}, id="the clock is off"),
    pytest.param({"boot_id": Unknown("no such file")}, id="the boot id is unreadable"),
    pytest.param({"foreign": ("kured runs",)}, id="kured runs"),
])
def test_nothing_delays_the_taint(changes: dict[str, Any]) -> None:
    decision = decided(need=YES, **changes)
    assert decision.phase is Phase.WAITING
    assert the_patch(decision).taints == (OURS,)


def test_a_foreign_taint_of_the_same_key_and_effect_is_not_taken_for_ours() -> None:
    foreign = Taint(key="careen.dev/reboot", effect="PreferNoSchedule", value="theirs")
    decision = decided(node={"taints": (foreign,)})
    assert the_patch(decision).taints is None
    assert the_record(decision).taint_key == ""


def test_the_same_key_with_another_effect_is_somebody_elses_and_stays_beside_ours() -> None:
    foreign = Taint(key="careen.dev/reboot", effect="NoSchedule", value="x")
    assert the_patch(decided(node={"taints": (foreign,)})).taints == (foreign, OURS)


def test_without_a_taint_key_there_is_no_taint() -> None:
    decision = decided(policy=a_policy(taint_key=None))
    assert the_patch(decision).taints is None
    assert (the_record(decision).taint_key, the_record(decision).tainted_at) == ("", "")


@pytest.mark.parametrize(("annotate", "before", "expected"), [
    (False, {}, None), (True, {}, "2026-03-04T12:00:00Z"), (True, {keys.KURED_IN_PROGRESS: "2026-03-01T00:00:00Z"}, None),
])
def test_kureds_two_annotations_are_kept_when_asked_for(annotate: bool, before: dict[str, str], expected: str | None) -> None:
    patch = the_patch(decided(policy=a_policy(annotate_nodes=annotate), node={"annotations": before}))
    assert patch.annotations.get(keys.KURED_IN_PROGRESS) == expected
    assert patch.annotations.get(keys.KURED_MOST_RECENT) == expected


def test_without_a_need_nothing_is_done() -> None:
    decision = decided(need=NO)
    assert (decision.phase, decision.reason.code, decision.actions) == (Phase.IDLE, Code.NO_NEED, ())


def test_an_unknown_need_is_told_once_and_again_after_it_was_known() -> None:
    def events(decision: Any) -> int:
        return sum(isinstance(action, PostEvent) for action in decision.actions)

    first = decided(need=UNKNOWN_NEED)
    second = decided(need=UNKNOWN_NEED, memory=first.memory)
    known = decided(need=NO, memory=second.memory)
    assert [events(first), events(second), events(known), events(decided(need=UNKNOWN_NEED, memory=known.memory))] == [1, 0, 0, 1]


def test_an_unknown_need_is_said_and_is_neither_yes_nor_no() -> None:
    decision = decided(need=UNKNOWN_NEED)
    assert (decision.phase, decision.reason.code) == (Phase.IDLE, Code.NEED_UNKNOWN)
    assert kinds(decision) == []
    assert "permission denied" in decision.reason.sentence


@pytest.mark.parametrize("left", [{"labels": {keys.REBOOT_LABEL: "required"}}, {"annotations": {keys.RETRY: "2026-03-04T12:00:00Z"}}])
def test_a_single_leftover_is_enough_to_clean_up(left: dict[str, Any]) -> None:
    assert decided(need=NO, node=left).reason.code is Code.HOME
    assert decided(need=NO, node={"annotations": {keys.KURED_IN_PROGRESS: "x", keys.HOLD: "people", keys.LAST_REBOOT: "{}"}}).reason.code is Code.NO_NEED
    assert decided(need=NO, node={"annotations": {keys.KURED_IN_PROGRESS: "x"}}, policy=a_policy(annotate_nodes=True)).reason.code is Code.HOME


def test_what_an_earlier_agent_left_is_removed() -> None:
    left = {keys.PROGRESS: to_annotation(Progress(taint_key=OURS.key)), keys.REASON: "old", keys.HOLD: "people", keys.LAST_REBOOT: "{}"}
    decision = decided(need=NO, node={"annotations": left, "labels": {keys.REBOOT_LABEL: "required"}, "taints": (OURS, THEIRS)})
    patch = the_patch(decision)
    assert decision.reason.code is Code.HOME
    assert patch.annotations == {keys.PROGRESS: None, keys.REASON: None}
    assert patch.labels == {keys.REBOOT_LABEL: None}
    assert patch.taints == (THEIRS,)

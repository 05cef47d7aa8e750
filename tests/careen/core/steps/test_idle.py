"""The phase Idle. When the node begins to need a reboot, the agent sets the soft taint (PreferNoSchedule) at once, even
if a gate refuses the reboot. The agent changes no labels, annotations and taints of other clients."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from careen.core.actions import PostEvent
from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import NOT_ASKED, Need, NeedAnswer, Taint, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339
from careen.core.facts.windows import Window
from careen.core.lock import changes
from careen.core.lock.content import LockContent
from careen.core.steps.shared.stagger import delay_seconds
from tests.careen.core.builders import (
    NO,
    NOW,
    UNKNOWN_NEED,
    UPTIME,
    YES,
    a_policy,
    a_reading,
    an_entry,
    decided,
    held,
    kinds,
    remembering,
    the_patch,
    the_record,
)

OURS = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
THEIRS = Taint(key="dedicated", effect="NoSchedule", value="db", time_added="2026-01-01T00:00:00Z")


def test_one_patch_writes_the_taint_the_label_and_the_progress_record_if_a_reboot_is_needed() -> None:
    decision = decided(
        need=Need(answer=NeedAnswer.YES, detail="/run/reboot-required exists"), node={"taints": (THEIRS,)}
    )
    patch = the_patch(decision)
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.NEED_SEEN)
    assert patch.taints == (THEIRS, OURS)
    assert patch.labels == {keys.REBOOT_LABEL: "required"}
    assert patch.annotations[keys.REASON] == "the host asks for a reboot: /run/reboot-required exists"
    assert patch.resource_version == "7"
    record = the_record(decision)
    assert (record.need_since, record.tainted_at, record.taint_key) == (
        "2026-03-04T12:00:00Z",
        "2026-03-04T12:00:00Z",
        keys.DEFAULT_TAINT_KEY,
    )


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"lock": Unknown("503")}, id="the lock is unreadable"),
        pytest.param({"lock": changes.pause(LockContent(), "", 1)}, id="a person paused the lock"),
        pytest.param({"lock": held(an_entry("n2"))}, id="another node holds the lock"),
        pytest.param(
            {"lock": NOT_ASKED, "memory": remembering(agents=12)}, id="the lock was not read for this decision"
        ),
        pytest.param({"memory": remembering(agents=500)}, id="the fleet has 500 nodes"),
        pytest.param({"policy": a_policy(window=Window(days=frozenset()))}, id="the maintenance window is closed"),
        pytest.param({"node": {"annotations": {keys.HOLD: "people"}}}, id="a hold annotation forbids the reboot"),
        pytest.param({"clock_skew_seconds": 900.0}, id="the host's clock is wrong"),
        pytest.param({"boot_id": Unknown("no such file")}, id="the boot id is unreadable"),
        pytest.param({"foreign": ("kured runs",)}, id="kured runs in the cluster"),
    ],
)
def test_the_taint_is_set_at_once_even_if_a_gate_refuses(changes: dict[str, Any]) -> None:
    decision = decided(need=YES, **changes)
    assert decision.phase is Phase.WAITING
    assert the_patch(decision).taints == (OURS,)


def test_an_existing_taint_with_careens_key_and_effect_is_not_adopted() -> None:
    foreign = Taint(key="careen.dev/reboot", effect="PreferNoSchedule", value="theirs")
    decision = decided(node={"taints": (foreign,)})
    assert the_patch(decision).taints is None
    assert the_record(decision).taint_key == ""


def test_a_taint_with_careens_key_and_another_effect_is_foreign_and_stays() -> None:
    foreign = Taint(key="careen.dev/reboot", effect="NoSchedule", value="x")
    assert the_patch(decided(node={"taints": (foreign,)})).taints == (foreign, OURS)


def test_without_a_configured_taint_key_the_agent_sets_no_taint() -> None:
    decision = decided(policy=a_policy(taint_key=None))
    assert the_patch(decision).taints is None
    assert (the_record(decision).taint_key, the_record(decision).tainted_at) == ("", "")


@pytest.mark.parametrize(
    ("annotate", "before", "expected"),
    [
        (False, {}, None),
        (True, {}, "2026-03-04T12:00:00Z"),
        (True, {keys.KURED_IN_PROGRESS: "2026-03-01T00:00:00Z"}, None),
    ],
)
def test_the_agent_writes_kureds_annotations_if_configured(
    annotate: bool, before: dict[str, str], expected: str | None
) -> None:
    patch = the_patch(decided(policy=a_policy(annotate_nodes=annotate), node={"annotations": before}))
    assert patch.annotations.get(keys.KURED_IN_PROGRESS) == expected
    assert patch.annotations.get(keys.KURED_MOST_RECENT) == expected


def test_an_idle_node_that_needs_no_reboot_writes_nothing() -> None:
    decision = decided(need=NO)
    assert (decision.phase, decision.reason.code, decision.actions) == (Phase.IDLE, Code.NO_NEED, ())


def test_an_unknown_reboot_need_is_reported_once_until_the_need_is_known() -> None:
    def events(decision: Any) -> int:
        return sum(isinstance(action, PostEvent) for action in decision.actions)

    first = decided(need=UNKNOWN_NEED)
    second = decided(need=UNKNOWN_NEED, memory=first.memory)
    known = decided(need=NO, memory=second.memory)
    assert [events(first), events(second), events(known), events(decided(need=UNKNOWN_NEED, memory=known.memory))] == [
        1,
        0,
        0,
        1,
    ]


def test_an_unknown_reboot_need_is_reported_and_changes_nothing() -> None:
    decision = decided(need=UNKNOWN_NEED)
    assert (decision.phase, decision.reason.code) == (Phase.IDLE, Code.NEED_UNKNOWN)
    assert kinds(decision) == []
    assert "permission denied" in decision.reason.sentence


@pytest.mark.parametrize(
    "left", [{"labels": {keys.REBOOT_LABEL: "required"}}, {"annotations": {keys.RETRY: "2026-03-04T12:00:00Z"}}]
)
def test_a_single_leftover_label_or_annotation_of_careen_causes_a_cleanup(left: dict[str, Any]) -> None:
    assert decided(need=NO, node=left).reason.code is Code.HOME
    assert (
        decided(
            need=NO, node={"annotations": {keys.KURED_IN_PROGRESS: "x", keys.HOLD: "people", keys.LAST_REBOOT: "{}"}}
        ).reason.code
        is Code.NO_NEED
    )
    assert (
        decided(
            need=NO, node={"annotations": {keys.KURED_IN_PROGRESS: "x"}}, policy=a_policy(annotate_nodes=True)
        ).reason.code
        is Code.HOME
    )


def test_labels_annotations_and_taints_left_by_an_earlier_agent_are_removed() -> None:
    left = {
        keys.PROGRESS: to_annotation(Progress(taint_key=OURS.key)),
        keys.REASON: "old",
        keys.HOLD: "people",
        keys.LAST_REBOOT: "{}",
    }
    decision = decided(
        need=NO, node={"annotations": left, "labels": {keys.REBOOT_LABEL: "required"}, "taints": (OURS, THEIRS)}
    )
    patch = the_patch(decision)
    assert decision.reason.code is Code.HOME
    assert patch.annotations == {keys.PROGRESS: None, keys.REASON: None}
    assert patch.labels == {keys.REBOOT_LABEL: None}
    assert patch.taints == (THEIRS,)


LARGE = replace(a_reading(LockContent()), agents=5000)
WAITS = delay_seconds("n1", 5000, NOW)


def test_in_a_large_fleet_an_agent_waits_for_its_time_to_set_the_taint() -> None:
    first = decided(lock=LARGE)
    assert (first.phase, first.reason.code, first.actions) == (Phase.IDLE, Code.TAINT_SPREAD, ())
    assert first.look_again_seconds == pytest.approx(WAITS)
    assert 5 < WAITS < 55
    early = decided(
        memory=first.memory, uptime=UPTIME + WAITS - 1, now=NOW + timedelta(seconds=WAITS - 1), lock=NOT_ASKED
    )
    assert (early.actions, round(early.look_again_seconds, 6)) == ((), 1.0)
    last = decided(memory=first.memory, uptime=UPTIME + WAITS, now=NOW + timedelta(seconds=WAITS), lock=NOT_ASKED)
    assert the_patch(last).taints == (OURS,)
    assert from_rfc3339(the_record(last).need_since) == NOW
    assert the_record(last).tainted_at > the_record(last).need_since


def test_a_failed_patch_of_the_taint_is_repeated_without_a_new_wait() -> None:
    over = remembering(agents=5000, need_seen_at=UPTIME - 60)
    again = decided(memory=over, lock=NOT_ASKED)
    assert the_patch(decided(memory=again.memory, lock=NOT_ASKED)).taints == (OURS,)


def test_nothing_is_written_if_the_reboot_need_ends_before_the_taint_is_due() -> None:
    gone = decided(memory=remembering(agents=5000, need_seen_at=UPTIME - 59), need=NO)
    assert (gone.actions, gone.memory.need_seen_at, gone.memory.agents) == ((), None, 5000)


def test_a_new_agent_process_sets_the_taint_even_if_the_fleet_size_is_unknown() -> None:
    fresh = Memory(node_uid="uid-n1")
    assert decided(memory=fresh, lock=NOT_ASKED).wants == {Evidence.LOCK}
    assert decided(memory=fresh, lock=Unknown("503")).phase is Phase.WAITING
    assert decided(lock=replace(LARGE, agents=None)).phase is Phase.WAITING


def test_the_agent_remembers_the_size_of_the_fleet_when_its_node_becomes_idle() -> None:
    assert (
        decided(
            memory=remembering(agents=5000), need=NO, lock=NOT_ASKED, node={"annotations": {keys.PHASE: "Waiting"}}
        ).memory.agents
        == 5000
    )

"""After a restore of etcd, resourceVersions go back. The agent notices, does nothing, pauses the lock, and goes on once
a person has resumed it."""

from __future__ import annotations

import pytest

from careen.core import rollback
from careen.core.actions import PatchNode, PostEvent, WriteLock
from careen.core.decision import Decision
from careen.core.facts.memory import Memory, SeenVersions
from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from tests.careen.core.builders import UPTIME, a_node, a_progress, a_reading, decided, held, the_lock

# The builders' Node has resourceVersion 7, their lock has 42.
CONFIRMED = UPTIME - rollback.CONFIRM_SECONDS


def deciding(versions: SeenVersions, **changes: object) -> Decision:
    memory = Memory(node_uid="uid-n1", versions=versions)
    return decided(a_progress(Phase.WAITING), memory=memory, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("node", "lock", "is_behind"),
    [
        pytest.param(0, 0, False, id="a new process"),
        pytest.param(7, 42, False, id="nothing changed"),
        pytest.param(6, 41, False, id="both moved on"),
        pytest.param(8, 42, True, id="the Node is behind"),
        pytest.param(7, 43, True, id="the lock is behind"),
        pytest.param(7, 9, False, id="the Node's version says nothing about the lock's: they may be in two stores"),
    ],
)
def test_only_a_lower_version_of_the_same_object_shows_a_restore(node: int, lock: int, is_behind: bool) -> None:
    decision = deciding(SeenVersions(node=node, lock=lock))
    assert (decision.reason.code is Code.STORE_RESTORED) is is_behind
    assert (decision.memory.versions.behind_since is not None) is is_behind
    if is_behind:
        assert decision.actions == (), "a cache may be old: nothing is written before the versions are read again"
    else:
        assert decision.memory.versions == SeenVersions(node=7, lock=42)


@pytest.mark.parametrize("text", ["", "7a", "-1", "\u0667", "9" * 41])
def test_a_version_that_is_no_number_says_nothing(text: str) -> None:
    decision = deciding(SeenVersions(node=8, lock=42), node={"resource_version": text})
    assert decision.reason.code is not Code.STORE_RESTORED


def test_versions_that_stay_behind_pause_the_lock_and_say_so() -> None:
    decision = deciding(SeenVersions(node=7, lock=43, behind_since=CONFIRMED, is_lock_behind=True))
    assert [type(action) for action in decision.actions] == [PostEvent, WriteLock]
    paused = the_lock(decision)
    assert paused.is_paused
    assert "resourceVersion 42 after 43" in paused.pause_reason
    assert "careen lock resume" in paused.pause_reason
    again = decided(a_progress(Phase.WAITING), memory=decision.memory)
    assert again.actions == (), "a pause that a policy refuses is not tried again at once"


def test_versions_that_are_right_again_end_the_suspicion() -> None:
    decision = deciding(SeenVersions(node=7, lock=42, behind_since=CONFIRMED, is_lock_behind=True))
    assert decision.reason.code is not Code.STORE_RESTORED
    assert decision.memory.versions == SeenVersions(node=7, lock=42)


def test_a_suspicion_about_the_lock_lasts_until_the_lock_is_read_again() -> None:
    decision = deciding(SeenVersions(node=7, lock=43, behind_since=CONFIRMED, is_lock_behind=True), lock=NOT_ASKED)
    assert decision.wants == {Evidence.LOCK}


@pytest.mark.parametrize("lock", [Unknown("down"), "garbage"])
def test_nothing_is_written_while_the_lock_is_unknown(lock: object) -> None:
    assert deciding(SeenVersions(node=8, lock=43, behind_since=CONFIRMED), lock=lock).actions == ()


def test_with_a_paused_lock_the_older_versions_count_from_now_on() -> None:
    paused = held(is_paused=True, pause_reason="etcd")
    decision = deciding(SeenVersions(node=8, lock=43, behind_since=CONFIRMED), lock=a_reading(paused))
    assert decision.memory.versions == SeenVersions(node=7, lock=42)
    assert decision.reason.code is not Code.STORE_RESTORED


def test_a_drain_does_not_go_on_after_a_restore() -> None:
    memory = Memory(node_uid="uid-n1", versions=SeenVersions(node=8, lock=42))
    assert any(isinstance(each, PatchNode) for each in decided(a_progress(Phase.DRAINING)).actions)
    assert decided(a_progress(Phase.DRAINING), memory=memory).actions == ()


def test_a_recreated_node_does_not_end_the_comparison() -> None:
    memory = Memory(node_uid="another", versions=SeenVersions(node=8))
    assert decided(memory=memory, node={"uid": a_node().uid}).reason.code is Code.STORE_RESTORED

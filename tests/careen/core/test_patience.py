"""Patience: how many seconds a node that has a claim waits for unknown facts. Phase changes and restarts of the agent
do not reset the waiting time. It ends when every fact is known again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from careen.core.actions import PatchNode
from careen.core.decide import decide
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import Alert, NodeView, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import AlertPolicy, DrainPolicy, Policy
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from tests.careen.core.builders import (
    NOW,
    UNKNOWN_NEED,
    UPTIME,
    a_marked_node,
    a_pod,
    a_policy,
    a_progress,
    ago,
    an_entry,
    an_observation,
    held,
    remembering,
)

SKEW = {"clock_skew_seconds": 100.0}
BLIND = {"boot_id": Unknown("no such file")}
LATE = {
    "the host's clock is wrong": SKEW,
    "the host's clock cannot be compared": {"clock_skew_seconds": Unknown("no Date")},
    "the alerts are unknown": {"alerts": Unknown("timed out")},
    "it is unknown whether kured runs": {"foreign": Unknown("503")},
}
EARLY = {
    "it is unknown whether the host needs a reboot": {"need": UNKNOWN_NEED},
    "the lock is unknown": {"lock": Unknown("503")},
    "the pods are unknown": {"pods": Unknown("503")},
    "the boot id is unknown": BLIND,
}


class Story:
    """One node and the decisions of its agent, round after round. Each round applies the patches of its decision to the
    Node. The arguments of `turn` say which facts are unknown in the round."""

    def __init__(self, progress: Progress, **policy: Any) -> None:
        self.policy: Policy = a_policy(**{"alerts": AlertPolicy(), **policy})
        self.node: NodeView = a_marked_node(progress)
        self.memory: Memory = remembering()
        self.seconds = 0.0

    def turn(self, after: float = 2.0, **changes: Any) -> Decision:
        """Run one round of the agent's loop, `after` seconds after the previous round."""
        self.seconds += after
        given = {
            "uptime": UPTIME + self.seconds,
            "now": NOW + timedelta(seconds=self.seconds),
            "lock": held(an_entry()),
            **changes,
        }
        decision = decide(an_observation(self.node, memory=self.memory, **given), self.policy)
        assert not decision.wants
        self.memory = decision.memory
        for action in decision.actions:
            if isinstance(action, PatchNode):
                annotations = {
                    key: value
                    for key, value in {**self.node.annotations, **action.annotations}.items()
                    if value is not None
                }
                cordon = self.node.unschedulable if action.unschedulable is None else action.unschedulable
                self.node = replace(self.node, annotations=annotations, unschedulable=cordon)
        return decision

    def restart(self) -> None:
        """Continue in a new process with an empty memory."""
        self.memory = Memory()

    def until_undone(self, most: float, step: float = 2.0, *, lives: float = 1e9, **changes: Any) -> float:
        """Run a round of the agent's loop every `step` seconds until the node is back in service. Return how many
        seconds this took."""
        born = began = self.seconds
        while self.seconds - began < most:
            if self.turn(step, **changes).phase in (Phase.WAITING, Phase.FAILED):
                return self.seconds - began
            if self.seconds - born >= lives:
                born = self.seconds
                self.restart()
        raise AssertionError(f"the node is still cordoned after {most:.0f} s")


def draining(**policy: Any) -> Story:
    return Story(a_progress(Phase.DRAINING), **policy)


@pytest.mark.parametrize(
    "lives",
    [1e9, 300.0, 7.0],
    ids=["one process", "an agent that restarts every five minutes", "an agent that restarts every few seconds"],
)
@pytest.mark.parametrize("changes", [*LATE.values(), *EARLY.values()], ids=[*LATE, *EARLY])
def test_a_drained_node_waits_for_an_unknown_fact_for_a_limited_time(changes: dict[str, Any], lives: float) -> None:
    assert draining().until_undone(620, lives=lives, **changes) == pytest.approx(602, abs=6)


def test_the_waiting_time_does_not_begin_again_when_another_fact_becomes_unknown() -> None:
    story = draining()
    for _ in range(110):
        for changes in (SKEW, {"pods": Unknown("503")}, {"need": UNKNOWN_NEED}):
            if story.turn(**changes).phase is Phase.FAILED:
                assert story.seconds == pytest.approx(604, abs=4)
                return
    raise AssertionError("the node is still cordoned")


@pytest.mark.parametrize(
    "between",
    [{"pods": (a_pod(),)}, {"lock": held(an_entry("n2", "c2"))}],
    ids=["a decision about a recreated pod", "a decision while the lock lacks the claim"],
)
def test_the_wait_for_a_correct_clock_continues_during_decisions_that_do_not_check_the_clock(
    between: dict[str, Any],
) -> None:
    """The host's clock is wrong in every round of the agent's loop. In every second round, the agent evicts a pod or
    restores its claim, and does not check the clock."""
    story = draining()
    while story.seconds < 600:
        assert story.turn(58, **SKEW).phase is Phase.DRAINING
        story.turn(**{**SKEW, **between})
    assert story.turn(60, **SKEW).phase is Phase.FAILED


@pytest.mark.parametrize("changes", [*EARLY.values(), SKEW], ids=[*EARLY, "the host's clock is wrong"])
def test_facts_that_are_briefly_unknown_do_not_undo_a_long_drain(changes: dict[str, Any]) -> None:
    story, busy = draining(), {"pods": (a_pod(),)}
    assert story.turn(**{**busy, **changes}).phase is Phase.DRAINING
    story.turn(590, **busy)
    for _ in range(2):
        story.turn(590, **{**busy, **changes})
        story.turn(**busy)
    assert story.node.unschedulable


def test_a_restarted_agent_waits_the_full_time_for_a_newly_unknown_fact() -> None:
    story = draining()
    story.turn(3000, pods=(a_pod(),))
    story.restart()
    assert story.turn(need=UNKNOWN_NEED, pods=(a_pod(),)).phase is Phase.DRAINING
    assert story.turn(590, need=UNKNOWN_NEED, pods=(a_pod(),)).phase is Phase.DRAINING


def test_a_restarted_agent_does_not_wait_longer_if_the_clock_jumps_back() -> None:
    """The host's clock jumps back by 400 days, and the agent restarts every minute. The drain is still undone after
    about ten minutes."""
    story = draining()
    story.turn(clock_skew_seconds=100.0, now=NOW + timedelta(seconds=100))
    for seconds in range(60, 600, 60):
        story.restart()
        far = timedelta(days=-400, seconds=seconds)
        assert story.turn(60, clock_skew_seconds=far.total_seconds() - seconds, now=NOW + far).phase is Phase.DRAINING
    story.restart()
    assert (
        story.turn(
            70, clock_skew_seconds=-86400.0 * 400, now=NOW + timedelta(days=-400, seconds=story.seconds + 70)
        ).phase
        is Phase.FAILED
    )


def test_a_host_with_an_unreadable_boot_id_releases_its_claim() -> None:
    story = draining()
    story.until_undone(620, **BLIND)
    assert story.turn(**BLIND, lock=held()).reason.code is Code.RELEASING
    assert '"claim"' not in story.node.annotations[keys.PROGRESS]


# Claiming: the patience is short, because others wait.


def claiming(**policy: Any) -> Story:
    return Story(a_progress(Phase.CLAIMING, claimed=ago(1)), drain=DrainPolicy(delay_seconds=3000), **policy)


BLIPS = [{"need": UNKNOWN_NEED}, {"lock": Unknown("503")}, BLIND]


@pytest.mark.parametrize("blip", BLIPS)
def test_a_node_keeps_its_claim_if_a_fact_is_often_unknown_for_a_short_time(blip: dict[str, Any]) -> None:
    story = claiming()
    for _ in range(5):
        assert story.turn(**blip).phase is Phase.CLAIMING
        assert story.turn().phase is Phase.CLAIMING
        story.turn(60)


@pytest.mark.parametrize("blip", BLIPS)
def test_a_node_releases_its_claim_if_a_fact_stays_unknown(blip: dict[str, Any]) -> None:
    assert claiming().until_undone(30, 1.0, **blip) == 16


def test_an_agent_that_restarts_often_does_not_keep_a_claim_for_ever() -> None:
    story = Story(a_progress(Phase.CLAIMING, claimed=ago(1)))
    assert story.until_undone(620, 1.0, lives=10.0, need=UNKNOWN_NEED) == pytest.approx(600, abs=2)


def test_each_claim_starts_a_new_wait_for_unknown_facts() -> None:
    story = claiming()
    story.turn(need=UNKNOWN_NEED)
    story.node = a_marked_node(a_progress(Phase.WAITING))
    story.turn(100, need=UNKNOWN_NEED, lock=held())
    assert story.memory.patience.since is None


def test_an_active_alert_is_no_unknown_fact() -> None:
    story = draining()
    assert story.turn(alerts=(Alert(name="DiskFull"),)).reason.code is Code.ALERT
    assert story.memory.patience.since is None

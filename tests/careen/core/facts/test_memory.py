"""The memory of an agent process: the back-offs of evictions, the result of the reboot request, and which fields the
memory keeps when the phase changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.facts.memory import (
    LIVES,
    Claiming,
    ClaimMemory,
    Costly,
    Crowd,
    Drain,
    EvictAnswer,
    EvictionMemory,
    HolderCheck,
    LineWatch,
    Losses,
    Memory,
    NewPodsMemory,
    Patience,
    Prepared,
    RebootMemory,
    RebootOutcome,
    Reported,
    SeenVersions,
    StrangerMemory,
    WrittenMark,
    after_eviction,
    after_reboot_asked,
    before_reboot_asked,
    in_phase,
)
from careen.core.facts.phases import Phase
from tests.careen.core.builders import UPTIME, a_progress, decided


def refused(
    memory: Memory,
    times: int,
    jitter: float = 0.5,
    retry_after: float = 0.0,
    answer: EvictAnswer = EvictAnswer.DENIED,
) -> Memory:
    for _ in range(times):
        memory = after_eviction(
            memory, pod_uid="p", answer=answer, uptime=100.0, jitter=jitter, retry_after_seconds=retry_after
        )
    return memory


@pytest.mark.parametrize(("times", "pause"), [(1, 1.5), (2, 3.0), (3, 6.0), (6, 48.0), (7, 60.0), (100, 60.0)])
def test_the_back_off_of_an_eviction_doubles_up_to_a_minute(times: int, pause: float) -> None:
    assert refused(Memory(), times).drain.evictions["p"].not_before == 100.0 + pause
    assert refused(Memory(), times).drain.evictions["p"].attempts == times


@pytest.mark.parametrize(
    ("times", "pause"), [(1, 1.0), (2, 1.15), (3, 1.3225), (18, 10.76), (30, 57.58), (31, 60.0), (100, 60.0)]
)
def test_the_back_off_after_a_refusal_by_a_disruption_budget_grows_by_15_percent(times: int, pause: float) -> None:
    found = refused(Memory(), times, answer=EvictAnswer.BUDGET).drain.evictions["p"].not_before
    assert found == pytest.approx(100.0 + pause, abs=0.05)


def test_a_back_off_is_never_shorter_than_retry_after() -> None:
    assert refused(Memory(), 1, retry_after=45.0).drain.evictions["p"].not_before == 145.0


@given(st.floats(0, 0.999), st.integers(1, 200))
def test_jitter_changes_a_back_off_by_a_quarter_at_most(jitter: float, times: int) -> None:
    pause = refused(Memory(), times, jitter).drain.evictions["p"].not_before - 100.0
    middle = min(60.0, 1.5 * 2.0 ** (times - 1))
    assert 0.75 * middle <= pause <= 1.25 * middle


def test_the_result_of_a_reboot_request_is_unclear_until_the_host_answers() -> None:
    announced = Memory(reboot=RebootMemory(claim="c", announcement=1, outcome=RebootOutcome.NOT_ASKED))
    asked = before_reboot_asked(announced)
    assert asked.reboot is not None
    assert asked.reboot.outcome is RebootOutcome.UNCLEAR
    failed = after_reboot_asked(asked, RebootOutcome.FAILED, "exit code 1")
    assert failed.reboot is not None
    assert (failed.reboot.outcome, failed.reboot.detail) == (RebootOutcome.FAILED, "exit code 1")


CLAIM = RebootMemory(claim="c", announcement=1, outcome=RebootOutcome.ACCEPTED)
FULL = Memory(
    node_uid="uid-n1",
    is_reconciled=True,
    lock_due=UPTIME + 60,
    agents=3,
    moves_counted_at=UPTIME,
    reboot=CLAIM,
    held=ClaimMemory(claim="c", is_announced=True),
    need_seen_at=UPTIME,
    prepared=Prepared(
        at=UPTIME,
        times=1,
        found=(),
        holders=(),
        nodes={},
        disruptions={},
        forecast=None,
        rehearsed=frozenset(),
    ),
    stranger=StrangerMemory(by="x", announcement=1, since=UPTIME),
    line=LineWatch(key="k", since=UPTIME, passed=("n2",)),
    costly=Costly(not_before=UPTIME, refusals=2, gate="alerts", holders=("n2",)),
    claiming=Claiming(at=UPTIME, holders=("n2",), claimers={"n2/1": UPTIME}),
    drain=Drain(
        evictions={"p": EvictionMemory(attempts=3, not_before=UPTIME, answer=EvictAnswer.DENIED)},
        new_pods={"rs": NewPodsMemory(rounds=1, not_before=UPTIME)},
    ),
    holder_check=HolderCheck(at=UPTIME, suspected={"c": UPTIME}, overdue=(("n2", "2026-03-04T11:00:00Z"),)),
    crowd=Crowd(count=3, until=UPTIME + 60),
    patience=Patience(since=UPTIME, gates=frozenset({"alerts"}), claim="c"),
    versions=SeenVersions(node=7, lock=42),
    losses=Losses(written={"cordon": WrittenMark(value="set", at=UPTIME, stops=True)}),
    reported=Reported(code="held", at=UPTIME),
)


def test_the_example_memory_sets_every_field() -> None:
    empty = Memory()
    assert [name for name in Memory.__struct_fields__ if getattr(FULL, name) == getattr(empty, name)] == []


@pytest.mark.parametrize("phase", list(Phase))
def test_a_decision_clears_the_memory_fields_of_earlier_phases(phase: Phase) -> None:
    """After a decision, the memory keeps only the fields of two phases: the phase that the Node shows, and the phase
    that the decision chooses."""
    decision = decided(a_progress(phase) if phase is not Phase.IDLE else None, memory=FULL)
    survivors = {
        name
        for name, phases in LIVES.items()
        if not {phase, decision.phase} & phases and getattr(decision.memory, name) != getattr(Memory(), name)
    }
    assert survivors == set()


@pytest.mark.parametrize("phase", list(Phase))
def test_a_new_phase_begins_without_the_memory_fields_of_earlier_phases(phase: Phase) -> None:
    decision = decided(a_progress(phase) if phase is not Phase.IDLE else None, memory=FULL)
    for name, phases in LIVES.items():
        if phase not in phases:
            assert getattr(decision.memory, name) != getattr(FULL, name)


@pytest.mark.parametrize("phase", list(Phase))
def test_the_agents_memory_keeps_only_the_fields_that_the_nodes_phase_uses(phase: Phase) -> None:
    kept = in_phase(FULL, phase)
    for name in Memory.__struct_fields__:
        expected = FULL if phase in LIVES.get(name, Phase) else Memory()
        assert getattr(kept, name) == getattr(expected, name)


def test_every_group_of_memory_fields_declares_in_which_phases_the_group_is_kept() -> None:
    assert LIVES.keys() <= set(Memory.__struct_fields__)
    outlive = {"node_uid", "is_reconciled", "lock_due", "agents", "moves_counted_at", "reboot", "held"}
    assert set(Memory.__struct_fields__) - LIVES.keys() == outlive | {
        "holder_check",
        "crowd",
        "patience",
        "losses",
        "versions",
        "reported",
    }

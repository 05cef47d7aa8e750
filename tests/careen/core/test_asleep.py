"""When an agent may sleep, until when, and what it remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.actions import PostEvent
from careen.core.decide import decide
from careen.core.facts import keys
from careen.core.facts.memory import (
    HolderCheck,
    Loss,
    Losses,
    Memory,
    Patience,
    RebootMemory,
    RebootOutcome,
    SeenVersions,
)
from careen.core.facts.observation import Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.people.asleep import BREAK_EVEN_SECONDS, MOST_SLEEPS, Rest, may_sleep
from careen.core.steps.idle import FREE_LOCK_LOOK_SECONDS
from tests.careen.core.builders import (
    NO,
    UNKNOWN_NEED,
    UPTIME,
    YES,
    a_marked_node,
    a_node,
    a_policy,
    a_progress,
    a_reading,
    an_entry,
    an_observation,
    held,
    remembering,
)

DUE = UPTIME + 1000.0


def verdict(
    *, slept: tuple[float, ...] = (), next_question: float | None = None, memory: Memory | None = None, **seen: Any
) -> Rest | str:
    """What is said after the turn of an idle node that needs nothing."""
    before = remembering(is_reconciled=True, lock_due=DUE)
    observation = an_observation(**{"node": a_node(), "need": NO, "memory": before, **seen})
    decision = decide(observation, a_policy())
    return may_sleep(observation, decision, memory or decision.memory, slept=slept, next_question=next_question)


def test_an_idle_agent_sleeps_until_it_reads_the_lock_again() -> None:
    found = verdict()
    assert isinstance(found, Rest)
    assert found.until == DUE


def test_a_command_that_is_due_earlier_ends_the_sleep() -> None:
    found = verdict(next_question=UPTIME + 400.0)
    assert isinstance(found, Rest)
    assert found.until == UPTIME + 400.0


def test_a_sleep_shorter_than_the_break_even_is_not_begun() -> None:
    assert isinstance(verdict(next_question=UPTIME + BREAK_EVEN_SECONDS), Rest)
    assert verdict(next_question=UPTIME + BREAK_EVEN_SECONDS - 1) == "the next look is too soon"


def test_an_agent_that_slept_six_times_in_an_hour_stays_awake_until_an_hour_after_the_first() -> None:
    times = tuple(UPTIME - 3599.0 + number for number in range(MOST_SLEEPS))
    assert isinstance(verdict(slept=times), str)
    assert isinstance(verdict(slept=(UPTIME - 3600.0, *times[1:])), Rest)


LOSS = Loss(times=1, at=UPTIME, not_before=UPTIME, wanted="a", found=None, is_reverted=False, stops=False)


@pytest.mark.parametrize(
    "changes",
    [
        {"need": YES},
        {"need": UNKNOWN_NEED},
        {"node": Unknown("no answer")},
        {"node": a_node(annotations={keys.PROGRESS: "nonsense"})},
        {"node": a_node(is_being_deleted=True)},
        {"node": a_node(annotations={keys.REQUEST: "reboot"})},
        {"node": a_marked_node(a_progress(Phase.CLAIMING))},
        {"node": a_marked_node(a_progress(Phase.DRAINING))},
        {"node": a_marked_node(a_progress(Phase.FAILED))},
        {"memory": remembering(is_reconciled=False, lock_due=DUE)},
        {"memory": remembering(is_reconciled=True, lock_due=None)},
        {"memory": remembering(is_reconciled=True, lock_due=DUE, holder_check=HolderCheck(suspected={"c": 1.0}))},
        {"memory": remembering(is_reconciled=True, lock_due=DUE, losses=Losses(marks={"x": LOSS}))},
        {"memory": remembering(is_reconciled=True, lock_due=DUE, patience=Patience(since=1.0))},
        {"memory": remembering(is_reconciled=True, lock_due=DUE, versions=SeenVersions(behind_since=1.0))},
    ],
)
def test_an_agent_with_something_to_do_stays_awake(changes: dict[str, Any]) -> None:
    found = _of(changes["memory"]) if "memory" in changes else verdict(**changes)
    assert isinstance(found, str)


def _of(memory: Memory) -> Rest | str:
    observation = an_observation(node=a_node(), need=NO, memory=remembering(is_reconciled=True, lock_due=DUE))
    return may_sleep(observation, decide(observation, a_policy()), memory, slept=(), next_question=None)


def test_a_waiting_agent_stays_awake_however_rarely_it_looks() -> None:
    node = a_marked_node(a_progress(Phase.WAITING))
    observation = an_observation(node=node, need=YES, lock=a_reading(held()))
    decision = replace(QUIET, phase=Phase.WAITING, look_again_seconds=900.0)
    found = may_sleep(observation, decision, QUIET.memory, slept=(), next_question=None)
    assert found == "the phase is Waiting"


def test_the_woken_agent_remembers_no_write_and_no_attempt() -> None:
    found = verdict()
    assert isinstance(found, Rest)
    assert (found.memory.reboot, found.memory.prepared, found.memory.losses) == (None, None, Losses())
    assert found.memory.lock_due == DUE


@pytest.mark.parametrize(("entries", "least"), [((), FREE_LOCK_LOOK_SECONDS), ((an_entry("n2"),), 300.0)])
def test_an_idle_agent_reads_a_lock_without_holders_less_often(entries: Any, least: float) -> None:
    memory = remembering(is_reconciled=True, lock_due=UPTIME, agents=3)
    observation = an_observation(node=a_node(), need=NO, memory=memory, lock=a_reading(held(*entries)))
    due = decide(observation, a_policy()).memory.lock_due
    assert due == UPTIME + least


QUIET = decide(an_observation(node=a_node(), need=NO, memory=remembering(is_reconciled=True, lock_due=DUE)), a_policy())
"""The decision of an idle node that needs nothing."""
ATTEMPT = RebootMemory(claim="c1", announcement=1, outcome=RebootOutcome.UNCLEAR)


@pytest.mark.parametrize(
    ("decision", "seen", "memory"),
    [
        pytest.param(
            {"actions": (PostEvent(code=Code.NO_NEED, sentence="", is_warning=False),)},
            {},
            {},
            id="the turn wrote something",
        ),
        pytest.param({"starts_soon": True}, {}, {}, id="the drain may begin soon"),
        pytest.param({}, {"node": a_marked_node(a_progress(Phase.CLAIMING))}, {}, id="the record has a claim"),
        pytest.param({}, {"need": YES}, {}, id="a need whose moment has not come"),
        pytest.param({}, {}, {"reboot": ATTEMPT}, id="the host may be going down"),
    ],
)
def test_each_of_these_facts_alone_keeps_the_agent_awake(
    decision: dict[str, Any], seen: dict[str, Any], memory: dict[str, Any]
) -> None:
    observation = an_observation(**{"node": a_node(), "need": NO, "lock": a_reading(held()), **seen})
    remembered = replace(QUIET.memory, **memory)
    found = may_sleep(observation, replace(QUIET, **decision), remembered, slept=(), next_question=None)
    assert isinstance(found, str)
    quiet = an_observation(node=a_node(), need=NO)
    assert isinstance(may_sleep(quiet, QUIET, QUIET.memory, slept=(), next_question=None), Rest)

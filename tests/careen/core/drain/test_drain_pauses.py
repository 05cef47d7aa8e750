"""Tests how many seconds pass until the agent of a draining node decides again: after evictions, and while pods
terminate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from careen.core.actions import Evict, EvictPod
from careen.core.decision import Decision, Reason
from careen.core.drain import drain_pauses
from careen.core.facts.memory import EvictAnswer, EvictionMemory, Memory
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from tests.careen.core.builders import NOW, UPTIME, a_pod, with_parts

ACCEPTED, GONE, BUDGET = EvictAnswer.ACCEPTED, EvictAnswer.GONE, EvictAnswer.BUDGET
DENIED, UNCLEAR = EvictAnswer.DENIED, EvictAnswer.UNCLEAR

Answers = Mapping[str, tuple[EvictAnswer, float]]


def evicting(*names: str) -> Decision:
    pods = tuple(EvictPod(namespace="shop", name=name, uid=name) for name in names)
    return Decision(
        phase=Phase.DRAINING,
        reason=Reason(code=Code.DRAINING, sentence="."),
        memory=Memory(),
        look_again_seconds=9.0,
        actions=(Evict(pods=pods, parallel=1),),
    )


def answered(answers: Answers) -> Memory:
    """Return what an agent remembers: the result of the last eviction of each pod, and the earliest time of the pod's
    next eviction."""
    evictions = {
        name: EvictionMemory(attempts=1, not_before=UPTIME + wait, answer=answer)
        for name, (answer, wait) in answers.items()
    }
    return with_parts(Memory(), drain__evictions=evictions)


@pytest.mark.parametrize(
    ("answers", "look"),
    [
        pytest.param({"a": (ACCEPTED, 1.5), "b": (ACCEPTED, 1.5)}, 1.0, id="all evicted pods terminate"),
        pytest.param({"a": (ACCEPTED, 1.5), "b": (GONE, 1.5)}, 1.0, id="one pod was already gone"),
        pytest.param(
            {"a": (ACCEPTED, 0.9), "b": (BUDGET, 1.2)}, 1.2, id="the back-off of a refused eviction ends in 1.2 seconds"
        ),
        pytest.param(
            {"a": (BUDGET, 1.0), "b": (DENIED, 1.4)},
            1.4,
            id="two back-offs that end less than half a second apart cause one decision",
        ),
        pytest.param(
            {"a": (BUDGET, 1.0), "b": (UNCLEAR, 1.6)},
            1.0,
            id="two back-offs that end more than half a second apart cause two decisions",
        ),
        pytest.param(
            {"a": (BUDGET, 50.0), "b": (BUDGET, 60.0)},
            2.0,
            id="all back-offs last longer than two seconds, so the agent makes its next decision after two seconds",
        ),
        pytest.param({"a": (BUDGET, 0.2), "b": (ACCEPTED, 1.5)}, 0.5, id="the agent waits at least half a second"),
        pytest.param({"a": (ACCEPTED, 1.5)}, 0.5, id="the second pod has not been evicted yet"),
        pytest.param(
            {"a": (ACCEPTED, 1.5), "b": (BUDGET, 0.0)}, 0.5, id="the back-off of the second pod has already ended"
        ),
        pytest.param(
            {"a": (ACCEPTED, 1.5), "b": (ACCEPTED, 1.5), "c": (BUDGET, 0.8)},
            0.8,
            id="the back-off of an earlier refused eviction ends first",
        ),
    ],
)
def test_the_results_of_evictions_determine_when_the_agent_decides_again(answers: Answers, look: float) -> None:
    decided = evicting("a", "b")
    found = drain_pauses.after_evictions(decided, answered(answers), uptime=UPTIME)
    assert found == replace(decided, look_again_seconds=pytest.approx(look))


def test_a_decision_without_eviction_requests_is_returned_unchanged() -> None:
    idle = replace(evicting(), actions=())
    assert drain_pauses.after_evictions(idle, answered({"a": (BUDGET, 1.2)}), uptime=UPTIME) is idle


def test_the_check_of_terminating_pods_waits_for_an_eviction_that_is_due_soon() -> None:
    ending = [a_pod("a", deletion_timestamp=NOW - timedelta(seconds=1))]
    assert drain_pauses.without_eviction(ending, (), NOW) == 0.5
    assert drain_pauses.without_eviction(ending, (1.3,), NOW) == 1.3
    assert drain_pauses.without_eviction(ending, (7.0,), NOW) == 2.0
    assert drain_pauses.without_eviction((), (), NOW) == 2.0

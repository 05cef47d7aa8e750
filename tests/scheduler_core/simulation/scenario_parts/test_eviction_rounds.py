"""Tests the rounds of evictions: a round evicts each pod once, and the next round tries the refused evictions again."""

from __future__ import annotations

from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.simulation.evicted.evictions import BudgetLedger
from scheduler_core.simulation.scenario_parts.eviction_rounds import EvictionRounds
from scheduler_core.testing.builders import a_budget


def a_pod(name: str, kind: str = "ReplicaSet") -> Pod:
    owner = OwnerReference("apps/v1", kind, "web", "u")
    labels = {"app": "web"}
    return Pod(name=name, namespace="default", owner=owner, labels=labels, node_name="n1", phase="Running")


def a_round(*pods: Pod, allowed: int = 9) -> EvictionRounds:
    return EvictionRounds(BudgetLedger([a_budget("web").selecting(app="web").allowing(allowed).build()]), pods)


def test_the_next_round_repeats_a_refused_eviction() -> None:
    first, second = a_pod("web-1"), a_pod("web-2")
    rounds = a_round(first, second, allowed=1)
    assert (rounds.evict_next(), rounds.evict_next()) == (first, None)
    assert (list(rounds.refused), rounds.remaining, rounds.ending) == ([second.key], (), (first,))
    rounds.healthy = (first,)
    rounds.refill()
    rounds.begin_next()
    assert (rounds.remaining, rounds.ending, rounds.allows_another) == ((second,), (), True)
    assert (rounds.evict_next(), rounds.refused) == (second, {})


def test_the_controller_of_an_evicted_pod_decides_when_the_replacement_appears() -> None:
    """A ReplicaSet creates the replacement at once, a StatefulSet after the evicted pod is gone, and a Job after the
    last round."""
    pods = [a_pod("a"), a_pod("b", "StatefulSet"), a_pod("c", "Job")]
    rounds = a_round(*pods)
    assert [rounds.evict_next() for _ in pods] == pods
    assert rounds.begin_next() == (pods[1],)
    assert (rounds.at_last, rounds.afterwards) == ((pods[2],), ())


def test_evictions_of_a_copied_round_do_not_affect_the_original() -> None:
    rounds = a_round(a_pod("a"), a_pod("b"), allowed=1)
    other = rounds.copy()
    rounds.evict_next()
    rounds.evict_next()
    assert (other.allows_another, other.refused, other.likeness != rounds.likeness) == (True, {}, True)
    assert other.evict_next() is not None

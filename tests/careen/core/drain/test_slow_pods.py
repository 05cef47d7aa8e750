"""The drain of a node with slow pods, turn by turn: who is evicted when, when it is undone, what is remembered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.decision import Decision
from careen.core.drain import drain_memory
from careen.core.drain.drain_memory import DrainMemory, KnownOwner, UnderWay, digest
from careen.core.drain.slow_pods import IDLE_LIMIT_SECONDS, LIMIT_SECONDS, PLAIN_PODS_WAIT_SECONDS
from careen.core.facts import keys
from careen.core.facts.memory import EvictAnswer, EvictionMemory, Memory, SlowWatch
from careen.core.facts.observation import ClosedBudgets, DryRunAnswer, Evictable
from careen.core.facts.phases import Phase
from careen.core.facts.policy import DrainPolicy, ForecastPolicy
from careen.core.facts.reasons import Code
from careen.core.gates.drain_forecast import drain_forecast
from careen.core.gates.dry_run import dry_run
from careen.core.gates.question import When
from careen.core.steps.failed import backoff_seconds, is_tried_again
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.labels import equality_selector
from scheduler_core.simulation.forecast import Forecast, Opens, Outcome, PodForecast
from tests.careen.core.builders import (
    NOW,
    UPTIME,
    a_node,
    a_pod,
    a_policy,
    a_progress,
    a_situation,
    ago,
    decided,
    evicted,
    remembering,
    the_patch,
    the_record,
)

SLOW = a_pod("pg-1", owner_kind="Cluster", owner_name="pg", owner_uid="c")
PLAIN = a_pod("web-1")
OWNER = "Cluster shop/pg"
ROW = KnownOwner(owner_uid="c", budget="b/1", at=NOW)


def memory_of(plain_after: float | None = PLAIN_PODS_WAIT_SECONDS, **row: Any) -> DrainMemory:
    under_way = UnderWay(claim="c1", owners=frozenset({digest(OWNER)}), plain_after_seconds=plain_after)
    return DrainMemory(known={OWNER: replace(ROW, **row)}, under_way=under_way)


def draining(
    elapsed: float = 10.0, stored: DrainMemory | None = None, drain: DrainPolicy | None = None, **changes: Any
) -> Decision:
    text = drain_memory.to_annotation(memory_of() if stored is None else stored)
    given = {"pods": (SLOW, PLAIN), **changes}
    return decided(
        a_progress(Phase.DRAINING, drain_started=ago(elapsed)),
        a_policy(drain=drain or DrainPolicy()),
        {"annotations": {keys.DRAIN_MEMORY: text}},
        **given,
    )


def refused(moved_at: float = UPTIME, states: Any = None) -> Memory:
    watch = SlowWatch(
        states=frozenset({("uid-pg-1", False)}) if states is None else states,
        moved_at=moved_at,
        closed=frozenset({digest(OWNER)}),
        would_be="cordon",
    )
    asked = EvictionMemory(attempts=9, not_before=UPTIME + 5, answer=EvictAnswer.BUDGET)
    return remembering(drain__slow=watch, drain__evictions={"uid-pg-1": asked})


def remembered(decision: Decision) -> DrainMemory:
    return drain_memory.of(a_node(annotations={keys.DRAIN_MEMORY: the_patch(decision).annotations[keys.DRAIN_MEMORY]}))


@pytest.mark.parametrize(
    ("elapsed", "plain_after", "expected"),
    [
        (10, 60.0, ["pg-1"]),
        (61, 60.0, ["web-1", "pg-1"]),
        (0, 0.0, ["web-1", "pg-1"]),
        (1000, None, ["pg-1"]),
    ],
)
def test_plain_pods_wait_for_slow_ones_as_long_as_the_cordon_recorded(
    elapsed: float, plain_after: float | None, expected: list[str]
) -> None:
    assert sorted(evicted(draining(elapsed, memory_of(plain_after)))) == sorted(expected)


def test_plain_pods_go_once_the_slow_ones_terminate() -> None:
    ending = a_pod("pg-1", owner_kind="Cluster", owner_name="pg", owner_uid="c", deletion_timestamp=NOW)
    assert evicted(draining(10, memory_of(None), pods=(ending, PLAIN))) == ["web-1"]


def test_the_record_of_another_claim_holds_nobody_back() -> None:
    stored = memory_of()
    assert stored.under_way is not None
    other = replace(stored, under_way=replace(stored.under_way, claim="c0"))
    assert evicted(draining(10, other)) == ["pg-1", "web-1"]


@pytest.mark.parametrize(
    ("elapsed", "idle", "is_undone"),
    [
        (IDLE_LIMIT_SECONDS + 10, IDLE_LIMIT_SECONDS - 1, False),
        (IDLE_LIMIT_SECONDS + 10, IDLE_LIMIT_SECONDS + 1, True),
        (LIMIT_SECONDS - 1, 60, False),
        (LIMIT_SECONDS + 1, 60, True),
    ],
)
def test_a_drain_is_undone_half_an_hour_after_the_last_progress_or_after_two_hours(
    elapsed: float, idle: float, is_undone: bool
) -> None:
    decision = draining(elapsed, pods=(SLOW,), memory=refused(UPTIME - idle))
    assert (decision.reason.code is Code.SLOW_PODS) is is_undone
    assert (decision.phase is Phase.FAILED) is is_undone


def test_a_pod_that_left_is_progress() -> None:
    states = frozenset({("uid-pg-1", False), ("uid-gone", False)})
    memory = refused(UPTIME - IDLE_LIMIT_SECONDS - 1, states)
    assert draining(IDLE_LIMIT_SECONDS + 10, pods=(SLOW,), memory=memory).reason.code is Code.DRAINING


def test_a_drain_without_slow_pods_keeps_no_limit() -> None:
    decision = draining(9_000.0, DrainMemory(), pods=(PLAIN,))
    assert decision.reason.code is Code.DRAINING


@pytest.mark.parametrize(("pods", "code"), [((SLOW,), Code.SLOW_PODS), ((PLAIN,), Code.DRAIN_TIMEOUT)])
def test_the_timeout_of_the_settings_counts_if_it_is_set(pods: Any, code: Code) -> None:
    drain = DrainPolicy(timeout_seconds=300.0)
    assert draining(301, drain=drain, pods=pods, memory=refused()).reason.code is code
    assert draining(299, drain=drain, pods=(SLOW,), memory=refused(UPTIME - 10_000)).reason.code is Code.DRAINING


def test_an_undone_drain_is_remembered_and_released_and_tried_again_after_a_quarter_of_an_hour() -> None:
    decision = draining(LIMIT_SECONDS + 1, memory_of(undone=1), memory=refused())
    record, stored = the_record(decision), remembered(decision)
    assert (record.failed, record.is_releasing, record.is_cordoned_by_us) == ("slow-pods", True, False)
    assert (stored.known[OWNER].undone, stored.undone, stored.under_way) == (2, (NOW,), None)
    assert is_tried_again(record, a_policy())
    assert backoff_seconds(record, a_policy()) == 900.0


@pytest.mark.parametrize(
    ("would_be", "webhook", "opens"),
    [("cordon", "", Opens.CORDON), ("emptied", "", Opens.EMPTIED), ("emptied", "w", Opens.ATTEMPT)],
)
def test_a_drained_node_remembers_how_its_budget_opened(would_be: str, webhook: str, opens: Opens) -> None:
    watch = SlowWatch(
        states=frozenset({("uid-pg-1", False)}),
        moved_at=UPTIME,
        closed=frozenset({digest(OWNER)}),
        had_plain=True,
        would_be=would_be,
    )
    decision = draining(40, memory_of(undone=2, webhook=webhook), pods=(), memory=remembering(drain__slow=watch))
    row = remembered(decision).known[OWNER]
    assert decision.phase is Phase.REBOOTING
    assert (row.opens, row.seconds, row.undone) == (opens, 40.0, 0)


# The gates ---------------------------------------------------------------------------------------------------------


def closed(**changes: Any) -> DryRunAnswer:
    budget = DisruptionBudget(
        name="pg",
        namespace="shop",
        selector=equality_selector({}),
        desired_healthy=1,
        expected_pods=1,
        uid="b",
        generation=1,
        **changes,
    )
    return DryRunAnswer(answer=Evictable.BUDGET, detail="budget pg", closed=ClosedBudgets(budgets=(budget,)))


def asked(stored: DrainMemory | None = None, answer: DryRunAnswer | None = None, policy: Any = None) -> Any:
    text = drain_memory.to_annotation(stored) if stored else None
    node = a_node(annotations={keys.DRAIN_MEMORY: text} if text else {})
    situation = a_situation(node, policy, pods=(SLOW,), evictability={"uid-pg-1": answer or closed()})
    return dry_run.ask(situation, When.CLAIMED)


def test_the_dry_run_ignores_the_refusal_of_a_slow_pod_and_no_other() -> None:
    assert asked() is None
    assert asked(answer=DryRunAnswer(answer=Evictable.BARRED)).code is Code.EVICTION_REFUSED
    assert asked(answer=DryRunAnswer(answer=Evictable.UNKNOWN)).code is Code.EVICTIONS_UNKNOWN


def test_after_three_undone_drains_the_refusal_names_the_next_try_and_the_operator() -> None:
    refusal = asked(DrainMemory(known={OWNER: replace(ROW, undone=3)}))
    assert refusal.code is Code.EVICTION_REFUSED
    assert refusal.sentence == (
        "never (seen): 3 drains were undone because these pods did not leave: shop/pg-1 (budget pg); "
        "the next try is at 2026-03-05T12:00:00Z"
    )
    assert refusal.remedy == (
        "look at the operator of Cluster shop/pg and its setting for drains; `careen retry n1` tries at once"
    )
    assert asked(DrainMemory(known={OWNER: replace(ROW, undone=3, budget="b/0")})) is None


def test_the_forecast_refuses_no_slow_pod_unless_earlier_drains_were_undone_for_it() -> None:
    told = PodForecast(
        namespace="shop",
        name="pg-1",
        uid="uid-pg-1",
        outcome=Outcome.BLOCKED,
        sentence="closed",
        owner=OWNER,
        owner_uid="c",
        opens=Opens.UNSEEN,
    )
    made = Forecast(node="n1", made_at="2026-03-04T12:00:00Z", pods=(told,))
    policy = a_policy(forecast=ForecastPolicy.REFUSE)
    assert drain_forecast.ask(a_situation(policy=policy, forecast=made), When.READY) is None
    text = drain_memory.to_annotation(DrainMemory(known={OWNER: replace(ROW, undone=1)}))
    node = a_node(annotations={keys.DRAIN_MEMORY: text or ""})
    refusal = drain_forecast.ask(a_situation(node, policy, forecast=made), When.READY)
    assert refusal is not None
    assert refusal.sentence.endswith("the next try is at 2026-03-04T12:15:00Z")


def test_a_retry_of_a_person_forgives_the_undone_drains() -> None:
    text = drain_memory.to_annotation(DrainMemory(known={OWNER: replace(ROW, undone=3)}, undone=(NOW,)))
    node = {"annotations": {keys.RETRY: "2026-03-04T12:00:00Z", keys.DRAIN_MEMORY: text}}
    for phase in (Phase.WAITING, Phase.FAILED):
        record = a_progress(phase, failed="slow-pods" if phase is Phase.FAILED else "", claim="", boot_left="")
        stored = remembered(decided(record, node=node))
        assert (stored.known[OWNER].undone, stored.undone) == (0, ())


@pytest.mark.parametrize(
    ("forecast", "kind", "answer", "is_undone"),
    [
        (ForecastPolicy.OFF, "Cluster", EvictAnswer.BUDGET, True),
        (ForecastPolicy.OFF, "ReplicaSet", EvictAnswer.BUDGET, False),
        (ForecastPolicy.OFF, "Cluster", EvictAnswer.UNCLEAR, False),
        (ForecastPolicy.REFUSE, "Cluster", EvictAnswer.BUDGET, False),
    ],
)
def test_without_a_forecast_an_operators_pod_that_a_budget_refuses_during_the_drain_is_slow(
    forecast: ForecastPolicy, kind: str, answer: EvictAnswer, *, is_undone: bool
) -> None:
    """Its dry run was allowed, because the budget lets one of two pods go; only a forecast would have seen more."""
    pod = replace(SLOW, owner_kind=kind)
    watch = SlowWatch(states=frozenset({("uid-pg-1", False)}), moved_at=UPTIME - IDLE_LIMIT_SECONDS - 1)
    asked = EvictionMemory(attempts=9, not_before=UPTIME + 5, answer=answer)
    decision = decided(
        a_progress(Phase.DRAINING, drain_started=ago(IDLE_LIMIT_SECONDS + 10)),
        a_policy(forecast=forecast),
        pods=(pod,),
        memory=remembering(drain__slow=watch, drain__evictions={"uid-pg-1": asked}),
    )
    assert (decision.reason.code is Code.SLOW_PODS) is is_undone

"""The list of gates and their declarations (`careen.core.gates`, `careen.core.gates.question`). They derive what
they can from the declarations: a new gate changes none of these tests."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core import gates
from careen.core.decision import Refusal
from careen.core.facts.observation import NOT_ASKED
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import AlertPolicy, BoundPods, DrainPolicy, ForecastPolicy, Policy
from careen.core.facts.reasons import Code
from careen.core.gates import GATES, asked, missing, refusals
from careen.core.gates.drain_forecast import drain_forecast
from careen.core.gates.dry_run import dry_run
from careen.core.gates.hold import hold
from careen.core.gates.question import Cost, No, When, gate
from careen.core.situation import Situation
from tests.careen.core.builders import a_policy, a_situation


def test_the_names_of_gates_are_unique() -> None:
    assert len({gate.name for gate in GATES}) == len(GATES)


def test_a_persons_word_comes_first_then_the_cheap_gates_and_the_forecast_and_the_dry_run_last() -> None:
    costs = [gate.cost for gate in GATES]
    assert costs == sorted(costs, key=list(Cost).index)
    assert GATES[0] is hold
    assert GATES[-2:] == (drain_forecast, dry_run)


@pytest.mark.parametrize("when", list(When))
@pytest.mark.parametrize("cost", [None, *Cost])
def test_a_gates_declaration_decides_when_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, when: When, cost: Cost | None
) -> None:
    declared = {
        (own_when, own_cost): gate(f"{own_cost} {own_when}", when=frozenset({own_when}), cost=own_cost)(
            lambda _situation: None
        )
        for own_when in When
        for own_cost in Cost
    }
    monkeypatch.setattr(gates, "GATES", tuple(declared.values()))
    assert asked(when, cost) == tuple(declared[when, each] for each in Cost if cost in {None, each})


def test_dry_run_evictions_are_requested_only_under_a_claim() -> None:
    """Otherwise each waiting node would request an eviction for each of its pods."""
    assert [gate for gate in GATES if When.READY not in gate.when] == [dry_run]
    assert all(When.CLAIMED in gate.when for gate in GATES)


def test_a_gate_refuses_with_its_name_and_is_told_the_point_only_if_it_asks_for_it() -> None:
    @gate("moon", cost=Cost.CHEAP)
    def full(_situation: Situation) -> No | None:
        return No(Code.HELD, "the moon is full", is_of_cluster=True)

    @gate("tide", cost=Cost.CHEAP)
    def high(_situation: Situation, when: When) -> No | None:
        return No(Code.HELD, when.value, remedy="wait", longest_seconds=2.0) if when is When.CLAIMED else None

    full_moon = Refusal(gate="moon", code=Code.HELD, sentence="the moon is full", is_of_cluster=True)
    high_tide = Refusal(gate="tide", code=Code.HELD, sentence=When.CLAIMED.value, remedy="wait", longest_seconds=2.0)
    assert [each.ask(a_situation(), When.CLAIMED) for each in (full, high)] == [full_moon, high_tide]
    assert [each.ask(a_situation(), When.READY) for each in (full, high)] == [full_moon, None]


def test_a_gate_without_evidence_under_the_policy_is_off() -> None:
    @gate("moon", cost=Cost.CHEAP, needs=lambda policy: {Evidence.ALERTS} if policy.alerts else set())
    def moon(_situation: Situation) -> No | None:
        return No(Code.HELD, "the moon is full")

    refused = [
        moon.ask(a_situation(policy=a_policy(alerts=alerts)), When.READY) is not None
        for alerts in (None, AlertPolicy())
    ]
    assert refused == [False, True]


def test_by_default_cheap_gates_need_no_additional_reads() -> None:
    situation = a_situation(pods=NOT_ASKED)
    assert missing(situation, asked(When.READY, Cost.CHEAP)) == frozenset()


def test_the_agent_reads_only_missing_facts_that_a_configured_gate_needs() -> None:
    of_interest = {Evidence.FLEET, Evidence.ALERTS, Evidence.FOREIGN, Evidence.FORECAST, Evidence.PODS, Evidence.OWNERS}

    def read(policy: Policy = a_policy(), **facts: Any) -> frozenset[Evidence]:  # noqa: B008 - frozen
        return missing(a_situation(policy=policy, **facts), asked(When.READY, Cost.COSTLY)) & of_interest

    lacking = dict.fromkeys(("fleet", "alerts", "foreign", "forecast"), NOT_ASKED)
    assert read(**lacking) == {Evidence.FOREIGN, Evidence.FLEET, Evidence.FORECAST}
    assert read(a_policy(forecast=ForecastPolicy.OFF), **lacking) == {Evidence.FOREIGN, Evidence.FLEET}
    assert read() == frozenset()
    no_pods = {"pods": NOT_ASKED, "owners": NOT_ASKED}
    assert read(**no_pods) == {Evidence.PODS, Evidence.OWNERS}
    assert read(a_policy(drain=DrainPolicy(bound_pods=BoundPods.STAY)), **no_pods) == {Evidence.PODS}
    neither = DrainPolicy(bound_pods=BoundPods.STAY, skip_wait_for_delete_seconds=60.0)
    assert read(a_policy(drain=neither, protects_pods=False), **no_pods) == frozenset()


@pytest.mark.parametrize("when", list(When))
def test_no_gate_refuses_in_a_favourable_state(when: When) -> None:
    assert refusals(a_situation(), asked(when), when) == ()

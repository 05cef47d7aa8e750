"""The list of gates (`careen.core.gates`, `careen.core.gates.question`): its order, when each gate is evaluated, and
which kinds of facts each gate needs."""

from __future__ import annotations

import pytest

from careen.core.facts.observation import NOT_ASKED
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import AlertPolicy, BoundPods, DrainPolicy, ForecastPolicy
from careen.core.gates import GATES, asked, foreseen, missing, refusals, unforeseen
from careen.core.gates.question import Cost, Foreseen, Unforeseen, When
from tests.careen.core.builders import a_policy, a_situation


def test_cheap_gates_come_first_and_the_forecast_gate_precedes_the_dry_run_gate() -> None:
    assert [gate.name for gate in GATES] == [
        "hold",
        "halt",
        "host-state",
        "settings",
        "reboot-way",
        "loop-limit",
        "gate-annotations",
        "maintenance-window",
        "minimum-interval",
        "foreign-cordon",
        "blocking-pods",
        "cluster-interval",
        "foreign-coordinator",
        "blocking-pods-elsewhere",
        "bound-pods",
        "budgets",
        "control-plane",
        "alerts",
        "health-queries",
        "forecast",
        "dry-run-evictions",
    ]


@pytest.mark.parametrize(
    ("when", "left_out"),
    [
        (When.READY, {"dry-run-evictions"}),
        (When.CLAIMED, set()),
        (
            When.BEFORE_REBOOT,
            {
                "halt",
                "reboot-way",
                "loop-limit",
                "minimum-interval",
                "foreign-cordon",
                "cluster-interval",
                "bound-pods",
                "budgets",
                "forecast",
                "dry-run-evictions",
            },
        ),
    ],
)
def test_each_gate_is_evaluated_in_its_phases(when: When, left_out: set[str]) -> None:
    assert {gate.name for gate in GATES} - {gate.name for gate in asked(when)} == left_out


def test_by_default_cheap_gates_need_no_additional_reads() -> None:
    situation = a_situation(pods=NOT_ASKED)
    assert missing(situation, asked(When.READY, Cost.CHEAP)) == frozenset()


def test_the_agent_reads_only_missing_facts_that_a_configured_gate_needs() -> None:
    lacking = dict.fromkeys(("fleet", "alerts", "foreign", "forecast"), NOT_ASKED)
    costly = asked(When.READY, Cost.COSTLY)
    assert missing(a_situation(**lacking), costly) == {Evidence.FOREIGN, Evidence.FLEET, Evidence.FORECAST}
    assert missing(a_situation(policy=a_policy(forecast=ForecastPolicy.OFF), **lacking), costly) == {
        Evidence.FOREIGN,
        Evidence.FLEET,
    }
    assert missing(a_situation(), costly) == frozenset()
    no_pods = {"pods": NOT_ASKED, "owners": NOT_ASKED}
    assert missing(a_situation(**no_pods), costly) == {Evidence.PODS, Evidence.OWNERS}
    assert (
        missing(a_situation(policy=a_policy(drain=DrainPolicy(bound_pods=BoundPods.STAY)), **no_pods), costly)
        == frozenset()
    )


@pytest.mark.parametrize("when", list(When))
def test_no_gate_refuses_in_a_favourable_state(when: When) -> None:
    assert refusals(a_situation(), asked(when), when) == ()


def test_a_plan_evaluates_each_gate_or_lists_the_gate_as_unforeseeable() -> None:
    asked_by_a_plan = {gate.name for known in Foreseen for gate in foreseen(known)}
    named = {gate.name: gate.foresight.what for gate in GATES if isinstance(gate.foresight, Unforeseen)}
    assert asked_by_a_plan | named.keys() == {gate.name for gate in GATES}
    assert len(set(named.values())) == len(named)
    assert all(named.values())


def test_a_plan_does_not_mention_gates_that_are_switched_off() -> None:
    assert "alerts" not in unforeseen(a_policy(alerts=None))
    assert "alerts" in unforeseen(a_policy(alerts=AlertPolicy()))


@pytest.mark.parametrize(
    ("known", "evidence"),
    [
        (Foreseen.WITHOUT_FORECAST, {Evidence.LOCK, Evidence.FLEET}),
        (
            Foreseen.WITH_FORECAST,
            {Evidence.FORECAST, Evidence.PODS, Evidence.OWNERS, Evidence.EVICTABILITY},
        ),
    ],
)
def test_a_plan_evaluates_only_gates_whose_facts_are_known(known: Foreseen, evidence: set[Evidence]) -> None:
    """A gate without its facts refuses the reboot. If a plan evaluated such a gate, the plan would reboot no node."""
    assert {kind for gate in foreseen(known) for kind in gate.needs(a_policy())} <= evidence

"""The list of gates (`careen.core.gates`, `careen.core.gates.question`): its order, when each gate is evaluated, and
which kinds of facts each gate needs."""

from __future__ import annotations

import pytest

from careen.core.facts.observation import NOT_ASKED
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BoundPods, DrainPolicy, ForecastPolicy
from careen.core.gates import GATES, asked, missing, refusals
from careen.core.gates.question import Cost, When
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

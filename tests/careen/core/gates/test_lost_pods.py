"""The gate for pods that nothing would create again after a drain."""

from __future__ import annotations

import pytest

from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BlockingPods
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.gates.blocking_pods import blocking_pods
from careen.core.gates.lost_pods import lost_pods
from careen.core.gates.question import When
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.careen.core.builders import a_pod, a_policy, a_situation


def forecast(**outcomes: Outcome) -> Forecast:
    pods = tuple(
        PodForecast(namespace="shop", name=name, uid=name, outcome=outcome, sentence="no controller")
        for name, outcome in outcomes.items()
    )
    return Forecast(node="n1", made_at="2026-03-04T12:00:00Z", pods=pods)


def rule(*namespaces: str, longest: float = 0.0) -> BlockingPods:
    return BlockingPods(
        name="lost", selector=Selector(""), is_lost=True, namespaces=namespaces, longest_seconds=longest
    )


POLICY = a_policy(blocking_pods=(rule(longest=60),))
BARE = forecast(bare=Outcome.LOST, web=Outcome.MOVES)


@pytest.mark.parametrize(
    ("found", "rules", "code"),
    [
        (BARE, (rule(),), Code.LOST_POD),
        (BARE, (rule("ops"), rule("shop")), Code.LOST_POD),
        (BARE, (rule("ops"),), None),
        (BARE, (), None),
        (forecast(web=Outcome.MOVES), (rule(),), None),
        (Unknown("503"), (rule(),), Code.FORECAST_UNKNOWN),
        (NOT_ASKED, (rule(),), Code.FORECAST_UNKNOWN),
    ],
)
def test_a_pod_that_would_be_lost_refuses_the_reboot_if_an_entry_selects_it(
    found: Forecast, rules: tuple[BlockingPods, ...], code: Code | None
) -> None:
    refused = lost_pods.ask(a_situation(policy=a_policy(blocking_pods=rules), forecast=found), When.CLAIMED)
    assert (refused.code if refused else None) is code


def test_the_refusal_says_why_the_pod_would_be_lost_and_when_an_alert_fires() -> None:
    refused = lost_pods.ask(a_situation(policy=POLICY, forecast=BARE), When.READY)
    assert refused is not None
    assert refused.sentence == "these pods would be lost: shop/bare (no controller)"
    assert refused.longest_seconds == 60


def test_only_an_entry_for_lost_pods_needs_a_forecast_for_them() -> None:
    assert lost_pods.needs(a_policy()) == frozenset()
    assert lost_pods.needs(POLICY) == {Evidence.FORECAST}
    assert blocking_pods.needs(POLICY) == frozenset(), "the gate for labels ignores the entry, which selects every pod"
    assert blocking_pods.ask(a_situation(policy=POLICY, pods=(a_pod(),)), When.READY) is None

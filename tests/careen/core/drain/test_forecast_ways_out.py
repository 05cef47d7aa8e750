"""Remedies for a pod that makes a drain impossible. careen shows a remedy only if a simulation has shown that this
remedy alone helps."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.drain.forecast_ways_out import ways_out
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.careen.core.builders import a_policy


def pod(name: str, outcome: Outcome, *remedies: str, never: bool = False) -> PodForecast:
    return PodForecast(
        namespace="shop", name=name, uid=name, outcome=outcome, sentence="why", is_never=never, remedies=remedies
    )


PENDING = pod("a", Outcome.PENDING, "one more node like n1", "a maxSkew of 2")


@pytest.mark.parametrize(
    ("pods", "policy", "expected"),
    [
        pytest.param(
            (PENDING,),
            {},
            "shop/a would find a place with one more node like n1 or a maxSkew of 2",
            id="each of two remedies is enough",
        ),
        pytest.param(
            (pod("b", Outcome.BLOCKED, "one replica more", never=True),),
            {},
            "shop/b could be evicted with one replica more",
            id="a budget that can never allow the eviction",
        ),
        pytest.param(
            (pod("b", Outcome.BLOCKED, "one replica more"),),
            {},
            "",
            id="a budget that may allow the eviction later",
        ),
        pytest.param(
            (pod("c", Outcome.PENDING), PENDING),
            {},
            "shop/a would find a place with one more node like n1 or a maxSkew of 2",
            id="the first pod has no known remedy",
        ),
        pytest.param(
            tuple(pod(name, Outcome.PENDING, "x") for name in "abc"),
            {},
            "shop/a would find a place with x; shop/b would find a place with x",
            id="the message lists remedies for at most two pods",
        ),
        pytest.param((PENDING,), {"forecast_pending_allowed": 1}, "", id="the settings allow one pending pod"),
        pytest.param(
            (PENDING, pod("c", Outcome.PENDING, "x")),
            {"forecast_pending_allowed": 1},
            "shop/a would find a place with one more node like n1 or a maxSkew of 2; shop/c would find a place with x",
            id="more pending pods than the settings allow",
        ),
        pytest.param((pod("d", Outcome.MOVES),), {}, "", id="nothing refuses the drain"),
    ],
)
def test_a_refusal_by_the_forecast_lists_remedies_for_its_pods(
    pods: tuple[PodForecast, ...], policy: dict[str, Any], expected: str
) -> None:
    assert ways_out(Forecast(node="n1", made_at="2026-03-04T12:00:00Z", pods=pods), a_policy(**policy)) == expected

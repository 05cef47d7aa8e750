"""The remedies for pods that stop a drain. A simulation has shown that each remedy helps without the others."""

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
            id="each change is enough by itself",
        ),
        pytest.param(
            (pod("b", Outcome.BLOCKED, "one replica more", never=True),),
            {},
            "shop/b could be evicted with one replica more",
            id="a budget without room",
        ),
        pytest.param(
            (pod("b", Outcome.BLOCKED, "one replica more"),),
            {},
            "",
            id="a budget that will have room later refuses nothing",
        ),
        pytest.param(
            (pod("c", Outcome.PENDING), PENDING),
            {},
            "shop/a would find a place with one more node like n1 or a maxSkew of 2",
            id="if no change is known for a pod, that of the next pod",
        ),
        pytest.param(
            tuple(pod(name, Outcome.PENDING, "x") for name in "abc"),
            {},
            "shop/a would find a place with x; shop/b would find a place with x",
            id="at most two are shown",
        ),
        pytest.param((PENDING,), {"forecast_pending_allowed": 1}, "", id="an allowed outcome needs no remedy"),
        pytest.param(
            (PENDING, pod("c", Outcome.PENDING, "x")),
            {"forecast_pending_allowed": 1},
            "shop/a would find a place with one more node like n1 or a maxSkew of 2; shop/c would find a place with x",
            id="more pods than are allowed",
        ),
        pytest.param((pod("d", Outcome.MOVES),), {}, "", id="nothing refuses the drain"),
    ],
)
def test_a_refusal_by_the_forecast_lists_remedies_for_its_pods(
    pods: tuple[PodForecast, ...], policy: dict[str, Any], expected: str
) -> None:
    assert ways_out(Forecast(node="n1", made_at="2026-03-04T12:00:00Z", pods=pods), a_policy(**policy)) == expected

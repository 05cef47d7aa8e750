from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from careen.core.drain.drain_memory import DrainMemory, KnownOwner
from careen.core.facts.policy import BoundPods, DrainPolicy, ForecastPolicy, Policy
from careen.report.forecast_report import exit_code, forecast_json, forecast_text, verdict
from scheduler_core.simulation.forecast import Forecast, Opens, Outcome, PodForecast

NOW = datetime(2026, 3, 4, 12, 0, 5, tzinfo=UTC)


def pod(name: str, outcome: Outcome, sentence: str = "", **more: object) -> PodForecast:
    return PodForecast(namespace="shop", name=name, uid=f"uid-{name}", outcome=outcome, sentence=sentence, **more)  # type: ignore[arg-type]


def forecast(*pods: PodForecast, notes: tuple[str, ...] = ()) -> Forecast:
    return Forecast(node="n1", made_at="2026-03-04T12:00:00Z", pods=pods, notes=notes)


def test_a_forecast_as_text_has_a_table_totals_notes_and_a_verdict() -> None:
    text = forecast_text(
        forecast(
            pod("cart-1", Outcome.MOVES, "fits there", landing=("n2",)),
            pod("cart-2", Outcome.MOVES, "fits there", landing=("n2", "n3", "n4", "n5"), loses_data=True),
            pod("db-0", Outcome.BLOCKED, "the budget shop/db allows no disruption", is_never=True),
            pod("api-7", Outcome.PENDING, "0/3 nodes are available: 3 Insufficient cpu"),
            notes=("the only control-plane node goes down for the reboot",),
        ),
        NOW,
    )
    assert text.splitlines() == [
        "If n1 were drained now (a forecast for 4 pods, made 5s ago):",
        "",
        "POD           OUTCOME   TO            WHY",
        "shop/cart-1   moves     n2            fits there",
        "shop/cart-2   moves     n2|n3|n4|+1   fits there; the data in the pod's emptyDir is lost",
        (
            "shop/db-0     blocked   -             the pod can never be evicted in the current state: the budget "
            "shop/db allows no disruption"
        ),
        "shop/api-7    pending   -             0/3 nodes are available: 3 Insufficient cpu",
        "",
        "4 pods: 2 moves, 1 pending, 1 blocked.",
        "Note: the only control-plane node goes down for the reboot.",
        "An agent with the default settings would not drain n1, because of shop/db-0, shop/api-7.",
    ]


def test_a_forecast_shows_remedies_and_pods_that_were_already_pending() -> None:
    made = Forecast(
        node="n1",
        made_at="2026-03-04T12:00:00Z",
        already_pending=2,
        pods=(
            pod(
                "api-7", Outcome.PENDING, "no room", remedies=("500m more cpu on n2 (zone b)", "n3 (zone a) uncordoned")
            ),
            pod(
                "db-0",
                Outcome.BLOCKED,
                "no",
                is_never=True,
                remedies=("a minAvailable of 2 in the disruption budget shop/db",),
            ),
        ),
    )
    assert forecast_text(made, NOW).splitlines()[-5:-1] == [
        "2 pods: 1 pending, 1 blocked.",
        "2 pods of the cluster had no node even before this drain.",
        "shop/api-7 would find a place with 500m more cpu on n2 (zone b), or with n3 (zone a) uncordoned.",
        "shop/db-0 could be evicted with a minAvailable of 2 in the disruption budget shop/db.",
    ]
    assert forecast_json(made)["alreadyPending"] == 2


def test_the_forecast_of_a_node_without_pods_is_empty() -> None:
    assert forecast_text(forecast(), NOW).splitlines() == [
        "If n1 were drained now (a forecast for 0 pods, made 5s ago):",
        "0 pods.",
        "An agent with the default settings would drain n1.",
    ]


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((), 0),
        ((Outcome.STAYS, Outcome.MOVES, Outcome.RETURNS, Outcome.LOST), 0),
        ((Outcome.MOVES, Outcome.PENDING), 3),
        ((Outcome.MOVES, Outcome.BLOCKED), 3),
        ((Outcome.UNKNOWN,), 4),
        ((Outcome.UNKNOWN, Outcome.PENDING), 3),
    ],
    ids=[
        "no pods",
        "no pod prevents the drain",
        "a pod without room",
        "a pod that may not be evicted",
        "a pod with an unknown outcome",
        "a pod without room and a pod with an unknown outcome",
    ],
)
def test_the_exit_code_of_a_forecast_depends_on_the_outcomes(outcomes: tuple[Outcome, ...], code: int) -> None:
    assert exit_code(forecast(*(pod(f"p{i}", outcome) for i, outcome in enumerate(outcomes)))) == code


def test_a_used_up_disruption_budget_does_not_block_the_drain() -> None:
    assert "the pod cannot be evicted now: the budget is used up" in forecast_text(
        forecast(pod("db-0", Outcome.BLOCKED, "the budget is used up")), NOW
    )
    assert (
        verdict(forecast(pod("db-0", Outcome.BLOCKED, "the budget is used up")))
        == "An agent with the default settings would drain n1."
    )


def test_the_verdict_of_a_forecast_follows_the_agents_settings() -> None:
    made = forecast(pod("a", Outcome.PENDING, "no room"))
    lenient = Policy(node_name="n1", forecast_pending_allowed=1)
    assert verdict(made, Policy(node_name="n1")) == "The agent would not drain n1, because of shop/a."
    assert verdict(made, lenient) == "The agent would drain n1."
    assert forecast_json(made, lenient)["refusal"] is None
    assert (
        verdict(made, Policy(node_name="n1", forecast=ForecastPolicy.WARN))
        == "The agent would drain n1 whatever the forecast says, because of --forecast=warn."
    )


def test_a_forecast_as_json_has_counts_and_a_verdict() -> None:
    made = forecast(pod("a", Outcome.PENDING, "no room"))
    value = forecast_json(made)
    assert Forecast.from_mapping(value) == made
    assert value["counts"] == {"pending": 1}
    assert value["refusal"] == "1 of 1 pods would not find room: shop/a (no room)"


def test_a_forecast_shows_likely_nodes_with_their_probability() -> None:
    likely = replace(
        pod("cart-1", Outcome.MOVES, "", landing=("n7", "n2", "n5", "n4")), shares=(0.52, 0.31, 0.08, 0.05)
    )
    made = forecast(likely)
    assert "n7 52%|n2 31%|n5 8%|+1" in forecast_text(made, NOW)
    assert forecast_json(made)["pods"][0]["shares"] == [0.52, 0.31, 0.08, 0.05]
    assert Forecast.from_mapping(forecast_json(made)) == made


def test_a_forecast_marks_an_incomplete_list_of_possible_nodes() -> None:
    open_set = pod("cart-1", Outcome.MOVES, "fits there", landing=("n2", "n3", "n4", "n5"), is_cut=True)
    made = Forecast(
        node="n1",
        made_at="2026-03-04T12:00:00Z",
        pods=(open_set,),
        notes=("a pod fits on up to 180 nodes, but kube-scheduler checks only 100 of them",),
    )
    text = forecast_text(made, NOW)
    assert "n2|n3|n4|+1|…" in text
    assert "Note: a pod fits on up to 180 nodes, but kube-scheduler checks only 100 of them." in text
    assert forecast_json(made)["pods"][0]["cut"] is True


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        pytest.param(
            Policy(node_name="n1"),
            "The agent would not drain n1, because shop/pinned is bound to n1 and would return after each "
            "eviction (--pods-bound-to-node=stay leaves such pods on the node).",
            id="with the default settings the agent does not drain",
        ),
        pytest.param(
            Policy(node_name="n1", forecast=ForecastPolicy.WARN),
            "The agent would not drain n1, because shop/pinned is bound to n1 and would return after each "
            "eviction (--pods-bound-to-node=stay leaves such pods on the node).",
            id="the agent does not drain despite --forecast=warn",
        ),
        pytest.param(
            Policy(node_name="n1", drain=DrainPolicy(bound_pods=BoundPods.STAY)),
            "The agent would drain n1.",
            id="--pods-bound-to-node=stay allows the drain",
        ),
    ],
)
def test_a_pod_whose_controller_sets_the_node_name_prevents_the_drain(policy: Policy, words: str) -> None:
    made = forecast(pod("pinned", Outcome.STAYS, "always returns", is_bound=True))
    assert verdict(made, policy) == words
    refusal = forecast_json(made, policy)["refusal"]
    assert refusal == (
        None
        if "would drain" in words
        else "these pods are bound to this node and return after each eviction: shop/pinned (always returns); "
        "--pods-bound-to-node=stay leaves such pods on the node"
    )


def test_a_forecast_says_how_a_budget_opened_in_an_earlier_drain_of_this_node() -> None:
    slow = PodForecast(
        namespace="shop",
        name="pg-1",
        uid="uid-pg-1",
        outcome=Outcome.BLOCKED,
        sentence="the budget pg is closed",
        opens=Opens.UNSEEN,
        owner="Cluster shop/pg",
    )
    made = forecast(slow)
    seen = DrainMemory(
        known={"Cluster shop/pg": KnownOwner(opens=Opens.EMPTIED, at=NOW - timedelta(hours=3))},
    )
    assert "opens: emptied, seen 3h ago: the budget pg is closed" in forecast_text(made, NOW, memory=seen)
    assert "opens: unseen: the budget pg is closed" in forecast_text(made, NOW, memory=DrainMemory())
    pod = forecast_json(made, memory=seen)["pods"][0]
    assert (pod["opens"], pod["opensSeen"]) == ("emptied", "2026-03-04T09:00:05Z")
    assert forecast_json(made)["pods"][0]["opens"] == "unseen"
    never_seen = DrainMemory(known={"Cluster shop/pg": KnownOwner(undone=1, at=NOW)})
    assert "opens: unseen:" in forecast_text(made, NOW, memory=never_seen)
    plain = replace(made, pods=(replace(slow, opens=None),))
    assert "opens:" not in forecast_text(plain, NOW, memory=seen)

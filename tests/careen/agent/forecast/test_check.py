"""After a reboot, the agent checks the forecast: does each recreated pod run on the node that the forecast named?"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from careen.agent.apply import Stop
from careen.agent.forecast.check import (
    EndedDrain,
    Score,
    check,
    finished_drain,
    most_matches,
    score_of_owner,
    scores_of,
)
from careen.agent.turn import TurnResult
from careen.core.decision import Decision, Reason
from careen.core.facts.memory import Memory
from careen.core.facts.observation import Chance, Need, NeedAnswer, NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import OwnerHealth, Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.observation import Observation
from tests.careen.agent.conftest import Shell

SINCE = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def owner(name: str, namespace: str = "shop") -> OwnerHealth:
    return OwnerHealth(
        kind="ReplicaSet", namespace=namespace, name=name, uid=f"uid-{name}", generation=1, replicas=2, ready=2
    )


@pytest.mark.parametrize(
    ("said", "places", "matches"),
    [
        ([], ["a"], 0),
        ([("a",)], ["a"], 1),
        ([("a",)], ["b"], 0),
        ([("a",)], [], 0),
        ([("a",), ("a",)], ["a"], 1),
        ([("a", "b"), ("a",)], ["a", "b"], 2),
        ([("a", "b"), ("b", "c"), ("b",)], ["b", "a", "c"], 3),
        ([("a", "b"), ("a", "b"), ("a", "b")], ["a", "b", "c"], 2),
    ],
)
def test_the_nodes_of_identical_pods_match_the_forecast_in_any_order(
    said: list[tuple[str, ...]], places: list[str], matches: int
) -> None:
    assert most_matches(said, places) == matches


@pytest.mark.parametrize(
    ("said", "places", "score"),
    [
        pytest.param([("a",)], ["b"], Score(hits=0, misses=1), id="the recreated pod runs on another node"),
        pytest.param([("a",)], [""], Score(hits=0, misses=1), id="the recreated pod runs on no node"),
        pytest.param([("a",)], [], Score(hits=0, misses=0, superseded=1), id="the controller recreated no pod"),
        pytest.param(
            [("a",), ("a",)],
            ["b"],
            Score(hits=0, misses=1, superseded=1),
            id="the controller recreated one of two pods, on another node",
        ),
        pytest.param(
            [("a", "…")],
            ["b"],
            Score(hits=0, misses=0, superseded=1),
            id="the forecast's list of nodes is shortened and does not contain the pod's node",
        ),
        pytest.param(
            [("a", "…")],
            ["a"],
            Score(hits=1, misses=0),
            id="the forecast's list of nodes is shortened and contains the pod's node",
        ),
        pytest.param(
            [("a", "…"), ("a",)],
            ["a", "b"],
            Score(hits=1, misses=0, superseded=1),
            id="one pod matches the forecast; the forecast's list of nodes for the other pod is shortened",
        ),
    ],
)
def test_the_forecast_of_each_pod_is_counted_as_a_hit_or_a_miss_or_superseded(
    said: list[tuple[str, ...]], places: list[str], score: Score
) -> None:
    assert score_of_owner(said, places)._replace(firsts=0) == score


@pytest.mark.parametrize(
    ("said", "places", "firsts"),
    [
        pytest.param([("a", "b")], ["a"], 1, id="the pod runs on the first node of its forecast"),
        pytest.param([("a", "b")], ["b"], 0, id="the pod runs on the second node of its forecast"),
        pytest.param([("a", "b"), ("b", "a")], ["a", "b"], 2, id="each pod runs on the first node of its forecast"),
        pytest.param([("a", "…")], ["…"], 0, id="the mark `…` at the end of a shortened list is not a node"),
    ],
)
def test_pods_on_the_first_node_of_their_forecast_are_counted_separately(
    said: list[tuple[str, ...]], places: list[str], firsts: int
) -> None:
    assert score_of_owner(said, places).firsts == firsts


def put(
    shell: Shell, name: str, owned_by: str, node: str, *, made: str = "2026-03-04T12:00:05Z", namespace: str = "shop"
) -> None:
    shell.put_pod(
        name,
        node,
        namespace=namespace,
        metadata={
            "creationTimestamp": made,
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owned_by,
                    "uid": f"uid-{owned_by}",
                    "controller": True,
                }
            ],
        },
    )


async def test_the_forecast_check_counts_only_new_pods_of_owners_with_a_forecast(shell: Shell) -> None:
    landings = {"shop/web-1": ("n2", "n3"), "shop/web-2": ("n2",), "shop/web-api-1": ("n3",), "other/db-0": ("n4",)}
    put(shell, "web-3", "web", "n3")
    put(shell, "web-4", "web", "n4")
    put(shell, "web-old", "web", "n2", made="2026-03-04T11:59:59Z")
    put(shell, "web-api-3", "web-api", "n3")
    put(shell, "stranger-1", "stranger", "n2")
    put(shell, "db-0", "db", "n4", namespace="other")
    owners = (owner("web"), owner("web-api"), owner("db", "other"))
    drain = EndedDrain(landings, owners, SINCE, frozenset({"shop/web-api-1"}))
    assert await scores_of(shell.api, drain) == {False: Score(2, 1, firsts=1), True: Score(1, 0, firsts=1)}
    assert shell.requests == ["GET /api/v1/namespaces/other/pods", "GET /api/v1/namespaces/shop/pods"]
    await check(shell.api, drain, shell.metrics, "n1")
    lines = shell.metrics.exposition().decode().splitlines()
    assert 'careen_forecast_pods_total{node="n1",result="hit",sampled="false"} 2.0' in lines
    assert 'careen_forecast_pods_total{node="n1",result="miss",sampled="false"} 1.0' in lines
    assert 'careen_forecast_pods_total{node="n1",result="hit",sampled="true"} 1.0' in lines
    assert 'careen_forecast_first_total{node="n1",result="hit",sampled="true"} 1.0' in lines


async def test_the_forecast_check_does_not_list_the_pods_of_owners_without_a_forecast(shell: Shell) -> None:
    scores = await scores_of(shell.api, EndedDrain({"shop/bare": ("n2",)}, (owner("web"),), SINCE))
    assert set(scores.values()) == {Score(hits=0, misses=0)}
    assert shell.requests == []


def turn_result(
    before: Phase = Phase.SETTLING, after: Phase = Phase.IDLE, *, forecast: Any = None, stop: Stop | None = None
) -> TurnResult:
    record = Progress(phase=before.value, owners=(owner("web"),), drain_started_at="2026-03-04T12:00:00Z")
    said = (
        {"counts": {"moves": 1}, "pods": {"shop/web-1": ["n2"], "shop/web-2": "n3"}} if forecast is None else forecast
    )
    node = NodeView(
        name="n1",
        uid="u",
        resource_version="1",
        annotations={"careen.dev/progress": to_annotation(record), "careen.dev/forecast": json.dumps(said)},
    )
    seen = Observation(
        now=SINCE,
        uptime=0.0,
        chance=Chance(claim_id="c", jitter=0.0),
        memory=Memory(),
        clock_skew_seconds=0.0,
        node=node,
        boot_id="b",
        need=Need(answer=NeedAnswer.NO),
    )
    decision = Decision(
        phase=after, reason=Reason(code=Code.RELEASED, sentence="."), memory=Memory(), look_again_seconds=1.0
    )
    return TurnResult(decision=decision, observation=seen, stop=stop, phase=after)


@pytest.mark.parametrize("after", [Phase.IDLE, Phase.WAITING])
def test_the_agent_checks_the_forecast_when_it_releases_the_claim(after: Phase) -> None:
    assert finished_drain(turn_result(after=after)) == EndedDrain(
        {"shop/web-1": ("n2",), "shop/web-2": ("n3",)}, (owner("web"),), SINCE
    )


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(turn_result(before=Phase.DRAINING, after=Phase.WAITING), id="the agent has undone the drain"),
        pytest.param(turn_result(after=Phase.SETTLING), id="the workloads have not settled yet"),
        pytest.param(turn_result(stop=Stop("conflict")), id="the release of the claim conflicts with another write"),
        pytest.param(turn_result(forecast={"counts": {}}), id="the forecast contains no pod that moves"),
        pytest.param(turn_result(forecast=["x"]), id="the annotation is not a JSON object"),
        pytest.param(
            turn_result(forecast={"pods": {"a/b": 7}}), id="the forecast contains a number instead of a node name"
        ),
    ],
)
def test_an_unusable_forecast_and_the_forecast_of_an_unfinished_reboot_are_not_checked(other: TurnResult) -> None:
    assert finished_drain(other) is None


def test_the_forecast_check_skips_a_node_without_a_forecast() -> None:
    without = turn_result()
    assert isinstance(without.observation.node, NodeView)
    bare = replace(
        without.observation.node,
        annotations={"careen.dev/progress": without.observation.node.annotations["careen.dev/progress"]},
    )
    assert (
        finished_drain(
            TurnResult(
                decision=without.decision,
                observation=replace(without.observation, node=bare),
                stop=None,
                phase=Phase.IDLE,
            )
        )
        is None
    )

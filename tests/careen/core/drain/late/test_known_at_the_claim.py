"""What a node keeps of the alerts and health queries under its claim, and when it keeps nothing."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from careen.core.drain.late import known_at_the_claim
from careen.core.drain.late.known_at_the_claim import Known, is_pod_of, series_of
from careen.core.facts import keys
from careen.core.facts.observation import Alert, Sample, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import AlertPolicy, HealthQuery, Matcher, Policy
from careen.core.situation import Situation
from tests.careen.core.builders import a_marked_node, a_pod, a_policy, a_progress, a_situation

QUERY = HealthQuery(name="disks", query="x", comparison="<", bound=1, fresh_seconds=60)


def claiming(policy: Policy, **seen: Any) -> Situation:
    return a_situation(a_marked_node(a_progress(Phase.CLAIMING)), policy, **seen)


def sample(value: float, **labels: str) -> Sample:
    return Sample(value=value, age_seconds=1, evaluated_at=0, labels=labels)


def kept(situation: Situation) -> Known:
    annotations = known_at_the_claim.annotation(situation, (a_pod(),))
    node = a_marked_node(a_progress(Phase.DRAINING), annotations=annotations)
    return known_at_the_claim.of(a_situation(node, situation.policy))


def test_a_node_that_asks_neither_alerts_nor_queries_writes_nothing() -> None:
    assert known_at_the_claim.annotation(claiming(a_policy()), (a_pod(),)) == {}


def test_alerts_that_do_not_block_are_kept_too() -> None:
    policy = a_policy(alerts=AlertPolicy(firing_only=True))
    found = kept(claiming(policy, alerts=(Alert(name="A", state="pending"),)))
    assert found.has(Alert(name="A"))
    assert not found.has(Alert(name="B"))


def test_unknown_alerts_are_not_kept() -> None:
    """With --late-policy=reboot they do not keep the node from its claim."""
    assert kept(claiming(a_policy(alerts=AlertPolicy()), alerts=Unknown("refused"))).alerts is None


def test_the_values_of_each_series_are_kept() -> None:
    answer = (sample(0.5, disk="a"), sample(-math.inf, disk="b"))
    found = kept(claiming(a_policy(health_queries=(QUERY,)), queries={"disks": answer}))
    (first, _), (second, _) = series_of(QUERY, answer)
    assert found.value_of(QUERY, first) == 0.5
    assert found.value_of(QUERY, second) is None
    assert found.alerts is None


def test_more_series_than_the_annotation_holds_are_not_kept() -> None:
    answer = tuple(sample(0.0, disk=str(number)) for number in range(100))
    assert kept(claiming(a_policy(health_queries=(QUERY,)), queries={"disks": answer})).series is None


def test_a_series_is_known_by_its_labels_without_the_pod() -> None:
    one, two = sample(0, disk="a", pod="mgr-1", uid="1"), sample(0, disk="b")
    moved = sample(0, disk="a", pod="mgr-2", uid="2")
    assert series_of(QUERY, (one, two))[0][0] == series_of(QUERY, (moved, two))[0][0]
    assert series_of(QUERY, (one, two))[0][0] != series_of(QUERY, (one, two))[1][0]
    assert len(series_of(QUERY, (one, moved))) == 2


def test_samples_that_the_query_ignores_are_no_series() -> None:
    query = HealthQuery(
        name="a", query="x", comparison="<", bound=1, fresh_seconds=60, matchers=(Matcher(label="disk", value="a"),)
    )
    assert [series for series, _ in series_of(query, (sample(0, disk="a"), sample(0, disk="b")))] == [""]


def test_the_begin_of_a_wait_is_added_to_what_is_kept() -> None:
    policy = a_policy(alerts=AlertPolicy())
    before = kept(claiming(policy, alerts=(Alert(name="A"),)))
    node = a_marked_node(a_progress(Phase.DRAINING))
    for what in ("foreign", "hook"):
        written = known_at_the_claim.waiting(a_situation(node, policy), before, what)
        node = a_marked_node(a_progress(Phase.DRAINING), annotations=written)
        before = known_at_the_claim.of(a_situation(node, policy))
    assert set(before.waits) == {"foreign", "hook"}
    assert before.has(Alert(name="A"))
    assert not before.has(Alert(name="B"))
    assert list(before.names("shop")) == [("ReplicaSet", "web")]


@pytest.mark.parametrize("text", ["[]", "5", '{"claim": "c1", "alerts": 5, "displaced": []}', '{"claim": 5}'])
def test_an_unreadable_annotation_counts_as_nothing_kept(text: str) -> None:
    node = a_marked_node(a_progress(Phase.DRAINING), annotations={keys.KNOWN_AT_THE_CLAIM: text})
    assert known_at_the_claim.of(a_situation(node)) == Known(claim="c1")


def test_a_pod_of_a_deployment_is_kept_by_the_deployment() -> None:
    pods = (
        a_pod("web-7f9c-abcde", owner_name="web-7f9c", labels={"pod-template-hash": "7f9c"}),
        a_pod("web-7f9c-fghij", owner_name="web-7f9c", labels={"pod-template-hash": "7f9c"}),
        a_pod("bare", owner_kind="", owner_name=""),
    )
    text = known_at_the_claim.annotation(claiming(a_policy(alerts=AlertPolicy())), pods)[keys.KNOWN_AT_THE_CLAIM]
    assert json.loads(str(text))["displaced"] == {"shop": {"Deployment": ["web"], "Pod": ["bare"]}}


@pytest.mark.parametrize(
    ("kind", "name", "pod", "expected"),
    [
        ("Deployment", "web", "web-7f9c-abcde", True),
        ("Deployment", "web", "web-abcde", False),
        ("Deployment", "web", "web-shop-7f9c-abcde", False),
        ("ReplicaSet", "web", "web-abcde", True),
        ("ReplicaSet", "web", "web-7f9c-abcde", False),
        ("StatefulSet", "db", "db-0", True),
        ("StatefulSet", "db", "db-", False),
        ("Job", "dump", "dump-abcde", True),
        ("Job", "dump", "dump-0-abcde", True),
        ("StrimziPodSet", "kafka", "kafka-0", True),
        ("Pod", "bare", "bare", True),
        ("Pod", "bare", "bare-1", False),
        ("", "", "bare", False),
        ("", "", "-bare", False),
    ],
)
def test_the_name_of_a_pod_tells_its_controller(kind: str, name: str, pod: str, expected: bool) -> None:
    assert is_pod_of(kind, name, pod) is expected

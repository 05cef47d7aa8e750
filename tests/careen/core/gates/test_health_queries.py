"""The gate for health queries. A query allows the reboot only if it returns a fresh sample that meets its condition."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from careen.core.facts.observation import NOT_ASKED, Asked, Sample, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import HealthQuery, Matcher
from careen.core.facts.reasons import Code
from careen.core.gates.health_queries import health_queries
from careen.core.gates.question import When
from tests.careen.core.builders import NOW, a_policy, a_situation

CEPH = HealthQuery(name="ceph", query="ceph_health_status", comparison="==", bound=0, fresh_seconds=120)
LOAD = HealthQuery(name="load", query="x", comparison="<", bound=0.9, fresh_seconds=60)


def a_sample(value: float = 0.0, *, age: float = 30.0, off: float = 0.0, **labels: str) -> Sample:
    return Sample(value=value, age_seconds=age, evaluated_at=NOW.timestamp() + off, labels=labels)


Answers = Mapping[str, tuple[Sample, ...] | Unknown]


@pytest.mark.parametrize(
    ("queries", "answers", "sentence"),
    [
        pytest.param((CEPH,), {"ceph": (a_sample(),)}, None, id="the sample meets the condition"),
        pytest.param(
            (CEPH,), {"ceph": (a_sample(age=120),)}, None, id="the sample has exactly the greatest allowed age"
        ),
        pytest.param(
            (CEPH,),
            {"ceph": (a_sample(1, job="ceph"),)},
            "ceph (job=ceph) is 1; the value must be == 0",
            id="the sample does not meet the condition",
        ),
        pytest.param(
            (CEPH,),
            {"ceph": (a_sample(), a_sample(2, node="b"), a_sample(1))},
            "ceph (node=b) is 2 and 1 more; the value must be == 0",
            id="two of three samples do not meet the condition",
        ),
        pytest.param(
            (LOAD, CEPH),
            {"ceph": (a_sample(1),), "load": (a_sample(0.95),)},
            "load is 0.95",
            id="two queries fail, and the message shows the first",
        ),
        pytest.param((CEPH,), {"ceph": ()}, "ceph: the query returned no sample", id="the query returns no sample"),
        pytest.param(
            (CEPH,),
            {},
            "ceph: the agent has not read this fact in this turn",
            id="the query has no result",
        ),
        pytest.param((CEPH,), {"ceph": Unknown("it is down")}, "ceph: it is down", id="Prometheus reports an error"),
        pytest.param((CEPH,), Unknown("no server"), "no server", id="no Prometheus is configured"),
        pytest.param((CEPH,), NOT_ASKED, "the agent has not read this fact in this turn", id="no query was sent"),
        pytest.param((CEPH,), {"ceph": (a_sample(age=120.1),)}, "older than 2m", id="a stale sample"),
        pytest.param((CEPH,), {"ceph": (a_sample(age=math.inf),)}, "older than 2m", id="a sample without a timestamp"),
        pytest.param((CEPH,), {"ceph": (a_sample(age=math.nan),)}, "older than 2m", id="an invalid timestamp"),
        pytest.param(
            (CEPH,), {"ceph": (a_sample(math.nan),)}, "is not a number", id="the value of the sample is not a number"
        ),
        pytest.param((LOAD,), {"load": (a_sample(-math.inf),)}, None, id="the value of the sample is minus infinity"),
        pytest.param(
            (CEPH,),
            {"ceph": (a_sample(off=-181),)},
            "the answer is old",
            id="the answer is three minutes old, because it comes from a cache",
        ),
        pytest.param(
            (CEPH,),
            {"ceph": (a_sample(off=181),)},
            "the answer is old",
            id="the answer seems to be three minutes in the future",
        ),
        pytest.param(
            (CEPH,),
            {"ceph": (a_sample(1), a_sample(age=500))},
            "older than 2m",
            id="a stale sample is reported instead of a failed condition",
        ),
        pytest.param((), NOT_ASKED, None, id="no health query is configured"),
    ],
)
def test_the_result_of_a_health_query_decides_whether_the_gate_refuses(
    queries: tuple[HealthQuery, ...], answers: Asked[Answers], sentence: str | None
) -> None:
    situation = a_situation(policy=replace(a_policy(), health_queries=queries), queries=answers)
    refused = health_queries.ask(situation, When.READY)
    assert (refused is None) is (sentence is None)
    if refused is not None and sentence is not None:
        assert sentence in refused.sentence
        is_known = "must be" in sentence or sentence.startswith("load is")
        assert refused.code is (Code.HEALTH_QUERY if is_known else Code.HEALTH_UNKNOWN)


@pytest.mark.parametrize(
    ("matcher", "counts"),
    [
        (Matcher(label="job", value="ceph"), [0]),
        (Matcher(label="job", value="ceph", is_negated=True), [1, 2]),
        (Matcher(label="job", value="", pattern=re.compile("c.*|d.")), [0, 1]),
        (Matcher(label="job", value="", pattern=re.compile("c|d")), []),  # the whole value, as in Prometheus
        (Matcher(label="job", value="", pattern=re.compile("c.*"), is_negated=True), [1, 2]),
        (Matcher(label="job", value=""), [2]),  # a label that is missing is empty
    ],
)
def test_a_health_query_uses_only_samples_whose_labels_match(matcher: Matcher, counts: list[int]) -> None:
    samples = (a_sample(job="ceph"), a_sample(job="db"), a_sample())
    query = replace(CEPH, matchers=(matcher,))
    policy = replace(a_policy(), health_queries=(query,))
    for number in range(3):
        bad = tuple(replace(each, value=7.0) if at == number else each for at, each in enumerate(samples))
        refused = health_queries.ask(a_situation(policy=policy, queries={"ceph": bad}), When.READY)
        assert (refused is not None and refused.code is Code.HEALTH_QUERY) is (number in counts)
    if not counts:
        refused = health_queries.ask(a_situation(policy=policy, queries={"ceph": samples}), When.READY)
        assert refused is not None
        assert "no sample matches the labels" in refused.sentence


@pytest.mark.parametrize(
    ("comparison", "holds"), [("==", "010"), ("!=", "101"), ("<", "100"), ("<=", "110"), (">", "001"), (">=", "011")]
)
def test_a_health_query_applies_its_comparison_operator(comparison: str, holds: str) -> None:
    query = replace(CEPH, comparison=comparison, bound=1.0)
    assert [query.holds(value) for value in (0.0, 1.0, 2.0)] == [each == "1" for each in holds]
    assert not query.holds(math.nan)


def test_query_results_are_requested_only_if_a_query_is_configured() -> None:
    assert health_queries.needs(a_policy()) == frozenset()
    assert health_queries.needs(replace(a_policy(), health_queries=(CEPH,))) == {Evidence.QUERIES}


@pytest.mark.parametrize(
    "answer", [(a_sample(1),), (), Unknown("503")], ids=["the condition is not met", "no sample", "no answer"]
)
def test_a_query_about_one_node_refuses_no_other_node(answer: Any) -> None:
    said = []
    for query in (CEPH, replace(CEPH, is_of_node=True)):
        policy = replace(a_policy(), health_queries=(query,))
        refused = health_queries.ask(a_situation(policy=policy, queries={"ceph": answer}), When.READY)
        said.append(refused and refused.is_of_cluster)
    assert said == [True, False]


def test_a_prometheus_that_does_not_answer_refuses_every_node() -> None:
    policy = replace(a_policy(), health_queries=(replace(CEPH, is_of_node=True),))
    refused = health_queries.ask(a_situation(policy=policy, queries=Unknown("503")), When.READY)
    assert refused is not None
    assert refused.is_of_cluster

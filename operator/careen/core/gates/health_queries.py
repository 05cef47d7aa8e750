"""Refuses while a condition of --health-queries does not hold or is unknown.

Every matching sample must be fresh and fulfil the condition. No samples are a refusal too: a missing series, a target
that is not scraped and a filter that matches nothing look the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from careen.core.facts.observation import NOT_ASKED, NotAsked, Sample, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import HealthQuery
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.gates.question import Cost, No, gate
from careen.core.situation import Situation
from scheduler_core.sentences import first_few
from scheduler_core.values import replace_value as replace

# The allowed difference between the clocks of the agent and of Prometheus. An older answer comes from a cache.
_CLOCKS_DIFFER_SECONDS = 60.0


@gate(
    "health-queries",
    cost=Cost.COSTLY,
    needs=lambda policy: {Evidence.QUERIES} if policy.health_queries else set(),
)
def health_queries(situation: Situation) -> No | None:
    answers = situation.seen.queries
    if isinstance(answers, (Unknown, NotAsked)):
        return replace(_unknown(answers.why), is_of_cluster=True)
    for query in situation.policy.health_queries:
        no = _no_of(query, answers.get(query.name), situation.seen.now.timestamp())
        if no is not None:
            return replace(no, is_of_cluster=not query.is_of_node)
    return None


def _no_of(query: HealthQuery, answer: Sequence[Sample] | Unknown | None, now: float) -> No | None:
    if answer is None or isinstance(answer, Unknown):
        why = (answer or NOT_ASKED).why
        return _unknown(f"{query.name}: {why}")
    matching = [sample for sample in answer if all(matcher.holds(sample.labels) for matcher in query.matchers)]
    if not matching:
        why = "no sample matches the labels of the query" if answer else "the query returned no sample"
        return _unknown(f"{query.name}: {why}")
    for sample in matching:
        if why := _why_unusable(sample, query, now):
            return _unknown(f"{query.name}{_labels(sample)}: {why}")
    bad = [sample for sample in matching if not query.holds(sample.value)]
    if not bad:
        return None
    values = first_few([f"{sample.value:.3g}" for sample in bad], 1)
    return No(Code.HEALTH_QUERY, f"{query.name}{_labels(bad[0])} is {values}; the value must be {query.condition}")


def _why_unusable(sample: Sample, query: HealthQuery, now: float) -> str:
    if math.isnan(sample.value):
        return "the value is not a number"
    if not sample.age_seconds <= query.fresh_seconds:
        return f"the last sample is older than {span(query.fresh_seconds)}"
    if not abs(now - sample.evaluated_at) <= query.fresh_seconds + _CLOCKS_DIFFER_SECONDS:
        return "the answer is old, or the clocks of Prometheus and this node differ"
    return ""


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    shown = [f"{key}={value}" for key, value in sorted(sample.labels.items())]
    return f" ({', '.join(shown[:4])}{', …' if len(shown) > 4 else ''})"


def _unknown(why: str) -> No:
    return No(Code.HEALTH_UNKNOWN, f"careen cannot tell whether a health query holds: {why}")

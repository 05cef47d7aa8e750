"""This gate refuses to let the node begin its drain or its reboot while a condition of --health-queries does not hold
or is unknown.

Every matching sample must be fresh and fulfil the condition. If a query returns no samples, the gate refuses, because a
missing series, a target that is not scraped and a filter that matches nothing look the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from careen.core.decision import Refusal
from careen.core.facts.observation import NOT_ASKED, NotAsked, Sample, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import HealthQuery, Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.gates.question import ALWAYS, Cost, Gate, When
from careen.core.situation import Situation
from scheduler_core.sentences import first_few

# The allowed difference between the clocks of the agent and of Prometheus. An older answer comes from a cache.
_CLOCKS_DIFFER_SECONDS = 60.0


def needs(policy: Policy) -> frozenset[Evidence]:
    """Return the facts that the gate needs: the results of the health queries, if any are configured."""
    return frozenset({Evidence.QUERIES}) if policy.health_queries else frozenset()


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal for the first health query in the list whose condition does not hold or is unknown."""
    if not situation.policy.health_queries:
        return None
    answers = situation.seen.queries
    if isinstance(answers, (Unknown, NotAsked)):
        return replace(_unknown(answers.why), is_of_cluster=True)
    for query in situation.policy.health_queries:
        refused = _refusal(query, answers.get(query.name), situation.seen.now.timestamp())
        if refused is not None:
            return replace(refused, is_of_cluster=not query.is_of_node)
    return None


def _refusal(query: HealthQuery, answer: Sequence[Sample] | Unknown | None, now: float) -> Refusal | None:
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
    return Refusal(
        gate=GATE.name,
        code=Code.HEALTH_QUERY,
        sentence=f"{query.name}{_labels(bad[0])} is {values}; the value must be {query.condition}",
    )


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


def _unknown(why: str) -> Refusal:
    return Refusal(
        gate=GATE.name, code=Code.HEALTH_UNKNOWN, sentence=f"careen cannot tell whether a health query holds: {why}"
    )


GATE = Gate(
    name="health-queries",
    ask=ask,
    when=ALWAYS,
    cost=Cost.COSTLY,
    needs=needs,
)

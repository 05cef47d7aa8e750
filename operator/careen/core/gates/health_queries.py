"""Refuses while a condition of --health-queries does not hold or is unknown.

Every matching sample must be fresh and fulfil the condition. No samples are a refusal too: a missing series, a target
that is not scraped and a filter that matches nothing look the same.

Before the reboot, a sample passes that fulfils the query's condition for drained nodes (`late`), or whose badness the
node has learned to be its own drain's work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from careen.core.drain.late import learned_queries
from careen.core.drain.late.known_at_the_claim import series_of
from careen.core.drain.late.learned_queries import Bad
from careen.core.facts.observation import NOT_ASKED, NotAsked, Sample, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import HealthQuery
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.gates.question import Cost, No, When, gate
from careen.core.situation import Situation, known
from scheduler_core.sentences import first_few
from scheduler_core.values import replace_value as replace

# The allowed difference between the clocks of the agent and of Prometheus. An older answer comes from a cache.
_CLOCKS_DIFFER_SECONDS = 60.0


@gate(
    "health-queries",
    cost=Cost.COSTLY,
    needs=lambda policy: {Evidence.QUERIES} if policy.health_queries else set(),
)
def health_queries(situation: Situation, when: When) -> No | None:
    answers = situation.seen.queries
    if isinstance(answers, (Unknown, NotAsked)):
        return replace(_unknown(answers.why), is_of_cluster=True)
    for query in situation.policy.health_queries:
        no = _no_of(situation, query, answers.get(query.name), when)
        if no is not None:
            return replace(no, is_of_cluster=not query.is_of_node)
    return None


def bad_late(situation: Situation) -> dict[str, Bad]:
    """The samples that forbid the reboot of the drained node, by query."""
    return {
        query.name: tuple(
            (series, sample)
            for series, sample in _series(situation, query)
            if not (query.holds_late(sample.value) or learned_queries.covers(situation, query, series, sample))
        )
        for query in situation.policy.health_queries
    }


def passed_late(situation: Situation) -> str:
    """A clause that names the queries which pass only because the node is drained; "" without any."""
    bad = bad_late(situation)
    passed = [
        query.name
        for query in situation.policy.health_queries
        if not bad[query.name] and any(not query.holds(sample.value) for _, sample in _series(situation, query))
    ]
    return f"these health queries may be bad while the node is drained: {first_few(passed)}" if passed else ""


def _series(situation: Situation, query: HealthQuery) -> Bad:
    answer = (known(situation.seen.queries) or {}).get(query.name)
    return series_of(query, answer) if isinstance(answer, tuple) else ()


def _no_of(
    situation: Situation, query: HealthQuery, answer: Sequence[Sample] | Unknown | None, when: When
) -> No | None:
    now = situation.seen.now.timestamp()
    if answer is None or isinstance(answer, Unknown):
        why = (answer or NOT_ASKED).why
        return _unknown(f"{query.name}: {why}")
    matching = [sample for sample in answer if query.selects(sample)]
    if not matching:
        why = "no sample matches the labels of the query" if answer else "the query returned no sample"
        return _unknown(f"{query.name}: {why}")
    for sample in matching:
        if why := _why_unusable(sample, query, now):
            return _unknown(f"{query.name}{_labels(sample)}: {why}")
    if when is When.BEFORE_REBOOT:
        bad, condition = [sample for _, sample in bad_late(situation)[query.name]], query.late_condition
    else:
        bad, condition = [sample for sample in matching if not query.holds(sample.value)], query.condition
    if not bad:
        return None
    values = first_few([f"{sample.value:.3g}" for sample in bad], 1)
    sentence = f"{query.name}{_labels(bad[0])} is {values}; the value must be {condition}"
    return No(Code.HEALTH_QUERY, sentence, about=(f"query {query.name}",))


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

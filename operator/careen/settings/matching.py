"""Asks people's regular expressions about what servers have answered: in a thread, because RE2 releases Python's lock
while it matches, and within a limit.

A decision finds the results in the evidence: `Alert.is_matched`, `Sample.is_selected`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from careen.core.facts.observation import Alert, Sample, Unknown
from careen.core.facts.policy import AlertPolicy, HealthQuery
from careen.settings.go_regexp import GoRegexp
from scheduler_core.values import replace_value

Samples = tuple[Sample, ...] | Unknown

MOST_STEPS = 5 * 10**8
"""Of all matches for one reading: ten seconds. RE2 executes each instruction of an expression at most once for each
byte, in 19 ns at the most; so `n1(:.*)?` may read 26 MiB."""


async def of_alerts(found: tuple[Alert, ...] | Unknown, policy: AlertPolicy | None) -> tuple[Alert, ...] | Unknown:
    """The alerts with what --alert-filter-regexp says of their names; unknown beyond the limit."""
    pattern = policy.filter_regexp if policy is not None else None
    if isinstance(found, Unknown) or not isinstance(pattern, GoRegexp):
        return found
    names = {alert.name for alert in found}
    if pattern.steps(names) > MOST_STEPS:
        return Unknown("the names of the active alerts are too long for --alert-filter-regexp; give a shorter one")
    matching = await asyncio.to_thread(lambda: {name for name in names if pattern.search(name)})
    return tuple(replace_value(alert, is_matched=alert.name in matching) for alert in found)


async def of_samples(answers: Iterable[Samples], queries: Sequence[HealthQuery]) -> dict[str, Samples]:
    """The answer to each query by its name, with what the query's labels say of each sample; unknown beyond the
    limit."""
    found = {query.name: answer for query, answer in zip(queries, answers, strict=True)}
    asked = [
        (query, answer)
        for query in queries
        if not isinstance(answer := found[query.name], Unknown)
        and any(isinstance(each.pattern, GoRegexp) for each in query.matchers)
    ]
    if sum(_steps(*each) for each in asked) > MOST_STEPS:
        why = Unknown("the labels of the samples are too long for the expressions in `labels`; give shorter ones")
        return found | {query.name: why for query, _ in asked}
    if asked:
        found |= await asyncio.to_thread(lambda: {query.name: _judged(query, answer) for query, answer in asked})
    return found


def _judged(query: HealthQuery, answer: Iterable[Sample]) -> tuple[Sample, ...]:
    return tuple(replace_value(sample, is_selected=query.selects(sample)) for sample in answer)


def _steps(query: HealthQuery, answer: Sequence[Sample]) -> int:
    return sum(
        matcher.pattern.steps(sample.labels.get(matcher.label, "") for sample in answer)
        for matcher in query.matchers
        if isinstance(matcher.pattern, GoRegexp)
    )

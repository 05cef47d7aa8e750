"""The health queries that this node's own drains turn bad, learned and kept on the Node.

A query is *open* if all its series were good at the claim and some were bad after the drain, for which the drain was
undone. It is *learned*, for 30 days, once it is good again within ten minutes of the undo. A learned query passes after
a drain if its bad series are among those, and no value is worse. A query with a condition of its own for drained nodes
(`late`) is never learned.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import timedelta

from msgspec import field

from careen.core.drain.late import known_at_the_claim
from careen.core.drain.late.known_at_the_claim import condition_of, series_of
from careen.core.facts import keys
from careen.core.facts.observation import Sample
from careen.core.facts.policy import HealthQuery
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.facts.untrusted import fields_of, json_of
from careen.core.situation import Situation, known
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

GOOD_AGAIN_SECONDS = 600.0
_DAYS = 30.0
_MOST_SERIES = 40
_MOST_QUERIES = 20

Bad = tuple[tuple[str, Sample], ...]
"""Samples, each with its series."""


class Row(Value, kw_only=True):
    """One query. `at` is when it was learned, RFC 3339."""

    of: str = ""
    series: tuple[str, ...] = ()
    worst: float = 0.0
    at: str = ""


class _Written(Value, kw_only=True):
    learned: Mapping[str, Row] = field(default_factory=dict)
    open: Mapping[str, Row] = field(default_factory=dict)


def covers(situation: Situation, query: HealthQuery, series: str, sample: Sample) -> bool:
    """Whether this node has learned that its drain makes the series this bad."""
    row = _row(_read(situation).learned, query)
    return (
        row is not None
        and not query.late_comparison
        and series in row.series
        and _is_recent(situation, row)
        and _badness(query, sample.value) <= _badness(query, row.worst)
    )


def opened(situation: Situation, bad: Mapping[str, Bad]) -> dict[str, str | None]:
    """The annotation with the queries that the undo of this drain may prove to be the drain's work; {} without any.
    `bad`: the samples after the drain, by query."""
    written, kept = _read(situation), known_at_the_claim.of(situation)
    found: dict[str, Row] = {}
    for query in situation.policy.health_queries:
        samples = bad.get(query.name, ())
        before = [kept.value_of(query, series) for series, _ in samples]
        were_good = all(value is not None and query.holds(value) for value in before)
        are_numbers = all(math.isfinite(each.value) for _, each in samples)
        if samples and were_good and are_numbers and not query.late_comparison and situation.progress.displaced:
            worst = max((each.value for _, each in samples), key=lambda value: _badness(query, value))
            series = tuple(sorted({each for each, _ in samples}))[:_MOST_SERIES]
            found[query.name] = Row(of=condition_of(query), series=series, worst=worst)
    if not found and not written.open:
        return {}
    return {keys.LEARNED_QUERIES: _text(replace(written, open=found))}


def open_queries(situation: Situation) -> tuple[HealthQuery, ...]:
    """The queries that may still be learned from the last undo."""
    rows = _read(situation).open
    waited = situation.elapsed(situation.progress.failed_at)
    if waited is None or waited > GOOD_AGAIN_SECONDS:
        return ()
    return tuple(each for each in situation.policy.health_queries if _row(rows, each) is not None)


def learned(situation: Situation, good: Iterable[HealthQuery]) -> dict[str, str | None]:
    """The annotation with these open queries learned, together with what was known about them."""
    written, at = _read(situation), rfc3339(situation.server_now)
    rows, left = dict(written.learned), dict(written.open)
    for query in good:
        new, old = left.pop(query.name), _row(written.learned, query)
        if old is not None and _is_recent(situation, old):
            worst = max(old.worst, new.worst, key=lambda value: _badness(query, value))
            new = replace(new, series=tuple(sorted({*old.series, *new.series}))[:_MOST_SERIES], worst=worst)
        rows[query.name] = replace(new, at=at)
    asked = {each.name for each in situation.policy.health_queries}
    rows = {name: row for name, row in rows.items() if name in asked}
    return {keys.LEARNED_QUERIES: _text(_Written(learned=dict(sorted(rows.items())[:_MOST_QUERIES]), open=left))}


def told(situation: Situation, query: HealthQuery) -> str:
    """The sentence of the Event, with the field that says for good what the node has learned."""
    row = _row(_read(situation).open, query)
    worst = row.worst if row is not None else query.bound
    comparison = "<=" if query.comparison in ("<", "<=") or worst > query.bound else ">="
    return (
        f"the health query {query.name} became bad with this node's drain and good again after its undo: for "
        f"{_DAYS:.0f} days it may be {worst:g} while the node is drained. To say so for all nodes, give the query in "
        f'--health-queries the field late: "{comparison} {worst:g}"'
    )


def are_good(situation: Situation, query: HealthQuery) -> bool:
    """Whether every sample of the query fulfils its full condition now."""
    answer = (known(situation.seen.queries) or {}).get(query.name)
    samples = [each for _, each in series_of(query, answer)] if isinstance(answer, tuple) else []
    is_fresh = all(each.age_seconds <= query.fresh_seconds for each in samples)
    return bool(samples) and is_fresh and all(query.holds(each.value) for each in samples)


def _badness(query: HealthQuery, value: float) -> float:
    """How far the value is from the condition, in the direction that the condition forbids."""
    if query.comparison in ("<", "<="):
        return value - query.bound
    return query.bound - value if query.comparison in (">", ">=") else abs(value - query.bound)


def _row(rows: Mapping[str, Row], query: HealthQuery) -> Row | None:
    row = rows.get(query.name)
    return row if row is not None and row.of == condition_of(query) else None


def _is_recent(situation: Situation, row: Row) -> bool:
    at = from_rfc3339(row.at)
    return (
        at is not None
        and at <= situation.server_now + timedelta(days=1)
        and situation.server_now - at <= timedelta(days=_DAYS)
    )


def _read(situation: Situation) -> _Written:
    found, _ = fields_of(json_of(situation.node.annotations.get(keys.LEARNED_QUERIES)), _Written)
    return found


def _text(written: _Written) -> str | None:
    record = {
        name: {
            query: {"of": row.of, "series": list(row.series), "worst": row.worst, **({"at": row.at} if row.at else {})}
            for query, row in rows.items()
        }
        for name, rows in (("learned", written.learned), ("open", written.open))
        if rows
    }
    return json.dumps(record, separators=(",", ":"), sort_keys=True) if record else None

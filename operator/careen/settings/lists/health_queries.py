"""One entry of `--health-queries`: the query for Prometheus, and the condition for each sample."""

from __future__ import annotations

import math
import re

from careen.core.facts.policy import HealthQuery, Matcher
from careen.settings import kinds
from careen.settings.go_regexp import GoRegexp
from careen.settings.lists.fields import Fields, fields_of
from scheduler_core.values import Value

FIELDS = ("name", "query", "holds", "late", "fresh", "labels")
NODE = "$NODE"
"""The node's name, in the query and in the values of labels."""

_DEFAULT_FRESH_SECONDS = 300.0  # as far as Prometheus itself looks back
_LONGEST_QUERY = 4096
_MOST_LABELS = 20
_HOLDS = re.compile(r"(==|!=|<=|>=|<|>)\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)", re.ASCII)
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^"\s,][^\s,]*))\s*')


class ConfiguredQuery(Value, kw_only=True):
    """As a person wrote it, with the placeholder `$NODE`."""

    name: str
    query: str
    comparison: str
    bound: float
    late: tuple[str, float] | None
    fresh_seconds: float
    matchers: tuple[tuple[str, str, str], ...]
    """Label, operator and value."""
    text: str

    def of_node(self, node: str) -> HealthQuery:
        """With the node's name."""
        return HealthQuery(
            name=self.name,
            query=self.query.replace(NODE, node),
            comparison=self.comparison,
            bound=self.bound,
            late_comparison=self.late[0] if self.late else "",
            late_bound=self.late[1] if self.late else 0.0,
            fresh_seconds=self.fresh_seconds,
            matchers=tuple(_matcher(*each, node) for each in self.matchers),
            is_of_node=NODE in self.query or any(NODE in value for _, _, value in self.matchers),
        )


def parse(text: str) -> ConfiguredQuery:
    """Raises `ListFieldError`."""
    fields = fields_of(text, FIELDS)
    comparison, bound = fields.one("holds", _holds)
    return ConfiguredQuery(
        name=fields.one("name", kinds.short_name),
        query=fields.one("query", _query),
        comparison=comparison,
        bound=bound,
        late=fields.one("late", _holds) if "late" in fields else None,
        fresh_seconds=fields.one("fresh", kinds.deadline, _DEFAULT_FRESH_SECONDS),
        matchers=_matchers(fields),
        text=fields.text,
    )


def _matchers(fields: Fields) -> tuple[tuple[str, str, str], ...]:
    found = fields.several("labels", _label)
    if len(found) > _MOST_LABELS:
        fields.refuse("labels", f"the list has more than {_MOST_LABELS} entries")
    return found


def _query(text: str) -> str:
    if len(text) > _LONGEST_QUERY:
        raise ValueError(f"expected a query of at most {_LONGEST_QUERY} characters")
    return text


def _holds(text: str) -> tuple[str, float]:
    match = _HOLDS.fullmatch(text)
    if match is None:
        raise ValueError('expected a comparison with a number, such as "== 0" or "< 0.9"')
    bound = float(match[2])
    if not math.isfinite(bound):
        raise ValueError(
            "expected a number between -1.7e308 and 1.7e308: a number outside this range would count as infinite"
        )
    return match[1], bound


def _label(text: str) -> tuple[str, str, str]:
    match = _LABEL.fullmatch(text)
    if match is None:
        raise ValueError(
            'expected a matcher such as job=ceph, instance=~"$NODE:.*" or cluster!=test'
            f"{'; each matcher is a separate entry, and a value with a comma needs quotes' if ',' in text else ''}"
        )
    value = match[4] if match[3] is None else _unescaped(match[3])
    if "~" in match[2]:
        kinds.regexp(value)
    return match[1], match[2], value


def _unescaped(text: str) -> str:
    """The value of a quoted PromQL string, in which a backslash is written twice, as in `"\\\\d"`."""
    if re.search(r'\\[^\\"]', re.sub(r"\\\\", "", text)):
        raise ValueError("in a quoted value, each backslash must be written twice")
    return re.sub(r"\\(.)", r"\1", text)


def _matcher(label: str, comparison: str, value: str, node: str) -> Matcher:
    is_pattern = "~" in comparison
    return Matcher(
        label=label,
        value=value.replace(NODE, node),
        pattern=(kinds.regexp(value.replace(NODE, re.escape(node))) or GoRegexp("")) if is_pattern else None,
        is_negated=comparison.startswith("!"),
    )

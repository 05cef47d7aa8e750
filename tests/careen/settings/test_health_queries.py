"""Tests the setting that lists health queries: accepted values, and errors with line and field."""

from __future__ import annotations

import math

import pytest

from careen.core.facts.policy import HealthQuery
from careen.settings import live
from careen.settings.policy import policy_of
from careen.settings.sources import BadSettings, resolve


def queries(text: str, **flags: list[str]) -> tuple[HealthQuery, ...]:
    resolved = resolve(
        flags={"node_id": ["n.1"], "prometheus_url": ["http://p:9090"], **flags},
        environment={},
        config_map=live.parse(text, "careen"),
        config_map_name="careen",
    )
    return policy_of(resolved.settings).health_queries


def test_the_name_of_the_node_is_inserted_into_a_health_query_and_its_matchers() -> None:
    (found,) = queries(
        """
health-queries:
  - name: load
    query: |
      node_load1{instance=~"$NODE:.*"}  # by instance
    holds: "< 2.5e1"
    fresh: 90s
    labels: [job=node, 'instance=~"$NODE:\\\\d+"', cluster!=test, zone!~"b|c"]
"""
    )
    assert (found.name, found.comparison, found.bound, found.fresh_seconds) == ("load", "<", 25.0, 90.0)
    assert found.is_of_node
    assert found.query == 'node_load1{instance=~"n.1:.*"}  # by instance'
    labels = {"job": "node", "instance": "n.1:9100", "cluster": "main", "zone": "a"}
    assert [each.holds(labels) for each in found.matchers] == [True] * 4
    others = {"job": "x", "instance": "nx1:9100", "cluster": "test", "zone": "b"}
    assert [each.holds(others) for each in found.matchers] == [False] * 4


def test_by_default_a_health_query_accepts_samples_up_to_five_minutes_old() -> None:
    (found,) = queries("health-queries: [{name: a, query: up, holds: '>=1'}]")
    assert (found.fresh_seconds, found.matchers, found.is_of_node) == (300.0, (), False)


def test_a_health_query_may_have_a_condition_for_drained_nodes() -> None:
    (found,) = queries("health-queries: [{name: ceph, query: x, holds: '== 0', late: '<= 1'}]")
    assert (found.late_comparison, found.late_bound, found.late_condition) == ("<=", 1.0, "<= 1")
    assert [found.holds_late(value) for value in (0.0, 1.0, 2.0, math.nan)] == [True, True, False, False]
    (without,) = queries("health-queries: [{name: ceph, query: x, holds: '== 0'}]")
    assert [without.holds_late(value) for value in (0.0, 1.0)] == [True, False]
    assert without.late_condition == "== 0"


def test_a_value_that_fulfils_the_usual_condition_is_good_enough_for_a_drained_node() -> None:
    (found,) = queries("health-queries: [{name: a, query: x, holds: '>= 3', late: '== 1'}]")
    assert [found.holds_late(value) for value in (4.0, 1.0, 2.0)] == [True, True, False]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{query: up, holds: == 1}", "`health-queries[0].name`: the field is missing"),
        ("{name: a, holds: == 1}", "`health-queries[0].query`: the field is missing"),
        ("{name: a, query: up}", "`health-queries[0].holds`: the field is missing"),
        ("{name: a, query: up, holds: 1}", "`health-queries[0].holds`: '1': expected a comparison"),
        ("{name: a, query: up, holds: = 1}", "`health-queries[0].holds`: '= 1': expected a comparison"),
        ("{name: a, query: up, holds: == nan}", "`health-queries[0].holds`: '== nan': expected a comparison"),
        ("{name: a, query: up, holds: == ١}", "`health-queries[0].holds`: '== ١': expected a comparison"),
        ("{name: a, query: up, holds: < 1e999}", "`health-queries[0].holds`: '< 1e999': expected a number"),
        ("{name: a, query: up, holds: '!= -1e400'}", "`health-queries[0].holds`: '!= -1e400': expected a number"),
        ("{name: a, query: up, holds: == 1, labels: 'job=a,b=c'}", "each matcher is a separate entry"),
        ("{name: a, query: up, holds: == 1, labels: ['a=~x{1,2}']}", "a value with a comma needs quotes"),
        ("{name: a, query: up, holds: == 1, fresh: 0}", "`health-queries[0].fresh`: '0': expected a duration"),
        ("{name: a, query: up, holds: == 1, fresh: 5}", "`health-queries[0].fresh`: '5': expected a duration"),
        ("{name: a, query: up, holds: == 1, late: 1}", "`health-queries[0].late`: '1': expected a comparison"),
        ("{name: a, query: up, holds: == 1, labels: [job]}", "`health-queries[0].labels`: 'job': expected a matcher"),
        ("{name: a, query: up, holds: == 1, labels: ['a=~\"(\"']}", "expected a regular expression"),
        ("{name: a, query: up, holds: == 1, label: [a=b]}", "`health-queries[0].label`: the field is unknown"),
        ("{name: a, query: '', holds: == 1}", "`health-queries[0].query`: expected one value"),
        (f"{{name: a, query: {'x' * 5000}, holds: == 1}}", "expected a query of at most 4096 characters"),
        (f"{{name: a, query: x, holds: == 1, labels: {['a=b'] * 21}}}", "has more than 20 entries"),
        ("{name: a, query: x, holds: == 1}\n- {name: a, query: y, holds: == 1}", "has two entries named a"),
    ],
)
def test_each_problem_of_a_health_query_is_reported(entry: str, problem: str) -> None:
    with pytest.raises(BadSettings) as refused:
        queries(f"health-queries:\n- {entry}\n")
    assert problem in refused.value.problems[0]
    assert "line 2" in refused.value.problems[0] or "two entries" in problem


def test_health_queries_require_a_prometheus() -> None:
    with pytest.raises(BadSettings, match="--health-queries needs --prometheus-url"):
        queries("health-queries: [{name: a, query: up, holds: '== 1'}]", prometheus_url=[""])


@pytest.mark.parametrize(
    ("name", "value", "is_refused"),
    [
        ("alertmanager-token-file", "/t", True),
        ("alertmanager-ca-file", "/c", True),
        ("alertmanager-url", "http://a:9093", False),
    ],
)
def test_the_config_map_may_not_set_the_token_file_of_alertmanager(name: str, value: str, is_refused: bool) -> None:
    given = {"alertmanager_url": ["http://b:9093"]} if is_refused else {}
    if is_refused:
        with pytest.raises(BadSettings, match=f"`{name}` .* is not allowed in the ConfigMap"):
            queries(f"{name}: {value}\n", **given)
    else:
        assert queries(f"{name}: {value}\n") == ()
        with pytest.raises(
            BadSettings, match=r"would send the secret in --alertmanager-token-file to the server in alertmanager-url"
        ):
            queries(f"{name}: {value}\n", alertmanager_token_file=["/t"], alertmanager_url=["http://b:9093"])


def test_a_long_condition_is_refused_at_once() -> None:
    """An expression that tries each place for the decimal point would block the agent's loop for minutes."""
    with pytest.raises(BadSettings, match="expected a comparison"):
        queries(f"health-queries: [{{name: a, query: up, holds: '< {'1' * 100_000}x'}}]")

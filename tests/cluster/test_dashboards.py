"""Tests that Prometheus answers the queries of all dashboards and alerts. A real Prometheus scrapes real agents during
a roll-out.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.architecture.source_tree import ROOT
from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.machines.prometheus import Prometheus, QueryError
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import bare_pod, deployment

pytestmark = pytest.mark.cluster

BLOCKING = [{"name": "backups", "pods": "app=backup", "longest": "1s"}]

# What Grafana puts in the place of its variables; a query with another variable is an error here.
VARIABLES = {"$__rate_interval": "1m", "$__interval": "15s", "$__range": "1h"}

# Panels without a series in this roll-out, by title.
MAY_BE_EMPTY = {
    "Nodes that hold the lock too long": "every node that holds a claim returns to service before it is overdue"
}

# Series that this roll-out does not have, by metric.
NOT_THERE = {
    "careen_overdue_holder_timestamp_seconds": "every node that holds a claim returns to service before it is overdue",
    "careen_write_not_kept": "the API server keeps every write, and nobody takes one back",
    "kube_node_info": "kube-state-metrics, which exports this metric, does not run here",
}

# Alerts whose expression is true here; all others are silent.
TRUE_HERE = {
    "CareenPodsBlockTooLong": "a pod blocks a node for longer than its entry in blocking-pods allows",
    "CareenMessagesNotSent": "no server listens at the address for messages",
}


class Panel(NamedTuple):
    title: str
    kind: str
    queries: tuple[str, ...]


def panels(folder: str = "dashboard") -> Iterator[Panel]:
    """Yield every panel of the dashboards in a folder of manifests/, with values for the variables in its queries."""
    for file in sorted((ROOT / "manifests" / folder).glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            yield Panel(panel["title"], panel["type"], tuple(filled(each["expr"]) for each in panel["targets"]))


def filled(query: str) -> str:
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    assert "$" not in query, f"a variable without a value: {query}"
    return query


def alerts(folder: str = "alerts") -> list[Any]:
    """Return the groups of alert rules in a folder of manifests/."""
    objects = (
        item
        for file in sorted((ROOT / "manifests" / folder).glob("*.yaml"))
        for item in yaml.safe_load_all(file.read_text())
    )
    return [group for item in objects if item["kind"] == "PrometheusRule" for group in item["spec"]["groups"]]


def test_prometheus_answers_every_query_from_the_metrics_of_real_agents(story: Story, tmp_path: Path) -> None:
    story.settings(blocking_pods=BLOCKING)
    hosts = story.nodes(3, "--notify-url=generic+http://127.0.0.1:9/")
    story.workloads(deployment("web", 6), bare_pod("backup", hosts[2].name))
    prometheus = Prometheus(
        tmp_path / "prometheus",
        guardian=story.plane.guardian,
        targets=[f"127.0.0.1:{host.metrics_port()}" for host in hosts],
        groups=alerts(),
    )
    try:
        story.wait_for("Prometheus is ready", prometheus.is_ready)
        story.wait_for("Prometheus scrapes every agent", lambda: len(prometheus.query("careen_last_turn_seconds")) == 3)
        is_answered(story, prometheus, hosts)
    finally:
        prometheus.close()


def is_answered(story: Story, prometheus: Prometheus, hosts: list[Host]) -> None:
    begun = time.time()
    by_title = {panel.title: panel.queries[0] for panel in panels()}
    story.need_reboot(hosts)
    story.wait_for(
        "one node is draining or rebooting", lambda: value_of(prometheus, by_title["Nodes that hold the lock"]) == 1
    )
    story.finishes(hosts[:2], 200)
    for panel in panels():
        for query in panel.queries:
            has_data(story, prometheus, panel, query, begun)
    assert value_of(prometheus, by_title["Nodes that need a reboot"]) == 1
    assert value_of(prometheus, by_title["Failed nodes"]) == 0
    expressions = {rule["alert"]: rule["expr"] for group in alerts() for rule in group["rules"]}
    for metric in NOT_THERE:
        assert prometheus.query(metric) == [], metric
    for name, expression in expressions.items():
        for series in sorted(selectors(expression)):
            if metric_of(series) not in NOT_THERE:
                story.wait_for(f"{name} has {series}", partial(prometheus.query, series))
        if name in TRUE_HERE:
            story.wait_for(f"{name} is true", partial(prometheus.query, expression))
        else:
            assert prometheus.query(expression) == [], name
    evaluated = prometheus.rules()
    assert expressions.keys() <= evaluated.keys()
    assert {name: evaluated[name].get("lastError") for name in expressions if evaluated[name]["health"] != "ok"} == {}


def has_data(story: Story, prometheus: Prometheus, panel: Panel, query: str, begun: float) -> None:
    """Wait until the query returns data. For a time series panel, send a range query, as Grafana does. The fallback `or
    vector(0)` does not count as data.
    """
    asked = query.removesuffix(" or vector(0)")

    def series() -> list[Any]:
        if panel.kind == "timeseries":
            return prometheus.query_range(query, start=begun, end=time.time(), step_seconds=5)
        return prometheus.query(query) and prometheus.query(asked)

    if panel.title in MAY_BE_EMPTY:
        series()
    else:
        story.wait_for(f"the panel {panel.title!r} has data", lambda: any(map(numbers, series())))


def numbers(series: Any) -> list[float]:
    """Return the values of one series. Leaves out NaN, which is the result of 0/0."""
    pairs = series.get("values") or [series["value"]]
    return [float(text) for _, text in pairs if text != "NaN"]


def value_of(prometheus: Prometheus, query: str) -> float:
    (series,) = prometheus.query(query)
    return numbers(series)[0]


def metric_of(series: str) -> str:
    return series.partition("{")[0]


def selectors(expression: str) -> set[str]:
    """Return each selector in a query: a metric's name, followed by the conditions on labels if the query has any. An
    example is `careen_phase{phase="Failed"}`."""
    return set(re.findall(r"\b(?:careen|kured|kube|process)_\w+(?:\{[^}]*\})?", expression))


def test_prometheus_understands_every_query_about_careen_shadow(prometheus: Prometheus, story: Story) -> None:
    """The test fails if Prometheus refuses a query of the dashboard or of an alert. The test ignores the results:
    Prometheus scrapes no `careen shadow` here, so the queries return no data.
    """
    story.wait_for("Prometheus is ready", prometheus.is_ready)
    queries = [query for panel in panels("shadow-monitoring") for query in panel.queries]
    queries += [rule["expr"] for group in alerts("shadow-monitoring") for rule in group["rules"]]
    assert len(queries) > 5
    for query in queries:
        prometheus.query(query)


def test_a_query_that_prometheus_refuses_is_an_error(prometheus: Prometheus, story: Story) -> None:
    story.wait_for("Prometheus is ready", prometheus.is_ready)
    with pytest.raises(QueryError, match="parse error"):
        prometheus.query("sum by (careen_phase")

"""Tests that the search for the number of nodes gives the answer of the plain one, with far fewer cycles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core import Scheduler, nodes_needed
from scheduler_core.testing.builders import a_node, a_pod
from scheduler_core.what_if.more_nodes import MoreNodes, NodesNeeded
from scheduler_core.what_if.node_template import like_node
from tests.scheduler_core.drawn_clusters import clusters, load_objects, pod_from_manifest, pods
from tests.scheduler_core.what_if.from_scratch import Answer, needed_from_scratch

Json = dict[str, Any]
SCHEDULER = Scheduler()
ZONE = "topology.kubernetes.io/zone"


def plain(found: MoreNodes) -> Answer:
    return found.count, dict(found.placed), dict(found.refused)


def said(found: NodesNeeded) -> tuple[Answer, Answer, int]:
    return plain(found.without), plain(found.best), found.tried


@st.composite
def replicas(draw: st.DrawFn, number: int) -> list[Json]:
    template = draw(pods(f"w{number}"))
    several = range(draw(st.integers(1, 4)))
    return [{**template, "metadata": {**template["metadata"], "name": f"w{number}-{each}"}} for each in several]


@settings(max_examples=60, deadline=None)
@given(clusters(most_nodes=4, most_pods=6), replicas(0), replicas(1), st.integers(0, 5))
def test_the_search_answers_as_one_that_tries_every_number(
    objects: list[Json], some: list[Json], others: list[Json], most: int
) -> None:
    snapshot = load_objects(objects)
    waiting = [pod_from_manifest(pod) for pod in (*some, *others)]
    template = like_node(snapshot, "n0")
    found = nodes_needed(SCHEDULER, snapshot, waiting, template, most)
    assert said(found) == needed_from_scratch(SCHEDULER, snapshot, waiting, template, most)


def spread_pods(count: int, when: str, cpu: str = "2") -> list[Json]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    made = []
    for number in range(count):
        manifest: Json = a_pod(f"p{number}").requesting(cpu=cpu).manifest
        manifest["metadata"]["labels"] = {"app": "web"}
        manifest["spec"]["topologySpreadConstraints"] = [constraint]
        made.append(manifest)
    return made


def full_nodes(count: int) -> list[Json]:
    made = []
    for number in range(count):
        node: Json = a_node(f"n{number}").manifest
        node["metadata"]["labels"][ZONE] = "abc"[number % 3]
        node["status"]["allocatable"]["cpu"] = "16"
        resident: Json = a_pod(f"r{number}").requesting(cpu="15").manifest
        resident["spec"]["nodeName"] = node["metadata"]["name"]
        made += [node, resident]
    return made


@pytest.mark.parametrize(("when", "needed", "most_cycles"), [("ScheduleAnyway", 4, 40), ("DoNotSchedule", 1, 120)])
def test_pods_that_spread_over_zones_need_few_cycles(
    when: str, needed: int, most_cycles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 pods need 4 nodes of which each takes 8. If they must spread, one of them gets a node of the zone, whatever
    the number of nodes. The plain search needs more than a thousand cycles."""
    snapshot = load_objects([*full_nodes(6)])
    waiting = [pod_from_manifest(pod) for pod in spread_pods(30, when)]
    cycles = []
    schedule = Scheduler.schedule_each

    def counted(*given: Any, **more: Any) -> Any:
        cycles.append(more["preempts"])
        return schedule(*given, **more)

    monkeypatch.setattr(Scheduler, "schedule_each", counted)
    found = nodes_needed(SCHEDULER, snapshot, waiting, like_node(snapshot, "n0"))
    assert found.best.count == needed
    assert len(cycles) <= most_cycles
    assert not any(cycles)


def test_a_pod_is_tried_again_when_another_one_got_a_node() -> None:
    """Pods a and c must stand beside b, which gets its node after a was refused."""
    beside = {"labelSelector": {"matchLabels": {"app": "base"}}, "topologyKey": ZONE}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}
    waiting = []
    for name, app in (("a", "web"), ("b", "base"), ("c", "web")):
        manifest: Json = a_pod(name).manifest
        manifest["metadata"]["labels"] = {"app": app}
        manifest["spec"]["affinity"] = {"podAffinity": required} if app == "web" else {}
        waiting.append(pod_from_manifest(manifest))
    snapshot = load_objects(full_nodes(1))
    found = nodes_needed(SCHEDULER, snapshot, waiting, like_node(snapshot, "n0"))
    assert list(found.without.placed) == ["default/b", "default/c"]
    assert list(found.without.refused) == ["default/a"]

"""What a prompt and a notebook show of the library's values."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import scheduler_core
from scheduler_core import (
    BindingCycle,
    ClusterCache,
    Configuration,
    Dump,
    DumpWriter,
    Durations,
    Header,
    KubeVersion,
    Machine,
    NodeOffer,
    NodesAtOnce,
    Obstacle,
    PageReader,
    Rules,
    Scheduler,
    SearchEstimate,
    Sync,
    after_drain,
    cheapest_mix,
    like_node,
    load_objects,
    nodes_needed,
    removable_nodes,
    simulate_drain,
    simulate_rollout,
)
from scheduler_core.sentences import html_table
from scheduler_core.testing.builders import a_node, a_pod, manifests

BEGINS = datetime(2026, 1, 5, tzinfo=UTC)
SNAPSHOT = load_objects(manifests(a_node("n1"), a_node("n2").cordoned(), a_pod("old").on("n1")))


def test_each_value_is_one_line_at_a_prompt() -> None:
    result = Scheduler().schedule(SNAPSHOT, a_pod("new").build())
    assert repr(SNAPSHOT) == "<Snapshot nodes=2 placed=1 pending=0 problems=0>"
    assert repr(Scheduler()) == "<Scheduler kube_version='1.36' profiles=default-scheduler>"
    assert repr(result) == "<CycleResult pod='default/new' node='n1'>"
    huge = Scheduler().schedule(SNAPSHOT, a_pod("big").requesting(cpu="99").build())
    assert repr(huge).startswith("<CycleResult pod='default/big' node=None, sentence='0/2 nodes are available: ")
    assert repr(removable_nodes(Scheduler(), SNAPSHOT)) == "<Removable nodes=['n2'] kept=1>"


def test_pods_and_nodes_are_short_in_lists() -> None:
    pod = a_pod("old").on("n1").build()
    assert repr([pod]) == "[<Pod 'default/old' node='n1' priority=0>]"
    node = a_node("n2").offering(cpu="1500m", memory="3Gi").cordoned().build()
    assert repr(node) == "<Node 'n2' cpu=1500m memory=3Gi pods=110 taints=0 cordoned>"
    assert repr(like_node(SNAPSHOT, "n1")).startswith("<NodeTemplate 'n1' node=<Node 'n1' cpu=")
    (forecast,) = simulate_drain(load_objects(manifests(a_node("n1"), a_node("n2"), OWNED)), ["n1"])
    assert repr(forecast.pods[0]) == "<PodForecast 'default/old' moves to n2>"


OWNED = a_pod("old").owned_by("ReplicaSet", "web").requesting(cpu="1", memory="1Gi").on("n1")


def everything() -> Iterator[Any]:
    """One of each public class."""
    scheduler, pod = Scheduler(), a_pod("new").build()
    world = load_objects(manifests(*(a_node(f"n{number}") for number in range(40)), OWNED))
    template = like_node(world, "n1")
    offers = [NodeOffer(template=template)]
    header = Header(kube_version="v1.36.3", taken_at="2026-01-05T00:00:00Z")
    plan = simulate_rollout(world, ["n1"], scheduler, begins=BEGINS)
    result = scheduler.schedule(world, pod)
    yield from (scheduler, world, pod, world.nodes[0], template, offers[0], result, result.statuses["n1"], plan, header)
    yield from (Configuration(), KubeVersion.parse("1.36"), world.utilisation(), Durations(), NodesAtOnce(2))
    yield from (simulate_drain(world, ["n1"])[0], simulate_drain(world, ["n1"])[0].pods[0])
    yield from (nodes_needed(scheduler, world, [pod], template), nodes_needed(scheduler, world, [pod], template).best)
    yield from (cheapest_mix(scheduler, world, [pod], offers), removable_nodes(scheduler, world))
    yield from (after_drain(world, ["n1"], scheduler), SearchEstimate.unknown(world, scheduler))
    yield from (ClusterCache(), Machine(scheduler), Sync("Pod", iter([])), Dump(header=header, snapshot=world))
    yield from (PageReader(), Obstacle(rule="forecast", subject="a", sentence="no room"))
    yield BindingCycle(scheduler.runner(pod).plugins)


def test_every_public_value_is_one_short_line() -> None:
    shown = {type(each).__name__: repr(each) for each in everything()}
    classes = {
        name
        for name in scheduler_core.__all__
        if inspect.isclass(value := getattr(scheduler_core, name)) and not issubclass(value, Exception | Enum)
    }
    assert classes - set(shown) == {Rules.__name__, DumpWriter.__name__}  # an interface; a file being written
    assert {name: text for name, text in shown.items() if len(text) > 300 or "\n" in text} == {}


def test_a_notebook_shows_how_full_a_cluster_is() -> None:
    world = load_objects(manifests(a_node("n1").offering(cpu="2", memory="4Gi"), OWNED, a_pod("<b>")))
    shown = world._repr_html_()
    assert "<tr><td>n1</td><td>50%</td><td>25%</td><td>1%</td><td></td><td>0</td></tr>" in shown
    assert "<th>pod without a node</th>" in shown
    assert "<td>default/&lt;b&gt;</td>" in shown
    assert "<td>50%</td>" in world.utilisation()._repr_html_()
    assert "<td>requests of" in world.placed_pods[0]._repr_html_()
    assert "<td>cpu=1 memory=1Gi</td>" in world.placed_pods[0]._repr_html_()
    assert "<td>cpu=2 memory=4Gi pods=110" in world.nodes[0]._repr_html_()
    assert load_objects([])._repr_html_().startswith("<table><tr><th>node</th>")


def test_a_notebook_shows_a_table_of_the_verdicts_and_of_the_moves() -> None:
    shown = Scheduler().schedule(SNAPSHOT, a_pod("new").build())._repr_html_()
    assert "<tr><td>n2</td><td></td><td>NodeUnschedulable</td><td>node(s) were unschedulable</td></tr>" in shown
    assert "<td>n1</td><td></td><td></td><td>fits</td>" in shown
    assert "<td>n2</td><td>goes</td><td></td>" in removable_nodes(Scheduler(), SNAPSHOT)._repr_html_()


def test_a_table_escapes_texts_and_says_how_many_rows_it_leaves_out() -> None:
    shown = html_table(("a<b",), [("<script>",)] * 203)
    assert shown.startswith("<table><tr><th>a&lt;b</th></tr><tr><td>&lt;script&gt;</td></tr>")
    assert shown.endswith("</table><p>and 3 more</p>")
    assert "<script" not in shown

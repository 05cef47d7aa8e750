"""Tests a whole cycle: a node fits, no node fits, or the result is unknown. Also tests tie-breaks, nominated pods and
profiles."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import scheduler_core
from scheduler_core import Scheduler, Snapshot
from scheduler_core.config.configuration import Configuration
from scheduler_core.config.fields import ConfigurationError
from scheduler_core.cycle import NoProfileError
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.plugin_set import DuplicatePluginError
from scheduler_core.framework.verdict import SUCCESS, Verdict, error, unknown, unschedulable
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.testing.builders import a_node, a_pod, manifests
from scheduler_core.ties import first_of_heap
from tests.patience import run

API = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def configured(*profiles: dict[str, Any]) -> Configuration:
    return Configuration.from_mapping({**API, "profiles": list(profiles)})


def cluster(*builders: Any) -> Snapshot:
    return load_objects(manifests(*builders))


def test_a_single_feasible_node_is_chosen_without_scoring() -> None:
    result = Scheduler().schedule(cluster(a_node("n1"), a_node("n2").cordoned()), a_pod().build())
    assert (result.node, result.best, dict(result.scores), result.sentence) == ("n1", ("n1",), {}, "")
    assert {name: verdict.is_success for name, verdict in result.statuses.items()} == {"n1": True, "n2": False}


def test_the_feasible_node_with_the_highest_score_is_chosen() -> None:
    result = Scheduler().schedule(
        cluster(a_node("busy"), a_node("idle"), a_pod("p").requesting(cpu="3", memory="1Gi").on("busy")),
        a_pod().requesting(cpu="500m", memory="1Gi").build(),
    )
    assert (result.node, result.best) == ("idle", ("idle",))
    idle = result.scores["idle"]
    assert idle.total == sum(idle.by_plugin.values())
    assert idle.by_plugin["TaintToleration"] == 300
    assert list(result.scores) == ["busy", "idle"]


def test_the_result_lists_all_nodes_with_the_best_score() -> None:
    result = Scheduler().schedule(cluster(a_node("c"), a_node("a"), a_node("b")), a_pod().build())
    assert result.best == ("a", "b", "c")
    assert result.node == "c", "since 1.35 the first node of the list is chosen"
    assert Scheduler(kube_version="1.34").schedule(cluster(a_node("c"), a_node("a")), a_pod().build()).node == "a", (
        "before 1.35 a random node is chosen; the simulation takes the first by name"
    )


@pytest.mark.parametrize(
    ("totals", "index"),
    [
        ([1, 3, 5, 5, 5, 2], 3),
        ([4, 5, 5, 5], 1),
        ([0, 0, 9, 1, 9], 4),
        ([5], 0),
        ([5, 5], 0),
        ([1, 2], 1),
        ([1, 1, 2], 2),
    ],
)
def test_among_nodes_of_equal_score_the_root_of_gos_heap_is_chosen(totals: list[int], index: int) -> None:
    assert first_of_heap(np.array(totals)) == index


def go_heap_root(totals: list[int]) -> int:
    """Returns the index of the total that heap.Init of Go's container/heap moves to the root. In this heap, a higher
    total comes before a lower total."""
    heap = list(enumerate(totals))

    def down(place: int) -> None:
        while 2 * place + 1 < len(heap):
            child = 2 * place + 1
            if child + 1 < len(heap) and heap[child + 1][1] > heap[child][1]:
                child += 1
            if heap[child][1] <= heap[place][1]:
                return
            heap[place], heap[child] = heap[child], heap[place]
            place = child

    for place in reversed(range(len(heap) // 2)):
        down(place)
    return heap[0][0]


def test_the_choice_among_random_scores_is_the_root_of_a_heap_built_as_in_go() -> None:
    """`first_of_heap` computes the root without building a heap. `go_heap_root` builds the heap step by step."""
    d = random.Random(3)
    for _ in range(3000):
        totals = [d.randrange(4) for _ in range(d.randrange(1, 40))]
        assert first_of_heap(np.array(totals)) == go_heap_root(totals), totals


def test_the_message_counts_the_reasons_if_no_node_fits() -> None:
    nodes = [
        a_node("n1").cordoned(),
        a_node("n2").tainted("x"),
        a_node("n3").tainted("y"),
        a_node("n4").offering(cpu="1", pods="0"),
    ]
    result = Scheduler().schedule(
        cluster(nodes), a_pod().requesting(cpu="2").with_field("spec.preemptionPolicy", "Never").build()
    )
    assert result.node is None
    assert result.sentence == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 Too many pods, 1 node(s) were unschedulable, 2 "
        "node(s) had untolerated taint(s). "
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )


def test_the_message_says_that_the_cluster_has_no_nodes() -> None:
    assert Scheduler().schedule(cluster(), a_pod().build()).sentence == "no nodes available to schedule pods"


def test_a_pods_nominated_node_is_chosen_even_if_other_nodes_score_higher() -> None:
    snapshot = cluster(a_node("idle"), a_node("busy"), a_pod("p").requesting(cpu="3").on("busy"))
    pod = a_pod("new").with_field("status.nominatedNodeName", "busy").build()
    assert Scheduler().schedule(snapshot, pod).node == "busy"
    assert Scheduler().schedule(snapshot, pod, honors_nomination=False).node == "idle"
    assert Scheduler().schedule(snapshot.with_node_cordoned("busy"), pod).node == "idle"


@pytest.mark.parametrize(("priority", "node"), [(10, "n2"), (0, "n2"), (-1, "n1")])
def test_nominated_pods_of_higher_priority_keep_their_room(priority: int, node: str) -> None:
    snapshot = cluster(a_node("n1").offering(cpu="3"), a_node("n2").offering(cpu="2"))
    promised = {"n1": (a_pod("promised").with_priority(priority).requesting(cpu="2").build(),)}
    result = Scheduler().schedule(snapshot, a_pod("new").requesting(cpu="2").build(), nominated=promised)
    assert result.node == node
    assert result.statuses["n1"].is_success is (node == "n1")


def test_a_nominated_pod_does_not_satisfy_an_affinity() -> None:
    """The pod must fit on the node both with and without the nominated pod."""
    snapshot = cluster(a_node("n1"))
    promised = {"n1": (a_pod("friend").labelled(app="db").build(),)}
    assert (
        Scheduler()
        .schedule(snapshot, a_pod("new").near("kubernetes.io/hostname", {"app": "db"}).build(), nominated=promised)
        .node
        is None
    )


def test_a_pod_of_another_scheduler_is_refused() -> None:
    with pytest.raises(NoProfileError, match="pod default/pod: no profile has the schedulerName 'other'"):
        Scheduler().schedule(cluster(a_node("n")), a_pod().with_field("spec.schedulerName", "other").build())


def test_each_profile_has_its_own_scheduling_rules() -> None:
    strict = {
        "schedulerName": "strict",
        "pluginConfig": [
            {
                "name": "NodeAffinity",
                "args": {
                    "addedAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}]
                        }
                    }
                },
            }
        ],
    }
    scheduler = Scheduler(configured({"schedulerName": "default-scheduler"}, strict))
    assert scheduler.schedule(cluster(a_node("n")), a_pod().build()).node == "n"
    assert (
        scheduler.schedule(cluster(a_node("n")), a_pod().with_field("spec.schedulerName", "strict").build()).node
        is None
    )


def test_weights_are_applied_and_disabled_plugins_are_skipped() -> None:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"enabled": [{"name": "ImageLocality", "weight": 7}]},
            "score": {"disabled": [{"name": "TaintToleration"}]},
            "filter": {"disabled": [{"name": "NodeUnschedulable"}]},
        },
    }
    nodes = [a_node("n1").cordoned().with_image("app:1", size_bytes=10**10), a_node("n2")]
    result = Scheduler(configured(profile)).schedule(cluster(nodes), a_pod().build())
    assert result.best == ("n1",)
    assert result.scores["n1"].by_plugin["ImageLocality"] == 700
    assert "TaintToleration" not in result.scores["n1"].by_plugin


# ---- a plugin of one's own ----


@dataclass(frozen=True)
class RackOnly:
    """A plugin that refuses nodes outside of one rack. A node's score is the length of its name."""

    rack: str
    name: ClassVar[str] = "RackOnly"

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:
        return (
            SUCCESS
            if node_info.node.labels.get("rack") == self.rack
            else unschedulable(f"node(s) stood outside of rack {self.rack}")
        )

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return len(node_info.name)


def with_plugin(plugin: Any, *, args: dict[str, Any] | None = None) -> Scheduler:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": plugin.name, "weight": 10}]}},
        "pluginConfig": [{"name": plugin.name, "args": args or {}}],
    }
    return Scheduler(
        configured(profile),
        plugins={plugin.name: lambda written, version: plugin(written["rack"]) if isinstance(plugin, type) else plugin},
    )


def test_a_custom_plugin_may_handle_one_node_per_call() -> None:
    scheduler = with_plugin(RackOnly, args={"rack": "r1"})
    nodes = [
        a_node("short").labelled(rack="r1"),
        a_node("longer-name").labelled(rack="r1"),
        a_node("elsewhere").labelled(rack="r2"),
    ]
    result = scheduler.schedule(cluster(nodes), a_pod().build())
    assert result.best == ("longer-name",)
    assert result.scores["short"].by_plugin["RackOnly"] == 50
    assert (result.statuses["elsewhere"].plugin, result.statuses["elsewhere"].reasons) == (
        "RackOnly",
        ("node(s) stood outside of rack r1",),
    )


def test_a_custom_plugin_may_not_reuse_a_name() -> None:
    with pytest.raises(DuplicatePluginError, match="two plugins are named NodeName"):
        Scheduler(plugins={"NodeName": lambda args, version: RackOnly("r")})


def test_the_error_for_an_unknown_plugin_contains_the_plugins_path_in_the_configuration() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"profiles\[0\]\.plugins\.filter\.enabled\[0\]: plugin Nonsense is unknown or has no extension point",
    ):
        Scheduler(
            configured(
                {"schedulerName": "default-scheduler", "plugins": {"filter": {"enabled": [{"name": "Nonsense"}]}}}
            )
        )


@dataclass(frozen=True)
class Says:
    """A plugin whose filter returns the same verdict for every node."""

    verdict: Verdict
    name: ClassVar[str] = "Says"

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:
        return self.verdict


@dataclass(frozen=True)
class Scores:
    """A plugin that gives every node the same score."""

    value: int
    name: ClassVar[str] = "Scores"

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return self.value


def test_a_failing_filter_ends_the_cycle_with_an_error() -> None:
    result = with_plugin(Says(error("disk on fire"))).schedule(cluster(a_node("n1"), a_node("n2")), a_pod().build())
    assert result.node is None
    assert result.error == result.sentence == 'running "Says" filter plugin: disk on fire'


def test_an_unknown_verdict_makes_the_result_unknown() -> None:
    result = with_plugin(Says(unknown("depends on the moon"))).schedule(cluster(a_node("n1")), a_pod().build())
    assert (result.node, result.unknown) == (None, "depends on the moon")
    assert Scheduler().schedule(cluster(a_node("n1")), a_pod().build()).unknown == ""


@pytest.mark.parametrize("value", [-1, 101])
def test_a_score_out_of_range_ends_the_cycle_with_an_error(value: int) -> None:
    result = with_plugin(Scores(value)).schedule(cluster(a_node("n1"), a_node("n2")), a_pod().build())
    assert result.node is None
    assert 'plugin "Scores" returns an invalid score' in result.error


def test_a_negative_weight_in_the_configuration_ends_the_cycle_with_an_error() -> None:
    """kube-scheduler accepts the weight. NormalizeScore then returns a score below 0."""
    added = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
        for key, weight in (("x", -5), ("y", 5))
    ]
    scheduler = Scheduler(
        configured(
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [
                    {
                        "name": "NodeAffinity",
                        "args": {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": added}},
                    }
                ],
            }
        )
    )
    nodes = cluster(a_node("a").labelled(x="1"), a_node("b").labelled(y="1"), a_node("c"))
    result = scheduler.schedule(nodes, a_pod().build())
    assert (result.node, 'plugin "NodeAffinity" returns an invalid score' in result.error) == (None, True)


# ---- the package ----


def test_importing_the_package_loads_no_heavy_libraries() -> None:
    program = "import sys, scheduler_core, scheduler_core.simulation.forecast; sys.exit('numpy' in sys.modules)"
    assert run([sys.executable, "-c", program]).returncode == 0


def test_only_public_names_are_exported() -> None:
    assert all(getattr(scheduler_core, name) for name in scheduler_core.__all__)
    with pytest.raises(AttributeError, match="module 'scheduler_core' has no attribute 'nonsense'"):
        scheduler_core.nonsense  # noqa: B018


def test_the_runner_up_is_the_next_best_node() -> None:
    used = [a_pod(f"p-{node}").requesting(cpu="2", memory="4Gi").on(node) for node in ("d", "c")]
    result = Scheduler().schedule(
        cluster(a_node("d"), a_node("c"), a_node("b"), a_node("a"), used),
        a_pod().requesting(cpu="100m", memory="200Mi").build(),
    )
    assert result.best == ("a", "b")
    assert result.highest_total == result.scores["a"].total
    assert result.runner_up == ("c", result.scores["c"].total)
    alone = Scheduler().schedule(cluster(a_node("a")), a_pod().build())
    assert (alone.highest_total, alone.runner_up) == (None, None)
    assert Scheduler().schedule(cluster(a_node("a"), a_node("b")), a_pod().build()).runner_up is None


# ---- releases ----


@pytest.mark.parametrize(
    ("version", "scorers"),
    [("1.33", set()), ("1.34", set()), ("1.35", {"DynamicResources"}), ("1.36", {"DynamicResources"})],
)
def test_dynamic_resources_gives_scores_since_1_35(version: str, scorers: set[str]) -> None:
    result = Scheduler(kube_version=version).schedule(cluster(a_node("a"), a_node("b")), a_pod().build())
    assert set(result.scores["a"].by_plugin) & {"DynamicResources"} == scorers


@pytest.mark.parametrize(("version", "fits"), [("1.33", True), ("1.34", False)])
def test_since_1_34_pod_level_requests_are_taken_into_account(version: str, fits: bool) -> None:
    pod = a_pod().requesting(cpu="1").with_field("spec.resources", {"requests": {"cpu": "9"}})
    assert (Scheduler(kube_version=version).schedule(cluster(a_node("n")), pod.build()).node is not None) is fits


@pytest.mark.parametrize(("version", "fits"), [("1.32", True), ("1.33", False)])
def test_since_1_33_a_resize_in_progress_is_taken_into_account(version: str, fits: bool) -> None:
    resizing = (
        a_pod("p")
        .requesting(cpu="1")
        .with_field("status.containerStatuses", [{"name": "main", "resources": {"requests": {"cpu": "3"}}}])
        .on("n")
    )
    result = Scheduler(kube_version=version).schedule(
        cluster(a_node("n"), resizing), a_pod().requesting(cpu="2").build()
    )
    assert (result.node is not None) is fits


@pytest.mark.parametrize(("version", "cpu"), [("1.35", 2000), ("1.36", 3000)])
def test_since_1_36_a_pod_level_resize_is_taken_into_account(version: str, cpu: int) -> None:
    resizing = (
        a_pod("p")
        .with_field("spec.resources", {"requests": {"cpu": "2"}})
        .with_field("status.resources", {"requests": {"cpu": "3"}})
        .on("n")
    )
    free = Scheduler(kube_version=version).schedule(
        cluster(a_node("n"), resizing), a_pod().requesting(cpu=f"{4000 - cpu}m").build()
    )
    full = Scheduler(kube_version=version).schedule(
        cluster(a_node("n"), resizing), a_pod().requesting(cpu=f"{4001 - cpu}m").build()
    )
    assert (free.node, full.node) == ("n", None)

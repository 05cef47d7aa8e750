from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.testing.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.scheduler_core.plugins.verdicts import cluster, decided, filtered, plugin, raw_scores, said, scored

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "!node(s) didn't match pod topology spread constraints (missing required label)"
SPREAD = "PodTopologySpread"


def web(name: str = "new", **labels: str) -> PodBuilder:
    return a_pod(name).labelled(app="web", **labels)


def running(**counts: int) -> list[PodBuilder]:
    """Returns web pods that run on nodes. For example, `running(a1=2)` returns two pods on node a1."""
    return [web(f"{node}-{i}").on(node) for node, count in counts.items() for i in range(count)]


ZONES = [a_node("a1").in_zone("a"), a_node("a2").in_zone("a"), a_node("b1").in_zone("b")]


@pytest.mark.parametrize(
    ("pod", "pods", "verdicts"),
    [
        (web(), [], {"*": "Skip"}),
        (web().spread_over(ZONE), [], {"a1": "", "a2": "", "b1": ""}),
        (web().spread_over(ZONE), running(a1=1), {"a1": SKEWED, "a2": SKEWED, "b1": ""}),
        (web().spread_over(ZONE, maxSkew=2), running(a1=1), {"a1": "", "a2": "", "b1": ""}),
        (web().spread_over(HOST), running(a1=1, b1=1), {"a1": SKEWED, "a2": "", "b1": SKEWED}),
        (web().spread_over(ZONE).spread_over(HOST), running(a1=1, b1=1), {"a1": SKEWED, "a2": "", "b1": SKEWED}),
        (web().spread_over(ZONE), [web("t").on("a1").terminating()], {"a1": "", "a2": "", "b1": ""}),
        (web().spread_over(ZONE), [a_pod("x", "ops").labelled(app="web").on("a1")], {"a1": "", "a2": "", "b1": ""}),
        (web().spread_over(ZONE, whenUnsatisfiable="ScheduleAnyway"), running(a1=3), {"*": "Skip"}),
        (web().spread_over(ZONE, minDomains=3), running(a1=1, b1=1), {"a1": SKEWED, "a2": SKEWED, "b1": SKEWED}),
        (web().spread_over(ZONE, minDomains=2), running(a1=1, b1=1), {"a1": "", "a2": "", "b1": ""}),
        (web().spread_over(ZONE, labelSelector=None), running(a1=3), {"a1": "", "a2": "", "b1": ""}),
        (web().spread_over(ZONE, labelSelector={}), running(a1=3), {"a1": "", "a2": "", "b1": ""}),
        (
            web().spread_over(ZONE, labelSelector={"matchLabels": {"app": "db"}}),
            [a_pod(f"d{i}").labelled(app="db").on("a1") for i in range(2)],
            {"a1": SKEWED, "a2": SKEWED, "b1": ""},
        ),
        (
            web(tier="x").spread_over(ZONE, matchLabelKeys=["tier", "absent"]),
            running(a1=1),
            {"a1": "", "a2": "", "b1": ""},
        ),
        (web().spread_over("rack"), [], {"a1": NO_LABEL, "a2": NO_LABEL, "b1": NO_LABEL}),
    ],
    ids=[
        "a pod without constraints",
        "a cluster without pods",
        "one zone has too many pods",
        "a larger maxSkew",
        "a constraint over hosts",
        "constraints over zones and hosts",
        "terminating pods do not count",
        "pods of other namespaces do not count",
        "a ScheduleAnyway constraint",
        "fewer domains than minDomains",
        "as many domains as minDomains",
        "a constraint without selector",
        "an empty selector counts no pod",
        "a constraint over pods of another app",
        "matchLabelKeys narrow the selector",
        "nodes without the topology label",
    ],
)
def test_pod_topology_spread_refuses_nodes_that_would_violate_a_constraint(
    pod: PodBuilder, pods: list[PodBuilder], verdicts: dict[str, str]
) -> None:
    assert filtered(plugin(SPREAD), pod, cluster(ZONES, pods)) == verdicts


def test_a_cordoned_empty_node_is_still_the_domain_with_the_fewest_pods() -> None:
    """By default (without `nodeTaintsPolicy: Honor`), a drained node counts as a domain with zero pods. This is why
    pods often stay pending after a drain."""
    nodes = [a_node("drained").cordoned().tainted("node.kubernetes.io/unschedulable"), a_node("n2"), a_node("n3")]
    pods = running(n2=1, n3=1)
    assert filtered(plugin(SPREAD), web().spread_over(HOST), cluster(nodes, pods)) == {
        "drained": "",
        "n2": SKEWED,
        "n3": SKEWED,
    }
    assert filtered(plugin(SPREAD), web().spread_over(HOST, nodeTaintsPolicy="Honor"), cluster(nodes, pods)) == {
        "drained": "",
        "n2": "",
        "n3": "",
    }


def test_nodes_excluded_by_the_pods_affinity_are_no_domains_by_default() -> None:
    pods = running(a1=1)
    chosen = web().with_field("spec.nodeSelector", {ZONE: "a"})
    assert filtered(plugin(SPREAD), chosen.spread_over(ZONE), cluster(ZONES, pods)) == {"a1": "", "a2": "", "b1": ""}
    assert filtered(plugin(SPREAD), chosen.spread_over(ZONE, nodeAffinityPolicy="Ignore"), cluster(ZONES, pods)) == {
        "a1": SKEWED,
        "a2": SKEWED,
        "b1": "",
    }


def test_all_spread_constraints_ignore_a_node_that_lacks_one_of_their_topology_keys() -> None:
    nodes = [a_node("a1").in_zone("a").labelled(rack="r"), a_node("b1").in_zone("b")]
    verdicts = filtered(plugin(SPREAD), web().spread_over(ZONE).spread_over("rack"), cluster(nodes, running(b1=5)))
    assert verdicts == {"a1": "", "b1": NO_LABEL}


def test_a_spread_constraint_without_topology_domains_refuses_no_node() -> None:
    pod = web().with_field("spec.nodeSelector", {"no": "such"}).spread_over(ZONE)
    assert filtered(plugin(SPREAD), pod, cluster(ZONES, running(a1=5))) == {"a1": "", "a2": "", "b1": ""}


def test_a_spread_constraint_with_an_invalid_selector_fails_the_cycle() -> None:
    pod = web().spread_over(ZONE, labelSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    result = decided(pod, cluster(ZONES))
    assert result.error == 'running PreFilter plugin "PodTopologySpread": "Near" is not a valid label selector operator'


@pytest.mark.parametrize(
    ("change", "verdicts"), [("removed", {"a1": "", "b1": ""}), ("added", {"a1": SKEWED, "b1": SKEWED})]
)
def test_the_counts_of_a_spread_constraint_change_if_preemption_adds_or_removes_a_terminating_pod(
    change: str, verdicts: dict[str, str]
) -> None:
    snapshot = cluster([a_node("a1").in_zone("a"), a_node("b1").in_zone("b")], running(a1=1))
    spread, state, pod = plugin(SPREAD), CycleState(), web().spread_over(ZONE, minDomains=2).build()
    assert spread.pre_filter(state, pod, NodeList(snapshot)).verdict.is_success
    other, info = web("other").terminating().build(), snapshot.node_info(0)
    trial = state.copy()
    if change == "removed":
        spread.remove_pod(trial, pod, other, info)
    else:
        spread.add_pod(trial, pod, other, info)
        spread.add_pod(trial, pod, other, snapshot.node_info(1))
        spread.add_pod(trial, pod, a_pod("x", "ops").labelled(app="web").build(), info)  # another namespace: no change
        spread.remove_pod(trial, pod, a_pod("y").build(), info)  # not selected: no change
    got = {
        name: said(spread.filter(trial, pod, snapshot.node_info(row))) for row, name in enumerate(snapshot.node_names)
    }
    assert got == (verdicts if change == "removed" else {"a1": SKEWED, "b1": ""})
    assert said(spread.filter(state, pod, info)) == SKEWED, "the trial must not change the original state"


# ---- scores ----


def by_host(**counts: int) -> list[NodeBuilder]:
    return [a_node(name) for name in counts]


SOFT: dict[str, Any] = {"whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("max_skew", "raw", "normalized"),
    [(1, [4, 2, 0, 5], [20, 60, 100, 0]), (2, [5, 3, 1, 6], [33, 66, 100, 16])],
)
def test_spread_over_hostnames_gives_each_node_its_own_score(
    max_skew: int, raw: list[int], normalized: list[int]
) -> None:
    """The expected numbers are from kube-scheduler's own test."""
    counts = {"n1": 2, "n2": 1, "n3": 0, "n4": 3}
    snapshot = cluster(by_host(**counts), running(**counts))
    pod = web().spread_over(HOST, maxSkew=max_skew, **SOFT)
    assert list(raw_scores(plugin(SPREAD), pod, snapshot).values()) == raw
    assert scored(plugin(SPREAD), pod, snapshot) == dict(zip(counts, normalized, strict=True))


def test_spread_scores_are_correct_if_many_nodes_share_few_raw_scores() -> None:
    """The weight of 30 domains is ln(30 + 2) = 3.466. The raw score of a node is its number of web pods times this
    weight, rounded. The nodes n1 to n4 have 2, 1, 0 and 3 web pods, so their raw scores are 7, 3, 0 and 10."""
    counts = {"n1": 2, "n2": 1, "n3": 0, "n4": 3, **{f"empty{number}": 0 for number in range(26)}}
    snapshot = cluster(by_host(**counts), running(**counts))
    found = scored(plugin(SPREAD), web().spread_over(HOST, maxSkew=1, **SOFT), snapshot)
    assert found is not None
    assert [found[name] for name in ("n1", "n2", "n3", "n4", "empty0")] == [30, 70, 100, 0, 100]


SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "default"},
    "spec": {"selector": {"app": "web"}},
}


def owner(kind: str, selector: Any, api_version: str = "apps/v1") -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "own", "namespace": "default"},
        "spec": {"selector": selector},
    }


@pytest.mark.parametrize(
    ("objects", "pod", "applies"),
    [
        ([SERVICE], web(), True),
        ([], web(), False),
        ([{**SERVICE, "spec": {"selector": {"app": "db"}}}], web(), False),
        ([{**SERVICE, "spec": {}}], web(), False),
        ([{**SERVICE, "metadata": {"name": "s", "namespace": "ops"}}], web(), False),
        ([owner("ReplicaSet", {"matchLabels": {"app": "web"}})], web().owned_by("ReplicaSet", "own"), True),
        ([owner("ReplicaSet", {"matchLabels": {"app": "web"}})], web().owned_by("ReplicaSet", "other"), False),
        ([owner("StatefulSet", {"matchLabels": {"app": "web"}})], web().owned_by("StatefulSet", "own"), True),
        (
            [owner("StatefulSet", {"matchLabels": {"app": "web"}})],
            web().owned_by("StatefulSet", "own", "example.com/v1"),
            False,
        ),
        (
            [owner("ReplicationController", {"app": "web"}, "v1")],
            web().owned_by("ReplicationController", "own", "v1"),
            True,
        ),
        ([SERVICE], web().spread_over(ZONE, **SOFT), None),
        ([], web().owned_by("Job", "own", "batch/v1"), False),
    ],
    ids=[
        "a service",
        "neither a service nor a controller",
        "a service that selects other pods",
        "a service without selector",
        "a service of another namespace",
        "a replica set",
        "another replica set",
        "a stateful set",
        "a controller of another API group",
        "a replication controller",
        "the pod's own constraints",
        "a job",
    ],
)
def test_the_system_default_spread_applies_to_pods_of_services_and_controllers(
    objects: list[dict[str, Any]], pod: PodBuilder, applies: bool | None
) -> None:
    snapshot = cluster([a_node("a").in_zone("a"), a_node("b").in_zone("b")], running(a=4), objects=objects)
    scores = scored(plugin(SPREAD), pod, snapshot)
    # a: host 4·ln 4 + 2, zone 4·ln 4 + 4, together 17; b: 6. Normalized: 100·6 / 17.
    assert scores == {True: {"a": 35, "b": 100}, False: None, None: {"a": 0, "b": 100}}[applies]


def test_the_system_default_spread_accepts_nodes_without_a_zone() -> None:
    snapshot = cluster([a_node("a").in_zone("a"), a_node("none")], running(a=2, none=1), objects=[SERVICE])
    # Two hosts, and two zones: "a" and none at all. a: 2·ln 4 + 2 + 2·ln 4 + 4 = 12; none: ln 4 + 2 = 3.
    assert scored(plugin(SPREAD), web(), snapshot) == {"a": 25, "none": 100}
    own = web().spread_over(ZONE, **SOFT)
    assert scored(plugin(SPREAD), own, snapshot) == {"a": 100, "none": 0}


def test_the_spread_score_uses_only_the_domains_of_feasible_nodes() -> None:
    nodes = [a_node("a1").in_zone("a"), a_node("a2").in_zone("a"), a_node("b1").in_zone("b"), a_node("c1").in_zone("c")]
    pod = web().spread_over(ZONE, **SOFT)
    snapshot = cluster(nodes, running(a2=2, b1=1))
    # The candidates are a1 and b1, so zone c does not count: with two domains, the weight is ln 4. Zone a has 2 pods;
    # they run on a2, which is not a candidate. Zone b has 1 pod.
    assert scored(plugin(SPREAD), pod, snapshot, ["a1", "b1"]) == {"a1": 33, "b1": 100}


def test_default_constraints_of_type_list_replace_the_system_defaults() -> None:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    hard = plugin(SPREAD, {"defaultingType": "List", "defaultConstraints": [constraint]})
    assert filtered(hard, web(), cluster(ZONES, running(a1=1), objects=[SERVICE])) == {
        "a1": SKEWED,
        "a2": SKEWED,
        "b1": "",
    }
    assert filtered(hard, web().spread_over(HOST, **SOFT), cluster(ZONES, running(a1=1), objects=[SERVICE])) == {
        "*": "Skip"
    }
    none = plugin(SPREAD, {"defaultingType": "List"})
    assert scored(none, web(), cluster(ZONES, objects=[SERVICE])) is None

"""Tests the filters that read only the node (cordon, name, taints, affinity, ports, declared features), and the scores
for taints and affinity."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.testing.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.scheduler_core.plugins.verdicts import cluster, decided, filtered, plugin, raw_scores, scored

CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}


@pytest.mark.parametrize(
    ("pod", "node", "verdict"),
    [
        (a_pod(), a_node("n"), ""),
        (a_pod(), a_node("n").cordoned(), "!node(s) were unschedulable"),
        (a_pod().tolerating(CORDON), a_node("n").cordoned(), ""),
        (a_pod().tolerating({**CORDON, "effect": "NoExecute"}), a_node("n").cordoned(), "!node(s) were unschedulable"),
        (a_pod().tolerating({"operator": "Exists"}), a_node("n").cordoned(), ""),
    ],
)
def test_node_unschedulable_refuses_cordoned_nodes(pod: PodBuilder, node: NodeBuilder, verdict: str) -> None:
    assert filtered(plugin("NodeUnschedulable"), pod, cluster(node)) == {"n": verdict}


def test_the_node_name_filter_refuses_all_nodes_except_the_node_that_the_pod_names() -> None:
    snapshot = cluster(a_node("n1"), a_node("n2"))
    assert filtered(plugin("NodeName"), a_pod(), snapshot) == {"n1": "", "n2": ""}
    named = a_pod().with_field("spec.nodeName", "n2")
    assert filtered(plugin("NodeName"), named, snapshot) == {
        "n1": "!node(s) didn't match the requested node name",
        "n2": "",
    }


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("1.32", "node(s) had untolerated taint {dedicated: db}"),
        ("1.33", "node(s) had untolerated taint {dedicated: db}"),
        ("1.34", "node(s) had untolerated taint(s)"),
        ("1.36", "node(s) had untolerated taint(s)"),
    ],
)
def test_the_refusal_of_a_tainted_node_names_the_taint_only_until_1_33(version: str, text: str) -> None:
    snapshot = cluster(
        a_node("n1"),
        a_node("n2")
        .tainted("soft", effect="PreferNoSchedule")
        .tainted("dedicated", "db")
        .tainted("later", effect="NoExecute"),
    )
    assert filtered(plugin("TaintToleration", version=version), a_pod(), snapshot) == {"n1": "", "n2": f"!{text}"}
    both = a_pod().tolerating({"key": "dedicated", "operator": "Exists"}, {"key": "later", "operator": "Exists"})
    assert filtered(plugin("TaintToleration", version=version), both, snapshot) == {"n1": "", "n2": ""}


def test_taint_toleration_prefers_nodes_with_fewer_soft_taints() -> None:
    soft = a_node("one").tainted("a", effect="PreferNoSchedule")
    snapshot = cluster(
        a_node("none"),
        soft,
        a_node("three")
        .tainted("a", effect="PreferNoSchedule")
        .tainted("b", effect="PreferNoSchedule")
        .tainted("c", effect="PreferNoSchedule"),
    )
    assert scored(plugin("TaintToleration"), a_pod(), snapshot) == {"none": 100, "one": 67, "three": 0}
    assert scored(plugin("TaintToleration"), a_pod(), cluster(a_node("x"), a_node("y"))) == {"x": 100, "y": 100}


IN_A = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
NOT_OURS = "!node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("pod", "verdicts"),
    [
        (a_pod(), {"*": "Skip"}),
        (a_pod().with_field("spec.nodeSelector", {"disk": "ssd"}), {"fast": "", "slow": NOT_OURS}),
        (a_pod().requiring_nodes(IN_A), {"fast": "", "slow": NOT_OURS}),
        (
            a_pod().requiring_nodes(IN_A).with_field("spec.nodeSelector", {"disk": "hdd"}),
            {"fast": NOT_OURS, "slow": NOT_OURS},
        ),
        (a_pod().requiring_nodes(), {"fast": NOT_OURS, "slow": NOT_OURS}),
        (a_pod().requiring_nodes({}), {"fast": NOT_OURS, "slow": NOT_OURS}),
        (a_pod().requiring_nodes({}, IN_A), {"fast": "", "slow": NOT_OURS}),
        (
            a_pod().requiring_nodes({"matchExpressions": [{"key": "disk", "operator": "Nonsense"}]}, IN_A),
            {"fast": "", "slow": NOT_OURS},
        ),
        (
            a_pod().requiring_nodes({"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}),
            {"fast": "", "slow": ""},
        ),
    ],
    ids=[
        "a pod without node affinity",
        "nodeSelector",
        "a pod with a required node affinity",
        "a node must match both the nodeSelector and the node affinity",
        "an empty list of terms matches nothing",
        "an empty term matches nothing",
        "terms are alternatives",
        "an unreadable term is ignored, and the other terms count",
        "DoesNotExist matches nodes without the label",
    ],
)
def test_node_affinity_refuses_nodes_that_do_not_match(pod: PodBuilder, verdicts: dict[str, str]) -> None:
    snapshot = cluster(a_node("fast").labelled(disk="ssd"), a_node("slow").labelled(disk="hdd"))
    assert filtered(plugin("NodeAffinity"), pod, snapshot) == verdicts


def named(*names: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]} for name in names]}


def test_node_affinity_by_name_restricts_the_search_to_the_named_nodes() -> None:
    snapshot = cluster(*[a_node(name) for name in ("n1", "n2", "n3")])
    result = decided(a_pod().requiring_nodes(named("n1"), named("n3"), named("n9")), snapshot)
    assert result.best == ("n1", "n3")
    outside = result.statuses["n2"]
    assert (outside.code, outside.plugin, outside.reasons) == (
        "UnschedulableAndUnresolvable",
        "",
        ("node(s) didn't satisfy plugin(s) [NodeAffinity]",),
    )
    assert decided(a_pod().requiring_nodes(named("n1"), IN_A), snapshot).best == (
        "n1",
    )  # a term without a name: all nodes are searched


def test_node_affinity_with_contradicting_names_refuses_every_node() -> None:
    result = decided(a_pod().requiring_nodes(named("n1", "n2")), cluster(a_node("n1"), a_node("n2")))
    assert (result.prefilter.plugin, result.prefilter.reasons) == ("NodeAffinity", ("pod affinity terms conflict",))
    assert result.sentence.startswith("0/2 nodes are available: pod affinity terms conflict.")


def test_node_affinity_to_an_unknown_node_name_finds_no_node() -> None:
    result = decided(a_pod().requiring_nodes(named("n9")), cluster(a_node("n1"), a_node("n2")))
    assert result.node is None
    assert result.sentence.startswith("0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity].")


def test_the_profiles_added_affinity_must_match_too() -> None:
    added = plugin(
        "NodeAffinity",
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [IN_A]},
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "preference": {"matchExpressions": [{"key": "new", "operator": "Exists"}]}}
                ],
            }
        },
    )
    snapshot = cluster(
        a_node("fast").labelled(disk="ssd"), a_node("new").labelled(disk="ssd", new="yes"), a_node("slow")
    )
    assert filtered(added, a_pod(), snapshot) == {
        "fast": "",
        "new": "",
        "slow": "!node(s) didn't match scheduler-enforced node affinity",
    }
    new_only = a_pod().with_field("spec.nodeSelector", {"new": "yes"})
    assert filtered(added, new_only, snapshot) == {
        "fast": NOT_OURS,
        "new": "",
        "slow": "!node(s) didn't match scheduler-enforced node affinity",
    }
    assert scored(added, a_pod(), snapshot, ["fast", "new"]) == {"fast": 0, "new": 100}


def test_preferred_node_affinity_sums_weights() -> None:
    pod = a_pod().preferring_nodes(
        (30, IN_A), (10, {"matchExpressions": [{"key": "new", "operator": "Exists"}]}), (50, {})
    )
    snapshot = cluster(
        a_node("both").labelled(disk="ssd", new="yes"), a_node("one").labelled(disk="ssd"), a_node("none")
    )
    assert raw_scores(plugin("NodeAffinity"), pod, snapshot) == {"both": 40, "one": 30, "none": 0}
    assert scored(plugin("NodeAffinity"), pod, snapshot) == {"both": 100, "one": 75, "none": 0}
    assert scored(plugin("NodeAffinity"), a_pod(), snapshot) is None


def test_an_unreadable_preferred_term_fails_the_cycle() -> None:
    pod = a_pod().preferring_nodes((1, {"matchExpressions": [{"key": "a", "operator": "Nonsense"}]}))
    result = decided(pod, cluster(a_node("n1"), a_node("n2")))
    assert result.node is None
    assert result.error.startswith('running PreScore plugin "NodeAffinity": ')


def test_node_ports_refuses_nodes_with_a_conflicting_port() -> None:
    snapshot = cluster(a_node("taken"), a_node("free"), a_pod("p").with_host_port(80).on("taken"))
    no_room = "node(s) didn't have free ports for the requested pod ports"
    assert filtered(plugin("NodePorts"), a_pod(), snapshot) == {"*": "Skip"}
    assert filtered(plugin("NodePorts"), a_pod().with_host_port(80, hostIP="127.0.0.1"), snapshot) == {
        "taken": no_room,
        "free": "",
    }
    assert filtered(plugin("NodePorts"), a_pod().with_host_port(80, protocol="UDP"), snapshot) == {
        "taken": "",
        "free": "",
    }


@pytest.mark.parametrize(
    ("pod", "verdicts"),
    [
        (a_pod(), {"*": "Skip"}),
        (a_pod().with_field("spec.hostNetwork", True), {"*": "Skip"}),
        (
            a_pod().with_field("spec.hostNetwork", True).with_field("spec.hostUsers", False),
            {"old": "!node(s) didn't match Pod's required features", "new": ""},
        ),
        (
            a_pod().with_container({"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}),
            {
                "old": "!node(s) didn't match Pod's required features",
                "new": "!node(s) didn't match Pod's required features",
            },
        ),
    ],
)
def test_node_declared_features_refuses_nodes_without_a_required_feature(
    pod: PodBuilder, verdicts: dict[str, str]
) -> None:
    snapshot = cluster(
        a_node("old"), a_node("new").with_field("status.declaredFeatures", ["UserNamespacesHostNetworkSupport"])
    )
    assert filtered(plugin("NodeDeclaredFeatures"), pod, snapshot) == verdicts


def test_node_declared_features_exists_only_since_1_36() -> None:
    pod = a_pod().with_field("spec.hostNetwork", True).with_field("spec.hostUsers", False)
    assert decided(pod, cluster(a_node("n")), "1.35").node == "n"
    assert decided(pod, cluster(a_node("n")), "1.36").node is None


def test_scheduling_gates_keep_a_pod_out_of_the_queue() -> None:
    gates = plugin("SchedulingGates")
    verdict = gates.pre_enqueue(a_pod().with_field("spec.schedulingGates", [{"name": "a"}, {"name": "b"}]).build())
    assert (verdict.code, verdict.reasons) == ("UnschedulableAndUnresolvable", ("waiting for scheduling gates: [a b]",))
    assert gates.pre_enqueue(a_pod().build()).is_success

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.scoring.affinity_counts import AffinityCounts
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.testing.builders import PodBuilder, a_node, a_pod
from tests.scheduler_core.plugins.verdicts import cluster, decided, filtered, plugin, raw_scores, said, scored

ZONE = "topology.kubernetes.io/zone"
NOT_NEAR = "!node(s) didn't match pod affinity rules"
TOO_NEAR = "node(s) didn't match pod anti-affinity rules"
UNWANTED = "node(s) didn't satisfy existing pods anti-affinity rules"
IPA = "InterPodAffinity"

NODES = [a_node("a1").in_zone("a"), a_node("a2").in_zone("a"), a_node("b1").in_zone("b"), a_node("none")]
DB = {"app": "db"}


def db(name: str = "db", namespace: str = "default") -> PodBuilder:
    return a_pod(name, namespace).with_labels(DB)


@pytest.mark.parametrize(
    ("pod", "pods", "verdicts"),
    [
        (a_pod(), [db().on("a1")], {"*": "Skip"}),
        (a_pod().near(ZONE, DB), [db().on("a1")], {"a1": "", "a2": "", "b1": NOT_NEAR, "none": NOT_NEAR}),
        (a_pod().near(ZONE, DB), [], {"a1": NOT_NEAR, "a2": NOT_NEAR, "b1": NOT_NEAR, "none": NOT_NEAR}),
        (db("new").near(ZONE, DB), [], {"a1": "", "a2": "", "b1": "", "none": NOT_NEAR}),
        (db("new").near(ZONE, DB), [db().on("none")], {"a1": "", "a2": "", "b1": "", "none": NOT_NEAR}),
        (db("new").near(ZONE, DB), [db().on("b1")], {"a1": NOT_NEAR, "a2": NOT_NEAR, "b1": "", "none": NOT_NEAR}),
        (
            a_pod().near(ZONE, DB),
            [db(namespace="ops").on("a1")],
            {"a1": NOT_NEAR, "a2": NOT_NEAR, "b1": NOT_NEAR, "none": NOT_NEAR},
        ),
        (
            a_pod().near(ZONE, DB, namespaces=["ops"]),
            [db(namespace="ops").on("a1")],
            {"a1": "", "a2": "", "b1": NOT_NEAR, "none": NOT_NEAR},
        ),
        (
            a_pod().near(ZONE, DB, namespaceSelector={}),
            [db(namespace="ops").on("a1")],
            {"a1": "", "a2": "", "b1": NOT_NEAR, "none": NOT_NEAR},
        ),
        (a_pod().near(ZONE, DB), [db().on("a1").terminating()], {"a1": "", "a2": "", "b1": NOT_NEAR, "none": NOT_NEAR}),
        (a_pod().away_from(ZONE, DB), [db().on("a1")], {"a1": TOO_NEAR, "a2": TOO_NEAR, "b1": "", "none": ""}),
        (a_pod().away_from(ZONE, DB), [db().on("none")], {"a1": "", "a2": "", "b1": "", "none": ""}),
        (
            db("new"),
            [a_pod("shy").away_from(ZONE, DB).on("a1")],
            {"a1": UNWANTED, "a2": UNWANTED, "b1": "", "none": ""},
        ),
        (db("new"), [a_pod("shy", "ops").away_from(ZONE, DB).on("a1")], {"*": "Skip"}),
        (db("new"), [a_pod("shy").away_from(ZONE, DB).on("none")], {"*": "Skip"}),
        (a_pod(), [a_pod("shy").away_from(ZONE, DB).on("a1")], {"*": "Skip"}),
    ],
    ids=[
        "a pod without affinity terms",
        "affinity to a running pod",
        "affinity to a pod that does not exist",
        "the first pod of a group with affinity to itself is accepted",
        "affinity of a pod to its own group ignores an existing pod whose node has no zone",
        "the second pod of a group must join the first pod's zone",
        "affinity selects only the pod's own namespace",
        "affinity selects the named namespaces",
        "an empty namespaceSelector selects all namespaces",
        "affinity to a terminating pod",
        "anti-affinity to a running pod",
        "anti-affinity ignores a pod on a node without a zone",
        "anti-affinity of an existing pod",
        "an existing pod's anti-affinity concerns only its own namespace",
        "anti-affinity of an existing pod on a node without a zone",
        "an existing pod's anti-affinity to other pods",
    ],
)
def test_inter_pod_affinity_refuses_nodes_that_violate_affinity_or_anti_affinity(
    pod: PodBuilder, pods: list[PodBuilder], verdicts: dict[str, str]
) -> None:
    assert filtered(plugin(IPA), pod, cluster(NODES, pods)) == verdicts


def test_a_single_pod_must_match_all_affinity_terms() -> None:
    terms = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}} for labels in (DB, {"tier": "x"})]
    pod = a_pod().with_affinity(podAffinity={"requiredDuringSchedulingIgnoredDuringExecution": terms})
    apart = [db().on("a1"), a_pod("t").labelled(tier="x").on("a1")]
    assert filtered(plugin(IPA), pod, cluster(NODES[:1], apart)) == {"a1": NOT_NEAR}
    assert filtered(plugin(IPA), pod, cluster(NODES[:1], db().labelled(tier="x").on("a1"))) == {"a1": ""}


RED = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops", "labels": {"team": "red"}}}
BLUE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "blue"}}}
NOT_RED = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]}


@pytest.mark.parametrize(
    ("version", "verdict"), [("1.32", ""), ("1.33", ""), ("1.34", TOO_NEAR), ("1.36", TOO_NEAR), ("1.37", "")]
)
def test_since_1_34_a_namespace_selector_with_the_operator_notin_selects_every_namespace(
    version: str, verdict: str
) -> None:
    """kube-scheduler has this regression for terms of the incoming pod (kubernetes/kubernetes#132457). scheduler_core
    repeats it."""
    pod = a_pod().away_from(ZONE, DB, namespaceSelector=NOT_RED)
    assert filtered(
        plugin(IPA, version=version), pod, cluster(NODES[:1], db(namespace="ops").on("a1"), objects=[RED, BLUE])
    ) == {"a1": verdict}


@pytest.mark.parametrize("version", ["1.32", "1.36"])
def test_an_affinity_term_counts_pods_of_the_selected_namespaces(version: str) -> None:
    pod = a_pod().away_from(ZONE, DB, namespaceSelector={"matchLabels": {"team": "red"}})
    assert filtered(
        plugin(IPA, version=version), pod, cluster(NODES[:1], db(namespace="ops").on("a1"), objects=[RED, BLUE])
    ) == {"a1": TOO_NEAR}
    assert filtered(
        plugin(IPA, version=version), pod, cluster(NODES[:1], db(namespace="shop").on("a1"), objects=[RED, BLUE])
    ) == {"a1": ""}


def test_an_existing_pods_term_checks_the_namespace_of_the_incoming_pod() -> None:
    shy = a_pod("shy", "shop").away_from(ZONE, DB, namespaceSelector=NOT_RED).on("a1")
    assert filtered(plugin(IPA), db("new", "ops"), cluster(NODES[:1], shy, objects=[RED, BLUE])) == {"*": "Skip"}
    assert filtered(plugin(IPA), db("new", "shop"), cluster(NODES[:1], shy, objects=[RED, BLUE])) == {"a1": UNWANTED}
    assert filtered(plugin(IPA), db("new", "unheard-of"), cluster(NODES[:1], shy, objects=[RED, BLUE])) == {
        "a1": UNWANTED
    }


def test_an_unreadable_affinity_term_refuses_its_own_pod() -> None:
    pod = a_pod().with_affinity(
        podAffinity={
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
            ]
        }
    )
    result = decided(pod, cluster(NODES))
    assert (result.prefilter.code, result.prefilter.plugin) == ("UnschedulableAndUnresolvable", IPA)
    assert result.prefilter.reasons[0].startswith("parsing pod: ")


@pytest.mark.parametrize(
    ("pod", "gone", "verdict"),
    [
        (a_pod().away_from(ZONE, DB), db().on("a1"), ""),
        (db("new"), a_pod("shy").away_from(ZONE, DB).on("a1"), ""),
        (a_pod().near(ZONE, DB), db().on("a1"), NOT_NEAR),
        (db("new").near(ZONE, DB), db().on("a1"), ""),
    ],
    ids=[
        "the pod has anti-affinity to the removed pod",
        "the removed pod has anti-affinity to the pod",
        "the pod has affinity to the removed pod",
        "the pod has affinity to itself and becomes the first of its group",
    ],
)
def test_affinity_ignores_a_pod_that_preemption_removed(pod: PodBuilder, gone: PodBuilder, verdict: str) -> None:
    snapshot = cluster(NODES[:1], gone)
    affinity, state, value = plugin(IPA), CycleState(), pod.build()
    assert affinity.pre_filter(state, value, NodeList(snapshot)).verdict.is_success
    info = snapshot.node_info(0)
    before = said(affinity.filter(state, value, info))
    trial = state.copy()
    affinity.remove_pod(trial, value, gone.build(), info)
    assert said(affinity.filter(trial, value, info)) == verdict
    affinity.add_pod(trial, value, gone.build(), info)
    assert said(affinity.filter(trial, value, info)) == before
    assert said(affinity.filter(state, value, info)) == before


def test_affinity_considers_the_terms_of_a_pod_that_preemption_added_back() -> None:
    snapshot = cluster(NODES[:1], db().on("a1"))
    affinity, state, value = plugin(IPA), CycleState(), db("new").near("rack", {"x": "y"}).build()
    assert affinity.pre_filter(state, value, NodeList(snapshot)).verdict.is_success
    affinity.add_pod(state, value, a_pod("shy").away_from(ZONE, DB).build(), snapshot.node_info(0))
    assert state.read(AffinityCounts).unwanted({ZONE: "a"})


# ---- scores ----


def prefers(kind: str, weight: int) -> PodBuilder:
    return (
        a_pod("new").preferring_near(ZONE, DB, weight)
        if kind == "near"
        else a_pod("new").preferring_away_from(ZONE, DB, weight)
    )


@pytest.mark.parametrize(
    ("pod", "pods", "raw"),
    [
        (
            prefers("near", 7),
            [db("1").on("a1"), db("2").on("a2"), db("3").on("b1")],
            {"a1": 14, "a2": 14, "b1": 7, "none": 0},
        ),
        (prefers("away", 7), [db("1").on("a1")], {"a1": -7, "a2": -7, "b1": 0, "none": 0}),
        (db("new"), [a_pod("fan").preferring_near(ZONE, DB, 3).on("b1")], {"a1": 0, "a2": 0, "b1": 3, "none": 0}),
        (db("new"), [a_pod("shy").preferring_away_from(ZONE, DB, 3).on("b1")], {"a1": 0, "a2": 0, "b1": -3, "none": 0}),
        (db("new"), [db("needs").near(ZONE, DB).on("b1")], {"a1": 0, "a2": 0, "b1": 1, "none": 0}),
    ],
    ids=[
        "the weight of a preferred affinity is added once for each matching pod",
        "preferred anti-affinity has a negative weight",
        "preferred affinity of an existing pod",
        "preferred anti-affinity of an existing pod",
        "required affinity of an existing pod has weight 1",
    ],
)
def test_the_raw_affinity_score_sums_the_weights_of_matching_terms(
    pod: PodBuilder, pods: list[PodBuilder], raw: dict[str, int]
) -> None:
    assert raw_scores(plugin(IPA), pod, cluster(NODES, pods)) == raw


@pytest.mark.parametrize(("weight", "raw"), [(1, 1), (50, 50), (0, None)])
def test_hardpodaffinityweight_is_the_weight_of_required_terms_of_existing_pods(weight: int, raw: int | None) -> None:
    subject, snapshot = (
        plugin(IPA, {"hardPodAffinityWeight": weight}),
        cluster(NODES[2:3], db("needs").near(ZONE, DB).on("b1")),
    )
    assert (raw_scores(subject, db("new"), snapshot) if raw is not None else scored(subject, db("new"), snapshot)) == (
        None if raw is None else {"b1": raw}
    )


def test_preferred_terms_of_existing_pods_can_be_ignored() -> None:
    ignoring = plugin(IPA, {"ignorePreferredTermsOfExistingPods": True})
    snapshot = cluster(NODES[:3], a_pod("fan").preferring_near(ZONE, DB, 3).on("b1"))
    assert scored(ignoring, db("new"), snapshot) is None
    assert scored(plugin(IPA), db("new"), snapshot) == {"a1": 0, "a2": 0, "b1": 100}
    assert scored(ignoring, db("new").preferring_near(ZONE, {"no": "body"}), snapshot) == {"a1": 0, "a2": 0, "b1": 100}


def test_the_affinity_score_is_skipped_if_no_placed_pod_matches_a_term() -> None:
    assert scored(plugin(IPA), prefers("near", 1), cluster(NODES)) is None
    assert scored(plugin(IPA), prefers("near", 1), cluster(NODES[:2], db().on("a1"))) == {"a1": 0, "a2": 0}


@pytest.mark.parametrize(("value", "score"), [(29, 28), (57, 56), (58, 57), (50, 50)])
def test_affinity_scores_are_rounded_as_in_kube_scheduler(value: int, score: int) -> None:
    hosts = [a_node(name) for name in ("low", "mid", "high")]
    pods: list[Any] = [
        a_pod(f"fan-{host}").preferring_near("kubernetes.io/hostname", DB, weight).on(host)
        for host, weight in (("mid", value), ("high", 100))
    ]
    assert scored(plugin(IPA), db("new"), cluster(hosts, pods)) == {"low": 0, "mid": score, "high": 100}

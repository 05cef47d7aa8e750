"""Tests drains of small clusters: an example of every outcome, and laws that hold for any cluster."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.model.manifests import repeated_pods
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.simulation.evicted.replacements import ends_already, eviction_order
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from scheduler_core.snapshot.loading import load_objects, load_pages
from scheduler_core.snapshot.snapshot import UnknownNodeError

Manifest = dict[str, Any]


def a_node(name: str, *, cpu: str = "4", zone: str = "a", unschedulable: bool = False, **labels: str) -> Manifest:
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, **labels},
        },
        "spec": {"unschedulable": True} if unschedulable else {},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def a_pod(
    name: str, node: str, *, cpu: str = "100m", owner: str | None = "ReplicaSet", app: str = "web", **spec: Any
) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": "shop", "uid": name, "labels": {"app": app}}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": owner, "name": app, "uid": f"{owner}-{app}", "controller": True}
        ]
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}],
            **spec,
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def a_budget(allowed: int, *, healthy: int = 3, desired: int = 2, expected: int = 3, app: str = "web") -> Manifest:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}, "minAvailable": desired},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        },
    }


def drain(node: str, *objects: Manifest, kube_version: str = "1.36") -> Forecast:
    made_at = "2026-01-01T00:00:00Z"
    return simulate_drain(load_objects(objects), [node], made_at=made_at, kube_version=kube_version)[0]


def only(forecast: Forecast) -> PodForecast:
    (pod,) = forecast.pods
    return pod


@pytest.mark.parametrize(
    ("pod", "outcome", "landing"),
    [
        pytest.param(a_pod("p", "n1"), Outcome.MOVES, ("n2",), id="a replica moves to the node with room"),
        pytest.param(a_pod("p", "n1", owner="StatefulSet"), Outcome.MOVES, ("n2",), id="a StatefulSet's pod moves too"),
        pytest.param(a_pod("p", "n1", owner="DaemonSet"), Outcome.STAYS, (), id="a DaemonSet's pod stays"),
        pytest.param(a_pod("p", "n1", owner=None), Outcome.LOST, (), id="a bare pod is lost"),
        pytest.param(a_pod("p", "n1", cpu="5"), Outcome.PENDING, (), id="a pod that fits nowhere is pending"),
        pytest.param(
            a_pod("p", "n1", nodeSelector={"kubernetes.io/hostname": "n1"}),
            Outcome.RETURNS,
            (),
            id="a pod that fits only on the drained node returns after the reboot",
        ),
        pytest.param(
            a_pod("p", "n1", schedulerName="other"),
            Outcome.UNKNOWN,
            (),
            id="the outcome of another scheduler's pod is unknown",
        ),
    ],
)
def test_a_drain_forecasts_the_outcome_of_each_pod_on_the_node(
    pod: Manifest, outcome: Outcome, landing: tuple[str, ...]
) -> None:
    forecast = only(drain("n1", a_node("n1", cpu="4"), a_node("n2"), a_node("n3", unschedulable=True), pod))
    assert (forecast.outcome, forecast.landing) == (outcome, landing)


def an_owner(kind: str, node: str | None, *, app: str = "web") -> Manifest:
    group = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1", "Job": "batch/v1"}[kind]
    template = {"spec": {"nodeName": node} if node else {}}
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": app, "namespace": "shop"},
        "spec": {"template": template},
    }


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController", "Job"])
@pytest.mark.parametrize(("node", "outcome"), [("n1", Outcome.STAYS), ("n2", Outcome.MOVES), (None, Outcome.MOVES)])
def test_a_pod_stays_if_its_owners_template_sets_the_name_of_the_node(
    kind: str, node: str | None, outcome: Outcome
) -> None:
    pod = only(drain("n1", a_node("n1"), a_node("n2"), an_owner(kind, node), a_pod("p", "n1", owner=kind)))
    assert (pod.outcome, pod.is_bound) == (outcome, node == "n1")
    if pod.is_bound:
        assert (
            pod.sentence
            == "returns to this node after each eviction: its owner's template names the node (spec.nodeName)"
        )


def test_a_pod_that_the_drain_does_not_select_stays_for_this_reason_only() -> None:
    """The template of the pod's owner sets the name of the node. This would be a second reason why the pod stays. The
    forecast must leave out this second reason: `sentence` is only "not selected", and `is_bound` is False."""
    objects = [a_node("n1"), an_owner("ReplicaSet", "n1"), a_pod("p", "n1")]
    (made,) = simulate_drain(load_objects(objects), ["n1"], made_at="", stays=lambda _: "not selected")
    assert (only(made).sentence, only(made).is_bound) == ("not selected", False)


def test_the_notes_list_daemonset_pods_that_are_already_unready() -> None:
    ailing = {**a_pod("cni", "n1", owner="DaemonSet", app="cni"), "status": {"phase": "Running"}}
    assert drain("n1", a_node("n1"), ailing, a_pod("ok", "n1", owner="DaemonSet")).notes == (
        "1 DaemonSet pod of the node is already not ready: shop/cni",
    )


def test_a_pods_forecast_lists_all_nodes_with_the_highest_score() -> None:
    assert only(drain("n1", a_node("n1"), a_node("n2"), a_node("n3"), a_pod("p", "n1"))).landing == ("n2", "n3")


def test_the_sentence_about_a_pending_pod_says_why_no_node_accepts_the_pod() -> None:
    pod = drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1", cpu="3"), a_pod("q", "n2", cpu="3")).pods[0]
    assert pod.outcome is Outcome.PENDING
    assert pod.sentence.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.")


def test_all_pods_return_in_a_cluster_of_one_node() -> None:
    forecast = drain("n1", a_node("n1"), a_pod("p", "n1"), a_pod("q", "n1", owner="StatefulSet"))
    assert forecast.counts == {Outcome.RETURNS: 2}


def test_a_pod_is_pending_if_all_other_nodes_are_cordoned() -> None:
    forecast = drain("n1", a_node("n1"), a_node("n2", unschedulable=True), a_pod("p", "n1"))
    assert forecast.counts == {Outcome.PENDING: 1}


_NOT_READY = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param({}, id="the other node is healthy"),
        pytest.param({"unschedulable": True}, id="the other node is cordoned"),
        pytest.param(_NOT_READY, id="the other node is not ready yet"),
    ],
)
def test_a_pod_that_can_run_only_on_its_node_returns_in_any_state_of_the_other_node(trouble: Manifest) -> None:
    forecast = drain(
        "n1",
        a_node("n1"),
        {**a_node("n2"), "spec": trouble},
        a_pod("p", "n1", nodeSelector={"kubernetes.io/hostname": "n1"}),
    )
    assert forecast.counts == {Outcome.RETURNS: 1}


def test_a_pod_returns_if_a_person_has_tainted_every_other_node() -> None:
    forecast = drain(
        "n1",
        a_node("n1"),
        {**a_node("n2"), "spec": {"taints": [{"key": "team", "effect": "NoSchedule"}]}},
        a_pod("p", "n1"),
    )
    assert forecast.counts == {Outcome.RETURNS: 1}


def test_a_pod_with_a_local_volume_returns_even_if_all_other_nodes_are_full() -> None:
    local = {
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "status": {"phase": "Bound"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "shop", "name": "data"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}
                    ]
                }
            },
        },
    }
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "disk", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }
    pinned = a_pod(
        "p",
        "n1",
        cpu="3",
        owner="StatefulSet",
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    )
    forecast = drain("n1", a_node("n1"), a_node("n2"), a_pod("q", "n2", cpu="3", app="other"), local, claim, pinned)
    assert forecast.pods[0].outcome is Outcome.RETURNS


def test_two_replacements_are_not_given_the_same_volume() -> None:
    waiting = {
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    disk = {
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "status": {"phase": "Available"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"},
    }
    claims = [
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "shop"},
            "status": {"phase": "Pending"},
            "spec": {
                "storageClassName": "local",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        for name in ("one", "two")
    ]
    pods = [
        a_pod(name, "n1", app=name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}])
        for name in ("one", "two")
    ]
    forecast = drain("n1", a_node("n1"), a_node("n2"), waiting, disk, *claims, *pods)
    assert [pod.outcome for pod in forecast.pods] == [Outcome.MOVES, Outcome.PENDING]


def test_the_drained_node_stays_a_topology_domain() -> None:
    spread = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            },
        ]
    }
    forecast = drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1", **spread), a_pod("q", "n2", **spread))
    assert forecast.pods[0].outcome is Outcome.PENDING, (
        "node n1 is still treated as a domain, so a second pod on node n2 would exceed maxSkew"
    )


def test_anti_affinity_to_a_terminating_predecessor_does_not_keep_a_replacement_pending() -> None:
    apart = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "web"}}},
                ]
            }
        }
    }
    forecast = only(drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1", **apart)))
    assert (forecast.outcome, forecast.landing) == (Outcome.MOVES, ("n2",))


def test_a_replacement_takes_room_from_the_next_replacement() -> None:
    forecast = drain(
        "n1", a_node("n1", cpu="8"), a_node("n2", cpu="4"), a_pod("p", "n1", cpu="3"), a_pod("q", "n1", cpu="3")
    )
    assert [pod.outcome for pod in forecast.pods] == [Outcome.MOVES, Outcome.PENDING]


def test_a_budget_of_one_allows_evictions_one_after_another() -> None:
    forecast = drain(
        "n1", a_node("n1"), a_node("n2"), a_pod("p", "n1"), a_pod("q", "n1"), a_pod("r", "n2"), a_budget(1)
    )
    assert forecast.counts == {Outcome.MOVES: 2}


def test_a_budget_allows_no_second_eviction_while_the_first_replacement_is_pending() -> None:
    full = (a_node("n2", cpu="4"), a_pod("other", "n2", cpu="3", app="batch"))
    forecast = drain(
        "n1", a_node("n1", cpu="8"), *full, a_pod("p", "n1", cpu="3"), a_pod("q", "n1", cpu="3"), a_budget(1)
    )
    assert [(pod.outcome, pod.is_never) for pod in forecast.pods] == [
        (Outcome.PENDING, False),
        (Outcome.BLOCKED, False),
    ]


def test_a_budget_blocks_for_ever_if_replacements_fit_only_on_the_drained_node() -> None:
    """The cluster has one node. The drain evicts the first pod and waits for its replacement, which waits for the end
    of the drain."""
    first, second = drain(
        "n1", a_node("n1"), a_pod("p", "n1"), a_pod("q", "n1"), a_budget(1, healthy=2, desired=1, expected=2)
    ).pods
    assert (first.outcome, second.outcome, second.is_never) == (Outcome.RETURNS, Outcome.BLOCKED, True)
    assert "waiting cannot help" in second.sentence
    _, third = drain(
        "n1", a_node("n1"), a_pod("p", "n1"), a_pod("q", "n1"), a_budget(1, healthy=2, desired=1, expected=3)
    ).pods
    assert (third.outcome, third.is_never) == (Outcome.BLOCKED, False), "a third pod may become healthy on another node"


def test_a_budget_that_needs_every_pod_blocks_for_ever_and_is_reported() -> None:
    pod = only(drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1"), a_budget(0, desired=3)))
    assert (pod.outcome, pod.is_never) == (Outcome.BLOCKED, True)
    assert pod.budget is not None
    assert (pod.budget.namespace, pod.budget.name, pod.budget.desired_healthy) == ("shop", "web", 3)


def test_a_pod_that_would_preempt_is_reported_with_its_victim() -> None:
    forecast = drain(
        "n1",
        a_node("n1"),
        a_node("n2"),
        a_node("n3", cpu="1"),
        a_pod("important", "n1", cpu="3", priority=1000),
        a_pod("humble", "n2", cpu="3", app="batch"),
    )
    assert forecast.pods[0].sentence == "preempts pods on n2"
    assert forecast.notes == ("shop/humble on n2 would be preempted and would stay pending",)


def test_loss_of_empty_dir_data_is_reported() -> None:
    assert only(
        drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1", volumes=[{"name": "cache", "emptyDir": {}}]))
    ).loses_data


def test_pods_of_two_drained_nodes_land_on_neither_node() -> None:
    snapshot = load_objects([a_node("n1"), a_node("n2"), a_node("n3"), a_pod("p", "n1"), a_pod("q", "n2")])
    first, second = simulate_drain(snapshot, ["n1", "n2"], made_at="2026-01-05T08:00:00Z")
    assert (first.node, only(first).landing, second.node, only(second).landing) == ("n1", ("n3",), "n2", ("n3",))


def test_a_missing_node_is_an_error_with_its_name() -> None:
    with pytest.raises(UnknownNodeError, match="n9"):
        drain("n9", a_node("n1"))


def test_a_pods_forecast_includes_the_best_score_and_the_runner_up_node() -> None:
    pod = only(
        drain("n1", a_node("n1"), a_node("n2"), a_node("n3"), a_pod("p", "n1"), a_pod("q", "n3", cpu="3", app="other"))
    )
    assert pod.landing == ("n2",)
    assert pod.score is not None
    assert pod.runner_up is not None
    assert (pod.runner_up.node, pod.runner_up.score < pod.score) == ("n3", True)


def test_a_pod_that_fits_on_only_one_node_has_no_score() -> None:
    pod = only(drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1")))
    assert (pod.score, pod.runner_up) == (None, None)


def test_a_pod_with_affinity_to_a_returning_pod_returns_too() -> None:
    near = {
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}},
                ]
            }
        }
    }
    pinned = a_pod("z", "n1", app="db", nodeSelector={"kubernetes.io/hostname": "n1"})
    forecast = drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1", **near), pinned)
    assert forecast.counts == {Outcome.RETURNS: 2}


def test_a_pod_with_affinity_to_a_pending_pod_is_pending_too() -> None:
    near = {
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}},
                ]
            }
        }
    }
    forecast = drain(
        "n1",
        a_node("n1"),
        a_node("n2"),
        a_pod("full", "n2", cpu="3", app="other"),
        a_pod("p", "n1", **near),
        a_pod("z", "n1", app="db", cpu="3"),
    )
    assert forecast.counts == {Outcome.PENDING: 2}


def waiting(name: str, **spec: Any) -> Manifest:
    pod = a_pod(name, "", **spec)
    return {**pod, "status": {"phase": "Pending"}}


def test_pods_that_were_already_pending_are_counted_separately() -> None:
    forecast = drain(
        "n1",
        a_node("n1"),
        a_node("n2"),
        a_pod("p", "n1"),
        waiting("w", cpu="9", app="huge"),
        waiting("v", cpu="9", app="huge"),
    )
    assert (forecast.counts, forecast.already_pending, forecast.notes) == ({Outcome.MOVES: 1}, 2, ())


def test_a_drain_places_only_the_most_important_of_many_different_pending_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scheduler_core.simulation.drain.MOST_WAITING_KINDS", 1)
    humble, important = waiting("v", app="humble"), waiting("w", app="important", priority=9)
    forecast = drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1"), humble, important)
    assert (forecast.already_pending, forecast.notes) == (
        2,
        ("1 pod that is already pending would find a node: shop/w on n2",),
    )


def test_a_note_about_many_pending_pods_lists_only_three_of_the_pods() -> None:
    pods = [waiting(f"w{number}", cpu="1m", app=f"a{number}") for number in range(5)]
    forecast = drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1"), *pods)
    (note,) = forecast.notes
    assert note.startswith("5 pods that are already pending would find a node: shop/w")
    assert note.endswith(" and 2 more")
    assert note.count(" on n") == 3


def test_a_pending_pod_is_placed_before_the_replacements() -> None:
    forecast = drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1", cpu="3"), waiting("w", cpu="3", app="new"))
    assert only(forecast).outcome is Outcome.PENDING
    assert forecast.notes == ("1 pod that is already pending would find a node: shop/w on n2",)


def test_an_already_pending_pod_is_placed_before_a_displaced_pod_of_equal_priority() -> None:
    apart = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "web"}}},
                ]
            }
        }
    }
    forecast = drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1", **apart), waiting("w", **apart))
    assert only(forecast).outcome is Outcome.PENDING
    assert forecast.notes == ("1 pod that is already pending would find a node: shop/w on n2",)


def test_the_remedy_for_a_blocking_budget_is_a_minavailable_that_allows_an_eviction() -> None:
    pod = only(drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1"), a_budget(0, desired=3)))
    assert pod.remedies == ("a minAvailable of 2 in the disruption budget shop/web",)


def test_the_remedy_is_one_more_node_if_no_single_change_helps() -> None:
    apart = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}},
                ]
            }
        }
    }
    pod = next(
        each
        for each in drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1", **apart), a_pod("q", "n2", **apart)).pods
    )
    assert (pod.outcome, pod.remedies) == (
        Outcome.PENDING,
        ("one more empty, uncordoned node like n1 (zone a)",),
    )


_TAINTED = {**a_node("n2"), "spec": {"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]}}


@pytest.mark.parametrize(
    ("others", "pod", "remedies"),
    [
        pytest.param(
            [a_node("n2", zone="b"), a_pod("q", "n2", cpu="2", app="other")],
            a_pod("p", "n1", cpu="2500m"),
            ("500m more cpu on n2 (zone b)",),
            id="the remedy is more cpu on the only other node",
        ),
        pytest.param(
            [
                a_node("n2"),
                a_pod("q", "n2", cpu="2", app="other"),
                a_node("n3"),
                a_pod("r", "n3", cpu="1900m", app="other"),
            ],
            a_pod("p", "n1", cpu="3"),
            ("900m more cpu on n3 (zone a)",),
            id="the remedy is more cpu on n3, because n3 needs 900m more and n2 needs 1000m more",
        ),
        pytest.param(
            [a_node("n2", unschedulable=True)],
            a_pod("p", "n1"),
            ("n2 (zone a) uncordoned",),
            id="the remedy is an uncordon",
        ),
        pytest.param(
            [_TAINTED, a_node("n3", unschedulable=True)],
            a_pod("p", "n1"),
            ("n3 (zone a) uncordoned", "n2 (zone a) without its taint team=x:NoSchedule"),
            id="the remedies are an uncordon and the removal of a taint",
        ),
        pytest.param(
            [_TAINTED, a_pod("q", "n2", cpu="4", app="other")],
            a_pod("p", "n1", cpu="3"),
            (),
            id="there is no remedy if one change is not enough",
        ),
    ],
)
def test_a_pending_pod_is_reported_with_each_single_change_that_would_place_it(
    others: list[Manifest], pod: Manifest, remedies: tuple[str, ...]
) -> None:
    forecast = next(each for each in drain("n1", a_node("n1"), *others, pod).pods if each.name == "p")
    assert forecast.remedies == remedies


def test_the_remedy_for_a_spread_violation_is_a_maxskew_that_is_higher_by_one() -> None:
    spread = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            },
        ]
    }
    pod = drain("n1", a_node("n1"), a_node("n2"), a_pod("p", "n1", **spread), a_pod("q", "n2", **spread)).pods[0]
    assert pod.remedies == ("a maxSkew of 2 over kubernetes.io/hostname",)


_CASES = Path(__file__).parents[2] / "conformance" / "cases.jsonl.gz"


@pytest.mark.parametrize("index", range(0, 400, 40))
def test_every_pod_of_the_recorded_clusters_has_one_outcome(index: int) -> None:
    with gzip.open(_CASES, "rt") as lines:
        case = json.loads(next(line for number, line in enumerate(lines) if number == index))
    snapshot = load_objects(case["objects"])
    node = max(snapshot.nodes, key=lambda node: (len(snapshot.pods_on(node.name)), node.name)).name
    before = [pod.key for pod in snapshot.placed_pods]
    forecast = simulate_drain(snapshot, [node], made_at="2026-01-05T08:00:00Z")[0]
    assert [pod.title for pod in forecast.pods] == [
        pod.key for pod in sorted(snapshot.pods_on(node), key=eviction_order) if not ends_already(pod)
    ]
    assert [pod.key for pod in snapshot.placed_pods] == before, "the snapshot was changed"
    assert Forecast.from_mapping(json.loads(json.dumps(forecast.to_mapping()))) == forecast
    assert simulate_drain(snapshot, [node], made_at="2026-01-05T08:00:00Z")[0] == forecast


def test_a_drain_does_not_evict_pods_that_the_caller_excludes_with_a_reason() -> None:
    """The drain still cordons the node. Pods that stay keep their resources, and the drain checks no budget for these
    pods."""
    snapshot = load_objects(
        [
            a_node("n1"),
            a_node("n2", cpu="1"),
            a_pod("web-1", "n1", cpu="900m"),
            a_pod("db-1", "n1", app="db", cpu="900m"),
            a_pod("bare", "n1", owner=None, app="db"),
            a_budget(0, app="db"),
        ]
    )
    (told,) = simulate_drain(
        snapshot,
        ["n1"],
        made_at="",
        stays=lambda pod: "" if pod.labels["app"] == "web" else "the drain does not select this pod",
    )
    found = {pod.name: (pod.outcome, pod.landing) for pod in told.pods}
    assert found == {"web-1": (Outcome.MOVES, ("n2",)), "db-1": (Outcome.STAYS, ()), "bare": (Outcome.STAYS, ())}
    assert {pod.sentence for pod in told.with_outcome(Outcome.STAYS)} == {"the drain does not select this pod"}
    (all_go,) = simulate_drain(snapshot, ["n1"], made_at="")
    assert {pod.outcome for pod in all_go.pods} == {Outcome.MOVES, Outcome.BLOCKED}


def _full_of_rules(budget: Manifest, owner: str = "ReplicaSet") -> list[bytes]:
    """Two nodes with a pod of `shop` each, whose rules differ, and an ordinary pod."""
    pods = [
        a_pod("one", "a", owner=owner, app="one", tolerations=[{"key": "k" * 300, "operator": "Exists"}]),
        a_pod("two", "b", app="two", nodeSelector={"zone": "nowhere"}),
        a_pod("three", "a", app="three"),
    ]
    lists = {"Node": [a_node("a"), a_node("b"), a_node("c")], "Pod": pods, "PodDisruptionBudget": [budget]}
    return [json.dumps({"kind": f"{kind}List", "items": items}).encode() for kind, items in lists.items()]


def test_the_landing_of_a_left_out_pod_is_unknown_and_other_pods_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_pods, "MOST_OF_NAMESPACE", 1)
    snapshot = load_pages(_full_of_rules(a_budget(1, app="other")))
    (forecast,) = simulate_drain(snapshot, ["a"], made_at="2026-03-04T12:00:00Z")
    one, three = sorted(forecast.pods, key=lambda pod: pod.name)
    assert (one.outcome, forecast.left_out) == (Outcome.UNKNOWN, ("one",))
    assert one.sentence.startswith("was left out to save memory")
    assert (three.outcome, three.landing) == (Outcome.MOVES, ("c",))
    assert [note[:37] for note in forecast.notes] == ["left out: 2 pods of namespace shop cou"[:37]]
    assert Forecast.from_mapping(forecast.to_mapping()) == forecast


@pytest.mark.parametrize(("owner", "is_slow"), [("ReplicaSet", False), ("Widget", True)])
def test_a_left_out_pod_keeps_its_disruption_budget(owner: str, is_slow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_pods, "MOST_OF_NAMESPACE", 1)
    budget = a_budget(0, healthy=1, desired=1, expected=1, app="one")
    (forecast,) = simulate_drain(load_pages(_full_of_rules(budget, owner)), ["a"], made_at="2026-03-04T12:00:00Z")
    (one,) = [pod for pod in forecast.pods if pod.name == "one"]
    assert (one.outcome, one.opens is not None) == (Outcome.BLOCKED, is_slow)


def _a_claim_without_ready_devices(allocated_at: str) -> Manifest:
    device = {"request": "r", "driver": "d", "pool": "p", "device": "x", "bindingConditions": ["ready"]}
    allocation = {"allocationTimestamp": allocated_at, "devices": {"results": [device]}}
    return {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "gpu", "namespace": "shop", "uid": "u"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "s"}}]}},
        "status": {"allocation": allocation, "reservedFor": [{"resource": "pods", "name": "web-1", "uid": "web-1"}]},
    }


@pytest.mark.parametrize(
    ("allocated_at", "outcome"),
    [("2025-12-31T23:50:01Z", Outcome.MOVES), ("2025-12-31T23:49:59Z", Outcome.PENDING)],
    ids=["599 s before the lists", "601 s before the lists"],
)
def test_a_device_that_is_not_ready_in_600_seconds_refuses_the_nodes_of_a_forecast(
    allocated_at: str, outcome: Outcome
) -> None:
    claimed = {"resourceClaims": [{"name": "r", "resourceClaimName": "gpu"}]}
    pod = a_pod("web-1", "n1", **claimed)
    moved = only(drain("n1", a_node("n1"), a_node("n2"), pod, _a_claim_without_ready_devices(allocated_at)))
    assert moved.outcome is outcome, moved.sentence


@pytest.mark.parametrize(("kube_version", "is_told"), [("1.36", False), ("1.37", True)])
def test_a_forecast_names_overlapping_budgets_whose_order_may_decide_a_preemption(
    kube_version: str, is_told: bool
) -> None:
    second = {**a_budget(5, app="batch"), "metadata": {"name": "other", "namespace": "shop"}}
    forecast = drain(
        "n1",
        a_node("n1"),
        a_node("n2"),
        a_pod("important", "n1", cpu="3", priority=1000),
        a_pod("humble", "n2", cpu="3", app="batch"),
        a_budget(0, app="batch"),
        second,
        kube_version=kube_version,
    )
    told = (
        "; the disruption budgets shop/batch and shop/other select the same pod, and kube-scheduler counts them in "
        "random order: it may preempt other pods or choose another node"
    )
    assert forecast.pods[0].sentence == f"preempts pods on n2{told if is_told else ''}"

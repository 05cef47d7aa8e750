"""Tests profiles that disable preFilter of a plugin but not its filter, or preScore but not its score."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.model.manifests.from_manifest import pod_from_manifest
from scheduler_core.snapshot.loading import load_objects

API = "kubescheduler.config.k8s.io/v1"


def node(name: str, **labels: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": room},
    }


def pod(**spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [container], **spec},
    }


def scheduled(manifest: dict[str, Any], *objects: dict[str, Any], **disabled: str) -> CycleResult:
    plugins = {point: {"disabled": [{"name": name}]} for point, name in disabled.items()}
    written = {
        "apiVersion": API,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    return Scheduler(Configuration.from_mapping(written)).schedule(load_objects(objects), pod_from_manifest(manifest))


NODES = (node("a", zone="1"), node("b", zone="2"))


@pytest.mark.parametrize(
    "plugin",
    [
        "NodeResourcesFit",
        "NodePorts",
        "PodTopologySpread",
        "InterPodAffinity",
        "VolumeBinding",
        "VolumeRestrictions",
        "NodeDeclaredFeatures",
        "DynamicResources",
    ],
)
def test_a_filter_without_its_prefilter_state_is_an_error_with_the_plugins_name(plugin: str) -> None:
    result = scheduled(pod(), *NODES, preFilter=plugin)
    assert result.node is None
    assert result.error.startswith(f'running "{plugin}" filter plugin: ')


@pytest.mark.parametrize("plugin", ["PodTopologySpread", "InterPodAffinity", "TaintToleration"])
def test_a_score_without_its_prescore_state_is_an_error_with_the_plugins_name(plugin: str) -> None:
    result = scheduled(pod(), *NODES, preScore=plugin)
    assert result.error.startswith(f'running Score plugins: plugin "{plugin}" failed with: ')


@pytest.mark.parametrize("plugin", ["NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"])
def test_scores_are_equal_with_and_without_the_prescore_extension_point(plugin: str) -> None:
    wish = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["2"]}]}}
            ]
        }
    }
    usual, late = scheduled(pod(affinity=wish), *NODES), scheduled(pod(affinity=wish), *NODES, preScore=plugin)
    assert {name: dict(score.by_plugin) for name, score in late.scores.items()} == {
        name: dict(score.by_plugin) for name, score in usual.scores.items()
    }


def test_without_prescore_a_best_effort_pod_gets_a_balance_score_of_zero() -> None:
    best_effort = pod(containers=[{"name": "c", "image": "x"}])
    late = scheduled(best_effort, *NODES, preScore="NodeResourcesBalancedAllocation")
    assert {score.by_plugin["NodeResourcesBalancedAllocation"] for score in late.scores.values()} == {0}
    assert "NodeResourcesBalancedAllocation" not in scheduled(best_effort, *NODES).scores["a"].by_plugin


def test_volumezone_still_refuses_nodes_if_its_prefilter_is_disabled() -> None:
    zone = "topology.kubernetes.io/zone"
    nodes = (node("a", **{zone: "1"}), node("b", **{zone: "2"}))
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "c",
            "namespace": "default",
            "uid": "c",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": "v", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v", "labels": {zone: "2"}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "d", "volumeHandle": "h"},
        },
    }
    with_volume = pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}])
    late = scheduled(with_volume, *nodes, claim, volume, preFilter="VolumeZone")
    assert late.node == "b"
    assert late.statuses["a"].reasons == ("node(s) had no available volume zone",)


def test_a_missing_claim_refuses_every_node_if_prefilter_is_disabled() -> None:
    lost = pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "nowhere"}}])
    plugins = {
        "multiPoint": {
            "disabled": [{"name": "VolumeBinding"}, {"name": "VolumeRestrictions"}, {"name": "NodeVolumeLimits"}]
        },
        "preFilter": {"disabled": [{"name": "VolumeZone"}]},
    }
    written = {
        "apiVersion": API,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    result = Scheduler(Configuration.from_mapping(written)).schedule(load_objects(NODES), pod_from_manifest(lost))
    assert {name: (verdict.plugin, verdict.reasons) for name, verdict in result.statuses.items()} == dict.fromkeys(
        ("a", "b"), ("VolumeZone", ('persistentvolumeclaim "nowhere" not found',))
    )

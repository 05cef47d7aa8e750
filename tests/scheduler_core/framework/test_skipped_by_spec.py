"""Tests which pods a plugin skips because of their spec alone. The scheduler then does not call the plugin, and
the decision stays the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from scheduler_core.config.configuration import Configuration
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import SkipsBySpec
from scheduler_core.framework.skipped_by_spec import SkippedBySpec
from scheduler_core.model.labels import EVERYTHING
from scheduler_core.model.pod import Pod, TopologySpreadConstraint
from scheduler_core.plugins import IN_TREE
from scheduler_core.plugins.pod_topology_spread import PodTopologySpread
from scheduler_core.snapshot.node_list import NodeList
from tests.scheduler_core.drawn_clusters import clusters, load_objects, pod_from_manifest, pods

Json = dict[str, Any]
NEWEST = KubeVersion.parse("1.36")
BUILT = {name: IN_TREE[name](Configuration().profiles[0].plugin_args(name, NEWEST), NEWEST) for name in IN_TREE}
SKIPPING = {name: plugin for name, plugin in BUILT.items() if isinstance(plugin, SkipsBySpec)}
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
VOLUMES: tuple[Json, ...] = (
    CLAIM,
    {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    {"name": "v", "awsElasticBlockStore": {"volumeID": "d"}},
    {"name": "v", "emptyDir": {}},
)
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {}}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}


@settings(max_examples=80, deadline=None)
@given(objects=clusters(), pending=pods("new"), volumes=st.lists(st.sampled_from(VOLUMES), max_size=1))
def test_a_plugin_that_skips_a_pod_spec_skips_it_in_every_cluster(
    objects: list[Json], pending: Json, volumes: list[Json]
) -> None:
    snapshot = load_objects(objects)
    pod = pod_from_manifest({**pending, "spec": {**pending["spec"], "volumes": volumes}})
    for name, plugin in SKIPPING.items():
        note(name)
        asked = plugin.pre_filter(CycleState(), pod, NodeList(snapshot)).verdict
        assert asked.is_skip or not plugin.skips(pod.spec)


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("NodePorts", {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}),
        ("NodeAffinity", {"nodeSelector": {"disk": "ssd"}}),
        ("NodeAffinity", {"affinity": {"nodeAffinity": REQUIRED}}),
        ("NodeDeclaredFeatures", {"hostNetwork": True, "hostUsers": False}),
        ("VolumeRestrictions", {"volumes": [CLAIM]}),
        ("NodeVolumeLimits", {"volumes": [CLAIM]}),
        ("VolumeBinding", {"volumes": [CLAIM]}),
        ("VolumeZone", {"volumes": [CLAIM]}),
        ("PodTopologySpread", {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}]}),
    ],
)
def test_a_plugin_does_not_skip_a_pod_spec_that_it_must_check(name: str, spec: Json) -> None:
    assert not SKIPPING[name].skips(with_spec(spec).spec)
    assert SKIPPING[name].skips(with_spec({}).spec)


def test_default_constraints_that_refuse_nodes_apply_to_a_pod_without_constraints() -> None:
    refusing = TopologySpreadConstraint(
        max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule", selector=EVERYTHING
    )
    soft = {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]}
    spread = PodTopologySpread(defaults=(refusing,), defaults_are_systems=False)
    assert not spread.skips(with_spec({}).spec)
    assert spread.skips(with_spec(soft).spec)


def test_skipped_plugins_are_separated_from_plugins_that_must_be_called() -> None:
    register = SkippedBySpec([BUILT[name] for name in ("NodePorts", "NodeResourcesFit", "VolumeZone")])
    spec = with_spec({"volumes": [CLAIM]}).spec
    for _ in range(2):
        asked, skipping = register.called_and_skipped(spec)
        assert ([plugin.name for plugin in asked], skipping) == (["NodeResourcesFit", "VolumeZone"], {"NodePorts"})


def with_spec(spec: Json) -> Pod:
    return pod_from_manifest({"metadata": {"name": "p"}, "spec": {"containers": [], **spec}})

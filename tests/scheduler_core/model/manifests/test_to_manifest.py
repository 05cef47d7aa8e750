"""Tests that the model reads the manifests that it writes."""

from dataclasses import replace

from scheduler_core.model.manifests.from_manifest import node_from_manifest, pod_from_manifest
from scheduler_core.model.manifests.to_manifest import node_to_manifest, pod_to_manifest
from scheduler_core.model.node import Node, NodeImage
from scheduler_core.model.pod import Container, HostPort, Pod, PodSpec
from scheduler_core.model.taints import Taint, Toleration

NODE = Node(
    name="n",
    uid="u",
    labels={"a": "b"},
    annotations={"c": "d"},
    taints=(Taint("k", "v", "NoSchedule"),),
    unschedulable=True,
    allocatable={"cpu": 3920, "memory": 2**33 + 1, "pods": 110, "example.com/gpu": 2},
    images=(NodeImage(("app:1",), 12345),),
)
SPEC = PodSpec(
    containers=(
        Container(
            name="c",
            image="i",
            requests={"cpu": 250 * 10**6, "memory": 10**18, "example.com/odd": 1},
            limits={"cpu": 1},
            host_ports=(HostPort("10.0.0.1", "UDP", 53),),
        ),
    ),
    init_containers=(Container(name="side", restarts_always=True),),
    overhead={"cpu": 1500},
    node_selector=(("disk", "ssd"),),
    priority=7,
    tolerations=(Toleration("k", "Exists", "", "NoExecute"),),
    host_network=True,
)
POD = Pod(
    name="p",
    namespace="ns",
    uid="u",
    labels={"x": "y"},
    spec=SPEC,
    node_name="n",
    nominated_node_name="m",
    phase="Running",
)


def test_a_node_survives_a_round_trip() -> None:
    assert node_from_manifest(node_to_manifest(NODE)) == NODE


def test_the_written_fields_of_a_pod_survive_a_round_trip() -> None:
    read = pod_from_manifest(pod_to_manifest(POD))
    assert replace(read, spec=SPEC) == POD
    fields = (
        "containers",
        "init_containers",
        "overhead",
        "node_selector",
        "priority",
        "tolerations",
        "host_network",
        "scheduler_name",
        "preemption_policy",
    )
    assert [getattr(read.spec, name) for name in fields] == [getattr(SPEC, name) for name in fields]

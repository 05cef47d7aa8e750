"""Defines the flavours: the main topics of the cases. If every case had all topics, the first filters would refuse
nearly every pod."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavour:
    """The properties of the cases about one topic. Most properties are probabilities: 0.1 means that one in ten cases
    or objects has the feature.
    """

    weight: int
    nodes: tuple[int, int] = (1, 20)
    pods_per_node: float = 2.0
    tidy: bool = False  # nodes with all labels, no taints and room
    node_affinity: float = 0.1
    pod_affinity: float = 0.06
    spread: float = 0.1
    ports: float = 0.05
    volumes: float = 0.05
    disks: float = 0.02
    claims: float = 0.0
    scalars: float = 0.08
    resize: float = 0.04
    pod_level: float = 0.06
    full: float = 0.0  # every node is filled with pods of low priority
    nominated: float = 0.03
    declared: float = 0.02
    gates: float = 0.01
    configuration: float = 0.15
    without_plugins: float = 0.0  # a configuration that takes whole plugins out


FLAVOURS: dict[str, Flavour] = {
    "mixed": Flavour(
        weight=12, node_affinity=0.25, pod_affinity=0.12, spread=0.2, ports=0.1, volumes=0.15, configuration=0.3
    ),
    "resources": Flavour(weight=8, scalars=0.5, resize=0.3, pod_level=0.3, pods_per_node=4),
    "labels": Flavour(weight=6, node_affinity=0.8, pods_per_node=1),
    "neighbours": Flavour(weight=9, tidy=True, pod_affinity=0.45, pods_per_node=2.5),
    "spreading": Flavour(weight=9, tidy=True, spread=0.85, pods_per_node=3),
    "gappy-spreading": Flavour(weight=3, spread=0.8, node_affinity=0.3),
    "doors": Flavour(weight=3, tidy=True, ports=0.8, pods_per_node=2),
    "volumes": Flavour(weight=10, tidy=True, volumes=0.95, disks=0.1, pods_per_node=2),
    "unguarded-volumes": Flavour(weight=3, tidy=True, volumes=0.95, without_plugins=1.0),
    "disks": Flavour(weight=2, tidy=True, disks=0.8, volumes=0.2),
    "claims": Flavour(weight=3, tidy=True, claims=0.9),
    "full": Flavour(weight=12, full=1.0, pods_per_node=0, spread=0.1, nominated=0.1),
    "full-neighbours": Flavour(
        weight=6,
        full=1.0,
        tidy=True,
        pods_per_node=0,
        pod_affinity=0.25,
        spread=0.25,
        ports=0.15,
        disks=0.05,
        volumes=0.1,
        nominated=0.15,
    ),
    "crowded": Flavour(
        weight=5,
        nodes=(4, 30),
        full=1.0,
        tidy=True,
        pods_per_node=1.5,
        configuration=0.5,
        spread=0.3,
        pod_affinity=0.08,
        ports=0.2,
        disks=0.15,
    ),
    "nominated": Flavour(
        weight=4, full=0.5, nominated=0.9, pods_per_node=1, pod_affinity=0.12, spread=0.15, ports=0.15
    ),
    "configured": Flavour(
        weight=10, tidy=True, configuration=1.0, scalars=0.25, node_affinity=0.15, spread=0.15, volumes=0.1
    ),
    "features": Flavour(weight=2, tidy=True, declared=0.8, gates=0.2),
    "single": Flavour(weight=2, nodes=(1, 2), node_affinity=0.2, pod_affinity=0.1, spread=0.1),
}

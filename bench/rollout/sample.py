"""The cluster that is rolled over: 12 nodes in 3 zones, 99 pods of 7 controllers, 5 budgets, 65 % of the cpu requested."""

from __future__ import annotations

from tests.cluster.harness.api import Object
from tests.cluster.harness.workloads import (
    SHOP,
    apart_from_its_like,
    budget,
    daemon_set,
    deployment,
    stateful_set,
    zone_spread,
)

ZONES = ("zone-a", "zone-b", "zone-c")
NODES = 12
PODS = 99


def nodes() -> list[tuple[str, str]]:
    """Name and zone."""
    return [(f"n{number:03}", ZONES[number % len(ZONES)]) for number in range(NODES)]


def workloads() -> list[Object]:
    # 60 cpu for the controllers' pods and 12 x 0.2 for the DaemonSets', of 96.
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}},
        daemon_set("log-shipper", cpu="100m"),
        daemon_set("node-exporter", cpu="100m"),
        deployment("web", 24, cpu="500m", memory="512Mi", **zone_spread("web")),
        budget("web", max_unavailable=2),
        deployment("api", 18, cpu="750m", memory="1Gi", **zone_spread("api")),
        budget("api", min_available="80%"),
        deployment("cache", 9, cpu="1", memory="2Gi", **apart_from_its_like("cache")),
        budget("cache", max_unavailable=1),
        stateful_set("db", 3, cpu="2", memory="4Gi", **apart_from_its_like("db")),
        budget("db", max_unavailable=1),
        deployment("worker", 24, cpu="500m", memory="512Mi"),
        budget("worker", max_unavailable="25%"),
        deployment("batch", 15, cpu="400m", memory="256Mi"),
        deployment("misc", 6, cpu="250m", memory="128Mi"),
    ]

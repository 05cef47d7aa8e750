"""The names and values that all cases use. The sets are small, so that labels, selectors and terms match often."""

from __future__ import annotations

from typing import Any

from tests.oracle.casegen.draw import Draw

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"

NAMESPACES = ("default", "shop", "ops")
APPS = ("web", "db", "cache", "queue")
ZONES = ("za", "zb", "zc")
TOPOLOGY_KEYS = (HOSTNAME, ZONE, "rack")

CPU = ("100m", "250m", "500m", "1", "1500m", "2", "3")
ODD_CPU = ("0", "0.1", "1.1", "100u", "1n", "0.0005", "1e0", "2500e-3", ".5", "1.", "0.01k", "33333u", "+1", "1e-3")
MEMORY = ("64Mi", "128Mi", "256Mi", "1Gi", "2G", "500M", "4Gi")
ODD_MEMORY = (
    "0",
    "1.5Gi",
    "1e9",
    "100k",
    "123456789",
    "0.1Gi",
    "128974848000m",
    "3E-3",
    "1E8",
    "12345.6789Mi",
    "1",
    "0.5",
    "1000000u",
    "123456789123n",
    "+64Mi",
    "64.5Ki",
)
STORAGE = ("1Gi", "5Gi", "20Gi")

GPU = "example.com/gpu"
SCALARS = (
    GPU,
    "example.com/fpga",
    "hugepages-2Mi",
    "hugepages-1Gi",
    "attachable-volumes-x",
    "batch.kubernetes.io/slot",
    "other.example/gpu",
)


def cpu(d: Draw) -> str:
    """Returns a CPU quantity, sometimes in an odd notation."""
    return d.often(CPU, ODD_CPU)


def memory(d: Draw) -> str:
    """Returns a memory quantity, sometimes in an odd notation."""
    return d.often(MEMORY, ODD_MEMORY)


def scalar_amount(d: Draw, name: str) -> str:
    """Returns an amount of a scalar resource: a number for devices, and a size for huge pages."""
    if name.startswith("hugepages-"):
        return d.choice(("64Mi", "128Mi", "1Gi", "2Mi"))
    return d.choice(("1", "2", "4", "0"))


def pod_labels(d: Draw) -> dict[str, str]:
    """Returns labels of a pod: nearly always an `app`, and often some labels that selectors use."""
    labels: dict[str, str] = {}
    if d.maybe(0.95):
        labels["app"] = d.choice(APPS)
    if d.maybe(0.4):
        labels["tier"] = d.choice("xy")
    if d.maybe(0.3):
        labels["track"] = d.choice("xy")
    if d.maybe(0.3):
        labels["version"] = d.choice(("v1", "v2"))
    return labels


def label_selector(d: Draw, app: str | None = None, odd: bool = True) -> dict[str, Any] | None:
    """Returns a label selector for pods. Most selectors select one app. Some have expressions, or select all pods or
    no pods."""
    kind = d.random()
    if kind < 0.55:
        return {"matchLabels": {"app": app or d.choice(APPS)}}
    if odd and kind < 0.61:
        return {}
    if odd and kind < 0.66:
        return None
    expressions = [pod_expression(d) for _ in range(d.choice((1, 1, 2)))]
    selector: dict[str, Any] = {"matchExpressions": expressions}
    if d.maybe(0.3):
        selector["matchLabels"] = {"app": app or d.choice(APPS)}
    return selector


def pod_expression(d: Draw) -> dict[str, Any]:
    """Returns one requirement of a label selector for pods. It is valid, because an API server accepts no invalid
    selectors."""
    key = d.choice(("app", "tier", "track", "version", "absent"))
    operator = d.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    values = {"app": APPS, "version": ("v1", "v2")}.get(key, ("x", "y"))
    return {"key": key, "operator": operator, "values": d.some(values, 2)}


def node_expression(d: Draw, parsable: bool = True) -> dict[str, Any]:
    """Returns one requirement on node labels. With `parsable`, the values for Gt and Lt are integers."""
    key = d.choice(("disk", "gen", "pool", ZONE, "absent", "rack"))
    operator = d.choice(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    if operator in ("Gt", "Lt"):
        value = d.often(
            ("0", "1", "2", "5"),
            ("-1",) if d.maybe(0.1) else ("1.5", "x", "", "9223372036854775808") if not parsable else ("03",),
        )
        return {"key": "gen" if d.maybe(0.8) else key, "operator": operator, "values": [value]}
    values = {
        "disk": ("ssd", "hdd"),
        "gen": ("1", "2", "3", "x"),
        "pool": ("a", "b"),
        ZONE: ZONES,
        "rack": ("r1", "r2", "r3"),
    }
    if not parsable and d.maybe(0.3):
        return {
            "key": d.choice((key, "bad key!")),
            "operator": d.choice((operator, "Near")),
            "values": d.choice(([], ["bad value!"])),
        }
    return {"key": key, "operator": operator, "values": d.some(values.get(key, ("z",)), 2)}

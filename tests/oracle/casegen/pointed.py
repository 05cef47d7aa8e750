"""Generates cases about one topic each: selectors, amounts, resizes, features, volumes, claims, devices, gates,
nominations, or one of `casegen/unusual.py`. The cases contain values that are rare in the cases of `casegen/cases.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.casegen import pods, unusual
from tests.oracle.casegen.case import Case, asked, of, requests_of
from tests.oracle.casegen.cases import build
from tests.oracle.casegen.claims import device_class
from tests.oracle.casegen.draw import Draw
from tests.oracle.casegen.flavours import Flavour
from tests.oracle.casegen.vocabulary import GPU

# As the API takes them: all suffixes, signs, fractions and exponents; amounts below a unit are rounded up.
CPU = ("0", "1", "0.5", "1500m", "1500000u", "100n", "1e-3", "2E0", "0.0005", "+1", "001", "1k", "2.5", "999999999n")
MEMORY = ("0", "1", "128974848", "129e6", "129M", "123Mi", "1.5Gi", "0.1Gi", "1e9", "12E6", "500m", "1Ki", "2Ti", "80P")
WHOLE = ("0", "1", "2", "7", "1e1", "1k", "1Ki", "3.0")

_NUMBERS = ("1", "2", "-1", "+2", "02", "1.5", "", "9223372036854775807", "9223372036854775808", "one")
_KEYS = ("gen", "disk", "pool", "rack", "nothing", "kubernetes.io/hostname", "topology.kubernetes.io/zone")


def pointed_case(seed: int, number: int) -> Case:
    """Returns the case with this number. Consecutive numbers have different topics."""
    d = Draw(f"{seed}:pointed:{number}")
    topic = tuple(TOPICS)[number % len(TOPICS)]
    flavour, sharpen = TOPICS[topic]
    found = build(d, flavour, f"pointed-{topic}-{seed}-{number:05}")
    sharpen(d, found)
    return found


def _selectors(d: Draw, case: Case) -> None:
    for node in of(case, "Node"):
        labels = node["metadata"].setdefault("labels", {})
        if d.maybe(0.6):
            labels["gen"] = d.choice(_NUMBERS[:-1])
        if d.maybe(0.3):
            labels["disk"] = ""
    for pod in asked(case):
        affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [
                {"matchExpressions": [_expression(d) for _ in range(d.randint(1, 3))]} for _ in range(d.randint(1, 3))
            ]
        }
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": d.randint(1, 100), "preference": {"matchExpressions": [_expression(d)]}}
        ]
        if d.maybe(0.2):
            pod["spec"]["nodeSelector"] = {"disk": ""}


def _expression(d: Draw) -> dict[str, Any]:
    operator = d.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    key = "gen" if operator in ("Gt", "Lt") else d.choice(_KEYS)
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    if operator in ("Gt", "Lt"):
        return {"key": key, "operator": operator, "values": [d.choice(_NUMBERS)]}
    return {"key": key, "operator": operator, "values": d.some(("a", "b", "ssd", "", "1", "za", "n00", "r1"), 3)}


def _amounts(d: Draw, case: Case) -> None:
    for node in of(case, "Node"):
        room = node["status"]["allocatable"]
        room["cpu"] = d.choice(("4", "3999m", "4.0", "4e0", "3999999999n", "0.5", "1k"))
        room["memory"] = d.choice(("8Gi", "8589934592000m", "8.5G", "1e10", "1Ti", "80P", "123Mi"))
        room[GPU] = d.choice(WHOLE)
    for pod in of(case, "Pod"):
        for requests in requests_of(pod):
            requests |= {"cpu": d.choice(CPU), "memory": d.choice(MEMORY)}
            if d.maybe(0.3):
                requests[GPU] = d.choice(WHOLE)
            if d.maybe(0.2):
                requests["ephemeral-storage"] = d.choice(MEMORY)


def _resizes(d: Draw, case: Case) -> None:
    for pod in of(case, "Pod"):
        if "nodeName" in pod["spec"] and pod["status"].get("phase") == "Running":
            pods.resized(d, pod)


def _devices(d: Draw, case: Case) -> None:
    """Adds a DeviceClass, usually for an extended resource that a device plugin on every node also offers. Makes most
    pods request this extended resource."""
    case["objects"].append(device_class(d.choice((GPU, GPU, "example.com/other"))))
    for node in of(case, "Node"):
        node["status"]["allocatable"][GPU] = d.choice(("1", "2", "4", "8"))
    for pod in of(case, "Pod"):
        if d.maybe(0.7):
            d.choice(requests_of(pod))[GPU] = d.choice(("0", "1", "1", "2", "4"))


def _gates(d: Draw, case: Case) -> None:
    for pod in asked(case):
        gates = d.choice((None, [], [{"name": "a"}], [{"name": "b"}, {"name": "a"}]))
        if gates is not None:
            pod["spec"]["schedulingGates"] = gates


def _nominations(d: Draw, case: Case) -> None:
    """Sets `nominatedNodeName` of most pods that have no node: pods that the schedulers are to place (`case["pods"]`),
    and other pending pods. Some nominated nodes do not exist."""
    nodes = [node["metadata"]["name"] for node in of(case, "Node")]
    for pod in of(case, "Pod"):
        if "nodeName" not in pod["spec"] and d.maybe(0.8):
            pod["status"]["nominatedNodeName"] = d.often(nodes, ("gone",), 0.1)


def _as_drawn(_d: Draw, _case: Case) -> None:
    """Leaves the generated case unchanged, because its settings (`Flavour`) already produce the values that are
    tested."""


TOPICS: dict[str, tuple[Flavour, Callable[[Draw, Case], None]]] = {
    "selectors": (Flavour(weight=1, tidy=True, node_affinity=0.0, pods_per_node=1), _selectors),
    "amounts": (Flavour(weight=1, tidy=True, pods_per_node=1, pod_level=0.0), _amounts),
    "resizes": (Flavour(weight=1, tidy=True, full=0.3, pods_per_node=3, pod_level=0.4, scalars=0.2), _resizes),
    "features": (Flavour(weight=1, tidy=True, declared=1.0, resize=0.3), _as_drawn),
    "volumes": (Flavour(weight=1, tidy=True, volumes=1.0, disks=0.3, full=0.2, nominated=0.3), _as_drawn),
    "claims": (Flavour(weight=1, tidy=True, claims=1.0, full=0.3), _as_drawn),
    "devices": (Flavour(weight=1, tidy=True, pods_per_node=2, full=0.2, scalars=0.2), _devices),
    "gates": (Flavour(weight=1, tidy=True, gates=0.3), _gates),
    "nominations": (Flavour(weight=1, full=0.5, nominated=1.0, pods_per_node=1, spread=0.2), _nominations),
    "statuses": (Flavour(weight=1, tidy=True, full=0.2, pods_per_node=4, scalars=0.2), unusual.statuses),
    "disks": (Flavour(weight=1, tidy=True, volumes=1.0, full=0.2, pods_per_node=2), unusual.disks),
    "images": (Flavour(weight=1, tidy=True, pods_per_node=1), unusual.images),
    "victims": (Flavour(weight=1, nodes=(1, 5), tidy=True, pods_per_node=0), unusual.victims),
    "taints": (Flavour(weight=1, spread=0.5, pods_per_node=2), unusual.taints),
    "ports": (Flavour(weight=1, tidy=True, pods_per_node=2, full=0.3), unusual.ports),
    "conditions": (Flavour(weight=1, tidy=True, claims=0.8, pods_per_node=1), unusual.conditions),
}

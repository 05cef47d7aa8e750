"""Generates small clusters for property tests. The clusters use few different names and values, so that objects often
match each other."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st

import scheduler_core

Json = dict[str, Any]

# Some drawn selectors have an operator that no API server accepts.
load_objects = partial(scheduler_core.load_objects, strict=False)
pod_from_manifest = partial(scheduler_core.pod_from_manifest, strict=False)

ZONES = ("a", "b", "")
APPS = ("web", "db")
KEYS = ("topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack")
NAMESPACES = ("default", "ops")

maybe = st.booleans()


@st.composite
def label_selectors(draw: st.DrawFn) -> Json | None:
    kind = draw(st.sampled_from(("none", "empty", "equal", "in", "notin", "exists")))
    if kind == "none":
        return None
    if kind == "empty":
        return {}
    if kind == "equal":
        return {"matchLabels": {"app": draw(st.sampled_from(APPS))}}
    operator = {"in": "In", "notin": "NotIn", "exists": "Exists"}[kind]
    values = [] if kind == "exists" else draw(st.lists(st.sampled_from(APPS), min_size=1, max_size=2, unique=True))
    return {
        "matchExpressions": [{"key": draw(st.sampled_from(("app", "tier"))), "operator": operator, "values": values}]
    }


@st.composite
def pod_terms(draw: st.DrawFn) -> Json:
    term: Json = {"topologyKey": draw(st.sampled_from(KEYS)), "labelSelector": draw(label_selectors())}
    if draw(maybe):
        term["namespaces"] = draw(st.lists(st.sampled_from(NAMESPACES), min_size=1, max_size=2, unique=True))
    if draw(st.integers(0, 3)) == 0:
        term["namespaceSelector"] = draw(
            st.sampled_from(
                (
                    {},
                    {"matchLabels": {"team": "red"}},
                    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
                )
            )
        )
    return term


@st.composite
def pod_affinities(draw: st.DrawFn) -> Json:
    required = draw(st.lists(pod_terms(), max_size=2))
    preferred = [
        {"weight": draw(st.integers(1, 100)), "podAffinityTerm": term}
        for term in draw(st.lists(pod_terms(), max_size=2))
    ]
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }


@st.composite
def node_terms(draw: st.DrawFn) -> Json:
    operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near")))
    values = {"In": ["a"], "NotIn": ["a"], "Gt": ["1"], "Lt": ["1"]}.get(operator, [])
    term: Json = {
        "matchExpressions": [{"key": draw(st.sampled_from((*KEYS, "size"))), "operator": operator, "values": values}]
    }
    if draw(st.integers(0, 4)) == 0:
        term["matchFields"] = [
            {"key": "metadata.name", "operator": draw(st.sampled_from(("In", "NotIn"))), "values": ["n1"]}
        ]
    return draw(st.sampled_from((term, term, {})))


@st.composite
def containers(draw: st.DrawFn, name: str) -> Json:
    requests: Json = {}
    for resource, amounts in (
        ("cpu", ("0", "100m", "500m", "1.5")),
        ("memory", ("0", "64Mi", "1Gi", "100M")),
        ("example.com/gpu", ("1", "0")),
        ("ephemeral-storage", ("1Gi",)),
    ):
        if draw(st.integers(0, 2)) == 0:
            requests[resource] = draw(st.sampled_from(amounts))
    container: Json = {
        "name": name,
        "image": draw(st.sampled_from(("web:1", "web", "registry.example:5000/db"))),
        "resources": {"requests": requests},
    }
    if draw(st.integers(0, 5)) == 0:
        container["ports"] = [
            {
                "containerPort": 80,
                "hostPort": draw(st.sampled_from((80, 81))),
                "protocol": draw(st.sampled_from(("TCP", "UDP"))),
                "hostIP": draw(st.sampled_from(("", "127.0.0.1", "0.0.0.0"))),
            }
        ]
    return container


@st.composite
def spread_constraints(draw: st.DrawFn) -> Json:
    constraint: Json = {
        "maxSkew": draw(st.integers(1, 3)),
        "topologyKey": draw(st.sampled_from(KEYS)),
        "whenUnsatisfiable": draw(st.sampled_from(("DoNotSchedule", "ScheduleAnyway"))),
        "labelSelector": draw(label_selectors()),
    }
    if draw(maybe) and constraint["whenUnsatisfiable"] == "DoNotSchedule":
        constraint["minDomains"] = draw(st.integers(1, 3))
    if draw(maybe):
        constraint["nodeTaintsPolicy"] = draw(st.sampled_from(("Honor", "Ignore")))
        constraint["nodeAffinityPolicy"] = draw(st.sampled_from(("Honor", "Ignore")))
    if draw(maybe):
        constraint["matchLabelKeys"] = ["tier"]
    return constraint


@st.composite
def pods(draw: st.DrawFn, name: str, node_names: tuple[str, ...] = ()) -> Json:
    """Generates a pod that runs on one of the nodes, or a pending pod if there are no nodes."""
    labels = {
        key: draw(st.sampled_from(values)) for key, values in (("app", APPS), ("tier", ("x", "y"))) if draw(maybe)
    }
    meta: Json = {"name": name, "namespace": draw(st.sampled_from(NAMESPACES)), "uid": name, "labels": labels}
    spec: Json = {"containers": [draw(containers("c0"))], "priority": draw(st.sampled_from((0, 10)))}
    if draw(maybe):
        spec["initContainers"] = [{**draw(containers("i0")), **({"restartPolicy": "Always"} if draw(maybe) else {})}]
    if draw(st.integers(0, 3)) == 0:
        spec["tolerations"] = draw(
            st.lists(
                st.fixed_dictionaries(
                    {
                        "key": st.sampled_from(("", "dedicated")),
                        "operator": st.sampled_from(("Exists", "Equal", "")),
                        "effect": st.sampled_from(("", "NoSchedule", "PreferNoSchedule")),
                    }
                ),
                max_size=2,
            )
        )
    if draw(st.integers(0, 3)) == 0:
        spec["nodeSelector"] = {draw(st.sampled_from(KEYS)): draw(st.sampled_from(("a", "n1")))}
    if draw(maybe):
        spec["affinity"] = {"podAffinity": draw(pod_affinities()), "podAntiAffinity": draw(pod_affinities())}
        if draw(maybe):
            spec["affinity"]["nodeAffinity"] = draw(
                st.fixed_dictionaries(
                    {},
                    optional={
                        "requiredDuringSchedulingIgnoredDuringExecution": st.fixed_dictionaries(
                            {"nodeSelectorTerms": st.lists(node_terms(), max_size=2)}
                        ),
                        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(
                            st.fixed_dictionaries({"weight": st.integers(1, 100), "preference": node_terms()}),
                            max_size=2,
                        ),
                    },
                )
            )
    if draw(maybe):
        spec["topologySpreadConstraints"] = draw(st.lists(spread_constraints(), max_size=2))
    status: Json = {"phase": "Pending"}
    if node_names:
        spec["nodeName"] = draw(st.sampled_from(node_names))
        status = {"phase": "Running"}
        if draw(st.integers(0, 4)) == 0:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Json:
    labels: Json = {}
    if draw(st.integers(0, 5)):
        labels["kubernetes.io/hostname"] = name
    if draw(st.integers(0, 4)):
        labels["topology.kubernetes.io/zone"] = draw(st.sampled_from(ZONES))
    if draw(maybe):
        labels["rack"] = draw(st.sampled_from(("a", "r1")))
    if draw(maybe):
        labels["size"] = draw(st.sampled_from(("1", "2", "big")))
    taints = [
        {
            "key": "dedicated",
            "value": draw(st.sampled_from(("", "db"))),
            "effect": draw(st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute"))),
        }
        for _ in range(draw(st.integers(0, 2)))
    ]
    allocatable = {
        "cpu": draw(st.sampled_from(("2", "4", "0"))),
        "memory": draw(st.sampled_from(("2Gi", "8Gi"))),
        "pods": draw(st.sampled_from(("2", "110"))),
    }
    if draw(maybe):
        allocatable["example.com/gpu"] = "2"
    if draw(maybe):
        allocatable["ephemeral-storage"] = "10Gi"
    images = [
        {"names": [image], "sizeBytes": draw(st.sampled_from((10**7, 3 * 10**8, 9 * 10**8)))}
        for image in ("web:1", "web:latest", "registry.example:5000/db:latest")
        if draw(maybe)
    ]
    spec: Json = {"taints": taints, "unschedulable": draw(st.integers(0, 4)) == 0}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable, "images": images},
    }


@st.composite
def clusters(draw: st.DrawFn, most_nodes: int = 5, most_pods: int = 8) -> list[Json]:
    """Generates the objects of a cluster: namespaces, services, nodes n0 …, and running pods p0 …"""
    names = tuple(f"n{i}" for i in range(draw(st.integers(1, most_nodes))))
    objects: list[Json] = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"team": "red"} if name == "ops" else {}},
        }
        for name in NAMESPACES
    ]
    objects += [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"{app}", "namespace": namespace},
            "spec": {"selector": {"app": app}},
        }
        for app in APPS
        for namespace in NAMESPACES
        if draw(maybe)
    ]
    objects += [draw(nodes(name)) for name in names]
    objects += [draw(pods(f"p{i}", names)) for i in range(draw(st.integers(0, most_pods)))]
    return objects

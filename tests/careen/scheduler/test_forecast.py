"""Tests that a forecast with the configuration of manifests/scheduler knows the pods of `careen scheduler`. It follows
no unknown search, and names nodes of equal score, of which the scheduler's machine then takes one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from scheduler_core import Configuration, Scheduler, load_objects
from scheduler_core.cache.events import Sync
from scheduler_core.running.commands import Bind
from scheduler_core.running.machine import Machine
from scheduler_core.simulation.drain import simulate_drain

MANIFEST = Path(__file__).resolve().parents[3] / "manifests" / "scheduler" / "scheduler.yaml"
NODES = 150


def configuration(**changes: Any) -> Configuration:
    (text,) = (
        each["data"]["scheduler.yaml"]
        for each in yaml.safe_load_all(MANIFEST.read_text())
        if each["kind"] == "ConfigMap"
    )
    return Configuration.from_mapping({**yaml.safe_load(text), **changes})


def cluster() -> list[dict[str, Any]]:
    def node(number: int) -> dict[str, Any]:
        amounts = {"cpu": str(4 + number % 7), "memory": "16Gi", "pods": "110"}
        meta = {"name": f"n{number:03}", "labels": {"kubernetes.io/hostname": f"n{number:03}"}}
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": amounts}}

    def pod(name: str, on: str) -> dict[str, Any]:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
        meta = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]}
        spec = {"schedulerName": "careen-scheduler", "containers": [container], "nodeName": on}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}

    pods = [pod(f"web-{number}", f"n{number % 40:03}") for number in range(120)]
    return [*(node(number) for number in range(NODES)), *pods]


def test_the_forecast_of_a_drain_names_the_nodes_among_which_the_scheduler_then_chooses() -> None:
    items = cluster()
    (forecast,) = simulate_drain(load_objects(items), ["n003"], made_at="", configuration=configuration())
    leaving = [each for each in forecast.pods if each.namespace == "shop"]
    assert "search" not in "".join(forecast.notes)
    assert [each.shares for each in leaving] == [(), (), ()]
    chosen = _chosen(items, [each.name for each in leaving])
    assert len(chosen) == 3
    assert all(node in each.landing for node, each in zip(chosen, leaving, strict=True))


def test_with_a_sampling_configuration_the_forecast_is_not_exact() -> None:
    sampled = configuration(percentageOfNodesToScore=0)
    (forecast,) = simulate_drain(load_objects(cluster()), ["n003"], made_at="", configuration=sampled)
    assert "it is unknown where its search starts" in "".join(forecast.notes)


def _chosen(items: list[dict[str, Any]], names: list[str]) -> list[str]:
    """The nodes of the pods' replacements on a cluster whose n003 is cordoned, in the order of `names`."""
    machine = Machine(Scheduler(configuration()))
    nodes = [each for each in items if each["kind"] == "Node"]
    nodes[3] = {**nodes[3], "spec": {"unschedulable": True}}
    stay = [each for each in items if each["kind"] == "Pod" and each["metadata"]["name"] not in names]
    for kind, listed in (("Node", nodes), ("Pod", stay)):
        page = {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": listed}
        machine.take(Sync(kind, [json.dumps(page).encode()]), 0.0)
    while machine.has_work:
        machine.next(0.0)
    found = []
    for name in names:
        (old,) = (each for each in items if each["metadata"]["name"] == name)
        meta = {**old["metadata"], "name": f"{name}-new", "uid": f"{name}-new", "resourceVersion": "10"}
        new = {**old, "metadata": meta, "spec": {**old["spec"], "nodeName": ""}, "status": {"phase": "Pending"}}
        machine.take(json.dumps({"type": "ADDED", "object": new}).encode(), 1.0)
        found += [each.node for each in machine.next(1.0) if isinstance(each, Bind)]
    return found

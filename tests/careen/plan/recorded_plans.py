"""Computes plans and forecasts of generated clusters, and writes digests of them to `recorded_plans.json`.

`python -m tests.careen.plan.recorded_plans` writes the file again. An optimisation must not change the file. A commit
that changes decisions may change the file if its author can explain each changed line.
"""

from __future__ import annotations

import copy
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, time
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from bench.plan.__main__ import pages_of
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Order, Policy
from careen.core.facts.windows import Window
from careen.plan.rollout_rules import RolloutRules
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.simulation.rollout import Durations, simulate_rollout
from scheduler_core.simulation.timeline import Timeline
from scheduler_core.snapshot.loading import load_objects, load_pages
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.testing.builders import a_pod, manifests
from tests.cluster.harness.measures.varied import NAMESPACE, PRIORITIES, varied_cluster

RECORD = Path(__file__).with_name("recorded_plans.json")
BEGINS = datetime(2026, 1, 1, 22, tzinfo=UTC)
# Two plans of some hours need more than one of these windows.
WINDOW = Window(start=time(22), end=time(23, 0))

_FIRST = {"kubernetes.io/hostname": "v00"}

Json = dict[str, Any]


@cache
def varied(seed: int, size: int, fill: float) -> Snapshot:
    """Return a cluster with every kind of workload. scheduler_core has placed its pods one after another."""
    drawn = varied_cluster(seed, size, fill=fill)
    single = [a_pod("alone"), a_pod("bound").owned_by("ReplicaSet", "bound").with_field("spec.nodeSelector", _FIRST)]
    scheduler, snapshot = Scheduler(), load_objects([*drawn.nodes, *_others(drawn.workloads)])
    for manifest in (*manifests(single), *_pods(drawn.workloads)):
        (pod,) = load_objects([manifest]).pending
        result = scheduler.schedule(snapshot, pod)
        if result.node is not None:
            snapshot = snapshot.with_pod_placed(
                msgspec.structs.replace(pod, phase="Running", is_ready=True), result.node
            )
    return snapshot


def _others(workloads: tuple[Json, ...]) -> Iterator[Json]:
    replicas = {
        each["metadata"]["name"]: each["spec"].get("replicas", 0)
        for each in workloads
        if "template" in each.get("spec", {})
    }
    for each in workloads:
        if each["kind"] == "PodDisruptionBudget":
            most, expected = each["spec"]["maxUnavailable"], replicas[each["metadata"]["name"]]
            numbers = {"currentHealthy": expected, "desiredHealthy": expected - most, "expectedPods": expected}
            yield {**each, "status": {"disruptionsAllowed": most, **numbers}}
        elif each["kind"] != "Deployment":
            yield {**each, "metadata": {**each["metadata"], "uid": each["metadata"]["name"]}}


def _pods(workloads: tuple[Json, ...]) -> Iterator[Json]:
    for each in workloads:
        kind = {"Deployment": "ReplicaSet"}.get(each["kind"], each["kind"])
        for number in range(each.get("spec", {}).get("replicas", each.get("spec", {}).get("parallelism", 0))):
            template = copy.deepcopy(each["spec"]["template"])
            name = each["metadata"]["name"]
            priority = PRIORITIES.get(template["spec"].pop("priorityClassName", ""), 0)
            owner = {"apiVersion": each["apiVersion"], "kind": kind, "name": name, "uid": name, "controller": True}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    **template["metadata"],
                    "name": f"{name}-{number}",
                    "namespace": NAMESPACE,
                    "uid": f"{name}-{number}",
                    "ownerReferences": [owner],
                },
                "spec": {**template["spec"], "priority": priority},
                "status": {"phase": "Pending"},
            }


@cache
def large(size: int) -> Snapshot:
    """Return the cluster of `bench/plan`. It has so many nodes that the scheduler scores only some of them for each
    pod."""
    with tempfile.TemporaryDirectory() as folder:
        return load_pages(pages_of(Path(folder), nodes=size, seed=size))


def plan(snapshot: Snapshot, *, nodes: int = 0, seed: int = 0, **policy: Any) -> Timeline:
    """Simulate a roll-out over the first `nodes` nodes, or over all nodes if `nodes` is 0."""
    views = [NodeView(name=node.name, uid=node.uid, resource_version="", labels=node.labels) for node in snapshot.nodes]
    return simulate_rollout(
        snapshot,
        snapshot.node_names[: nodes or None],
        Scheduler(),
        RolloutRules(views, Policy(node_name="-", **{"concurrency": 2, **policy})),
        begins=BEGINS,
        durations=Durations(held_back=5.0 if seed else 0.0),
        taint_key=keys.DEFAULT_TAINT_KEY if seed != 2 else None,
        seed=seed,
    )


def forecasts(snapshot: Snapshot, nodes: slice, most_scenarios: int | None = None) -> tuple[Forecast, ...]:
    """Forecast the drain of one node after another. Each forecast starts from the unchanged cluster."""
    names = snapshot.node_names[nodes]
    return tuple(
        each for name in names for each in simulate_drain(snapshot, [name], made_at="", most_scenarios=most_scenarios)
    )


def cases() -> Mapping[str, Callable[[], Timeline | tuple[Forecast, ...]]]:
    """Return a mapping from the name of each case to a function that computes the plan or the forecasts of this
    case."""
    made: dict[str, Callable[[], Timeline | tuple[Forecast, ...]]] = {}
    for number, (size, fill) in enumerate(((20, 1.0), (20, 1.5), (24, 2.4), (30, 1.6), (36, 1.3), (60, 0.8))):
        drawn = partial(varied, number, size, fill)
        for seed, order in enumerate(Order):
            made[f"plan of {size} nodes at {fill}, {order.value}, seed {seed}"] = _of(
                drawn, plan, seed=seed, order=order
            )
        made[f"plan of {size} nodes at {fill}, in windows"] = _of(drawn, plan, concurrency=3, window=WINDOW)
        made[f"forecasts of {size} nodes at {fill}"] = _of(drawn, forecasts, slice(0, None, 3))
    for size, seed in ((120, 0), (120, 1), (300, 0), (300, 4)):
        made[f"plan of 8 of {size} nodes, seed {seed}"] = _of(
            partial(large, size), plan, nodes=8, seed=seed, concurrency=4
        )
    made["forecast of 1 of 120 nodes"] = _of(partial(large, 120), forecasts, slice(7, 8), 40)
    made["forecast of 1 of 300 nodes"] = _of(partial(large, 300), forecasts, slice(7, 8), 33)
    return made


def _of(draw: Callable[[], Snapshot], make: Callable[..., Any], *told: Any, **named: Any) -> Callable[[], Any]:
    return lambda: make(draw(), *told, **named)


def digest(found: Timeline | tuple[Forecast, ...]) -> Json:
    """Return a digest of the plan or the forecasts, and a few numbers that help to explain a difference."""
    text = msgspec.json.encode(_without_empty(msgspec.to_builtins(found)))
    told: Json = {"digest": hashlib.sha256(text).hexdigest()[:20]}
    if isinstance(found, Timeline):
        numbers = {
            "moves": len(found.moves),
            "double moves": found.double_moves,
            "preempted": sum(move.is_preempted for move in found.moves),
            "waits": len(found.waits),
            "lost": len(found.lost),
            "left": len(found.left),
            "hindrances": len(found.hindrances),
        }
    else:
        numbers = dict(sorted(Counter(pod.outcome.value for forecast in found for pod in forecast.pods).items()))
    return told | numbers


def _without_empty(value: Any) -> Any:
    """Return the value without its empty fields, so that a new field that is not set does not change the digest."""
    if isinstance(value, dict):
        return {key: _without_empty(each) for key, each in value.items() if each not in (None, "", [], (), {})}
    return [_without_empty(each) for each in value] if isinstance(value, (list, tuple)) else value


def main() -> None:
    """Compute every case again, and write the results to recorded_plans.json."""
    RECORD.write_text(json.dumps({name: digest(make()) for name, make in cases().items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Generates small clusters with the conflicts of a large fleet, and a policy for the plan of each cluster. Tests
compare whole plans of these clusters.

A seed determines each cluster. Together the clusters have nodes with little and with much room, topology spread and
anti-affinity, priorities that preempt, StatefulSets, bare pods, disruption budgets that allow no disruption, nodes that
are down or on hold, budgets for zones, maintenance windows, and delays between steps."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Budget, BudgetKind, Order, Policy
from careen.core.facts.windows import Window
from careen.plan.rollout_rules import RolloutRules
from scheduler_core.cycle import Scheduler
from scheduler_core.simulation.movable import movable_in_zone, movable_pods
from scheduler_core.simulation.rollout import Durations, simulate_rollout
from scheduler_core.simulation.timeline import Timeline
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot

Json = dict[str, Any]
BEGINS = datetime(2026, 3, 4, 22, 0, tzinfo=UTC)
HOSTNAME = "kubernetes.io/hostname"
_READY = [{"type": "Ready", "status": "True"}]


@dataclass(frozen=True, slots=True)
class Scene:
    """A generated cluster: its objects, its nodes as the gates see them, and the policy of its plan."""

    snapshot: Snapshot
    views: tuple[NodeView, ...]
    policy: Policy
    durations: Durations
    taint_key: str | None

    def plan(self, order: Order) -> Timeline:
        rules = RolloutRules(
            self.views,
            replace(self.policy, order=order),
            moves=movable_pods(self.snapshot),
            moves_in_zone=movable_in_zone(self.snapshot),
        )
        return simulate_rollout(
            self.snapshot,
            self.snapshot.node_names,
            Scheduler(),
            rules,
            begins=BEGINS,
            durations=self.durations,
            taint_key=self.taint_key,
            most_days=3,
        )


def scene(seed: int) -> Scene:
    """Generate the cluster of this seed."""
    d = random.Random(seed)
    nodes = [_node(d, number) for number in range(d.randint(6, 16))]
    objects = [*nodes, *_workloads(d, [node["metadata"]["name"] for node in nodes])]
    snapshot = load_objects(objects)
    return Scene(
        snapshot, tuple(_view(d, node) for node in nodes), _policy(d), _durations(d), d.choice(("soft", "soft", None))
    )


def account(timeline: Timeline) -> Json:
    """Return the whole plan as JSON. Each time is given in seconds after the beginning of the plan."""

    def at(instant: datetime | None) -> float | None:
        return None if instant is None else (instant - timeline.begins).total_seconds()

    return {
        "visits": [
            [
                visit.node,
                [[span.step.value, at(span.start), at(span.end)] for span in visit.spans],
                visit.moves,
                visit.undone,
            ]
            for visit in timeline.visits
        ],
        "moves": [
            [move.pod, move.source, move.target, at(move.at), move.choices, move.is_preempted]
            for move in timeline.moves
        ],
        "waits": [
            [wait.pod, wait.node, at(wait.since), at(wait.until), wait.returns, wait.why] for wait in timeline.waits
        ],
        "lost": list(timeline.lost),
        "unknown": list(timeline.unknown),
        "ends": at(timeline.ends),
        "hindrances": [[each.rule, each.subject, each.seconds, list(each.nodes)] for each in timeline.hindrances],
        "closings": [[at(each.at), each.left] for each in timeline.closings],
        "left": [
            [each.node, each.obstacle.rule, each.obstacle.subject, each.obstacle.sentence] for each in timeline.left
        ],
    }


def _node(d: random.Random, number: int) -> Json:
    name = f"n{number:02}"
    labels = {HOSTNAME: name, keys.ZONE: f"z{number % 3}"}
    if number < d.choice((0, 0, 1, 3)):
        labels[keys.CONTROL_PLANE] = ""
    spec: Json = {"unschedulable": d.random() < 0.06, "taints": []}
    if d.random() < 0.1:
        spec["taints"].append(
            {"key": "dedicated", "value": "batch", "effect": d.choice(("NoSchedule", "PreferNoSchedule"))}
        )
    room = {"cpu": str(d.choice((4, 6, 8))), "memory": f"{d.choice((8, 16))}Gi", "pods": str(d.choice((9, 110)))}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": spec,
        "status": {"allocatable": room},
    }


def _workloads(d: random.Random, nodes: list[str]) -> list[Json]:
    objects: list[Json] = []
    for number in range(d.randint(5, 12)):
        app, kind = f"app{number}", d.choice(("ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet", "DaemonSet", ""))
        spec = _spec(d, app)
        replicas = nodes if kind == "DaemonSet" else d.choices(nodes, k=d.randint(1, len(nodes)))
        objects += [
            _pod(app, kind, place, spec, node, is_ready=d.random() < 0.95) for place, node in enumerate(replicas)
        ]
        if d.random() < 0.5:
            objects.append(
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": app, "namespace": "default"},
                    "spec": {"selector": {"app": app}},
                }
            )
        if d.random() < 0.5:
            objects.append(_budget(d, app, len(replicas)))
    return objects


def _spec(d: random.Random, app: str) -> Json:
    own = {"matchLabels": {"app": app}}
    spec: Json = {
        "priority": d.choice((0, 0, 0, 100)),
        "containers": [
            {
                "name": "c",
                "image": app,
                "resources": {
                    "requests": {"cpu": f"{d.choice((100, 300, 700, 1500))}m", "memory": f"{d.choice((64, 512))}Mi"}
                },
            }
        ],
    }
    wish = d.randrange(6)
    if wish == 0:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": d.choice((1, 3)),
                "topologyKey": d.choice((keys.ZONE, HOSTNAME)),
                "whenUnsatisfiable": d.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": own,
            }
        ]
    elif wish == 1:
        spec["affinity"] = {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOSTNAME, "labelSelector": own}]
            }
        }
    elif wish == 2:
        spec["affinity"] = {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 50, "podAffinityTerm": {"topologyKey": keys.ZONE, "labelSelector": own}}
                ]
            }
        }
    elif wish == 3:
        spec["nodeSelector"] = {keys.ZONE: "z1"}
    return spec


def _pod(app: str, kind: str, place: int, spec: Json, node: str, *, is_ready: bool) -> Json:
    meta: Json = {"name": f"{app}-{place}", "namespace": "default", "uid": f"uid-{app}-{place}", "labels": {"app": app}}
    if kind:
        meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": app, "uid": f"uid-{app}", "controller": True}
        ]
    status = {"phase": "Running", "conditions": _READY if is_ready else []}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**spec, "nodeName": node}, "status": status}


def _budget(d: random.Random, app: str, pods: int) -> Json:
    allowed = d.choice((0, 1, 1, 2, pods))
    healthy = d.choice((pods, pods, pods - 1))
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": max(0, healthy - allowed),
            "expectedPods": pods,
        },
    }


def _view(d: random.Random, node: Json) -> NodeView:
    annotations: dict[str, str] = {}
    if d.random() < 0.7:
        annotations[keys.PROGRESS] = json.dumps(
            {"version": 1, "phase": "Waiting", "need_since": f"2026-03-0{d.randint(1, 4)}T00:00:00Z"}
        )
    if d.random() < 0.08:
        annotations[keys.HOLD] = d.choice(("by hand", "until=2026-03-05T03:00:00Z"))
    if d.random() < 0.08:
        annotations[keys.REBOOT_NOW] = "until=2026-03-06T00:00:00Z"
    if d.random() < 0.2:
        annotations[keys.LAST_REBOOT] = json.dumps({"at": "2026-03-04T21:30:00Z"})
    meta = node["metadata"]
    return NodeView(
        name=meta["name"],
        uid=meta["uid"],
        resource_version="",
        labels=meta["labels"],
        annotations=annotations,
        unschedulable=node["spec"]["unschedulable"],
        ready=d.random() < 0.95,
    )


def _policy(d: random.Random) -> Policy:
    policy = Policy(node_name="-", concurrency=d.choice((1, 2, 3, 5)), forecast_pending_allowed=d.choice((0, 0, 1, 9)))
    if d.random() < 0.4:
        policy = replace(policy, budgets=(Budget(kind=BudgetKind.ZONE, limit=1),))
    if d.random() < 0.4:
        policy = replace(
            policy, window=Window(start=time(22, 0), end=d.choice((time(22, 20), time(23, 30), time(4, 0))))
        )
    if d.random() < 0.3:
        policy = replace(policy, minimum_interval_seconds=timedelta(hours=2).total_seconds())
    return policy


def _durations(d: random.Random) -> Durations:
    return Durations(
        held_back=d.choice((0.0, 0.0, 90.0)),
        drain=d.choice((30.0, 60.0)),
        boot=d.choice((100.0, 180.0)),
        settle=d.choice((0.0, 30.0)),
        handover=d.choice((0.0, 5.0)),
    )

"""Puts a question to the library: kube-scheduler's answer, and ours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scheduler_core.framework.cycle_state import CycleError, CycleState
from scheduler_core.framework.verdict import Verdict, VerdictCode
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.object_reader import ObjectReader
from scheduler_core.model.pod import Pod
from scheduler_core.preemption.choice import choose_node
from scheduler_core.preemption.victims import VictimRules, Victims, select_victims
from scheduler_core.queue.events import Action, Resource
from scheduler_core.queue.hints import default_hints
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from tests.scheduler_core.peer_tables.calls import Call, Question
from tests.scheduler_core.peer_tables.objects import (
    CalledCluster,
    ImpossibleError,
    as_pod,
    named,
    node_name,
)
from tests.scheduler_core.peer_tables.profiles import with_args, with_plugin, with_profile

_READER = ObjectReader()


class Answers(NamedTuple):
    real: Any
    ours: Any


def ask(question: Question, version: str) -> Answers:
    """Raises ImpossibleError."""
    return _JUDGES[question.kind](question.calls, version)


# ---- statuses ----


def _status(status: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": status["code"], "reasons": list(status.get("reasons") or [])}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    if verdict.code is VerdictCode.UNKNOWN:
        raise ImpossibleError(f"the library answers unknown: {verdict.message}")
    return {"code": verdict.code.value, "reasons": [_bare(reason) for reason in verdict.reasons]}


def _bare(reason: str) -> str:
    return re.sub(r'^running "\w+" filter plugin: ', "", reason)


def _error(message: str) -> dict[str, Any]:
    return {"code": "Error", "reasons": [_bare(message)]}


# ---- filters ----


def _filter_points(plugin: str) -> tuple[str, ...]:
    return ("filter",) if plugin in ("TaintToleration", "NodeName", "NodeUnschedulable") else ("preFilter", "filter")


def _filter(calls: tuple[Call, ...], version: str) -> Answers:
    (call,) = calls
    cluster = CalledCluster(call)
    scheduler = with_plugin(call, _filter_points(call["pluginName"]), version)
    result = scheduler.schedule(cluster.snapshot(), cluster.incoming(), honors_nomination=False)
    if result.error:
        return Answers(_status(call["status"]), _error(result.error))
    verdict = result.prefilter if result.prefilter is not None else result.statuses[node_name(call["node"])]
    return Answers(_status(call["status"]), _verdict(verdict))


def _pre_filter(calls: tuple[Call, ...], version: str) -> Answers:
    """Success and Skip are equal: whether Filter is skipped is no decision."""
    (call,) = calls
    cluster = CalledCluster(call)
    if not cluster.nodes:
        cluster.nodes["unnamed-node"] = named({}, "Node", "unnamed-node")
    points = ("preFilter", "filter") if call["pluginName"] == "NodeName" else _filter_points(call["pluginName"])
    scheduler = with_plugin(call, points, version)
    pod, real = cluster.incoming(), _status(call["status"])
    real["code"] = "Success" if real["code"] == "Skip" else real["code"]
    try:
        nodes = NodeList(cluster.snapshot(), None, scheduler.rules)
        found = scheduler.runner(pod).pre_filter(CycleState(), pod, nodes)
    except CycleError as trouble:
        return Answers(real, {"code": "Error", "reasons": [str(trouble)]})
    if found.refusal is not None:
        return Answers(real, _verdict(found.refusal))
    names = (call.get("result") or {}).get("NodeNames")
    real["nodes"] = None if names is None else sorted(names)
    ours = None if found.node_names is None else sorted(found.node_names)
    return Answers(real, {"code": "Success", "reasons": [], "nodes": ours})


# ---- scores ----

_SCORE_POINTS = {
    "ImageLocality": ("score",),
    "DynamicResources": ("score",),
    "VolumeBinding": ("preFilter", "preScore", "score"),
}


def _score(calls: tuple[Call, ...], version: str) -> Answers:
    real: dict[str, Any] = {}
    cluster = CalledCluster(calls[0])
    for call in calls:
        if call["kind"] == "NormalizeScore":
            real.update((each["Name"], each["Score"]) for each in call["scores"] or [])
            continue
        status = call["status"]["code"]
        real[node_name(call["node"])] = call["score"] if status == "Success" else status
        other = CalledCluster(call)  # may have a node that is not in the test's snapshot
        cluster.nodes = {**other.nodes, **cluster.nodes}
        cluster.pods = {**other.pods, **cluster.pods}
    plugin = calls[0]["pluginName"]
    points = _SCORE_POINTS.get(plugin, ("preScore", "score"))
    scheduler = with_plugin(calls[0], points, version, only=frozenset(real))
    pod, snapshot, state = cluster.incoming(), cluster.snapshot(), CycleState()
    runner = scheduler.runner(pod)
    try:
        diagnosis = runner.search(state, pod, NodeList(snapshot, None, scheduler.rules))
        if diagnosis.prefilter is not None:
            raise ImpossibleError("refused by PreFilter")
        table = runner.score(state, pod, NodeList(snapshot, diagnosis.passed, scheduler.rules))
    except CycleError as trouble:
        return Answers(real, {"error": str(trouble)})
    scores = table.by_plugin.get(plugin)
    names = table.nodes.names
    return Answers(real, {name: 0 if scores is None else int(scores[place]) for place, name in enumerate(names)})


# ---- queueing hints ----


def _hint(calls: tuple[Call, ...], version: str) -> Answers:
    (call,) = calls
    kinds = [call[side].rpartition(".")[2] for side in ("oldType", "newType")]
    kind = next((each for each in kinds if each in _READER.kinds), None)
    if kind is None:
        raise ImpossibleError(f"an event of {call['oldType']} {call['newType']}")
    old, new = (_side(call, side, kind) for side in ("old", "new"))
    scheduler = with_args(call, version)
    hints = default_hints(scheduler.configuration.profiles[0], scheduler.kube_version, scheduler.rules)
    flag = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    about = [hint for hint in hints.get(call["pluginName"], ()) if _is_about(hint.event.resource, kind)]
    fitting = [hint for hint in about if hint.event.action & flag]
    if not fitting:
        raise ImpossibleError(f"no hint of {call['pluginName']} for {kind} {flag.name}")
    if call["error"] != "<nil>":
        raise ImpossibleError(f"the hint fails: {call['error']}")
    pod = CalledCluster(call).incoming()
    ours = any(hint.helps(pod, old, new) for hint in fitting)
    return Answers("Queue" if call["hint"] == 1 else "QueueSkip", "Queue" if ours else "QueueSkip")


def _is_about(resource: Resource, kind: str) -> bool:
    if kind == "Pod":
        return resource in (Resource.POD, Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD)
    return resource.value.rpartition("/")[2] == kind


def _side(call: Call, side: str, kind: str) -> Any:
    value = call[side]
    if value is None:
        return None
    if not call[f"{side}Type"].endswith(f".{kind}"):
        raise ImpossibleError("objects of two kinds")
    manifest = as_pod(value, "other") if kind == "Pod" else named(value, kind, "other")
    read = _READER.read(kind, json.loads(json.dumps(manifest)))
    if isinstance(read, ManifestError):
        raise ImpossibleError(f"unreadable: {read}")
    return read


# ---- whole cycles ----


def _cycle(calls: tuple[Call, ...], version: str) -> Answers:
    """Of a pod that fits: whether kube-scheduler's node is one of the best, and the number of nodes that fit."""
    (call,) = calls
    if call.get("extenders"):
        raise ImpossibleError("extenders of the test")
    cluster = CalledCluster(call)
    scheduler = with_profile(call, version)
    result = scheduler.schedule(cluster.snapshot(), cluster.incoming(), preempts=False)
    if result.unknown:
        raise ImpossibleError(f"the library answers unknown: {result.unknown}")
    if call["error"] == "<nil>":
        fitting = sum(verdict.is_success for verdict in result.statuses.values())
        is_best = call["host"] in (*result.best, result.node)
        return Answers({"best": True, "fitting": call["feasible"]}, {"best": is_best, "fitting": fitting})
    if result.error or "statuses" not in call:
        return Answers(call["error"], result.error or result.sentence)
    refused = result.prefilter
    found = dict.fromkeys(cluster.nodes, refused) if refused is not None else result.statuses
    real = {name: _status(status) for name, status in call["statuses"].items()}
    ours = {name: _verdict(verdict) for name, verdict in found.items() if verdict is not None}
    return Answers({"sentence": call["error"], **real}, {"sentence": result.sentence, **ours})


# ---- preemption ----


def _post_filter(calls: tuple[Call, ...], version: str) -> Answers:
    (call,) = calls
    cluster = CalledCluster(call)
    scheduler = with_profile(call, version, "DefaultPreemption")
    result = scheduler.schedule(cluster.snapshot(), cluster.incoming(), honors_nomination=False)
    if result.node:
        raise ImpossibleError("the pod fits: the statuses of the test are made up")
    refused = result.prefilter
    own = {
        name: (refused if refused is not None else result.statuses[name]).code.value
        for name in (cluster.nodes if refused is not None else result.statuses)
    }
    if any(status["code"] != own.get(name) for name, status in (call.get("statuses") or {}).items()):
        raise ImpossibleError("the statuses of the test are made up")
    real = {"node": (call.get("result") or {}).get("NominatedNodeName") or None}
    ours = {"node": result.preemption.node if result.preemption else None}
    if call["status"]["code"] != "Success":
        real["message"] = (call["status"].get("reasons") or [""])[0]
        ours["message"] = "preemption:" + result.sentence.partition(" preemption:")[2]
    return Answers(real, ours)


def _victims(calls: tuple[Call, ...], version: str) -> Answers:
    call = {**calls[0], "objects": {**(calls[0].get("objects") or {}), "PodDisruptionBudget": calls[0].get("pdbs")}}
    cluster = CalledCluster(call)
    scheduler = with_profile(call, version)
    snapshot, pod, state = cluster.snapshot(), cluster.incoming(), CycleState()
    runner = scheduler.runner(pod)
    runner.search(state, pod, NodeList(snapshot, None, scheduler.rules))

    class Trial:
        def filter_node(self, state: CycleState, pod: Pod, node_info: NodeInfo, *, has_passed: bool = False) -> Verdict:
            return runner.filter_node(state, pod, node_info, has_passed=has_passed)

        def counts_pods(self, state: CycleState) -> bool:
            return runner.counts_pods(state)

        def pod_added(self, state: CycleState, pod: Pod, other: Pod, node_info: NodeInfo) -> Verdict:
            return runner.add_pod(state, pod, other, node_info)

        def pod_removed(self, state: CycleState, pod: Pod, other: Pod, node_info: NodeInfo) -> Verdict:
            return runner.remove_pod(state, pod, other, node_info)

    row = snapshot.columns.row_of[node_name(call["node"])]
    of_release = scheduler.kube_version
    rules = VictimRules(
        unstarted_age_in_order=of_release.unstarted_victims_age_in_order,
        stops_at_overdrawn=of_release.first_overdrawn_budget_ends_the_count,
    )
    info = snapshot.node_info(row, scheduler.rules)
    found = select_victims(Trial(), state.copy(), pod, info, snapshot.objects.budgets, rules=rules)
    real: Any = _status(call["status"])
    if call["status"]["code"] == "Success":
        real = {"victims": [v["metadata"]["name"] for v in call["victims"] or []], "violating": call["violating"]}
    if isinstance(found, Verdict):
        return Answers(real, _verdict(found))
    return Answers(real, {"victims": [v.name for v in found.pods], "violating": found.budget_violations})


def _choice(calls: tuple[Call, ...], _version: str) -> Answers:
    """Whether kube-scheduler's node is one of the equally good ones."""
    (call,) = calls
    candidates: dict[str, Victims] = {}
    for one in call["candidates"]:
        victims = one["victims"]["Pods"] or []
        pods = tuple(
            CalledCluster({"pod": as_pod(pod, f"victim-{index}", one["node"])}).incoming()
            for index, pod in enumerate(victims)
        )
        if not pods:
            raise ImpossibleError("a candidate without victims")
        candidates[one["node"]] = Victims(pods=pods, budget_violations=one["victims"]["NumPDBViolations"])
    if not candidates or call["chosen"] is None:
        raise ImpossibleError("no candidate")
    best = candidates[choose_node(candidates)].cost
    chosen = call["chosen"]["node"]
    equal = sorted(name for name, victims in candidates.items() if victims.cost == best)
    return Answers(chosen, chosen if chosen in equal else equal)


_JUDGES: Mapping[str, Callable[[tuple[Call, ...], str], Answers]] = {
    "Filter": _filter,
    "PreFilter": _pre_filter,
    "Score": _score,
    "Hint": _hint,
    "PostFilter": _post_filter,
    "SelectVictimsOnNode": _victims,
    "SelectCandidate": _choice,
    "schedulePod": _cycle,
}

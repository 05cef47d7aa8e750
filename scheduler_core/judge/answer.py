"""The decision about each pod of a case."""

from __future__ import annotations

from typing import Any

from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.verdict import Verdict
from scheduler_core.judge.cases import Case
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot, UnknownPodError


def judge(case: Case) -> dict[str, dict[str, Any]]:
    """Each pod is judged alone, in a cluster without the other pods of the case. Its own nominated node is tried like
    any other.

    A pod that cannot be judged gets `{"error": …}`; the others are still judged.
    """
    everything = load_objects(case.objects)
    asked = {key: _find(everything, key) for key in case.pods}
    snapshot = _without(everything, [pod for pod in asked.values() if isinstance(pod, Pod)])
    scheduler = Scheduler(case.configuration, case.kube_version)
    promised = _nominations(snapshot)
    return {
        key: _judge_pod(scheduler, snapshot, pod, promised) if isinstance(pod, Pod) else {"error": pod}
        for key, pod in asked.items()
    }


def _find(snapshot: Snapshot, key: str) -> Pod | str:
    """The pod "namespace/name", or an error message."""
    try:
        return snapshot.pod(key)
    except UnknownPodError as trouble:
        problem = next((p for p in snapshot.problems if p.kind == "Pod" and p.key == key), None)
        return str(problem or trouble)


def _without(snapshot: Snapshot, pods: list[Pod]) -> Snapshot:
    """The cluster without these pods, on a node or not."""
    for pod in pods:
        snapshot = snapshot.without(pod.key)
    return snapshot


def _nominations(snapshot: Snapshot) -> dict[str, tuple[Pod, ...]]:
    """Pending pods by the node to which they are nominated. The snapshot no longer contains the judged pods."""
    promised: dict[str, tuple[Pod, ...]] = {}
    for pod in snapshot.pending:
        if pod.nominated_node_name:
            promised[pod.nominated_node_name] = (*promised.get(pod.nominated_node_name, ()), pod)
    return promised


def _judge_pod(
    scheduler: Scheduler, snapshot: Snapshot, pod: Pod, promised: dict[str, tuple[Pod, ...]]
) -> dict[str, Any]:
    try:
        gate = scheduler.runner(pod).pre_enqueue(pod)
        # Other plugins gate pods until a controller has done its part; in a frozen cluster their filters say why.
        if gate.plugin == "SchedulingGates":
            return {"preenqueue": _as_json(gate)}
        return as_answer(scheduler.schedule(snapshot, pod, nominated=promised, honors_nomination=False))
    except NoProfileError as trouble:
        return {"error": str(trouble)}


def as_answer(result: CycleResult) -> dict[str, Any]:
    """For JSON. The possible keys are error, prefilter, nodes, scores, best, fit_error, preemption and unknown."""
    if result.error:
        return {"error": result.error}
    answer: dict[str, Any] = {}
    if result.prefilter is not None:
        answer["prefilter"] = _as_json(result.prefilter)
    else:
        answer["nodes"] = {name: _as_json(verdict) for name, verdict in result.statuses.items()}
    if result.scores:
        answer["scores"] = {
            name: {"total": score.total, "plugins": dict(score.by_plugin)} for name, score in result.scores.items()
        }
    if result.best:
        answer["best"] = list(result.best)
    if result.sentence:
        answer["fit_error"] = result.sentence
    if result.preemption is not None:
        answer["preemption"] = {"node": result.preemption.node, "victims": list(result.preemption.victims)}
    if result.unknown:
        answer["unknown"] = result.unknown
    return answer


def _as_json(verdict: Verdict) -> dict[str, Any]:
    if verdict.is_success:
        return {"code": verdict.code.value}
    written: dict[str, Any] = {"code": verdict.code.value}
    if verdict.plugin:
        written["plugin"] = verdict.plugin
    written["reasons"] = list(verdict.reasons)
    return written

"""Each pod of a case alone: every node's verdict, the scores, the best, the refusal sentence, preemption."""

from __future__ import annotations

from typing import Any

from scheduler_core.cycle import CycleResult, NoProfileError, Scheduler
from scheduler_core.framework.verdict import Verdict
from scheduler_core.judge.cases import Case
from scheduler_core.snapshot.snapshot import Snapshot, UnknownPodError


def judge(case: Case) -> dict[str, dict[str, Any]]:
    """Pod → answer. The pods see the same cluster and not one another; a nominated node gets no special treatment.

    A pod that cannot be judged gets `{"error": …}`, and the others are judged all the same.
    """
    snapshot = Snapshot.from_objects(case.objects)
    scheduler = Scheduler(case.configuration, case.kube_version)
    return {key: _judge_pod(scheduler, snapshot, key) for key in case.pods}


def _judge_pod(scheduler: Scheduler, snapshot: Snapshot, key: str) -> dict[str, Any]:
    problem = next((p for p in snapshot.problems if p.kind == "Pod" and p.key == key), None)
    if problem is not None:
        return {"error": str(problem)}
    try:
        return _as_answer(scheduler.schedule(snapshot, snapshot.pod(key), honors_nomination=False))
    except (UnknownPodError, NoProfileError) as trouble:
        return {"error": str(trouble)}


def _as_answer(result: CycleResult) -> dict[str, Any]:
    if result.error:
        return {"error": result.error}
    answer: dict[str, Any] = {}
    if result.prefilter is not None:
        answer["prefilter"] = _as_json(result.prefilter)
    else:
        answer["nodes"] = {name: _as_json(verdict) for name, verdict in result.statuses.items()}
    if result.scores:
        answer["scores"] = {name: {"total": score.total, "plugins": dict(score.by_plugin)} for name, score in result.scores.items()}
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

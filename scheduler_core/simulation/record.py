"""Every plugin's verdict on one pod and each node, for people who ask why a node was or was not chosen."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.verdict import Verdict
from scheduler_core.model.pod import Pod
from scheduler_core.model.requests import incoming_requests
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value


class NodeRecord(Value, kw_only=True):
    """The filter plugins' verdicts on one node, including those after the first refusal (`refusal`).

    `total` and `scores` (weighted, by plugin) exist only if the node and at least one other passed the filters.
    """

    node: str
    refusal: Verdict | None
    verdicts: Mapping[str, Verdict]
    total: int | None
    scores: Mapping[str, int]


class Record(Value, kw_only=True):
    """One cycle for one pod: its result, and a record for each node, the preferred ones first."""

    pod: Pod
    result: CycleResult
    nodes: tuple[NodeRecord, ...]
    cpu_millis: int
    memory_bytes: int


def explain(scheduler: Scheduler, snapshot: Snapshot, pod: Pod) -> Record:
    """Schedules the pod as if it entered the queue now. If it is on a node, it is first removed from the snapshot.

    Raises NoProfileError if the pod belongs to another scheduler.
    """
    world = snapshot.without_pod(pod.key) if pod.node_name else snapshot
    incoming = pod.on_node("")
    result = scheduler.schedule(world, incoming)
    requests = incoming_requests(pod.spec, scheduler.rules)
    rows = sorted(
        _rows(scheduler, world, incoming, result),
        key=lambda row: (row.refusal is not None, -(row.total or 0), row.node),
    )
    return Record(pod=pod, result=result, nodes=tuple(rows), cpu_millis=requests.cpu, memory_bytes=requests.memory)


def _rows(scheduler: Scheduler, world: Snapshot, pod: Pod, result: CycleResult) -> list[NodeRecord]:
    runner, nodes, state = scheduler.runner(pod), NodeList(world, None, scheduler.rules), CycleState()
    prepared = runner.pre_filter(state, pod, nodes)
    scores, statuses = result.scores, result.statuses
    rows = []
    for info in nodes:
        verdict = statuses[info.name]
        scored = scores.get(info.name)
        rows.append(
            NodeRecord(
                node=info.name,
                refusal=None if verdict.is_success else verdict,
                verdicts={} if prepared.refusal else runner.every_verdict(state, pod, info),
                total=scored.total if scored else None,
                scores=scored.by_plugin if scored else {},
            )
        )
    return rows

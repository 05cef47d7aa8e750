"""Why a pod has no node, what would give it one, and when it is tried next. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from careen.scheduler import OUR_NAME
from scheduler_core import broken_plugins
from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.runner import Nominated
from scheduler_core.model.pod import Pod
from scheduler_core.queue.assembly import queue_for
from scheduler_core.queue.events import Action, ClusterEvent
from scheduler_core.queue.scheduling_queue import Room, SchedulingQueue
from scheduler_core.queue.waiting import UNSCHEDULABLE_PATIENCE_SECONDS
from scheduler_core.running.machine import Machine
from scheduler_core.running.refusing import why_left_pending
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value
from scheduler_core.what_if.smallest_change import HelpfulChange, NewNodes, new_nodes_that_help, smallest_changes

_SHOWN_NODES: Final = 3


class RefusalGroup(Value, kw_only=True, rename="camel"):
    """The nodes that one plugin refuses for one reason. `nodes`: the first few."""

    plugin: str
    reason: str
    count: int
    nodes: tuple[str, ...]


class NextTry(Value, kw_only=True, rename="camel"):
    """`queue`: where the pod is, in words; empty without a running scheduler. `seconds`: until it is tried at the
    latest; None if unknown. `events`: what makes it be tried earlier. `attempts`: how often it was tried."""

    queue: str = ""
    seconds: float | None = None
    events: tuple[str, ...] = ()
    attempts: int | None = None


class WhyPending(Value, kw_only=True, rename="camel"):
    """`node`: where the pod is, or is on its way to. `fits_on`: the node that it would get now; `sentence` is then the
    error of its last attempt. `evicts`: the pods that preemption would evict on the node `preempts_on`. `doubt`: about
    the preemption. `is_untried`: its status does not say that a scheduler refused it."""

    pod: str
    scheduler: str
    node: str = ""
    fits_on: str = ""
    sentence: str = ""
    groups: tuple[RefusalGroup, ...] = ()
    changes: tuple[HelpfulChange, ...] = ()
    new_nodes: NewNodes | None = None
    preempts_on: str = ""
    evicts: tuple[str, ...] = ()
    doubt: str = ""
    is_untried: bool = False
    next_try: NextTry = NextTry()


def why_pending(
    scheduler: Scheduler, snapshot: Snapshot, pod: Pod, *, nominated: Nominated | None = None, next_try: NextTry | None
) -> WhyPending:
    """By a cycle on this snapshot. Without `next_try` of a running scheduler, by the plugins that refuse the pod in it.
    Raises NoProfileError if the scheduler has no profile for the pod."""
    name = pod.spec.scheduler_name
    if pod.node_name:
        return WhyPending(pod=pod.key, scheduler=name, node=pod.node_name)
    if pod.terminating:
        return WhyPending(pod=pod.key, scheduler=name, sentence="it is being deleted; no scheduler gives it a node")
    gates = pod.spec.scheduling_gates
    is_of_careen = next_try is not None or name == OUR_NAME  # kube-scheduler may place what careen leaves pending
    left = why_left_pending(pod) if is_of_careen else ""
    said = f"its scheduling gates {', '.join(gates)} are not removed" if gates else left
    if said:
        return WhyPending(pod=pod.key, scheduler=name, sentence=said, next_try=next_try or NextTry())
    try:
        return _by_cycle(scheduler, snapshot, pod, nominated=nominated or {}, next_try=next_try)
    except NoProfileError:
        raise
    except Exception as bug:  # of a plugin
        plugin, problem = broken_plugins.failure(scheduler.runner(pod), bug)
        if not plugin:
            raise
        return WhyPending(pod=pod.key, scheduler=name, sentence=problem, next_try=next_try or NextTry())


def _by_cycle(
    scheduler: Scheduler, snapshot: Snapshot, pod: Pod, *, nominated: Nominated, next_try: NextTry | None
) -> WhyPending:
    name = pod.spec.scheduler_name
    is_untried = next_try is None and pod.refusal is None
    result = scheduler.schedule(snapshot, pod, nominated=nominated)
    if result.node is not None and not result.unknown:
        # Reserve, Permit, PreBind, Bind and the API server may refuse what a cycle allows.
        error = pod.refusal.message if pod.refusal is not None and pod.refusal.reason == "SchedulerError" else ""
        return WhyPending(
            pod=pod.key,
            scheduler=name,
            fits_on=result.node,
            sentence=error,
            is_untried=is_untried,
            next_try=next_try or NextTry(),
        )
    preemption = result.preemption
    changes, new_nodes = _what_helps(scheduler, snapshot, pod, nominated)
    return WhyPending(
        pod=pod.key,
        scheduler=name,
        sentence=result.unknown or result.sentence or result.error,
        groups=_groups(result),
        changes=changes,
        new_nodes=new_nodes,
        preempts_on=preemption.node if preemption else "",
        evicts=preemption.victims if preemption else (),
        doubt=preemption.doubt if preemption else "",
        is_untried=is_untried,
        next_try=next_try or _by_refusals(scheduler, pod, result),
    )


def _what_helps(
    scheduler: Scheduler, snapshot: Snapshot, pod: Pod, nominated: Nominated
) -> tuple[tuple[HelpfulChange, ...], NewNodes | None]:
    """Nothing, if a plugin raises that the pod's own cycle did not reach: the refusals stay true."""
    try:
        changes = smallest_changes(scheduler, snapshot, pod, nominated=nominated)
        return changes, new_nodes_that_help(scheduler, snapshot, pod)
    except Exception as bug:
        if not broken_plugins.failure(scheduler.runner(pod), bug)[0]:
            raise
        return (), None


def of_machine(machine: Machine, key: str, now: float) -> WhyPending | None:
    """Of a running scheduler. None if its cache has no such pod, or the pod belongs to another scheduler."""
    parts = machine.parts
    pod: Pod | None = parts.cache.find("Pod", key)
    if pod is None or not parts.is_ours(pod):
        return None
    on_its_way = parts.bindings.get(pod.uid)
    if on_its_way is not None and not pod.node_name:
        said = NextTry(queue=on_its_way.step.value)
        return WhyPending(pod=key, scheduler=pod.spec.scheduler_name, node=on_its_way.node, next_try=said)
    return why_pending(
        parts.scheduler,
        parts.cache.snapshot(),
        pod,
        nominated=parts.queue.nominations.by_node,
        next_try=_in_queue(parts.queue, pod, now),
    )


def _groups(result: CycleResult) -> tuple[RefusalGroup, ...]:
    """The largest first."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for name, verdict in result.statuses.items():
        if not verdict.is_success:
            nodes.setdefault((verdict.plugin, verdict.message), []).append(name)
    ordered = sorted(nodes.items(), key=lambda group: (-len(group[1]), group[0]))
    return tuple(
        RefusalGroup(plugin=plugin, reason=reason, count=len(names), nodes=tuple(names[:_SHOWN_NODES]))
        for (plugin, reason), names in ordered
    )


# ---- when it is tried next ----


def _in_queue(queue: SchedulingQueue, pod: Pod, now: float) -> NextTry:
    found = queue.find(pod.key)
    if found is None:
        return NextTry(queue="being tried at this moment" if pod.uid in queue.in_flight else "")
    room, queued = found
    if room is Room.ACTIVE:
        return NextTry(queue="next in the queue", seconds=0.0, attempts=queued.attempts)
    if room is Room.BACKOFF:
        end = now if queued.backoff_until is None else queued.backoff_until
        return NextTry(queue="in back-off", seconds=max(0.0, end - now), attempts=queued.attempts)
    hints = queue.profile(pod.spec.scheduler_name).hints
    plugins = [queued.gating_plugin] if queued.is_gated else queued.rejectors
    events = event_words(event for plugin in sorted(plugins) for event in hints.events_of(plugin))
    if queued.is_gated:
        why = f"kept out by {queued.gating_plugin}" + (f": {queued.gating_reason}" if queued.gating_reason else "")
        return NextTry(queue=why, events=events, attempts=queued.attempts)
    left = max(0.0, queued.timestamp + UNSCHEDULABLE_PATIENCE_SECONDS - now)
    return NextTry(queue="waiting for an event", seconds=left, events=events, attempts=queued.attempts)


def _by_refusals(scheduler: Scheduler, pod: Pod, result: CycleResult) -> NextTry:
    hints = queue_for(scheduler).profile(pod.spec.scheduler_name).hints
    plugins = result.diagnosis.refusing_plugins() | result.diagnosis.pending_plugins()
    return NextTry(events=event_words(event for plugin in sorted(plugins) for event in hints.events_of(plugin)))


def event_words(events: Iterable[ClusterEvent]) -> tuple[str, ...]:
    """A line for each kind of object, such as `Node: added, allocatable changed`."""
    actions: dict[str, Action] = {}
    for event in events:
        if not event.is_wildcard:
            kind = event.resource.value.rpartition("/")[2]
            actions[kind] = actions.get(kind, Action(0)) | event.action
    return tuple(f"{kind}: {', '.join(_words(action))}" for kind, action in sorted(actions.items()))


def _words(action: Action) -> list[str]:
    is_update = action & Action.UPDATE == Action.UPDATE
    said = [words for each, words in _ACTIONS.items() if each in action and not (is_update and each in Action.UPDATE)]
    return [*said, *(["changed"] if is_update else [])]


_ACTIONS: Final[Mapping[Action, str]] = {
    Action.ADD: "added",
    Action.DELETE: "deleted",
    Action.UPDATE_NODE_ALLOCATABLE: "allocatable changed",
    Action.UPDATE_NODE_LABEL: "labels changed",
    Action.UPDATE_NODE_TAINT: "taints changed",
    Action.UPDATE_NODE_CONDITION: "conditions changed",
    Action.UPDATE_NODE_ANNOTATION: "annotations changed",
    Action.UPDATE_NODE_DECLARED_FEATURE: "declared features changed",
    Action.UPDATE_POD_LABEL: "labels changed",
    Action.UPDATE_POD_SCALE_DOWN: "requests lowered",
    Action.UPDATE_POD_TOLERATION: "tolerations changed",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "scheduling gates removed",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "resource claim made",
}

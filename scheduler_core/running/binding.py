"""A pod's way to its node: Reserve and Permit at once, then PreBind, Bind and PostBind, which wait for answers.

Source: bindingCycle and handleBindingCycleError in pkg/scheduler/schedule_one.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any, Final

from scheduler_core import broken_plugins
from scheduler_core.cycle_result import CycleResult
from scheduler_core.extenders.asked_ahead import Unanswered
from scheduler_core.framework.binding import BindingCycle, blamed
from scheduler_core.framework.verdict import Verdict, VerdictCode, error
from scheduler_core.model.pod import Pod
from scheduler_core.plugin_contract import check_verdict
from scheduler_core.plugins.default_binder import DefaultBinder
from scheduler_core.plugins.volume_binding import VolumeBinding
from scheduler_core.queue.events import ASSIGNED_POD_DELETED
from scheduler_core.queue.failed_cycle import handle_failed_attempt
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.running import volumes
from scheduler_core.running.commands import (
    AskExtender,
    Bind,
    Count,
    LookAtPod,
    Note,
    PatchVolume,
    PostPodEvent,
    WriteStatus,
)
from scheduler_core.running.failures import Reaction, WriteOutcome
from scheduler_core.running.parts import BindingStep, Parts, PodOnItsWay
from scheduler_core.running.refusing import nominate, one_node_refused, refuse
from scheduler_core.running.waiting.permits import LONGEST_SECONDS
from scheduler_core.snapshot.snapshot import UnknownPodError

LOOK_SECONDS: Final = 10.0
"""Until then the watch may show what became of a binding without an answer."""
UNSEEN_SECONDS: Final = 30.0
"""A successful binding that no watch shows for so long is doubted."""
BUSY_SECONDS: Final = 30.0
"""So long a pod keeps its room while the API server is too busy for its binding."""


def start(parts: Parts, queued: QueuedPod, result: CycleResult, now: float) -> None:
    """The cycle found a node."""
    pod, node, state = queued.pod, result.node, result.state
    assert node is not None
    assert state is not None
    parts.cache.assume(pod.key, node, uid=pod.uid)
    parts.queue.nominations.remove(pod)
    parts.writes.withdraw(pod.uid, WriteStatus)
    binding = PodOnItsWay(
        queued=queued,
        pod=pod,
        node=node,
        state=state,
        step=BindingStep.PERMIT,
        since=now,
        evaluated=len(result.diagnosis.searched) if result.evaluated is None else result.evaluated,
        feasible=len(result.diagnosis.passed),
    )
    parts.bindings[pod.uid] = binding
    try:
        progress = _cycle(parts, pod).reserve(state, pod, node)
    except Exception as bug:  # of a plugin: it must not stop the scheduling of other pods
        fail(parts, binding, _blamed_for(parts, pod, bug), now, in_cycle=True)
        return
    if progress.waits or progress.verdict.is_success:
        volumes.reserve(parts, binding)
    if progress.waits:
        runner = parts.scheduler.runner(pod)
        for name in progress.waiting_for:
            patience = getattr(runner.plugins.plugins[name], "permit_seconds", LONGEST_SECONDS)
            binding.permits[name] = now + min(patience, LONGEST_SECONDS)
        parts.permits.show(pod.uid, progress.waiting_for)
        nominate(parts, pod, node)
    elif not progress.verdict.is_success:
        fail(parts, binding, progress.verdict, now, is_reserved=False, in_cycle=True)
    else:
        _permitted(parts, binding, now)


def decide_permit(parts: Parts, uid: str, plugin: str, message: str, now: float) -> None:
    """Ignored if the plugin does not make this pod wait. An empty `message` allows the pod."""
    binding = parts.bindings.get(uid)
    if binding is None or plugin not in binding.permits:
        return
    if message:
        reject(parts, binding, message, now, plugin=plugin)
        return
    del binding.permits[plugin]
    parts.permits.show(uid, tuple(binding.permits))
    if not binding.permits:
        _count_permit(parts, binding, "Success", now)
        _permitted(parts, binding, now)


def reject(parts: Parts, binding: PodOnItsWay, message: str, now: float, *, plugin: str = "") -> None:
    """A pod before its Bind: it goes back into the queue."""
    if binding.step is BindingStep.PERMIT:
        _count_permit(parts, binding, "Unschedulable", now)
    fail(parts, binding, message, now, refused_by=(plugin,) if plugin else tuple(binding.permits))


def preempt(parts: Parts, binding: PodOnItsWay, now: float) -> None:
    """A pod before its Bind whose room a pod of higher priority needs: it is tried again after its back-off."""
    if binding.step is BindingStep.PERMIT:
        _count_permit(parts, binding, "Error", now)
    fail(parts, binding, "preempted", now)


def _count_permit(parts: Parts, binding: PodOnItsWay, result: str, now: float) -> None:
    parts.out.append(Count(metric="permit_wait_duration_seconds", label=result, amount=now - binding.since))


def _permitted(parts: Parts, binding: PodOnItsWay, now: float) -> None:
    """The scheduling attempt ends here: later events find the pod no longer in flight."""
    pod = binding.pod
    binding.step, binding.since = BindingStep.VOLUMES, now
    parts.queue.done(pod)
    if binding.volumes:
        nominate(parts, pod, binding.node)
    prepare(parts, binding, now)


def prepare(parts: Parts, binding: PodOnItsWay, now: float) -> None:
    """The PreBind plugins in their order. Call it again when something has changed that one of them waits for."""
    plugins = parts.scheduler.runner(binding.pod).plugins.at("preBind")
    for plugin in plugins[binding.prepared :]:
        if isinstance(plugin, VolumeBinding):
            verdict = volumes.bind(parts, binding, plugin.args.bind_timeout_seconds, now)
        else:
            verdict = _asked(parts, plugin, "pre_bind", binding)
        if verdict.code is VerdictCode.WAIT:
            return
        if not verdict.is_success and not verdict.is_skip:
            fail(parts, binding, blamed(verdict, plugin.name, "PreBind"), now)
            return
        binding.prepared += 1
    _bind(parts, binding, now)


def volume_changed(parts: Parts, kind: str, key: str, claim: str, now: float) -> None:
    """A PersistentVolume of this claim ("" if of none), or a claim; or the write of one was answered."""
    for binding in tuple(parts.bindings.values()):
        if binding.step is BindingStep.VOLUMES and volumes.concerns(binding, kind, key, claim):
            prepare(parts, binding, now)


def volume_answered(parts: Parts, patch: PatchVolume, what: Reaction, outcome: WriteOutcome, now: float) -> None:
    binding = parts.bindings.get(patch.pod_uid)
    if binding is not None and binding.step is BindingStep.VOLUMES:
        problem = volumes.answered(binding, patch, what, outcome)
        if problem:
            fail(parts, binding, blamed(error(problem), "VolumeBinding", "PreBind"), now)
    volume_changed(parts, patch.kind, patch.key, patch.claim, now)


def _bind(parts: Parts, binding: PodOnItsWay, now: float) -> None:
    pod = binding.pod
    binding.step, binding.since = BindingStep.BIND, now
    parts.writes.withdraw(pod.uid, WriteStatus)
    try:
        verdict = parts.scheduler.extenders.bind(pod, binding.node)
    except Unanswered as asked:
        number = parts.number()
        parts.asked[number] = (pod.uid, asked.call)
        parts.out.append(AskExtender(number=number, call=asked.call))
        return
    for plugin in parts.scheduler.runner(pod).plugins.at("bind") if verdict is None else ():
        if isinstance(plugin, DefaultBinder):
            send_bind(parts, binding)
            return
        given = _asked(parts, plugin, "bind", binding)
        if not given.is_skip:
            verdict = given.by(plugin.name)
            break
    if verdict is None:
        fail(parts, binding, "all bind plugins skipped the pod", now)
    elif verdict.is_success:
        bound(parts, binding, now)
    else:
        fail(parts, binding, verdict, now)


def told(parts: Parts, uid: str, now: float) -> None:
    """An extender's answer about the binding of this pod is there."""
    binding = parts.bindings.get(uid)
    if binding is not None and binding.step is BindingStep.BIND:
        _bind(parts, binding, now)


def send_bind(parts: Parts, binding: PodOnItsWay) -> None:
    parts.writes.ask(Bind(number=parts.number(), pod=binding.pod.key, uid=binding.pod.uid, node=binding.node))


def bound(parts: Parts, binding: PodOnItsWay, now: float) -> None:
    """The API server has bound the pod, but the cache has not seen it."""
    if binding.step is BindingStep.SEEN:
        return
    pod = binding.pod
    binding.step, binding.look_at = BindingStep.SEEN, now + UNSEEN_SECONDS
    for plugin in parts.scheduler.runner(pod).plugins.at("postBind"):
        try:
            plugin.post_bind(binding.state, pod, binding.node)
        except Exception as bug:  # the pod is bound all the same
            _note_failure(parts, pod, bug)
    parts.out.append(Count(metric="schedule_attempts_total", label="scheduled"))
    attempts, first = binding.queued.attempts, binding.queued.first_attempt_at
    assert first is not None
    parts.out.append(Count(metric="pod_scheduling_attempts", amount=attempts))
    parts.out.append(
        Count(metric="pod_scheduling_sli_duration_seconds", label=str(min(attempts, 15)), amount=now - first)
    )
    parts.out.append(
        Note(
            verbosity=2,
            text="Successfully bound pod to node",
            pod=pod.key,
            node=binding.node,
            evaluated=binding.evaluated,
            feasible=binding.feasible,
        )
    )
    parts.out.append(
        PostPodEvent(
            pod=pod.key,
            uid=pod.uid,
            profile=pod.spec.scheduler_name,
            is_warning=False,
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {pod.key} to {binding.node}",
        )
    )


def seen(parts: Parts, uid: str, node: str, now: float) -> None:
    """The watch shows the pod on a node."""
    binding = parts.bindings.get(uid)
    if binding is None:
        return
    if binding.node == node and binding.step in (BindingStep.BIND, BindingStep.SEEN):
        bound(parts, binding, now)
        _end(parts, binding)
    else:
        _release(parts, binding)
    parts.queue.done(binding.pod)


def gone(parts: Parts, binding: PodOnItsWay) -> None:
    """The pod was deleted, or is another pod now."""
    _release(parts, binding)
    parts.queue.done(binding.pod)


def look(parts: Parts, binding: PodOnItsWay, now: float) -> None:
    binding.look, binding.look_at = parts.number(), now + LOOK_SECONDS
    parts.out.append(LookAtPod(number=binding.look, pod=binding.pod.key, uid=binding.pod.uid))


def fail(
    parts: Parts,
    binding: PodOnItsWay,
    why: Verdict | str,
    now: float,
    *,
    refused_by: Collection[str] = (),
    is_reserved: bool = True,
    in_cycle: bool = False,
) -> None:
    """Back into the queue. Only what Reserve and Permit refuse waits for an event; after a later refusal or an error
    the pod is tried again after its back-off. `in_cycle`: no other pod was refused while this one had the room."""
    pod, message = binding.pod, why if isinstance(why, str) else why.message
    is_refusal = bool(refused_by)
    if isinstance(why, Verdict) and why.is_rejection:
        is_refusal = True
        if binding.step is BindingStep.PERMIT and why.plugin:
            refused_by = (why.plugin,)
    if refused_by:
        message = one_node_refused((message,) if isinstance(why, str) else why.reasons)
    _release(parts, binding, is_reserved=is_reserved)
    queued, found = binding.queued, parts.cache.find("Pod", pod.key)
    if not found.terminating:  # a pod on its way is cached, without a node: else `seen` or `gone` has ended its way
        queued.pod = found
        failed = handle_failed_attempt(
            parts.queue, queued, now, message=message, refused_by=refused_by, is_error=not is_refusal
        )
        refuse(parts, found, failed)
    if not in_cycle:
        others = (lambda other: other.uid != pod.uid) if is_refusal else None
        parts.queue.move_all(ASSIGNED_POD_DELETED, pod.on_node(binding.node), None, now, may_move=others)
    parts.queue.done(pod)


def _release(parts: Parts, binding: PodOnItsWay, *, is_reserved: bool = True) -> None:
    pod = binding.pod
    if is_reserved:
        try:
            _cycle(parts, pod).give_up(binding.state, pod, binding.node)
        except Exception as bug:  # the room on the node is free all the same
            _note_failure(parts, pod, bug)
    volumes.release(parts, binding)
    with suppress(UnknownPodError):  # a deletion or another pod of this name came first
        parts.cache.forget(pod.key, uid=pod.uid)
    parts.writes.withdraw(pod.uid, Bind)
    _end(parts, binding)


def _end(parts: Parts, binding: PodOnItsWay) -> None:
    parts.bindings.pop(binding.pod.uid, None)
    parts.permits.show(binding.pod.uid, ())


def _asked(parts: Parts, plugin: Any, method: str, binding: PodOnItsWay) -> Verdict:
    """An error if the plugin raises."""
    try:
        verdict: Verdict = getattr(plugin, method)(binding.state, binding.pod, binding.node)
        check_verdict(plugin.name, method, verdict)
    except Exception as bug:  # it must not stop the scheduling of other pods
        return error(_blamed_for(parts, binding.pod, bug))
    return verdict


def _note_failure(parts: Parts, pod: Pod, bug: Exception) -> None:
    parts.out.append(Note(verbosity=0, text="A plugin failed", pod=pod.key, why=_blamed_for(parts, pod, bug)))


def _blamed_for(parts: Parts, pod: Pod, bug: Exception) -> str:
    return broken_plugins.failure(parts.scheduler.runner(pod), bug)[1]


def _cycle(parts: Parts, pod: Pod) -> BindingCycle:
    return BindingCycle(parts.scheduler.runner(pod).plugins)

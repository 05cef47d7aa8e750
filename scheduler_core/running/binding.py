"""A pod's way to its node: Reserve and Permit at once, then PreBind, Bind and PostBind, which wait for answers.

Source: bindingCycle and handleBindingCycleError in pkg/scheduler/schedule_one.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any, Final

from scheduler_core import broken_plugins
from scheduler_core.cycle_result import CycleResult
from scheduler_core.extenders.asked_ahead import Unanswered
from scheduler_core.framework.binding import BindingCycle, BindingProgress, blamed
from scheduler_core.framework.verdict import Verdict, VerdictCode, error
from scheduler_core.model.pod import Pod
from scheduler_core.plugin_contract import check_verdict
from scheduler_core.plugins.default_binder import DefaultBinder
from scheduler_core.plugins.dynamic_resources import DynamicResources
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
from scheduler_core.running.timed import NOT_TIMED, PodStopwatch, binding_cycle
from scheduler_core.running.waiting.beside import WorkEnd
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
    binding = PodOnItsWay(
        queued=queued,
        pod=pod,
        node=node,
        state=state,
        step=BindingStep.PERMIT,
        since=now,
        evaluated=len(result.diagnosis.searched) if result.evaluated is None else result.evaluated,
        feasible=len(result.diagnosis.passed),
        stopwatch=state.find(PodStopwatch) or NOT_TIMED,
    )
    parts.bindings[pod.uid] = binding
    reserve = partial(_cycle(parts, binding).reserve, state, pod, node)
    if parts.do(pod, reserve, partial(_reserved, parts, binding), now):
        binding.is_asking = True
        parts.reserving += 1


def _reserved(parts: Parts, binding: PodOnItsWay, outcome: WorkEnd, now: float) -> None:
    """Reserve and Permit have ended."""
    parts.reserving -= outcome.was_beside
    pod, node = binding.pod, binding.node
    if _is_over(parts, binding, now):
        return
    if outcome.bug is not None:  # of a plugin: it must not stop the scheduling of other pods
        fail(parts, binding, _blamed_for(parts, pod, outcome.bug), now, in_cycle=True)
        return
    progress: BindingProgress = outcome.value
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
    binding.stopwatch.begin("PreBind")
    prepare(parts, binding, now)


def prepare(parts: Parts, binding: PodOnItsWay, now: float) -> None:
    """The PreBind plugins in their order. Call it again when something has changed that one of them waits for."""
    plugins = parts.scheduler.runner(binding.pod).plugins.at("preBind")
    if binding.is_asking:
        return
    if binding.prepared == len(plugins):
        binding.stopwatch.end("PreBind", "Success")
        _bind(parts, binding, now)
        return
    plugin = plugins[binding.prepared]
    # kube-scheduler does not call these two if they have nothing to do.
    is_called = bool(binding.volumes) if isinstance(plugin, VolumeBinding) else not isinstance(plugin, DynamicResources)
    if is_called:
        binding.stopwatch.begin("PreBind", plugin.name)
    if isinstance(plugin, VolumeBinding):
        _prepared(parts, binding, plugin, volumes.bind(parts, binding, plugin.args.bind_timeout_seconds, now), now)
    else:
        _ask(parts, plugin, "pre_bind", binding, partial(_prepared, parts, binding, plugin), now=now)


def _prepared(parts: Parts, binding: PodOnItsWay, plugin: Any, verdict: Verdict, now: float) -> None:
    if verdict.code is VerdictCode.WAIT:
        return
    binding.stopwatch.end("PreBind", verdict.code, plugin.name)
    if not verdict.is_success and not verdict.is_skip:
        fail(parts, binding, blamed(verdict, plugin.name, "PreBind"), now)
        return
    binding.prepared += 1
    prepare(parts, binding, now)


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
    if parts.writes.withdraw(pod.uid, WriteStatus):
        parts.said.pop(pod.uid, None)  # else the same refusal would not be news after this Bind
    try:
        verdict = parts.scheduler.extenders.bind(pod, binding.node)
    except Unanswered as asked:
        number = parts.number()
        parts.asked[number] = (pod.uid, asked.call)
        parts.out.append(AskExtender(number=number, call=asked.call))
        return
    if verdict is None:
        _bind_by(parts, binding, 0, now)
    else:
        _bind_ended(parts, binding, verdict, now)


def _bind_by(parts: Parts, binding: PodOnItsWay, place: int, now: float) -> None:
    """The Bind plugins from this place on, until one does not skip the pod."""
    plugins = parts.scheduler.runner(binding.pod).plugins.at("bind")
    binding.stopwatch.begin("Bind")
    if place == len(plugins):
        binding.stopwatch.end("Bind", "Skip")
        fail(parts, binding, "all bind plugins skipped the pod", now)
        return
    plugin = plugins[place]
    binding.stopwatch.begin("Bind", plugin.name)
    if isinstance(plugin, DefaultBinder):
        send_bind(parts, binding)
        return

    def given(verdict: Verdict, now: float) -> None:
        binding.stopwatch.end("Bind", verdict.code, plugin.name)
        if verdict.is_skip:
            _bind_by(parts, binding, place + 1, now)
        else:
            _bind_ended(parts, binding, verdict.by(plugin.name), now)

    _ask(parts, plugin, "bind", binding, given, now=now)


def _bind_ended(parts: Parts, binding: PodOnItsWay, verdict: Verdict, now: float) -> None:
    if verdict.is_success:
        bound(parts, binding, now)
    else:
        fail(parts, binding, verdict, now)


def told(parts: Parts, uid: str, now: float) -> None:
    """An extender's answer about the binding of this pod is there."""
    binding = parts.bindings.get(uid)
    if binding is not None and binding.step is BindingStep.BIND:
        _bind(parts, binding, now)


def send_bind(parts: Parts, binding: PodOnItsWay) -> None:
    binding.bind = parts.number()
    parts.writes.ask(Bind(number=binding.bind, pod=binding.pod.key, uid=binding.pod.uid, node=binding.node))


def bound(parts: Parts, binding: PodOnItsWay, now: float) -> None:
    """The API server has bound the pod, but the cache has not seen it."""
    if binding.step is BindingStep.SEEN:
        return
    pod = binding.pod
    binding.step, binding.look_at = BindingStep.SEEN, now + UNSEEN_SECONDS
    binding.stopwatch.end_all("Success")
    binding.stopwatch.begin("PostBind")
    _post_bind(parts, binding, 0, now)
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


def _post_bind(parts: Parts, binding: PodOnItsWay, place: int, now: float) -> None:
    """The PostBind plugins from this place on, one after another. The pod is bound even if one of them fails."""
    pod, plugins = binding.pod, parts.scheduler.runner(binding.pod).plugins.at("postBind")
    if place == len(plugins):
        binding.stopwatch.end("PostBind", "Success")
        return
    plugin = plugins[place]
    binding.stopwatch.begin("PostBind", plugin.name)

    def called(outcome: WorkEnd, now: float) -> None:
        binding.stopwatch.end("PostBind", "Success", plugin.name)  # kube-scheduler has no other status for it
        _note_failure(parts, pod, outcome, now)
        _post_bind(parts, binding, place + 1, now)

    parts.do(pod, partial(plugin.post_bind, binding.state, pod, binding.node), called, now)


def seen(parts: Parts, uid: str, node: str, now: float) -> None:
    """The watch shows the pod on a node."""
    binding = parts.bindings.get(uid)
    if binding is None:
        return
    if binding.node == node and binding.step in (BindingStep.BIND, BindingStep.SEEN):
        bound(parts, binding, now)
        _end(parts, binding)
    else:
        _release(parts, binding, now)
    parts.queue.done(binding.pod)


def gone(parts: Parts, binding: PodOnItsWay, now: float) -> None:
    """The pod was deleted, or is another pod now."""
    _release(parts, binding, now)
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
    is_refusal, is_pending = bool(refused_by), False
    if isinstance(why, Verdict) and why.is_rejection:
        is_refusal = True
        if binding.step is BindingStep.PERMIT and why.plugin:
            refused_by, is_pending = (why.plugin,), why.code is VerdictCode.PENDING
    if refused_by:
        message = one_node_refused((message,) if isinstance(why, str) else why.reasons)
    binding.stopwatch.end_all(why.code if isinstance(why, Verdict) and why.is_rejection else "Error")
    _release(parts, binding, now, is_reserved=is_reserved)
    queued, found = binding.queued, parts.cache.find("Pod", pod.key)
    if not found.terminating:  # a pod on its way is cached, without a node: else `seen` or `gone` has ended its way
        queued.pod = found
        failed = handle_failed_attempt(
            parts.queue,
            queued,
            now,
            message=message,
            refused_by=() if is_pending else refused_by,
            pending_for=refused_by if is_pending else (),
            is_error=not is_refusal,
        )
        refuse(parts, found, failed)
    if not in_cycle:
        others = (lambda other: other.uid != pod.uid) if is_refusal else None
        parts.queue.move_all(ASSIGNED_POD_DELETED, pod.on_node(binding.node), None, now, may_move=others)
    parts.queue.done(pod)


def _release(parts: Parts, binding: PodOnItsWay, now: float, *, is_reserved: bool = True) -> None:
    pod = binding.pod
    binding.stopwatch.end_all("Error")
    if is_reserved and not binding.is_asking:  # else when the plugin has answered
        _give_up(parts, binding, now)
    volumes.release(parts, binding)
    with suppress(UnknownPodError):  # a deletion or another pod of this name came first
        parts.cache.forget(pod.key, uid=pod.uid)
    parts.writes.withdraw(pod.uid, Bind)
    _end(parts, binding)


def _end(parts: Parts, binding: PodOnItsWay) -> None:
    parts.bindings.pop(binding.pod.uid, None)
    parts.permits.show(binding.pod.uid, ())


def _give_up(parts: Parts, binding: PodOnItsWay, now: float) -> None:
    """Unreserve. The room on the node is free all the same if it fails."""
    pod = binding.pod
    give_up = partial(_cycle(parts, binding).give_up, binding.state, pod, binding.node)
    parts.do(pod, give_up, partial(_note_failure, parts, pod), now)


def _ask(
    parts: Parts,
    plugin: Any,
    method: str,
    binding: PodOnItsWay,
    then: Callable[[Verdict, float], None],
    *,
    now: float,
) -> None:
    """`then` gets an error if the plugin raises: it must not stop the scheduling of other pods. It is not called if the
    pod is no longer on its way."""

    def answered(outcome: WorkEnd, now: float) -> None:
        if _is_over(parts, binding, now):
            return
        bug = outcome.bug
        then(outcome.value if bug is None else error(_blamed_for(parts, binding.pod, bug)), now)

    if parts.do(binding.pod, partial(_verdict, plugin, method, binding), answered, now):
        binding.is_asking = True


def _verdict(plugin: Any, method: str, binding: PodOnItsWay) -> Verdict:
    verdict: Verdict = getattr(plugin, method)(binding.state, binding.pod, binding.node)
    check_verdict(plugin.name, method, verdict)
    return verdict


def _is_over(parts: Parts, binding: PodOnItsWay, now: float) -> bool:
    """Whether the pod left its way while a plugin was asked. Then what plugins reserved is released now."""
    was_asking, binding.is_asking = binding.is_asking, False
    if parts.bindings.get(binding.pod.uid) is binding:
        return False
    if was_asking and binding.step is not BindingStep.SEEN:
        _give_up(parts, binding, now)
    return True


def _note_failure(parts: Parts, pod: Pod, outcome: WorkEnd, now: float) -> None:
    del now
    if outcome.bug is not None:
        why = _blamed_for(parts, pod, outcome.bug)
        parts.out.append(Note(verbosity=0, text="A plugin failed", pod=pod.key, why=why))


def _blamed_for(parts: Parts, pod: Pod, bug: BaseException) -> str:
    return broken_plugins.failure(parts.scheduler.runner(pod), bug)[1]


def _cycle(parts: Parts, binding: PodOnItsWay) -> BindingCycle:
    return binding_cycle(parts.scheduler.runner(binding.pod).plugins, binding.stopwatch)

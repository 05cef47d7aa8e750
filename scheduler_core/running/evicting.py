"""Preemption as commands: the victims are deleted while other pods are scheduled.

The last victim is deleted after the others: when the watch shows that, all are deleted, and the pod that preempts may
enter the active queue again. Source: pkg/scheduler/framework/preemption/executor.go, v1.36; there the pod may enter it
after the answer to the last deletion.
"""

from __future__ import annotations

from scheduler_core.model.pod import Pod
from scheduler_core.running import binding
from scheduler_core.running.commands import Count, DeleteVictim, PostPodEvent
from scheduler_core.running.parts import Eviction, Parts


def announce(parts: Parts, preemptor: Pod) -> None:
    """Before the failed cycle is handled: until the victims are deleted, PreEnqueue must hold the pod."""
    parts.evictions[preemptor.uid] = Eviction(preemptor=preemptor, others=set(), last=("", ""))


def holds(parts: Parts, preemptor: Pod) -> bool:
    """Whether PreEnqueue must hold the pod: until the watch shows that the deletion of its last victim has begun, even
    after the answer to it. Without that, the end of another victim would let it preempt once more."""
    return preemptor.uid in parts.evictions


def seen(parts: Parts, victim: Pod, now: float) -> None:
    """The watch shows that the deletion of the victim has begun."""
    for eviction in tuple(parts.evictions.values()):
        if _is_last(eviction, victim.uid):
            _end(parts, eviction, now)


def _is_last(eviction: Eviction, uid: str) -> bool:
    """Whether this victim is the only one left."""
    return not eviction.holds and eviction.last[1] == uid


def _shows_last(parts: Parts, eviction: Eviction) -> bool:
    last = parts.cache.find_pod(eviction.last[0])
    return last is not None and not last.terminating


def begin(parts: Parts, preemptor: Pod, node: str, victims: tuple[str, ...], now: float) -> None:
    """After the failed cycle was handled. Leaves alone what is already being deleted, and what has left the node while
    an extender was asked."""
    found = map(parts.cache.find_pod, victims)
    pods = [pod for pod in found if pod is not None and pod.node_name == node and not pod.terminating]
    if pods:
        parts.out.append(Count(metric="preemption_victims", amount=len(pods)))
    to_reject = [each for pod in pods if (each := parts.bindings.get(pod.uid)) is not None and each.is_before_bind]
    rejected = {each.pod.uid for each in to_reject}
    to_delete = [pod for pod in pods if pod.uid not in rejected]
    if not to_delete:  # the preemptor must not be held back when the rejections free the room
        parts.evictions.pop(preemptor.uid, None)
    for each in to_reject:
        binding.preempt(parts, each, now)
    for pod in pods:
        _tell(parts, preemptor, pod, node, is_deleted=pod.uid not in rejected)
    if not to_delete:
        return
    *others, last = to_delete
    eviction = Eviction(preemptor=preemptor, others={pod.uid for pod in others}, last=(last.key, last.uid))
    parts.evictions[preemptor.uid] = eviction
    for pod in others:
        _delete(parts, preemptor, pod.key, pod.uid)
    _go_on(parts, eviction)


def deleted(parts: Parts, command: DeleteVictim, now: float, *, was_there: bool) -> None:
    """The victim is terminating, or gone. If the last one went before, the event of its deletion may have come while
    the pod that preempts was held back. Otherwise its eviction ends when the watch shows that (`seen`)."""
    for eviction in tuple(parts.evictions.values()):
        if command.uid in eviction.others:
            eviction.others.discard(command.uid)
            _go_on(parts, eviction)
        elif _is_last(eviction, command.uid) and not (was_there and _shows_last(parts, eviction)):
            _end(parts, eviction, now, must_retry=not was_there)


def failed(parts: Parts, command: DeleteVictim, now: float) -> None:
    """The pods that preempt try again."""
    for eviction in tuple(parts.evictions.values()):
        if command.uid in eviction.others or _is_last(eviction, command.uid):
            _end(parts, eviction, now, must_retry=True)


def _go_on(parts: Parts, eviction: Eviction) -> None:
    if not eviction.others:
        eviction.holds = False
        _delete(parts, eviction.preemptor, *eviction.last)


def _end(parts: Parts, eviction: Eviction, now: float, *, must_retry: bool = False) -> None:
    """A pod that was asked in vain meanwhile tries again: since then it heard the end of pods only, and the victim may
    terminate for long."""
    del parts.evictions[eviction.preemptor.uid]
    found = parts.queue.find(eviction.preemptor.key)
    if must_retry or (found is not None and found[1].is_gated):
        parts.queue.activate((eviction.preemptor,), now)


def _delete(parts: Parts, preemptor: Pod, key: str, uid: str) -> None:
    if parts.writes.has(DeleteVictim, uid):  # for another pod
        return
    parts.writes.ask(
        DeleteVictim(
            number=parts.number(),
            pod=key,
            uid=uid,
            message=f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
            preemptor=preemptor.key,
        )
    )


def _tell(parts: Parts, preemptor: Pod, victim: Pod, node: str, *, is_deleted: bool) -> None:
    where = "" if is_deleted else " (in kube-scheduler memory)."
    parts.out.append(
        PostPodEvent(
            pod=victim.key,
            uid=victim.uid,
            profile=preemptor.spec.scheduler_name,
            is_warning=False,
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by pod {preemptor.uid} on node {node}{where}",
        )
    )

"""Which pods a drain evicts, which stay and why, and which evictions to request now. The rules are the filters of
`kubectl drain` (pkg/drain/filters.go), except for finished pods: a reboot does not harm them, so they stay; kubectl
deletes them, because its node may never come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from careen.core.actions import EvictPod
from careen.core.drain import drain_pauses
from careen.core.facts.memory import ENDS_EVICTION, JUDGED, EvictAnswer, Memory
from careen.core.facts.observation import PodView
from careen.core.facts.policy import BoundPods, DrainPolicy
from careen.core.facts.times import rfc3339
from scheduler_core.model.pod import Pod
from scheduler_core.sentences import first_few
from scheduler_core.simulation.evicted.replacements import moves_all
from scheduler_core.values import Value


class DrainPlan(Value, kw_only=True):
    """The pods of a node by what the drain does with them."""

    staying: tuple[PodView, ...]  # DaemonSet, static, finished, not selected
    ending: tuple[PodView, ...]  # terminating; the drain waits for them
    given_up: tuple[PodView, ...]  # terminating longer than --skip-wait-for-delete-timeout: the drain does not wait
    now: tuple[PodView, ...]  # to evict now
    later: tuple[PodView, ...]  # refused a moment ago; to evict when their back-off ends
    # If there are pods to evict now, the pause assumes that the API server accepts all of these evictions.
    look_again_seconds: float
    new_pods: frozenset[str] = frozenset()  # UIDs of pods to evict that were created after the cordon
    returning: tuple[
        PodView, ...
    ] = ()  # part of `staying`: created after the cordon, and created again after each eviction

    @property
    def is_done(self) -> bool:
        """Nothing left to evict or to wait for."""
        return not (self.ending or self.now or self.later)

    @property
    def left(self) -> tuple[PodView, ...]:
        """The pods to evict, and the terminating ones that the drain waits for."""
        return (*self.now, *self.later, *self.ending)


def why_it_stays(pod: PodView, policy: DrainPolicy) -> str:
    """Why a drain does not evict the pod; "" if it does."""
    if pod.is_mirror or pod.owner_kind == "Node":
        return "the pod is static: the kubelet runs the pod from a file"
    if pod.owner_kind == "DaemonSet":
        return "the pod's DaemonSet would create the pod again on this node"
    if pod.is_finished:
        return "the pod has finished"
    if policy.selector is not None and not policy.selector.matches(pod.labels):
        return "--drain-pod-selector does not select the pod"
    if policy.bound_pods is BoundPods.STAY and pod.owner_kind and pod.came_bound:
        return "the pod's owner bound it to this node, and --pods-bound-to-node=stay lets such pods stay"
    return ""


def may_be_bound(pods: Iterable[PodView], policy: DrainPolicy) -> tuple[PodView, ...]:
    """The pods to evict that their controller may have bound to this very node, since no scheduler is known to have
    placed them: their replacements may be bound to it again."""
    return tuple(pod for pod in to_evict(pods, policy) if pod.owner_kind and pod.came_bound is not False)


def rule_of(policy: DrainPolicy) -> Callable[[Pod], str]:
    """`why_it_stays` for a `Pod` of the simulation, so that a forecast moves the same pods as the drain."""
    if policy.selector is None:
        return moves_all  # the simulation itself knows the pods that belong to a node

    def stays(pod: Pod) -> str:
        owner = pod.owner.kind if pod.owner else ""
        view = PodView(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            labels=pod.labels,
            phase=pod.phase,
            owner_kind=owner,
            is_mirror=pod.is_mirror,
        )
        return why_it_stays(view, policy)

    return stays


def to_evict(pods: Iterable[PodView], policy: DrainPolicy) -> tuple[PodView, ...]:
    """The pods that a drain of this node would evict."""
    return tuple(pod for pod in pods if not why_it_stays(pod, policy) and not pod.is_terminating)


def stuck(pods: Iterable[PodView], policy: DrainPolicy, *, now: datetime) -> tuple[PodView, ...]:
    """The pods that a drain would wait for although they should have ended a while ago. `now` is by the API server's
    clock."""
    return tuple(
        pod
        for pod in pods
        if pod.deletion_timestamp is not None
        and not why_it_stays(pod, policy)
        and (now - pod.deletion_timestamp).total_seconds() > _STUCK_SECONDS
    )


_STUCK_SECONDS = 60.0  # after the grace period the kubelet still unmounts volumes, and clocks differ by seconds


def terminating(pod: PodView) -> str:
    """Since when a pod terminates, and which finalizers keep it."""
    if pod.deletion_timestamp is None:
        return ""
    asked = pod.deletion_timestamp - timedelta(seconds=pod.deletion_grace_seconds or 0.0)
    kept = f"; finalizer {', '.join(pod.finalizers[:3])}" if pod.finalizers else ""
    return f"terminating since {rfc3339(asked)}{kept}"


def plan(
    pods: Iterable[PodView],
    policy: DrainPolicy,
    memory: Memory,
    *,
    uptime: float,
    now: datetime,
    cordoned_at: datetime | None = None,
) -> DrainPlan:
    """What the drain does with each pod. The order is the one that a forecast assumes: StatefulSets' pods last, lower
    priorities first, then by name.

    A StatefulSet creates a replacement only when the old pod is gone, at an instant that no forecast can know; evicted
    last, their pods are replaced last.
    """
    staying: list[PodView] = []
    ending: list[PodView] = []
    given_up: list[PodView] = []
    due: list[PodView] = []
    later: list[PodView] = []
    in_order = sorted(pods, key=_order)
    first = memory.drain.first
    came = frozenset(
        pod.uid for pod in in_order if is_created_after(pod, cordoned_at) or (first and pod.uid not in first)
    )
    returning = tuple(
        pod for pod in in_order if pod.uid in came and not why_it_stays(pod, policy) and _always_returns(pod, memory)
    )
    for pod in in_order:
        if why_it_stays(pod, policy) or pod in returning:
            staying.append(pod)
        elif pod.deletion_timestamp is not None:
            skip = policy.skip_wait_for_delete_seconds
            is_over = skip > 0 and (now - pod.deletion_timestamp).total_seconds() > skip
            (given_up if is_over else ending).append(pod)
        elif _not_before(pod, memory, is_new=pod.uid in came) > uptime:
            later.append(pod)
        else:
            due.append(pod)
    pauses = [_not_before(pod, memory, is_new=pod.uid in came) - uptime for pod in later]
    return DrainPlan(
        staying=tuple(staying),
        ending=tuple(ending),
        given_up=tuple(given_up),
        now=tuple(due),
        later=tuple(later),
        look_again_seconds=drain_pauses.AFTER_EVICTION_SECONDS
        if due
        else drain_pauses.without_eviction(ending, pauses, now),
        new_pods=came.intersection(pod.uid for pod in (*due, *later)),
        returning=returning,
    )


def _order(pod: PodView) -> tuple[bool, int, str, str, str]:
    return (pod.owner_kind == "StatefulSet", pod.priority, pod.namespace, pod.name, pod.uid)


def is_created_after(pod: PodView, cordoned_at: datetime | None) -> bool:
    """Whether the pod was created after the cordon: it tolerates the cordon, was bound by its owner, or was placed
    before the scheduler learned of the cordon."""
    return (
        cordoned_at is not None
        and pod.created_at is not None
        and (pod.created_at - cordoned_at).total_seconds() > _CLOCK_SECONDS
    )


def _always_returns(pod: PodView, memory: Memory) -> bool:
    """Whether a pod created after the cordon comes back after each eviction: it tolerates the cordon, its owner binds
    it, or its owner has created new pods here through MOST_ROUNDS rounds."""
    coming = memory.drain.new_pods.get(pod.owner_or_own_uid)
    if not pod.owner_kind or pod.is_terminating:  # the drain waits for a terminating pod; its successor then stays
        return False
    return pod.tolerates_cordon or bool(pod.came_bound) or (coming is not None and coming.rounds >= MOST_ROUNDS)


def owners_of_new_pods(plan: DrainPlan) -> frozenset[str]:
    """The owners (`PodView.owner_or_own_uid`) of the pods to evict now that were created after the cordon."""
    return frozenset(pod.owner_or_own_uid for pod in plan.now if pod.uid in plan.new_pods)


def _not_before(pod: PodView, memory: Memory, *, is_new: bool) -> float:
    """The uptime before which the agent must not request the pod's eviction again."""
    asked, coming = (
        memory.drain.evictions.get(pod.uid),
        memory.drain.new_pods.get(pod.owner_or_own_uid) if is_new else None,
    )
    return max((each.not_before for each in (asked, coming) if each is not None), default=0.0)


MOST_ROUNDS = 6  # about a minute; a scheduler learns of a cordon within a second or two
_CLOCK_SECONDS = 2.0  # the instant of the cordon comes from our clock, corrected by a header of whole seconds


def requests(plan: DrainPlan, policy: DrainPolicy) -> tuple[EvictPod, ...]:
    """The eviction requests to send now."""
    return tuple(
        EvictPod(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            grace_seconds=policy.grace_seconds,
            new_pod_owner=pod.owner_or_own_uid if pod.uid in plan.new_pods else "",
        )
        for pod in plan.now
    )


def is_force_earned(plan: DrainPlan, policy: DrainPolicy, memory: Memory) -> bool:
    """Whether --force-reboot may reboot the node with pods left: the API server decided enough requests for each. If
    its last decision was a budget's refusal, that takes --force-reboot-past-budgets."""
    if not policy.force_reboot:
        return False
    for pod in (*plan.now, *plan.later):
        asked = memory.drain.evictions.get(pod.uid)
        if judgements(plan, pod, memory) < policy.attempts_before_force:
            return False
        if asked is not None and asked.judgement is EvictAnswer.BUDGET and not policy.force_past_budgets:
            return False
    return True


def is_hopeless(plan: DrainPlan, policy: DrainPolicy, memory: Memory) -> bool:
    """Whether more eviction requests would bring --force-reboot no nearer: for each pod, enough requests are decided,
    or the API server seems never to decide them."""
    enough = policy.attempts_before_force
    waiting = (*plan.now, *plan.later)
    return all(judgements(plan, pod, memory) >= enough or _is_unheard(plan, pod, memory, enough) for pod in waiting)


def judgements(plan: DrainPlan, pod: PodView, memory: Memory) -> int:
    """How many eviction requests for this pod the API server decided (`JUDGED`); a timeout, for example, does not
    count.

    A controller may replace an evicted pod at once, so that no single pod gets many requests. So for a pod created
    after the cordon, the decided rounds of its owner count, if they are more.
    """
    asked = memory.drain.evictions.get(pod.uid)
    coming = memory.drain.new_pods.get(pod.owner_or_own_uid) if pod.uid in plan.new_pods else None
    return max(asked.judgements if asked else 0, coming.judgements if coming else 0)


def _is_unheard(plan: DrainPlan, pod: PodView, memory: Memory, enough: int) -> bool:
    """Whether the API server seems never to decide the pod's eviction: `enough` requests without a decision, the last
    among them, or for a pod created after the cordon, `enough` rounds."""
    asked = memory.drain.evictions.get(pod.uid)
    coming = memory.drain.new_pods.get(pod.owner_or_own_uid) if pod.uid in plan.new_pods else None
    if coming is not None and coming.rounds - coming.judgements >= enough:
        return True
    return asked is not None and asked.unjudged >= enough and asked.answer not in JUDGED


def describe(plan: DrainPlan, memory: Memory) -> str:
    """The first pods that the drain waits for: `shop/web-1 (terminating), shop/web-2 (budget; 3 eviction requests)`."""
    return first_few([_describe(pod, memory) for pod in plan.left])


def have_to_leave(count: int) -> str:
    """Such as `3 pods have to leave the node`."""
    return f"{count} {'pod has' if count == 1 else 'pods have'} to leave the node"


def describe_returning(plan: DrainPlan) -> str:
    """A clause about the pods that stay because each eviction brings them back, for the sentence that reports the
    reboot; "" without any."""
    names = first_few([pod.title for pod in plan.returning])
    return f" (these pods stay on the node, because each eviction brings them back: {names})" if names else ""


def _describe(pod: PodView, memory: Memory) -> str:
    if pod.is_terminating:
        return f"{pod.title} ({terminating(pod) if pod.finalizers else 'terminating'})"
    eviction = memory.drain.evictions.get(pod.uid)
    if eviction is None or eviction.answer in ENDS_EVICTION:
        return pod.title
    requests = "1 eviction request" if eviction.attempts == 1 else f"{eviction.attempts} eviction requests"
    return f"{pod.title} ({eviction.detail or eviction.answer.value}; {requests})"

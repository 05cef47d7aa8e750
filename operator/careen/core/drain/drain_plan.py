"""Which pods go, which stay and why, and which may be asked now. kubectl's filters (pkg/drain/filters.go),
without its finished pods.

Finished pods run nothing, so a reboot takes nothing from them; kubectl deletes them because its nodes may go for good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from careen.core.actions import EvictPod
from careen.core.facts.memory import JUDGED, EvictAnswer, Memory
from careen.core.facts.observation import PodView
from careen.core.facts.policy import BoundPods, DrainPolicy
from scheduler_core.model.pod import Pod
from scheduler_core.sentences import first_few
from scheduler_core.simulation.evicted.replacements import moves_all
from scheduler_core.values import Value

_FINISHED = ("Succeeded", "Failed")
_SAME_ROUND_SECONDS = 0.5


class DrainPlan(Value, kw_only=True):
    """The pods of a node, sorted by what the drain does with them."""

    staying: tuple[PodView, ...]  # DaemonSet, static, finished, not selected
    ending: tuple[PodView, ...]  # asked to end already; waited for
    given_up: tuple[PodView, ...]  # terminating longer than --skip-wait-for-delete-timeout: no longer waited for
    now: tuple[PodView, ...]  # to be asked now
    later: tuple[PodView, ...]  # refused a moment ago; asked again when their back-off ends
    look_again_seconds: float
    comers: frozenset[str] = frozenset()  # UIDs of those to go that came in spite of the cordon
    returning: tuple[
        PodView, ...
    ] = ()  # of those staying: created after the cordon, and again as often as they are evicted

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to wait for."""
        return not (self.ending or self.now or self.later)

    @property
    def left(self) -> tuple[PodView, ...]:
        """The pods that still have to go."""
        return (*self.now, *self.later, *self.ending)


def why_it_stays(pod: PodView, policy: DrainPolicy) -> str:
    """Why a drain leaves the pod alone; empty when it does not."""
    if pod.is_mirror or pod.owner_kind == "Node":
        return "a static pod: the kubelet runs it from a file"
    if pod.owner_kind == "DaemonSet":
        return "a DaemonSet's pod: it belongs on this node"
    if pod.phase in _FINISHED:
        return "it has finished"
    if policy.selector is not None and not policy.selector.matches(pod.labels):
        return "--drain-pod-selector does not select it"
    if policy.bound_pods is BoundPods.STAY and pod.owner_kind and pod.came_bound:
        return "its owner bound it to this node, and --pods-bound-to-node=stay leaves it"
    return ""


def may_be_bound(pods: Iterable[PodView], policy: DrainPolicy) -> tuple[PodView, ...]:
    """The pods to evict that their controller may make again on this very node: those that no scheduler is
    known to have placed."""
    return tuple(pod for pod in to_evict(pods, policy) if pod.owner_kind and pod.came_bound is not False)


def rule_of(policy: DrainPolicy) -> Callable[[Pod], str]:
    """The same rule for pods of a simulation, so that a forecast leaves alone what the drain will leave alone."""
    if policy.selector is None:
        return moves_all  # what belongs to a node the simulation knows by itself

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
    """The pods that a drain would evict: what dry-run evictions are tried for."""
    return tuple(pod for pod in pods if not why_it_stays(pod, policy) and not pod.is_terminating)


def plan(
    pods: Iterable[PodView],
    policy: DrainPolicy,
    memory: Memory,
    *,
    uptime: float,
    now: datetime,
    cordoned_at: datetime | None = None,
) -> DrainPlan:
    """Sort the pods: StatefulSets' last, the least important first, then by name, in the order that a forecast
    counts on.

    A StatefulSet's replacement comes when its old pod is gone, an instant that nobody can know; asked last, it
    comes after all others."""
    staying: list[PodView] = []
    ending: list[PodView] = []
    given_up: list[PodView] = []
    due: list[PodView] = []
    later: list[PodView] = []
    in_order = sorted(pods, key=_order)
    came = frozenset(pod.uid for pod in in_order if came_after(pod, cordoned_at))
    returning = tuple(
        pod for pod in in_order if pod.uid in came and not why_it_stays(pod, policy) and _comes_for_ever(pod, memory)
    )
    for pod in in_order:
        if why_it_stays(pod, policy) or pod in returning:
            staying.append(pod)
        elif pod.deletion_timestamp is not None:
            skip = policy.skip_wait_for_delete_seconds
            is_over = skip > 0 and (now - pod.deletion_timestamp).total_seconds() > skip
            (given_up if is_over else ending).append(pod)
        elif _not_before(pod, memory, is_comer=pod.uid in came) > uptime:
            later.append(pod)
        else:
            due.append(pod)
    pauses = [_not_before(pod, memory, is_comer=pod.uid in came) - uptime for pod in later]
    look = min((_ending_look_seconds(pod, now) for pod in ending), default=_LOOK_SECONDS)
    return DrainPlan(
        staying=tuple(staying),
        ending=tuple(ending),
        given_up=tuple(given_up),
        now=tuple(due),
        later=tuple(later),
        look_again_seconds=min(look, _next_round(pauses)) if not due else _AFTER_EVICTION_SECONDS,
        comers=came.intersection(pod.uid for pod in (*due, *later)),
        returning=returning,
    )


def _next_round(pauses: Sequence[float]) -> float:
    """When the first pod may be asked again, or the last of those that may be asked within the same half second: a turn
    reads the Node, the lock and the pods anew."""
    first = min(pauses, default=math.inf)
    return max((each for each in pauses if each <= first + _SAME_ROUND_SECONDS), default=math.inf)


def _order(pod: PodView) -> tuple[bool, int, str, str, str]:
    return (pod.owner_kind == "StatefulSet", pod.priority, pod.namespace, pod.name, pod.uid)


def came_after(pod: PodView, cordoned_at: datetime | None) -> bool:
    """Whether the pod was made after the cordon and put here all the same: it tolerates it, or the scheduler
    had not heard of it yet."""
    return (
        cordoned_at is not None
        and pod.created_at is not None
        and (pod.created_at - cordoned_at).total_seconds() > _CLOCK_SECONDS
    )


def _comes_for_ever(pod: PodView, memory: Memory) -> bool:
    """Whether a pod that came after the cordon would come back as often as it were evicted: it tolerates the
    cordon, its owner binds it to this node, or nobody knows why and many rounds of evictions have not kept its
    like away."""
    coming = memory.drain.comers.get(owner_of(pod))
    if not pod.owner_kind or pod.is_terminating:  # one that ends is waited for; its successor is the one that stays
        return False
    return pod.tolerates_cordon or bool(pod.came_bound) or (coming is not None and coming.rounds >= MOST_ROUNDS)


def owner_of(pod: PodView) -> str:
    """What evictions of pods that keep coming are counted by: their controller, or the pod itself where it has none."""
    return pod.owner_uid or pod.uid


def owners_of_comers(plan: DrainPlan) -> frozenset[str]:
    """Whose pods are to be evicted now although they were made after the cordon."""
    return frozenset(owner_of(pod) for pod in plan.now if pod.uid in plan.comers)


def _not_before(pod: PodView, memory: Memory, *, is_comer: bool) -> float:
    """From which uptime on it may be asked; in the past when nothing keeps it."""
    asked, coming = memory.drain.evictions.get(pod.uid), memory.drain.comers.get(owner_of(pod)) if is_comer else None
    return max((each.not_before for each in (asked, coming) if each is not None), default=0.0)


def _ending_look_seconds(pod: PodView, now: datetime) -> float:
    """Most pods are gone long before their grace is over: a pod that was asked a moment ago is looked at soon, and
    the longer it takes, the less a look more or less matters."""
    if pod.deletion_timestamp is None:
        return _LOOK_SECONDS
    asked = pod.deletion_timestamp - timedelta(seconds=pod.deletion_grace_seconds or 0.0)
    return min(max(_ENDING_LOOK_SECONDS, (now - asked).total_seconds() * _ENDING_LOOK_SHARE), _LOOK_SECONDS)


MOST_ROUNDS = 6  # about a minute of them: a scheduler hears of a cordon within a second or two
_CLOCK_SECONDS = 2.0  # the instant of the cordon comes from our clock, corrected by a header of whole seconds
_LOOK_SECONDS = 2.0  # three reads a look; a pod's grace is 30 s by default
_ENDING_LOOK_SECONDS = 0.5  # every second here is a second the whole roll-out waits
_ENDING_LOOK_SHARE = 0.25  # of what the pod has taken so far
_AFTER_EVICTION_SECONDS = 0.5  # most pods without a grace period are gone by then


def requests(plan: DrainPlan, policy: DrainPolicy) -> tuple[EvictPod, ...]:
    """The evictions to ask for now."""
    return tuple(
        EvictPod(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            grace_seconds=policy.grace_seconds,
            comer_of=owner_of(pod) if pod.uid in plan.comers else "",
        )
        for pod in plan.now
    )


def is_force_earned(plan: DrainPlan, policy: DrainPolicy, memory: Memory) -> bool:
    """Whether --force-reboot may pass over the pods that are left: each was really asked, and no budget forbids it.

    A pod that already terminates was asked by definition. Of the others only evictions count that the API
    server surely judged."""
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
    """Whether asking once more would not earn the force: every pod was judged often enough, or does not come to
    be judged at all."""
    enough = policy.attempts_before_force
    waiting = (*plan.now, *plan.later)
    return all(judgements(plan, pod, memory) >= enough or _is_unheard(plan, pod, memory, enough) for pod in waiting)


def judgements(plan: DrainPlan, pod: PodView, memory: Memory) -> int:
    """How often its eviction was judged; of a pod that came in spite of the cordon, in how many rounds those of
    its owner were."""
    asked = memory.drain.evictions.get(pod.uid)
    coming = memory.drain.comers.get(owner_of(pod)) if pod.uid in plan.comers else None
    return max(asked.judgements if asked else 0, coming.judgements if coming else 0)


def _is_unheard(plan: DrainPlan, pod: PodView, memory: Memory, enough: int) -> bool:
    """Whether its evictions do not get through: enough of them were not judged, and the last one was not either."""
    asked = memory.drain.evictions.get(pod.uid)
    coming = memory.drain.comers.get(owner_of(pod)) if pod.uid in plan.comers else None
    if coming is not None and coming.rounds - coming.judgements >= enough:
        return True
    return asked is not None and asked.unjudged >= enough and asked.answer not in JUDGED


def describe(plan: DrainPlan, memory: Memory) -> str:
    """What keeps the drain: the first few pods by name, refused ones with the words of the refusal."""
    return first_few([_describe(pod, memory) for pod in plan.left])


def describe_returning(plan: DrainPlan) -> str:
    """For the sentence of the reboot: which pods are on the node all the same; empty when none is."""
    names = first_few([pod.title for pod in plan.returning])
    return f" (left here, because it comes back whenever it is evicted: {names})" if names else ""


def _describe(pod: PodView, memory: Memory) -> str:
    if pod.is_terminating:
        return f"{pod.title} (terminating)"
    asked = memory.drain.evictions.get(pod.uid)
    if asked is None or asked.answer in {EvictAnswer.ACCEPTED, EvictAnswer.GONE}:
        return pod.title
    return f"{pod.title} ({asked.detail or asked.answer.value}, asked {asked.attempts} times)"

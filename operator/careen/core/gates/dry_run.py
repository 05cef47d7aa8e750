"""Refuses if the API server would now refuse to evict one of the node's pods, before any pod is evicted.

The refusal of a slow pod does not count, because it may end during the drain (`drain/refused_evictions.py`), unless
earlier drains were undone for it a short time ago.

--force-reboot ignores the refusal of an admission webhook, --force-reboot-past-budgets also that of a disruption
budget. Nothing ignores an error such as a missing right: the API server has not decided such an eviction.
"""

from __future__ import annotations

from careen.core.drain import slow_pods
from careen.core.drain.drain_plan import to_evict
from careen.core.facts.observation import DryRunAnswer, Evictable, NotAsked, PodView, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import DrainPolicy
from careen.core.facts.reasons import Code
from careen.core.gates.question import Cost, No, When, gate, pods_here
from careen.core.situation import Situation
from scheduler_core.sentences import first_few

ALLOWED = DryRunAnswer(answer=Evictable.ALLOWED)
_UNTRIED = DryRunAnswer(answer=Evictable.UNKNOWN, detail="not tried")


@gate(
    "dry-run-evictions",
    when=frozenset({When.CLAIMED}),
    cost=Cost.COSTLY,
    needs={Evidence.PODS, Evidence.EVICTABILITY},
)
def dry_run(situation: Situation) -> No | None:
    pods, answers = pods_here(situation), situation.seen.evictability
    if isinstance(pods, No):
        return pods
    if isinstance(answers, (Unknown, NotAsked)):
        return No(Code.EVICTIONS_UNKNOWN, f"the dry-run evictions could not be made: {answers.why}")
    policy = situation.policy.drain
    refused = [
        (pod, answer) for pod in to_evict(pods, policy) if _refuses(answer := answers.get(pod.uid, _UNTRIED), policy)
    ]
    slow = {pod.uid: pod for pod in slow_pods.found(situation)}
    closed = [slow[pod.uid] for pod, _ in refused if pod.uid in slow]
    refused = [(pod, answer) for pod, answer in refused if pod.uid not in slow]
    if not refused:
        sentence, remedy, ends = slow_pods.objection(situation, closed)
        return No(Code.EVICTION_REFUSED, sentence, remedy, ends=ends) if sentence else None
    told = [each for each in refused if each[1].answer is not Evictable.UNKNOWN]
    if not told:
        return No(Code.EVICTIONS_UNKNOWN, "these dry-run evictions could not be made: " + _list(refused))
    return No(Code.EVICTION_REFUSED, "these dry-run evictions were refused: " + _list(told), about=_about(told))


def _refuses(answer: DryRunAnswer, policy: DrainPolicy) -> bool:
    if answer.answer in {Evictable.ALLOWED, Evictable.GONE}:
        return False
    if not policy.force_reboot:
        return True
    return answer.answer is Evictable.BARRED or (answer.answer is Evictable.BUDGET and not policy.force_past_budgets)


def _about(refused: list[tuple[PodView, DryRunAnswer]]) -> tuple[str, ...]:
    """The budgets that refuse; () if not all could be read."""
    closed = [answer.closed.budgets if answer.closed is not None else () for _, answer in refused]
    return tuple(dict.fromkeys(f"budget {each.key}" for budgets in closed for each in budgets)) if all(closed) else ()


def _list(refused: list[tuple[PodView, DryRunAnswer]]) -> str:
    return first_few([f"{pod.title} ({answer.detail or answer.answer.value})" for pod, answer in refused])

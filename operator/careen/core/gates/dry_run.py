"""This gate refuses to let the node begin its drain if the API server would now refuse to evict one of the node's pods,
so that the agent learns of the refusal before it evicts any pod.

The agent evaluates this gate when the node holds its claim, just before the cordon. With --force-reboot the gate
ignores the refusal of an admission webhook. With --force-reboot-past-budgets it also ignores the refusal of a
disruption budget. The gate never ignores an error such as a missing right, because --force-reboot does not apply to an
eviction that the API server has not decided.
"""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.drain.drain_plan import to_evict
from careen.core.facts.observation import DryRunAnswer, Evictable, NotAsked, PodView, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import DrainPolicy, Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import Cost, Gate, When
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


def needs(_policy: Policy) -> frozenset[Evidence]:
    """Return the facts that the gate needs: this node's pods, and the result of a dry-run eviction of each pod that a
    drain would evict."""
    return frozenset({Evidence.PODS, Evidence.EVICTABILITY})


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal if a drain would evict a pod whose dry-run eviction was refused, or for which the agent did not
    get a result. With --force-reboot some of these refusals are ignored."""
    pods, answers = situation.seen.pods, situation.seen.evictability
    if isinstance(pods, (Unknown, NotAsked)):
        return _no(
            Code.PODS_UNKNOWN,
            f"the pods of this node cannot be listed: {pods.why}",
        )
    if isinstance(answers, (Unknown, NotAsked)):
        return _no(
            Code.EVICTIONS_UNKNOWN,
            f"the dry-run evictions could not be made: {answers.why}",
        )
    policy = situation.policy.drain
    refused = [
        (pod, answer) for pod in to_evict(pods, policy) if _refuses(answer := answers.get(pod.uid, _UNTRIED), policy)
    ]
    if not refused:
        return None
    told = [each for each in refused if each[1].answer is not Evictable.UNKNOWN]
    if not told:
        return _no(Code.EVICTIONS_UNKNOWN, "these dry-run evictions could not be made: " + _list(refused))
    return _no(Code.EVICTION_REFUSED, "these dry-run evictions were refused: " + _list(told))


ALLOWED = DryRunAnswer(answer=Evictable.ALLOWED)
_UNTRIED = DryRunAnswer(answer=Evictable.UNKNOWN, detail="not tried")


def _refuses(answer: DryRunAnswer, policy: DrainPolicy) -> bool:
    if answer.answer in {Evictable.ALLOWED, Evictable.GONE}:
        return False
    if not policy.force_reboot:
        return True
    return answer.answer is Evictable.BARRED or (answer.answer is Evictable.BUDGET and not policy.force_past_budgets)


def _list(refused: list[tuple[PodView, DryRunAnswer]]) -> str:
    return first_few([_describe(pod, answer) for pod, answer in refused])


def _describe(pod: PodView, answer: DryRunAnswer) -> str:
    return f"{pod.title} ({answer.detail or answer.answer.value})"


def _no(code: Code, sentence: str) -> Refusal:
    return Refusal(gate=GATE.name, code=code, sentence=sentence)


GATE = Gate(
    name="dry-run-evictions",
    ask=ask,
    when=frozenset({When.CLAIMED}),
    cost=Cost.COSTLY,
    needs=needs,
)

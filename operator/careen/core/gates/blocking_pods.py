"""This gate refuses to let the node begin its drain or its reboot while a pod that must not be interrupted runs on the
node. --blocking-pod-selector selects such pods, and so do the entries of --blocking-pods with the scope `node`."""

from __future__ import annotations

from collections.abc import Iterable

from careen.core.decision import Refusal
from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BlockingPods, BlockingScope, Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import ALWAYS, Cost, Gate, When
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


def needs(policy: Policy) -> frozenset[Evidence]:
    """Return the facts that the gate needs: this node's pods, if a selector of blocking pods is configured."""
    return frozenset({Evidence.PODS}) if _rules(policy) else frozenset()


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal if a running pod of this node matches one of the selectors of blocking pods."""
    rules = _rules(situation.policy)
    if not rules:
        return None
    pods = situation.seen.pods
    if isinstance(pods, (Unknown, NotAsked)):
        return Refusal(
            gate=GATE.name, code=Code.PODS_UNKNOWN, sentence=f"the pods of this node cannot be listed: {pods.why}"
        )
    blocking = [
        (pod, rule) for pod in pods for rule in rules if rule.blocks(pod.namespace, pod.labels, phase=pod.phase)
    ]
    if not blocking:
        return None
    blocking.sort(key=lambda pair: (pair[0].title, pair[1].selector.text, pair[1].name))
    pods_by_uid = {pod.uid: pod.title for pod, _ in blocking}
    pod_names, selector = first_few(list(pods_by_uid.values()), 1), described(blocking[0][1])
    return Refusal(
        gate=GATE.name,
        code=Code.BLOCKING_POD,
        sentence=f"{pod_names} matches {selector}",
        longest_seconds=shortest(rule for _, rule in blocking),
    )


def _rules(policy: Policy) -> tuple[BlockingPods, ...]:
    kureds = tuple(BlockingPods(name="", selector=each) for each in policy.blocking_pod_selectors)
    return (*kureds, *(each for each in policy.blocking_pods if each.scope is BlockingScope.NODE))


def described(rule: BlockingPods) -> str:
    """Return an entry of --blocking-pods as words in a sentence: `app=db`, or `app=db (backup)` with the entry's
    name."""
    return f"{rule.selector.text} ({rule.name})" if rule.name else rule.selector.text


def shortest(rules: Iterable[BlockingPods]) -> float:
    """Return the shortest time, in seconds, after which an alert fires because an entry of --blocking-pods refuses a
    reboot. Return 0 if no entry has such a time."""
    return min((rule.longest_seconds for rule in rules if rule.longest_seconds), default=0.0)


GATE = Gate(
    name="blocking-pods",
    ask=ask,
    when=ALWAYS,
    cost=Cost.CHEAP,
    needs=needs,
)

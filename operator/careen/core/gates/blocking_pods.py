"""Refuses while a pod that must not be interrupted runs on the node: --blocking-pod-selector selects it, or an entry of
--blocking-pods with the scope `node`."""

from __future__ import annotations

from collections.abc import Iterable

from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BlockingPods, BlockingScope, Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import Cost, No, gate, pods_here
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


@gate(
    "blocking-pods",
    cost=Cost.CHEAP,
    needs=lambda policy: {Evidence.PODS} if _rules(policy) else set(),
)
def blocking_pods(situation: Situation) -> No | None:
    pods = pods_here(situation)
    if isinstance(pods, No):
        return pods
    rules = _rules(situation.policy)
    blocking = [
        (pod, rule)
        for pod in pods
        for rule in rules
        if rule.blocks(pod.namespace, pod.labels, pod.annotations, phase=pod.phase)
    ]
    if not blocking:
        return None
    blocking.sort(key=lambda pair: (pair[0].title, pair[1].what, pair[1].name))
    pods_by_uid = {pod.uid: pod.title for pod, _ in blocking}
    return No(
        Code.BLOCKING_POD,
        f"{first_few(list(pods_by_uid.values()), 1)} matches {described(blocking[0][1])}",
        longest_seconds=shortest(rule for _, rule in blocking),
    )


def _rules(policy: Policy) -> tuple[BlockingPods, ...]:
    kureds = tuple(BlockingPods(name="", selector=each) for each in policy.blocking_pod_selectors)
    return (*kureds, *(each for each in policy.blocking_pods if each.scope is BlockingScope.NODE and not each.is_lost))


def described(rule: BlockingPods) -> str:
    """An entry of --blocking-pods as words in a sentence: `app=db`, or `app=db (backup)` with the entry's name."""
    return f"{rule.what} ({rule.name})" if rule.name else rule.what


def shortest(rules: Iterable[BlockingPods]) -> float:
    """The seconds after which an alert fires because one of these entries refuses a reboot; 0 if none has such a
    time."""
    return min((rule.longest_seconds for rule in rules if rule.longest_seconds), default=0.0)

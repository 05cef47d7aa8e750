"""Refuses while a pod that forbids interruption runs on this node (--blocking-pod-selector)."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import ALWAYS, Cost, Gate, Unforeseen, When
from careen.core.situation import Situation
from scheduler_core.sentences import first_few

_NOT_RUNNING = ("Succeeded", "Failed", "Unknown")  # kured's field selector (pkg/blockers/kubernetespod.go)


def needs(policy: Policy) -> frozenset[Evidence]:
    """This node's pods, when there is a selector to try on them."""
    return frozenset({Evidence.PODS}) if policy.blocking_pod_selectors else frozenset()


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Selectors are alternatives: one match is enough."""
    selectors = situation.policy.blocking_pod_selectors
    if not selectors:
        return None
    pods = situation.seen.pods
    if isinstance(pods, (Unknown, NotAsked)):
        return Refusal(
            gate=GATE.name, code=Code.PODS_UNKNOWN, sentence=f"the pods of this node cannot be listed: {pods.why}"
        )
    blocking = [
        (pod, selector.text)
        for pod in pods
        if pod.phase not in _NOT_RUNNING
        for selector in selectors
        if selector.matches(pod.labels)
    ]
    if not blocking:
        return None
    blocking.sort(key=lambda pair: (pair[0].title, pair[1]))
    titles = {pod.uid: pod.title for pod, _ in blocking}
    return Refusal(
        gate=GATE.name,
        code=Code.BLOCKING_POD,
        sentence=f"{first_few(list(titles.values()), 1)} matches {blocking[0][1]}",
    )


GATE = Gate(
    name="blocking-pods",
    ask=ask,
    when=ALWAYS,
    cost=Cost.CHEAP,
    needs=needs,
    foresight=Unforeseen("pods that match --blocking-pod-selector"),
)

"""Refuses while a pod anywhere in the cluster forbids the reboots of the node's group or of every node
(--blocking-pods).

A pod without a node, or on a node without a Node object, counts only for entries with the scope `cluster`.
"""

from __future__ import annotations

from careen.core.facts.observation import Fleet, NotAsked, PlacedPod, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BlockingPods, BlockingScope, Policy
from careen.core.facts.reasons import Code
from careen.core.gates.blocking_pods import described, shortest
from careen.core.gates.question import Cost, No, gate
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


def _needs(policy: Policy) -> set[Evidence]:
    scopes = {each.scope for each in policy.blocking_pods} - {BlockingScope.NODE}
    if BlockingScope.GROUP in scopes:
        return {Evidence.BLOCKERS, Evidence.FLEET}
    return {Evidence.BLOCKERS} if scopes else set()


@gate(
    "blocking-pods-elsewhere",
    cost=Cost.COSTLY,
    needs=_needs,
)
def blocking_pods_elsewhere(situation: Situation) -> No | None:
    pods = situation.seen.blockers
    if isinstance(pods, (Unknown, NotAsked)):
        sentence = f"the pods that may forbid reboots cannot be listed: {pods.why}"
        return No(Code.PODS_UNKNOWN, sentence, is_of_cluster=True)
    for rule in situation.policy.blocking_pods:
        if no := _no_of(rule, tuple(pod for pod in pods if pod.rule == rule.name), situation):
            return no
    return None


def _no_of(rule: BlockingPods, pods: tuple[PlacedPod, ...], situation: Situation) -> No | None:
    if rule.scope is BlockingScope.NODE or not pods:
        return None
    is_group = rule.scope is BlockingScope.GROUP
    if is_group:
        members = _members(rule, situation)
        if isinstance(members, No):
            return members
        pods = tuple(pod for pod in pods if pod.node in members)
    if not pods:
        return None
    titles = [f"{pod.title} on {pod.node}" if pod.node else pod.title for pod in sorted(pods, key=_by_name)]
    of_these_nodes = _of_group(rule, situation) if is_group else "of the cluster"
    return No(
        Code.BLOCKING_POD,
        f"{first_few(titles, 1)} matches {described(rule)}; "
        f"such a pod forbids the reboot of every node {of_these_nodes}",
        is_of_cluster=not is_group,
        longest_seconds=shortest([rule]),
    )


def _by_name(pod: PlacedPod) -> tuple[str, str]:
    return pod.title, pod.node


def _members(rule: BlockingPods, situation: Situation) -> frozenset[str] | No:
    """The names of the nodes in this node's group. A node without the group's label is alone in its group."""
    own, fleet = situation.node, situation.seen.fleet
    value = own.labels.get(rule.group)
    if value is None:
        return frozenset({own.name})
    if not isinstance(fleet, Fleet):
        sentence = f"careen cannot tell which nodes have the same label {rule.group} as this node: {fleet.why}"
        return No(Code.FLEET_UNKNOWN, sentence)
    return frozenset({own.name, *(node.name for node in fleet.nodes if node.labels.get(rule.group) == value)})


def _of_group(rule: BlockingPods, situation: Situation) -> str:
    value = situation.node.labels.get(rule.group)
    return f"without {rule.group}" if value is None else f"with {rule.group}={value}"

"""This gate refuses to let the node begin its drain or its reboot while a pod anywhere in the cluster forbids the
reboots of the node's group or of every node (--blocking-pods).

A pod may have no node, or a node whose Node object no longer exists. Such a pod forbids reboots only if an entry of
--blocking-pods with the scope `cluster` selects it. An entry with the scope `group` has no effect for this pod.
"""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.observation import Fleet, NotAsked, PlacedPod, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BlockingPods, BlockingScope, Policy
from careen.core.facts.reasons import Code
from careen.core.gates.blocking_pods import described, shortest
from careen.core.gates.question import ALWAYS, Cost, Gate, When
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


def needs(policy: Policy) -> frozenset[Evidence]:
    """Return the facts that the gate needs. If an entry of --blocking-pods has the scope `group` or `cluster`, the gate
    needs the pods that such entries select. If an entry has the scope `group`, the gate also needs every Node."""
    scopes = {each.scope for each in policy.blocking_pods}
    if not scopes - {BlockingScope.NODE}:
        return frozenset()
    return frozenset({Evidence.BLOCKERS, Evidence.FLEET} if BlockingScope.GROUP in scopes else {Evidence.BLOCKERS})


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal for the first entry of --blocking-pods that selects a pod which forbids this node's reboot. The
    refusal names the first such pod of the entry."""
    if not needs(situation.policy):
        return None
    pods = situation.seen.blockers
    if isinstance(pods, (Unknown, NotAsked)):
        sentence = f"the pods that may forbid reboots cannot be listed: {pods.why}"
        return Refusal(gate=GATE.name, code=Code.PODS_UNKNOWN, sentence=sentence, is_of_cluster=True)
    for rule in situation.policy.blocking_pods:
        if refused := _refusal(rule, tuple(pod for pod in pods if pod.rule == rule.name), situation):
            return refused
    return None


def _refusal(rule: BlockingPods, pods: tuple[PlacedPod, ...], situation: Situation) -> Refusal | None:
    if rule.scope is BlockingScope.NODE or not pods:
        return None
    is_group = rule.scope is BlockingScope.GROUP
    if is_group:
        members = _members(rule, situation)
        if isinstance(members, Refusal):
            return members
        pods = tuple(pod for pod in pods if pod.node in members)
    if not pods:
        return None
    titles = [f"{pod.title} on {pod.node}" if pod.node else pod.title for pod in sorted(pods, key=_by_name)]
    pod_names, selector = first_few(titles, 1), described(rule)
    of_these_nodes = _of_group(rule, situation) if is_group else "of the cluster"
    return Refusal(
        gate=GATE.name,
        code=Code.BLOCKING_POD,
        sentence=f"{pod_names} matches {selector}; such a pod forbids the reboot of every node {of_these_nodes}",
        is_of_cluster=not is_group,
        longest_seconds=shortest([rule]),
    )


def _by_name(pod: PlacedPod) -> tuple[str, str]:
    return pod.title, pod.node


def _members(rule: BlockingPods, situation: Situation) -> frozenset[str] | Refusal:
    """Return the names of the nodes in this node's group, or a refusal if the names are unknown. A node without the
    group's label is alone in its group."""
    own, fleet = situation.node, situation.seen.fleet
    value = own.labels.get(rule.group)
    if value is None:
        return frozenset({own.name})
    if not isinstance(fleet, Fleet):
        sentence = f"careen cannot tell which nodes have the same label {rule.group} as this node: {fleet.why}"
        return Refusal(gate=GATE.name, code=Code.FLEET_UNKNOWN, sentence=sentence)
    return frozenset({own.name, *(node.name for node in fleet.nodes if node.labels.get(rule.group) == value)})


def _of_group(rule: BlockingPods, situation: Situation) -> str:
    value = situation.node.labels.get(rule.group)
    return f"without {rule.group}" if value is None else f"with {rule.group}={value}"


GATE = Gate(
    name="blocking-pods-elsewhere",
    ask=ask,
    when=ALWAYS,
    cost=Cost.COSTLY,
    needs=needs,
)

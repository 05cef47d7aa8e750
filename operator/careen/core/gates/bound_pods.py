"""This gate refuses to let the node begin its drain while the owner of a pod binds its pods to this very node
(--pods-bound-to-node): such a pod would come back after each eviction.

The gate reads only the owners of pods that no scheduler is known to have placed, so the agent of a node without such a
pod sends no request for owners.
"""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.drain import drain_plan
from careen.core.facts.observation import PodView
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BoundPods, Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, Gate, When
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


def needs(policy: Policy) -> frozenset[Evidence]:
    """Return the facts that the gate needs: this node's pods and their owners, if the policy says that bound pods are a
    reason to refuse."""
    return frozenset({Evidence.PODS, Evidence.OWNERS}) if policy.drain.bound_pods is BoundPods.REFUSE else frozenset()


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal if the owner of a pod binds its pods to this node (spec.nodeName in the owner's pod template).
    Pods of other owners do not come back to the node, so the drain evicts them as usual."""
    if situation.policy.drain.bound_pods is not BoundPods.REFUSE:
        return None
    pods, owners = situation.seen.pods, situation.seen.owners
    if not isinstance(pods, tuple):
        return _no(Code.PODS_UNKNOWN, f"the pods of this node cannot be listed: {pods.why}")
    suspects = drain_plan.may_be_bound(pods, situation.policy.drain)
    if not suspects:
        return None
    if not isinstance(owners, tuple):
        return _no(Code.OWNERS_UNKNOWN, f"careen cannot tell whether owners bind their pods to this node: {owners.why}")
    binding = {owner.uid: owner.title for owner in owners if owner.bound_to == situation.node.name}
    bound = [pod for pod in suspects if pod.owner_uid in binding]
    return _no(Code.BOUND_POD, _sentence(bound, binding)) if bound else None


def _sentence(bound: list[PodView], binding: dict[str, str]) -> str:
    pods = sorted(f"{pod.title} ({binding[pod.owner_uid]})" for pod in bound)
    return (
        f"spec.nodeName binds these pods to this node, so they return after each eviction: {first_few(pods)}; "
        "--pods-bound-to-node=stay leaves such pods on the node"
    )


def _no(code: Code, sentence: str) -> Refusal:
    return Refusal(gate=GATE.name, code=code, sentence=sentence)


GATE = Gate(
    name="bound-pods",
    ask=ask,
    when=BEFORE_THE_CORDON,
    cost=Cost.COSTLY,
    needs=needs,
)

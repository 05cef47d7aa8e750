"""Refuses while the owner of a pod binds its pods to this very node (--pods-bound-to-node): such a pod would come back
after each eviction.

Only the owners of pods that no scheduler is known to have placed count, so most agents send no request for owners.
"""

from __future__ import annotations

from careen.core.drain import drain_plan
from careen.core.facts.observation import PodView
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BoundPods
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate, pods_here
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


@gate(
    "bound-pods",
    when=BEFORE_THE_CORDON,
    cost=Cost.COSTLY,
    needs=lambda policy: {Evidence.PODS, Evidence.OWNERS} if policy.drain.bound_pods is BoundPods.REFUSE else set(),
)
def bound_pods(situation: Situation) -> No | None:
    pods, owners = pods_here(situation), situation.seen.owners
    if isinstance(pods, No):
        return pods
    suspects = drain_plan.may_be_bound(pods, situation.policy.drain)
    if not suspects:
        return None
    if not isinstance(owners, tuple):
        return No(Code.OWNERS_UNKNOWN, f"careen cannot tell whether owners bind their pods to this node: {owners.why}")
    binding = {owner.uid: owner.title for owner in owners if owner.bound_to == situation.node.name}
    bound = [pod for pod in suspects if pod.owner_uid in binding]
    return No(Code.BOUND_POD, _sentence(bound, binding)) if bound else None


def _sentence(bound: list[PodView], binding: dict[str, str]) -> str:
    pods = sorted(f"{pod.title} ({binding[pod.owner_uid]})" for pod in bound)
    return (
        f"spec.nodeName binds these pods to this node, so they return after each eviction: {first_few(pods)}; "
        "--pods-bound-to-node=stay leaves such pods on the node"
    )

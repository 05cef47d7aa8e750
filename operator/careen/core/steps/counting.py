"""A node that waits counts its own pods, and says on itself how many a drain would evict: the order looks at it.

One list of the own pods, which the API server has indexed; nobody ever lists the pods of others for this. A number that decides among needs of
the same age has to be about right only. With --order=fewest-moves those who are named count often, because pods come and go with each drain.
"""

from __future__ import annotations

from dataclasses import replace

from careen.core import drain_plan, keys
from careen.core.actions import PatchNode
from careen.core.decision import Decision
from careen.core.lock import LockContent
from careen.core.observation import PodView
from careen.core.phases import Evidence
from careen.core.policy import Order
from careen.core.reasons import Code
from careen.core.situation import Situation
from careen.core.writing import stay, want

NAMED_SECONDS = 15.0                 # about as long as a node takes: each drain moves pods
OTHERS_SECONDS = 1800.0              # 5,000 nodes: three lists a second


def count(situation: Situation, content: LockContent) -> Situation | Decision:
    """A decision when pods have to be listed or the number be written first; else the situation to go on with."""
    if not _is_due(situation, content):
        return situation
    if situation.seen.lacks(Evidence.PODS):
        return want(situation, Evidence.PODS)
    situation = replace(situation, memory=replace(situation.memory, moves_counted_at=situation.seen.uptime))
    pods = situation.seen.pods
    return _say(situation, pods) if isinstance(pods, tuple) else situation


def _is_due(situation: Situation, content: LockContent) -> bool:
    counted_at = situation.memory.moves_counted_at
    is_near = situation.policy.order is Order.FEWEST_MOVES and situation.node.name in content.next
    is_untold = keys.MOVES not in situation.node.annotations     # a list or a patch has failed
    return counted_at is None or situation.seen.uptime - counted_at >= (NAMED_SECONDS if is_near or is_untold else OTHERS_SECONDS)


def _say(situation: Situation, pods: tuple[PodView, ...]) -> Situation | Decision:
    number = str(len(drain_plan.to_evict(pods, situation.policy.drain)))
    if situation.node.annotations.get(keys.MOVES) == number:
        return situation
    patch = PatchNode(purpose=f"{number} pods to move", resource_version=situation.node.resource_version, annotations={keys.MOVES: number})
    return stay(situation, Code.TAKING_CLAIM, f"a drain would evict {number} pods", look=0.0, is_silent=True, actions=(patch,))

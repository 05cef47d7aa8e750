"""Refuses to take a control-plane node down while the API server's checks say that it or etcd is not ready.

The count of ready control-plane nodes (`budgets.py`) is not enough: an etcd member that still catches up after its
reboot runs on a Node that is already Ready.
"""

from __future__ import annotations

from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.reasons import Code
from careen.core.gates.question import Cost, No, gate
from careen.core.situation import Situation


@gate(
    "control-plane",
    cost=Cost.COSTLY,
    needs={Evidence.READYZ},  # agents read it only for control-plane nodes,
)
def control_plane(situation: Situation) -> No | None:
    if not situation.node.is_control_plane:
        return None
    failing = situation.seen.readyz
    if isinstance(failing, (Unknown, NotAsked)):
        return No(Code.READYZ_UNKNOWN, f"careen cannot tell whether the API server and etcd are ready: {failing.why}")
    return No(Code.CONTROL_PLANE_NOT_READY, f"the API server is not ready: {', '.join(failing)}") if failing else None

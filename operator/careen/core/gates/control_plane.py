"""This gate refuses to let a control-plane node begin its drain or its reboot while the API server's checks report that
the API server or etcd is not ready.

The gate in `budgets.py` checks only how many control-plane nodes are ready. That is not enough, because an etcd member
that still catches up after its reboot runs on a Node that is already Ready.
"""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import ALWAYS, Cost, Gate, When
from careen.core.situation import Situation


def needs(_policy: Policy) -> frozenset[Evidence]:
    """Return the facts that the gate needs: the API server's checks of its own readiness. The agent reads them only for
    control-plane nodes."""
    return frozenset({Evidence.READYZ})


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal that names all failing checks of the API server, or a refusal if its checks are unknown."""
    if not situation.node.is_control_plane:
        return None
    failing = situation.seen.readyz
    if isinstance(failing, (Unknown, NotAsked)):
        return _no(Code.READYZ_UNKNOWN, f"careen cannot tell whether the API server and etcd are ready: {failing.why}")
    if not failing:
        return None
    return _no(Code.CONTROL_PLANE_NOT_READY, f"the API server is not ready: {', '.join(failing)}")


def _no(code: Code, sentence: str) -> Refusal:
    return Refusal(gate=GATE.name, code=code, sentence=sentence)


GATE = Gate(
    name="control-plane",
    ask=ask,
    when=ALWAYS,
    cost=Cost.COSTLY,
    needs=needs,
)

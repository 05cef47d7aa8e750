"""Refuses a control-plane node while the API server, or the etcd behind it, does not call itself ready.

The quorum of the control-plane nodes is counted in `budgets.py`, from the Nodes. This asks those who know better: a
member that still catches up after its reboot is Ready as a Node."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.observation import NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import ALWAYS, Cost, Gate, Unforeseen, When
from careen.core.situation import Situation


def needs(_policy: Policy) -> frozenset[Evidence]:
    """The server's checks; for a node that is none of the control plane, the shell asks nobody."""
    return frozenset({Evidence.READYZ})


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Every check that fails is named."""
    if not situation.node.is_control_plane:
        return None
    failing = situation.seen.readyz
    if isinstance(failing, (Unknown, NotAsked)):
        return _no(Code.READYZ_UNKNOWN, f"whether the API server and etcd are ready cannot be told: {failing.why}")
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
    foresight=Unforeseen("API servers that are not ready"),
)

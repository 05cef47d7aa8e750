"""Defines a gate: a function that returns a refusal or None for a situation. Also says what a gate costs, when a node
asks it, which evidence it needs, and whether a plan can foresee it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum

from careen.core.decision import Refusal
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import Policy
from careen.core.situation import Situation
from scheduler_core.values import Value


class When(StrEnum):
    """The three points at which a node asks gates."""

    READY = "to become ready"
    CLAIMED = "after the claim"
    BEFORE_REBOOT = "before the reboot"


class Cost(StrEnum):
    """Whether a gate is cheap or costly to ask. Every waiting node asks the cheap gates in each turn. Only the next
    node in line asks the costly gates."""

    CHEAP = "cheap"
    COSTLY = "costly"


class Foreseen(StrEnum):
    """The facts that `careen plan` has to know before it can ask the gate at a simulated instant."""

    WITHOUT_FORECAST = "the nodes, the lock and the clock"
    WITH_FORECAST = "the forecast of the drain as well"


class Unforeseen(Value):
    """Marks a gate that a plan cannot ask. The plan assumes that the gate says yes, and says so. `what` completes the
    sentence "a plan does not foresee …"."""

    what: str


ALWAYS = frozenset(When)
BEFORE_THE_CORDON = frozenset({When.READY, When.CLAIMED})


def nothing(_policy: Policy) -> frozenset[Evidence]:
    """Return no evidence: the gate needs only what every turn observes."""
    return frozenset()


def no_end(_node: NodeView, _policy: Policy) -> datetime | None:
    """Return None: the Node does not say when this gate's refusal ends."""
    return None


class Gate(Value, kw_only=True):
    """One gate of the list. `needs` returns nothing if the policy switches the gate off.

    `ends` returns the instant from which the gate no longer refuses this Node, if the Node shows that instant. A plan
    asks the gate again at that instant.
    """

    name: str
    ask: Callable[[Situation, When], Refusal | None]
    when: frozenset[When]
    cost: Cost
    needs: Callable[[Policy], frozenset[Evidence]]
    foresight: Foreseen | Unforeseen
    ends: Callable[[NodeView, Policy], datetime | None] = no_end

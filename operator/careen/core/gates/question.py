"""What a gate is: a function from a situation to a refusal or nothing, with what it costs, when it is asked, what
it needs to know, and whether a plan can foresee it."""

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
    """The three points at which gates are asked."""

    READY = "to become ready"
    CLAIMED = "after the claim"
    BEFORE_REBOOT = "before the reboot"


class Cost(StrEnum):
    """Cheap gates are asked by every waiting node at every look; costly ones only by nodes whose turn it is."""

    CHEAP = "cheap"
    COSTLY = "costly"


class Foreseen(StrEnum):
    """What `careen plan` must know before it can ask the gate at a simulated instant."""

    WITHOUT_FORECAST = "the nodes, the lock and the clock"
    WITH_FORECAST = "the forecast of the drain as well"


class Unforeseen(Value):
    """A plan cannot ask the gate: it counts it as a yes and says so. `what` completes "a plan does not foresee …"."""

    what: str


ALWAYS = frozenset(When)
BEFORE_THE_CORDON = frozenset({When.READY, When.CLAIMED})


def nothing(_policy: Policy) -> frozenset[Evidence]:
    """Needs no more than every turn knows."""
    return frozenset()


def no_end(_node: NodeView, _policy: Policy) -> datetime | None:
    """The Node does not say when a refusal ends."""
    return None


class Gate(Value, kw_only=True):
    """One line of the list of gates. `needs` may be empty when the policy leaves the gate nothing to ask. `ends`:
    the instant from which the gate no longer refuses this Node, where the Node says so; a plan asks again then."""

    name: str
    ask: Callable[[Situation, When], Refusal | None]
    when: frozenset[When]
    cost: Cost
    needs: Callable[[Policy], frozenset[Evidence]]
    foresight: Foreseen | Unforeseen
    ends: Callable[[NodeView, Policy], datetime | None] = no_end

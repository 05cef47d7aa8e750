"""What a gate is: a function from a situation to a refusal or nothing, with when it is asked and what it needs
to know."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from careen.core.decision import Refusal
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


ALWAYS = frozenset(When)
BEFORE_THE_CORDON = frozenset({When.READY, When.CLAIMED})


class Gate(Value, kw_only=True):
    """One line of the list of gates. `needs` may be empty when the policy leaves the gate nothing to ask."""

    name: str
    ask: Callable[[Situation, When], Refusal | None]
    when: frozenset[When]
    cost: Cost
    needs: Callable[[Policy], frozenset[Evidence]]


def nothing(_policy: Policy) -> frozenset[Evidence]:
    """Needs no more than every turn knows."""
    return frozenset()

"""Defines a gate: a function that returns either a refusal, which forbids the node's next step, or None. A gate also
has its cost, the points on the way to a reboot at which the agent evaluates it, and the facts that it needs."""

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
    """The three points on the way to a reboot at which a node's agent evaluates gates."""

    READY = "before the node gets the label `ready`"
    CLAIMED = "after the node takes its claim"
    BEFORE_REBOOT = "before the host reboots"


class Cost(StrEnum):
    """Whether a gate is cheap or costly to evaluate. The agent of every waiting node evaluates the cheap gates in each
    round of its loop. Only the agent of the next node in the line of waiting nodes evaluates the costly gates."""

    CHEAP = "cheap"
    COSTLY = "costly"


ALWAYS = frozenset(When)
BEFORE_THE_CORDON = frozenset({When.READY, When.CLAIMED})


def nothing(_policy: Policy) -> frozenset[Evidence]:
    """Return no kinds of facts: the gate needs only the facts that the agent reads in every round of its loop."""
    return frozenset()


def no_end(_node: NodeView, _policy: Policy) -> datetime | None:
    """Return None: the Node does not say when a refusal of this gate ends."""
    return None


class Gate(Value, kw_only=True):
    """A condition that must be met before a node may go on to its drain or reboot. `ask` returns a refusal if the
    condition is not met. `needs` returns the kinds of facts that `ask` uses. If the policy switches the gate off,
    `needs` returns an empty set.

    `ends` returns the instant at which the gate stops refusing this Node. `careen plan` evaluates the gate again at
    that instant. `ends` returns None if the Node and the policy do not determine such an instant.
    """

    name: str
    ask: Callable[[Situation, When], Refusal | None]
    when: frozenset[When]
    cost: Cost
    needs: Callable[[Policy], frozenset[Evidence]]
    ends: Callable[[NodeView, Policy], datetime | None] = no_end

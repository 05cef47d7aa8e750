"""The types of a decision: phase, ordered actions, reason, refusals, and the time until the next turn. A turn is one
round of the agent's loop: observe, decide, apply.

A decision whose `wants` is not empty is provisional. The agent applies none of its actions, but reads the wanted facts
and decides again in the same turn. A fact that the agent cannot read becomes `Unknown`.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import force_setattr

from careen.core.actions import Action
from careen.core.facts.memory import Memory
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.plain_text import one_line
from scheduler_core.values import Value


class Reason(Value, kw_only=True):
    """Why the node is in its phase: a code for machines and a sentence for people, cleaned for display."""

    code: Code
    sentence: str

    def __post_init__(self) -> None:
        force_setattr(self, "sentence", one_line(self.sentence))


_OF_CLUSTER = frozenset(
    {
        Code.PAUSED,
        Code.LOCK_UNKNOWN,
        Code.LOCK_GARBAGE,
        Code.FOREIGN_COORDINATOR,
        Code.NODES_DOWN,
        Code.ZONE_AT_WORK,
        Code.FLEET_UNKNOWN,
        Code.ALERT,
        Code.ALERTS_UNKNOWN,
    }
)


class Refusal(Value, kw_only=True):
    """The answer of a gate (a condition that must be met before a drain or a reboot) that forbids the node's next step.
    If `since` is missing, `writing.with_since` takes the instant from the refusals stored on the Node.

    `remedy` is for this node alone; the general remedy of a code is in `reasons.py`.

    `is_of_cluster`: the gate would refuse every other node as well, so the line of waiting nodes does not change, and
    one message is enough for all nodes. For the codes in `_OF_CLUSTER`, such as PAUSED, the field is always true. For
    all other codes, the gate sets the field.

    `longest_seconds`: an alert fires if the refusal lasts longer than this. 0 means no alert.
    """

    gate: str
    code: Code
    sentence: str
    since: datetime | None = None
    remedy: str = ""
    is_of_cluster: bool = False
    longest_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("gate", "sentence", "remedy"):
            force_setattr(self, name, one_line(getattr(self, name)))
        force_setattr(self, "is_of_cluster", self.is_of_cluster or self.code in _OF_CLUSTER)


class Decision(Value, kw_only=True):
    """What the agent does in one round of its loop. `phase` is the node's phase once all actions have succeeded."""

    phase: Phase
    reason: Reason
    memory: Memory
    look_again_seconds: float
    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    wants: frozenset[Evidence] = frozenset()
    starts_soon: bool = False
    """Whether this node may begin its drain soon. If so, the agent starts the process that computes forecasts in
    advance."""

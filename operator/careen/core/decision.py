"""What one turn comes to: the phase, ordered actions, the reason, and when to look again.

When `wants` is not empty the decision is provisional: the shell observes exactly that evidence anew and decides
again in the same turn, without applying anything. When it cannot observe it, it puts `Unknown` in its place.
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
    """Why the node is where it is: a code for machines, a sentence for people, fit to show whatever went into it."""

    code: Code
    sentence: str

    def __post_init__(self) -> None:
        force_setattr(self, "sentence", one_line(self.sentence))


class Refusal(Value, kw_only=True):
    """A gate's no: which gate, why, since when, and what would change it. `since` None is filled in from what
    was stored before.

    `remedy` is what is known for this very node; what helps with the code in general is in `reasons.py`.
    `is_of_cluster`: the gate would refuse every other node as well, so the line of waiting nodes stays as it is.
    `longest_seconds`: after this time an alert tells; 0: never.
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


class Decision(Value, kw_only=True):
    """See the module. `phase` is where the node will stand when the actions have landed."""

    phase: Phase
    reason: Reason
    memory: Memory
    look_again_seconds: float
    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    wants: frozenset[Evidence] = frozenset()
    expects_turn: bool = False
    """Whether this node comes next, and soon: whoever makes forecasts gets ready."""

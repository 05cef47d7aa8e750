"""What one turn comes to: the phase, ordered actions, the reason, and when to look again.

When `wants` is not empty the decision is provisional: the shell observes exactly that evidence anew and decides
again in the same turn, without applying anything. When it cannot observe it, it puts `Unknown` in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from careen.core.actions import Action
from careen.core.facts.memory import Memory
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.plain_text import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why the node is where it is: a code for machines, a sentence for people, fit to show whatever went into it."""

    code: Code
    sentence: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", one_line(self.sentence))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A gate's no: which gate, why, since when, and what would change it. `since` None is filled in from what
    was stored before.

    `remedy` is what is known for this very node; what helps with the code in general is in `reasons.py`.
    """

    gate: str
    code: Code
    sentence: str
    since: datetime | None = None
    remedy: str = ""

    def __post_init__(self) -> None:
        for name in ("gate", "sentence", "remedy"):
            object.__setattr__(self, name, one_line(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """See the module. `phase` is where the node will stand when the actions have landed."""

    phase: Phase
    reason: Reason
    memory: Memory
    look_again_seconds: float
    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    wants: frozenset[Evidence] = frozenset()

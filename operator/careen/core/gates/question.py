"""What a gate declares: its cost, when the agent asks it, and which evidence it needs."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from datetime import datetime
from enum import StrEnum
from inspect import signature

from msgspec.structs import asdict

from careen.core.decision import Refusal
from careen.core.facts.observation import NodeView, PodView
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.situation import Situation
from scheduler_core.values import Value


class When(StrEnum):
    """The points on the way to a reboot at which an agent asks gates."""

    READY = "before the node gets the label `ready`"
    CLAIMED = "after the node takes its claim"
    BEFORE_REBOOT = "before the host reboots"


ALWAYS = frozenset(When)
BEFORE_THE_CORDON = frozenset({When.READY, When.CLAIMED})


class Cost(StrEnum):
    """Every waiting node asks the cheap gates in each turn; only the next node in line asks the costly ones."""

    CHEAP = "cheap"
    COSTLY = "costly"


class No(Value):
    """What a gate answers if it refuses; the fields are those of `Refusal`."""

    code: Code
    sentence: str
    remedy: str = ""
    is_of_cluster: bool = False
    longest_seconds: float = 0.0
    about: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    lacks: int = 0
    ends: datetime | None = None


_Question = Callable[[Situation], No | None] | Callable[[Situation, When], No | None]
_Needs = AbstractSet[Evidence] | Callable[[Policy], AbstractSet[Evidence]]
_Ends = Callable[[NodeView, Policy], datetime | None]


class Gate(Value):
    """A gate; `gate` makes it of a function and says what the fields mean."""

    name: str
    question: Callable[..., No | None]
    takes_when: bool
    when: frozenset[When]
    cost: Cost
    evidence: _Needs
    ends: _Ends

    def ask(self, situation: Situation, when: When) -> Refusal | None:
        """The gate's refusal; None if it permits the next step, or if it is off."""
        if not self.is_on(situation.policy):
            return None
        no = self.question(situation, when) if self.takes_when else self.question(situation)
        return self.refusal(no) if no else None

    def refusal(self, no: No) -> Refusal:
        """The answer with the gate's name."""
        return Refusal(gate=self.name, **asdict(no))

    def needs(self, policy: Policy) -> frozenset[Evidence]:
        """The evidence that `ask` reads under this policy."""
        return frozenset(self.evidence(policy) if callable(self.evidence) else self.evidence)

    def is_on(self, policy: Policy) -> bool:
        """Whether the policy uses the gate. A gate whose evidence depends on the policy is off if it needs none."""
        return not callable(self.evidence) or bool(self.evidence(policy))


def pods_here(situation: Situation) -> tuple[PodView, ...] | No:
    """The pods of this node, or the refusal of a gate that cannot do without them."""
    pods = situation.seen.pods
    if isinstance(pods, tuple):
        return pods
    return No(Code.PODS_UNKNOWN, f"the pods of this node cannot be listed: {pods.why}")


def gate(
    name: str,
    *,
    cost: Cost,
    when: frozenset[When] = ALWAYS,
    needs: _Needs = frozenset(),
    ends: _Ends = lambda _node, _policy: None,
) -> Callable[[_Question], Gate]:
    """Makes a gate of a function that returns a `No`, or None. The function may take `When` as its second argument.

    `needs`: the evidence beyond what every turn reads, or a function that gives it by the policy (empty: the gate is
    off). `ends`: the instant at which the gate stops refusing this Node, where a plan asks it again; None if the Node
    and the policy do not determine it.
    """
    return lambda question: Gate(name, question, len(signature(question).parameters) > 1, when, cost, needs, ends)

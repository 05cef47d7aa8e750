"""One turn: observe, decide, apply, remember."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from careen.agent.apply import Applier, Hands, Stop
from careen.agent.observe import Observer
from careen.core.decide import decide
from careen.core.decision import Decision
from careen.core.memory import Memory
from careen.core.observation import NodeView, Observation
from careen.core.phases import Evidence, Phase
from careen.core.policy import Policy

_LOG = logging.getLogger("careen.turn")

# Each kind of evidence may be wanted once, and a few of them a second time on fresh data; a decision that goes on
# wanting would be a bug in the core, and must not spin.
_MOST_ROUNDS = 2 * len(Evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """What the turn came to."""

    decision: Decision
    observation: Observation
    stop: Stop | None
    phase: Phase | None
    """Where the node stands, as far as this process knows: a Node that cannot be read has not moved, nor one whose patch did not land; None before the first look."""


class NeverDecided(Exception):
    """The decision went on wanting evidence: our bug. Nothing was applied."""


class Mind:
    """What lasts from turn to turn: the memory and the phase. Lost with the process, and nothing depends on it."""

    def __init__(self, observer: Observer, hands: Hands) -> None:
        self._observer = observer
        self._hands = hands
        self.memory = Memory()
        self.phase: Phase | None = None

    async def turn(self, policy: Policy) -> Turned:
        """One turn, to its end or to the first action that did not surely succeed."""
        seen, decision = await self._decide(policy)
        self.memory = decision.memory
        applier = Applier(self._hands, self.memory, node_uid=_uid(seen), remember=self._remember)
        applied = await applier.apply(decision.actions)
        self.memory = applied.memory
        if applied.is_node_written or applied.stop is not None:
            self._observer.saw_node(applied.node, applied.node_written_at)
        # A decision's phase holds when all its actions have landed.
        if isinstance(seen.node, NodeView) and applied.stop is None:
            self.phase = decision.phase
        return Turned(decision=decision, observation=seen, stop=applied.stop, phase=self.phase)

    async def _decide(self, policy: Policy) -> tuple[Observation, Decision]:
        seen = await self._observer.begin(self.memory, self.phase or Phase.IDLE, policy)
        for _ in range(_MOST_ROUNDS):
            decision = decide(seen, policy)
            if not decision.wants:
                return seen, decision
            _LOG.debug("wants %s", ", ".join(sorted(decision.wants)))
            seen = await self._observer.add(seen, decision.wants, policy)
        raise NeverDecided(f"still wants {', '.join(sorted(decision.wants))} after {_MOST_ROUNDS} rounds")

    def _remember(self, memory: Memory) -> None:
        self.memory = memory


def _uid(seen: Observation) -> str:
    return seen.node.uid if isinstance(seen.node, NodeView) else ""

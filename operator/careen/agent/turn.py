"""Makes one turn of the agent: observe, decide, apply, remember."""

from __future__ import annotations

import logging
from dataclasses import replace

from careen.agent.apply import Applied, Applier, Hands, Owed, Stop
from careen.agent.observe import Observer
from careen.agent.rescue import Rescue
from careen.cluster.nodes import stands
from careen.core.decide import decide
from careen.core.decision import Decision
from careen.core.drain import drain_looks
from careen.core.facts.memory import Memory, having_said, not_yet_said
from careen.core.facts.observation import Gone, NodeView, Observation, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from scheduler_core.values import Value

_LOG = logging.getLogger("careen.turn")

# A decision may want each kind of evidence once, and a few a second time with fresh data. One that wants more is a bug
# in the core and must not loop.
_MOST_ROUNDS = 2 * len(Evidence)

# One patch that may land late is common; each further one was caused by a conflict with it.
_MOST_DEBTS = 3


class Turned(Value, kw_only=True):
    """The outcome of one turn."""

    decision: Decision
    observation: Observation
    stop: Stop | None
    phase: Phase | None
    """The node's phase as far as this process knows. It does not change if the Node cannot be read or the patch did not
    land; None before the first observation."""
    is_told: bool = True
    """Whether the decision's Event and messages were sent, or it had none; otherwise a later turn sends them."""


class _Debt(Value, kw_only=True):
    """The Events and messages of a decision that were not sent, and the Node that they are about."""

    owed: Owed
    decision: Decision
    node_uid: str


class NeverDecided(Exception):
    """The decision wanted more evidence again and again, which is a bug. No action was applied."""


class Mind:
    """The agent's state between turns: the memory and the phase. It ends with the process, so nothing that must be
    correct depends on it."""

    def __init__(self, observer: Observer, hands: Hands) -> None:
        self._observer = observer
        self._hands = hands
        self._rescue = Rescue(hands)
        self._debts: tuple[_Debt, ...] = ()
        self._policy: Policy | None = None
        self.memory = Memory()
        self.phase: Phase | None = None

    async def turn(self, policy: Policy) -> Turned:
        """Makes one turn. It ends after the last action, or at the first action whose success is not certain."""
        self._policy = policy
        seen, decision = await self._decide(policy)
        self.memory = not_yet_said(decision.memory, seen.memory)
        applier = Applier(self._hands, self.memory, node_uid=_uid(seen), remember=self._remember)
        applied = await applier.apply(decision.actions)
        self.memory = applied.memory
        self._told(decision, applied, _uid(seen))
        if applied.is_node_written or applied.stop is not None:
            self._observer.saw_node(applied.node, applied.node_written_at)
        if applied.lock is not None:
            self._observer.saw_lock(applied.lock, applied.lock_written_at)
        if applied.stop is None and (applied.is_node_written or applied.lock is not None):
            self._observer.moves_on()
        # The decision's phase is in force once all of its actions have landed.
        if isinstance(seen.node, NodeView) and applied.stop is None:
            self.phase = decision.phase
        decision = drain_looks.after_evictions(decision, self.memory, uptime=self._hands.host.uptime())
        if await self._rescue.worked(seen.node):
            self._observer.saw_node(None, 0.0)
        return Turned(decision=decision, observation=seen, stop=applied.stop, phase=self.phase, is_told=applied.is_told)

    async def broke(self, error: Exception) -> None:
        """Handles a turn that raised an error or could not begin. The Node is read again, because the last view of it
        may be outdated."""
        self._observer.saw_node(None, 0.0)
        if await self._rescue.broke(error, self._policy):
            self.phase = Phase.FAILED

    async def _decide(self, policy: Policy) -> tuple[Observation, Decision]:
        seen = await self._observer.begin(self.memory, self.phase or Phase.IDLE, policy)
        self._pay(seen.node)
        seen = replace(seen, memory=self.memory)
        for _ in range(_MOST_ROUNDS):
            decision = decide(seen, policy)
            if not decision.wants:
                return seen, decision
            _LOG.debug("wants %s", ", ".join(sorted(decision.wants)))
            seen = await self._observer.add(seen, decision.wants, policy)
        raise NeverDecided(f"the decision still wants {', '.join(sorted(decision.wants))} after {_MOST_ROUNDS} rounds")

    def _told(self, decision: Decision, applied: Applied, uid: str) -> None:
        """Remembers which Events and messages were sent. If it is unclear whether the Node's patch landed, also
        remembers which Events and messages to send later."""
        is_node_told = applied.is_node_written or applied.stop is None
        if applied.is_told:
            self.memory = having_said(self.memory, decision.memory, is_node_told=is_node_told)
        if is_node_told:
            self._debts = ()
        elif applied.owed:
            self._debts = (*self._debts[1 - _MOST_DEBTS :], _Debt(owed=applied.owed, decision=decision, node_uid=uid))

    def _pay(self, node: NodeView | Gone | Unknown) -> None:
        """Sends the Events and messages of an earlier unclear patch if the Node shows that the patch landed. If it did
        not land, the present turn decides again."""
        if not isinstance(node, NodeView):
            return
        landed = [each for each in self._debts if node.uid == each.node_uid and stands(each.owed.patch, node)]
        if not landed:
            return
        debt, self._debts = landed[-1], ()
        Applier(self._hands, self.memory, node_uid=debt.node_uid, remember=self._remember).tell(debt.owed.tellings)
        self._hands.metrics.reasons.labels(self._hands.node_name, debt.decision.reason.code.value).inc()
        self.memory = having_said(self.memory, debt.decision.memory, is_node_told=True)

    def _remember(self, memory: Memory) -> None:
        self.memory = memory


def _uid(seen: Observation) -> str:
    return seen.node.uid if isinstance(seen.node, NodeView) else ""

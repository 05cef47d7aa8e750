"""Makes one turn: observe, decide, apply, remember."""

from __future__ import annotations

import logging
from dataclasses import replace

from careen.agent.apply import Applied, Applier, Hands, Stop, UnsentReports
from careen.agent.observe import Observer
from careen.agent.rescue import Rescue
from careen.cluster.nodes import stands
from careen.core.decide import decide
from careen.core.decision import Decision
from careen.core.drain import drain_pauses
from careen.core.facts.memory import Memory, after_report, before_report
from careen.core.facts.observation import Gone, NodeView, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.observation import Observation
from scheduler_core.values import Value

_LOG = logging.getLogger("careen.turn")

# A decision may want each kind of evidence once, and a few a second time with fresh data. One that wants more is a bug
# in the core and must not loop.
_MOST_ROUNDS = 2 * len(Evidence)

# How many patches whose Events and messages were not sent are remembered. Usually one, with an unknown outcome. If it
# lands late, the next patch conflicts with it and is remembered too.
_MOST_UNSENT = 3


class TurnResult(Value, kw_only=True):
    """The outcome of one turn."""

    decision: Decision
    observation: Observation
    stop: Stop | None
    phase: Phase | None
    """The node's phase as far as this process knows; None before the first observation. It stays if the Node cannot be
    read, or if it is uncertain whether the decision's patch was written."""
    is_reported: bool = True
    """Whether the decision's Event and messages were sent; also true if there were none. If false, a later turn sends
    them."""


class _UnsentDecision(Value, kw_only=True):
    """A decision whose patch of the Node got no response, and the Events and messages about this patch."""

    unsent: UnsentReports
    decision: Decision
    node_uid: str


class NeverDecided(Exception):
    """Every decision of the turn asked for more evidence, which is a bug. No action was applied."""


class Reconciler:
    """Makes turns, and keeps the memory and the node's phase between them. Both are lost with the process, so nothing
    that must be correct depends on them."""

    def __init__(self, observer: Observer, hands: Hands, memory: Memory | None = None) -> None:
        self._observer = observer
        self._hands = hands
        self._rescue = Rescue(hands)
        self._unsent: tuple[_UnsentDecision, ...] = ()
        self._policy: Policy | None = None
        self.memory = memory or Memory()
        self.phase: Phase | None = None

    @property
    def has_unsent(self) -> bool:
        """Whether Events or messages about an earlier patch may still have to be sent."""
        return bool(self._unsent)

    async def turn(self, policy: Policy) -> TurnResult:
        """The turn ends after the last action, or at the first whose success is not certain."""
        self._policy = policy
        seen, decision = await self._decide(policy)
        self.memory = before_report(decision.memory, seen.memory)
        before = seen.node if isinstance(seen.node, NodeView) else None
        applier = Applier(self._hands, self.memory, node_uid=_uid(seen), remember=self._remember, before=before)
        applied = await applier.apply(decision.actions)
        self.memory = applied.memory
        self._remember_reports(decision, applied, _uid(seen))
        if applied.is_node_written or applied.stop is not None:
            self._observer.saw_node(applied.node, applied.node_written_at)
        if decision.memory.versions.behind_since is not None:
            self._observer.saw_node(None, 0.0)  # what is behind is read again, not copied
        if applied.lock is not None:
            self._observer.saw_lock(applied.lock, applied.lock_written_at)
        if applied.stop is None and (applied.is_node_written or applied.lock is not None):
            self._observer.moves_on()
        # The decision's phase is in force once all of its actions have landed.
        if isinstance(seen.node, NodeView) and applied.stop is None:
            self.phase = decision.phase
        decision = drain_pauses.after_evictions(decision, self.memory, uptime=self._hands.host.uptime())
        if await self._rescue.worked(seen.node):
            self._observer.saw_node(None, 0.0)
        return TurnResult(
            decision=decision, observation=seen, stop=applied.stop, phase=self.phase, is_reported=applied.is_reported
        )

    async def broke(self, error: Exception) -> None:
        """Handles a turn that raised an error or could not begin. The next turn reads the Node, because the copy may be
        outdated."""
        self._observer.saw_node(None, 0.0)
        if await self._rescue.broke(error, self._policy):
            self.phase = Phase.FAILED

    async def _decide(self, policy: Policy) -> tuple[Observation, Decision]:
        seen = await self._observer.begin(self.memory, self.phase or Phase.IDLE, policy)
        self._send_unsent(seen.node)
        seen = replace(seen, memory=self.memory)
        for _ in range(_MOST_ROUNDS):
            decision = decide(seen, policy)
            if not decision.wants:
                return seen, decision
            _LOG.debug("wants %s", ", ".join(sorted(decision.wants)))
            seen = await self._observer.add(seen, decision.wants, policy)
        wants = ", ".join(sorted(decision.wants))
        raise NeverDecided(f"after {_MOST_ROUNDS} rounds the decision still requests more facts: {wants}")

    def _remember_reports(self, decision: Decision, applied: Applied, uid: str) -> None:
        """Remembers which Events and messages were sent, and which to send later because the response to the Node's
        patch was lost."""
        is_node_patched = applied.is_node_written or applied.stop is None
        if applied.is_reported:
            self.memory = after_report(self.memory, decision.memory, is_node_patched=is_node_patched)
        if is_node_patched:
            self._unsent = ()
        elif applied.unsent:
            self._unsent = (
                *self._unsent[1 - _MOST_UNSENT :],
                _UnsentDecision(unsent=applied.unsent, decision=decision, node_uid=uid),
            )

    def _send_unsent(self, node: NodeView | Gone | Unknown) -> None:
        """If an earlier patch without a response proves to be on the Node, sends its Events and messages. If not,
        nothing: this turn decides anew."""
        if not isinstance(node, NodeView):
            return
        landed = [each for each in self._unsent if node.uid == each.node_uid and stands(each.unsent.patch, node)]
        if not landed:
            return
        late, self._unsent = landed[-1], ()
        Applier(self._hands, self.memory, node_uid=late.node_uid, remember=self._remember).tell(late.unsent.reports)
        self._hands.metrics.reasons.labels(self._hands.node_name, late.decision.reason.code.value).inc()
        self.memory = after_report(self.memory, late.decision.memory, is_node_patched=True)

    def _remember(self, memory: Memory) -> None:
        self.memory = memory


def _uid(seen: Observation) -> str:
    return seen.node.uid if isinstance(seen.node, NodeView) else ""

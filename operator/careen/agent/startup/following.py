"""When an agent that may sleep begins to follow the ConfigMap of its settings. To load kopf takes nearly as much
processor time as to load the agent, so one that soon sleeps or whose host soon reboots does without."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from careen.agent.turn import TurnResult
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.people.asleep import BREAK_EVEN_SECONDS

READ_SECONDS = 30.0
"""Between two reads of the ConfigMap while the node is not idle: its agent acts on the settings, or soon may."""


class SettingsFollower:
    """Follows at once if the node waits for something that people may change, and otherwise after the time in which an
    agent that sleeps would have read the ConfigMap."""

    def __init__(
        self, *, follow: Callable[[], None], read: Callable[[], Awaitable[None]], now: Callable[[], float]
    ) -> None:
        """`read` reads the ConfigMap once. It was last read just now."""
        self._follow = follow
        self._read = read
        self._now = now
        self._read_at = now()
        self._is_awake = self._has_begun = self._waits_long = self._is_due = False

    def stay_awake(self, *, at_once: bool) -> None:
        """The agent will not sleep after this turn; with `at_once` also not later."""
        self._is_awake = True
        if at_once or self._waits_long:
            self._begin()
        else:
            asyncio.get_running_loop().call_later(BREAK_EVEN_SECONDS, self._begin)

    def saw(self, result: TurnResult) -> None:
        """After each turn."""
        node, decision = result.observation.node, result.decision
        record = node.record if isinstance(node, NodeView) and isinstance(node.record, Progress) else Progress()
        waits = decision.phase is Phase.WAITING and not record.claim
        self._waits_long = decision.phase is Phase.FAILED or (waits and bool(decision.refusals))
        age = self._now() - self._read_at
        claims = decision.phase is Phase.CLAIMING and not record.claim
        asked = decision.reason.code is Code.RECHECK and age >= 1.0
        self._is_due = claims or asked or (decision.phase is not Phase.IDLE and age >= READ_SECONDS)
        if self._is_awake and self._waits_long:
            self._begin()

    async def catch_up(self) -> None:
        """Before the next turn: a node that takes a claim asks all gates again, by the settings of that moment."""
        if self._is_awake and self._is_due and not self._has_begun:
            self._is_due, self._read_at = False, self._now()
            await self._read()

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._follow()

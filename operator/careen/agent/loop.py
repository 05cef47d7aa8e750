"""Runs turn after turn. The last decision says when the next turn begins; it begins earlier if the sentinel file or the
settings change."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from careen.agent.need_watch import FILE_SECONDS, NeedWatch
from careen.agent.telemetry.http_server import Heartbeat
from careen.agent.telemetry.logs import LogContext
from careen.agent.telemetry.metrics import Metrics
from careen.agent.turn import Reconciler, TurnResult
from careen.cluster.wire.transport import Clock
from careen.core.facts.policy import Policy
from careen.core.lock import pauses
from careen.core.node import on_record

_LOG = logging.getLogger("careen.loop")

# For all API requests of one turn together. Each has its own deadline; evictions and dry runs have a time limit, and a
# turn needs only a few others. Whatever else a turn waits for has a deadline in the settings.
REQUESTS_SECONDS = 600.0
_FIRST_PAUSE_SECONDS = 0.5
_FIRST_PAUSE_AFTER_CONFLICT_SECONDS = 0.1  # kubelets and controllers write Nodes and the DaemonSet at any time
_LONGEST_PAUSE_SECONDS = 30.0
_SHORTEST_PAUSE_SECONDS = 0.02


class Loop:
    """Runs turns until it is stopped. It logs an error in a turn and makes another turn, so an agent never ends by
    itself."""

    def __init__(
        self,
        *,
        reconciler: Reconciler,
        policy: Callable[[], Policy],
        need: NeedWatch,
        clock: Clock,
        chance: Callable[[], float],
        place: LogContext,
        metrics: Metrics,
        heartbeat: Heartbeat,
        after_first_turn: Callable[[], None],
        after_turn: Callable[[TurnResult], None] = lambda _: None,
        other_deadlines_seconds: Callable[[], float] = lambda: 0.0,
        rests: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """`other_deadlines_seconds` is how long a turn may wait for anything but the API server. `after_first_turn` is
        called even if that turn raised an error, `after_turn` only after turns without one. `rests` is asked after each
        turn whether the loop ends, because the agent sleeps."""
        self._reconciler = reconciler
        self._policy = policy
        self._need = need
        self._clock = clock
        self._chance = chance
        self._place = place
        self._metrics = metrics
        self._heartbeat = heartbeat
        self._after_first_turn = after_first_turn
        self._after_turn = after_turn
        self._other_deadlines_seconds = other_deadlines_seconds
        self._stops_in_a_row = 0
        self._rests = rests
        self.told = ("", "")  # phase and code of what was logged last, also by the process before this one
        self._is_stopping = False
        self._wakes = False
        self.is_turning = False
        """An agent that is told to stop waits briefly for the end of the turn."""

    async def run(self) -> None:
        """Makes turns, each followed by its pause, until `stop` is called."""
        pause = await self._one_turn()
        is_rest_started = self._starts_the_rest()
        while not self._is_stopping and not await self._lies_down():
            await self._wait(pause)
            if not self._is_stopping:
                pause = await self._one_turn()
                is_rest_started = is_rest_started or self._starts_the_rest()

    async def _lies_down(self) -> bool:
        try:
            return self._rests is not None and not self._wakes and await self._rests()
        except Exception:
            _LOG.exception("the agent could not decide whether it may sleep, so it stays awake")
            return False

    def stop(self) -> None:
        """Prevents further turns."""
        self._is_stopping = True

    def wake(self) -> None:
        """Makes the next turn begin within two seconds: an input of the decision has changed."""
        self._wakes = True

    def _longest_turn_seconds(self) -> float:
        return REQUESTS_SECONDS + self._other_deadlines_seconds()

    async def _one_turn(self) -> float:
        """Makes one turn. Returns the pause after it, in seconds."""
        self._heartbeat.expect_within(self._longest_turn_seconds(), "a turn")
        self.is_turning = True
        started = self._clock.monotonic()
        try:
            result = await self._reconciler.turn(self._policy())
        except Exception as error:
            # After any error the agent must go on, or a cordoned node would be abandoned.
            _LOG.exception("a turn failed with an exception")
            await self._rescue(error)
            return self._broken()
        finally:
            self.is_turning = False
            self._metrics.turn_seconds.labels(self._place.node).observe(self._clock.monotonic() - started)
            self._metrics.last_turn.labels(self._place.node).set(self._clock.now().timestamp())
        try:
            self._after_turn(result)
            return self._after(result)
        except Exception:
            _LOG.exception("a turn succeeded, but the work after it failed with an exception")
            return self._broken()

    def _starts_the_rest(self) -> bool:
        """Whether the parts that wait for the end of the first turn have all started. If not, the loop tries again
        after the next turn."""
        try:
            self._after_first_turn()
        except Exception:
            _LOG.exception("the work after the first turn could not be started; the next turn tries again")
            return False
        return True

    async def _rescue(self, error: Exception) -> None:
        """Reports the error on the Node; after several, puts the node back into service. If that fails too, the next
        turn with an error tries again."""
        try:
            await self._reconciler.broke(error)
        except Exception:
            _LOG.exception(
                "the agent can neither report nor repair a failed turn; after the next failed turn, the "
                "agent tries again to report and repair"
            )

    def _after(self, result: TurnResult) -> float:
        self._tell(result)
        if result.stop is None:
            self._stops_in_a_row = 0
            self._heartbeat.ready()
            self._metrics.turns.labels(self._place.node, "done").inc()
            return min(result.decision.look_again_seconds, pauses.LONGEST_LOOK_SECONDS)
        self._metrics.turns.labels(self._place.node, "stopped").inc()
        _LOG.log(
            logging.ERROR if result.stop.is_refusal else logging.INFO,
            "a turn did not finish, so the agent tries again: %s",
            result.stop.why,
        )
        return self._pause_after_failure(
            _FIRST_PAUSE_AFTER_CONFLICT_SECONDS if result.stop.is_stale else _FIRST_PAUSE_SECONDS
        )

    def _broken(self) -> float:
        self._metrics.turns.labels(self._place.node, "broken").inc()
        return self._pause_after_failure()

    def _pause_after_failure(self, first: float = _FIRST_PAUSE_SECONDS) -> float:
        self._stops_in_a_row += 1
        longest = min(first * 2.0 ** min(self._stops_in_a_row - 1, 10), _LONGEST_PAUSE_SECONDS)
        return longest * (0.5 + 0.5 * self._chance())

    def _tell(self, result: TurnResult) -> None:
        """Updates log and metrics. Logs the reason only if it or the phase has changed."""
        decision, node = result.decision, self._place.node
        self._metrics.show_need(result.observation.need)
        if result.phase is not None:
            self._metrics.show_phase(
                result.phase,
                at=self._clock.now().timestamp(),
                recorded=on_record.phase_since(result.observation.node, result.phase),
            )
        self._metrics.show_need_since(on_record.need_since(result.observation.node))
        self._metrics.show_refusals(decision.refusals)
        self._metrics.show_losses(decision.memory.losses)
        self._metrics.show_overdue(decision.memory.holder_check.overdue)
        if not result.is_reported:
            return  # the actions failed, so the phase did not change; the next turn decides again
        self._place.phase, self._place.reason = result.phase.value if result.phase else "", decision.reason.code.value
        news = (decision.phase.value, decision.reason.code.value)
        if news == self.told:
            return
        self.told = news
        self._metrics.reasons.labels(node, decision.reason.code.value).inc()
        _LOG.info("%s", decision.reason.sentence)
        for refusal in decision.refusals:
            _LOG.info("the gate %s refuses the reboot (%s): %s", refusal.gate, refusal.code.value, refusal.sentence)

    async def _wait(self, seconds: float) -> None:
        """Sleeps until the next turn; ends early if the need has changed."""
        # Zero means "at once"; a short pause still separates turns, or a bug would flood the API server.
        until = self._clock.monotonic() + max(seconds, _SHORTEST_PAUSE_SECONDS)
        self._heartbeat.expect_within(seconds + self._longest_turn_seconds(), "waiting")
        while not self._is_stopping:
            left = until - self._clock.monotonic()
            if left <= 0:
                break
            await self._clock.sleep(min(left, FILE_SECONDS))
            if self._wakes or await self._has_need_changed():
                break
        self._wakes = False

    async def _has_need_changed(self) -> bool:
        try:
            return await self._need.has_changed()
        except Exception as error:
            # The next turn reads the need again and reports an error; here the pause between turns must be kept.
            _LOG.warning(
                "the agent cannot check between two rounds of its loop whether the host needs a reboot: %r", error
            )
            return False

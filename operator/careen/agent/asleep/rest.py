"""Decides after each turn whether the agent may replace itself by the sleeper, and collects what it hands over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import msgspec

from careen.agent.asleep import handover
from careen.agent.asleep.handover import CarriedMemory
from careen.agent.loop import Loop
from careen.agent.need_watch import NeedWatch
from careen.agent.turn import Reconciler, TurnResult
from careen.cluster.access import OptionalRight
from careen.cluster.wire.client import Credentials, user_agent
from careen.core.facts.observation import NodeView
from careen.core.facts.times import span
from careen.core.people import asleep
from careen.host.node_host import LocalHost
from careen.settings.live import KeptSettings
from careen.settings.tree import Settings

_LOG = logging.getLogger("careen.asleep")

_FILES_SECONDS = 2.0
_MOST_SETTINGS = 64 * 1024  # characters; the sleeper holds them in memory
_BUSY_LOOKS, _BUSY_LOOK_SECONDS = 10, 0.05
_BUSY_TURNS = 6  # an agent that is still busy after them starts what an awake agent needs, such as the watch


class SleepAttempt:
    """`begins` is the loop's question after each turn."""

    def __init__(
        self,
        *,
        settings: Callable[[], Settings],
        kept_settings: Callable[[], KeptSettings],
        host: LocalHost,
        need: NeedWatch,
        reconciler: Reconciler,
        credentials: Callable[[], Credentials],
        remembered: CarriedMemory,
        is_busy: Callable[[], bool],
        is_reviewed: Callable[[], bool],
        without: Callable[[], Collection[OptionalRight]],
        not_ready: Callable[[], str],
        signatures: Callable[[], Awaitable[Mapping[str, str]]],
    ) -> None:
        """`signatures` looks at the files that `host` watches. Raises OSError if one cannot be told."""
        self._settings = settings
        self._kept_settings = kept_settings
        self._host = host
        self._need = need
        self._reconciler = reconciler
        self._credentials = credentials
        self._remembered = remembered
        self._is_busy = is_busy
        self._is_reviewed = is_reviewed
        self._without = without
        self._not_ready = not_ready
        self._signatures = signatures
        self._last: TurnResult | None = None
        self._busy_turns = 0
        self.loop: Loop | None = None
        self.if_awake: Callable[[], None] | None = None
        """What an agent needs that stays awake. Called once."""
        self.content: dict[str, Any] | None = None
        """What to hand over; None while the agent must stay awake."""

    def saw(self, result: TurnResult) -> None:
        """After each turn without an error."""
        self._last = result

    @property
    def are_settings_too_long(self) -> bool:
        """Whether the sleeper could not keep them in memory."""
        return self._kept_settings().length > _MOST_SETTINGS

    async def begins(self) -> bool:
        """Whether the agent may sleep now."""
        result, self._last = self._last, None
        verdict = self._verdict(result)
        if isinstance(verdict, str):
            self._stay_awake(verdict)
            return False
        for _ in range(_BUSY_LOOKS):  # what the end of the turn has begun usually ends within milliseconds
            if not self._is_busy():
                break
            await asyncio.sleep(_BUSY_LOOK_SECONDS)
        if self._is_busy() or self._need.is_looking or self._reconciler.has_unsent:
            self._busy_turns += 1
            if self._busy_turns > _BUSY_TURNS:
                self._stay_awake("it is busy")
            return False
        assert result is not None
        self.content = await self._content(result, verdict)
        if self.content is None or self._is_busy():
            self.content = None
            return False
        left = span(round(verdict.until - self._host.uptime()))
        _LOG.info("the agent has nothing to do and sleeps for at most %s", left)
        return True

    def _verdict(self, result: TurnResult | None) -> asleep.Rest | str:
        if result is None or result.stop is not None or not result.is_reported:
            return "the last turn did not finish"
        if self.are_settings_too_long:
            length = self._kept_settings().length
            return f"the ConfigMap has {length} characters, too many to keep while the agent sleeps"
        dues = [self._host.need.longest_uptime_seconds]
        if (due := self._need.next_question) is not None:
            dues.append(self._host.uptime() + due - self._need.now)
        return asleep.may_sleep(
            result.observation,
            result.decision,
            self._reconciler.memory,
            slept=self._remembered.slept,
            next_question=min((each for each in dues if each is not None), default=None),
        )

    def _stay_awake(self, why: str) -> None:
        _LOG.debug("the agent stays awake: %s", why)
        if self.if_awake is not None:
            begin, self.if_awake = self.if_awake, None
            begin()

    async def _content(self, result: TurnResult, verdict: asleep.Rest) -> dict[str, Any] | None:
        """None if the files changed since the turn looked at them, or cannot be read."""
        node, before = result.observation.node, result.observation.need
        assert isinstance(node, NodeView)
        try:
            async with asyncio.timeout(_FILES_SECONDS):
                files = dict(await self._signatures())
                now = await self._need.read()  # after the signatures: a later change differs from them
        except (OSError, TimeoutError):
            return None
        if now.answer is not before.answer and before.request is None:
            return None
        settings, kept, without, loop = self._settings(), self._kept_settings(), self._without(), self.loop
        slept = (*self._remembered.slept, self._host.uptime())[-asleep.MOST_SLEEPS :]
        remembered = CarriedMemory(
            memory=verdict.memory,
            told=loop.told if loop is not None else ("", ""),
            slept=slept,
            is_reviewed=self._is_reviewed(),
            settings=kept,
        )
        return {
            "name": node.name,
            "wake_at": verdict.until,
            "files": files,
            "file_seconds": settings.sentinel_timeout,
            "moment": handover.moment_of(node.name, verdict.memory.agents),
            "node": handover.node_of(node, may_watch=OptionalRight.WATCHING not in without),
            "config": handover.config_of(
                settings.ds_namespace, "" if OptionalRight.SETTINGS in without else settings.config_map, kept
            ),
            "server": handover.server_of(
                self._credentials(), agent=user_agent("agent"), kubeconfig=settings.kubeconfig
            ),
            "not_ready": self._not_ready(),
            "stop_line": handover.stop_line(node.name),
            "remembered": msgspec.to_builtins(remembered),
        }

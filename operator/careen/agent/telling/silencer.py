"""The Alertmanager silence of the node's own alerts while it reboots.

If a request fails, the agent reports it and the reboot continues. A silence ends by itself even if this process dies;
the next process finds it by its comment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from careen.cluster.events import Subject, post_event
from careen.cluster.wire.api import ClusterApi
from careen.core.facts.observation import NodeView, Unknown
from careen.core.facts.phases import Phase
from careen.core.observation import Observation
from careen.settings.tree import Settings

if TYPE_CHECKING:
    from careen.services.silences import Silences

_LOG = logging.getLogger("careen.silence")

_END_PAUSES_SECONDS = (5.0, 30.0)
_DOWN = (Phase.REBOOTING, Phase.VERIFYING)


class Silencer:
    """Silences the node's alerts; one instance per process."""

    def __init__(
        self,
        *,
        node: str,
        api: ClusterApi,
        settings: Callable[[], Settings],
        in_background: Callable[[Coroutine[Any, Any, object]], None],
        silences: Callable[[Settings], Silences],
    ) -> None:
        """`silences` gives this node's silences in the configured Alertmanager."""
        self._node = node
        self._api = api
        self._settings = settings
        self._in_background = in_background
        self._silences = silences
        self._may_stand = False
        self._asked_at: float | None = None
        self._is_busy = False
        self._is_told = False
        self._has_looked = False
        self._subject: Subject | None = None

    async def begin(self) -> None:
        """Requests or extends the silence. Takes a few seconds at most, even if that fails."""
        settings, clock = self._settings(), self._api.clock
        if not settings.alertmanager_silence:
            return
        self._may_stand, self._asked_at = True, clock.monotonic()
        answer = await self._silences(settings).begin(settings.alertmanager_silence, now=clock.now())
        if isinstance(answer, Unknown):
            _LOG.warning("the node's alerts are perhaps not silenced: %s", answer.why)
            self._tell(f"the node's alerts are perhaps not silenced while it reboots: {answer.why}")
        else:
            self._is_told = False
            _LOG.info("the node's alerts are silenced for %g s", settings.alertmanager_silence)

    def look(self, phase: Phase | None, seen: Observation) -> None:
        """After each turn: extends the silence while the node is down, ends it once the node is up."""
        if self._is_busy or not isinstance(seen.node, NodeView):
            return
        self._subject = Subject(kind="Node", name=seen.node.name, uid=seen.node.uid)
        is_first_look, self._has_looked = not self._has_looked, True
        if phase in _DOWN:
            if self._is_due():
                self._start(self.begin())
        elif phase is not Phase.DRAINING and (self._may_stand or (is_first_look and phase is Phase.SETTLING)):
            self._start(self._end())

    def _is_due(self) -> bool:
        """Two thirds of the silence are over, or this process has not requested it. False if the settings request
        none."""
        seconds = self._settings().alertmanager_silence
        age = None if self._asked_at is None else self._api.clock.monotonic() - self._asked_at
        return bool(seconds) and (age is None or age > seconds * 2 / 3)

    async def _end(self) -> None:
        settings = self._settings()
        self._may_stand, self._asked_at = False, None
        if not settings.alertmanager_url or not settings.alertmanager_silence:
            return
        for pause in (*_END_PAUSES_SECONDS, None):
            answer = await self._silences(settings).end()
            if not isinstance(answer, Unknown):
                _LOG.info("the silence of the node's alerts is over")
                return
            _LOG.warning("the silence of the node's alerts could not be ended; it ends by itself: %s", answer.why)
            if pause is not None:
                await self._api.clock.sleep(pause)
            if self._may_stand:
                return  # the next reboot has requested it in the meantime

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._is_busy = True

        async def alone() -> None:
            try:
                await work
            finally:
                self._is_busy = False

        self._in_background(alone())

    def _tell(self, sentence: str) -> None:
        """Posts an Event about a failed request for a silence; the next only after a request has succeeded."""
        if self._is_told or self._subject is None:
            return
        self._is_told = True
        self._in_background(
            post_event(
                self._api,
                self._subject,
                reason="SilenceFailed",
                sentence=sentence,
                is_warning=True,
                host=self._node,
            )
        )

"""Messages to people: kured's three and one for a failure, worded from the settings, logged, and sent in the
background.

Never part of a turn: a message that cannot be sent is logged and counted, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from careen.agent.telemetry.metrics import Metrics
from careen.core.actions import Notify, Occasion
from careen.core.plain_text import lines, one_line
from careen.services import notification_files
from careen.services.notification_urls import Target
from careen.services.notify import Outcome, send
from careen.settings.tree import Settings

_LOG = logging.getLogger("careen.messages")

# With one that hangs for its whole deadline the last of them is some minutes old; older news helps nobody.
_MOST_WAITING = 10


class Messenger:
    """Sends one message after another, in the order in which they were told."""

    def __init__(
        self,
        *,
        node: str,
        settings: Callable[[], Settings],
        metrics: Metrics,
        in_background: Callable[[Coroutine[Any, Any, object]], None],
        send: Callable[..., Awaitable[Sequence[Outcome]]] = send,
    ) -> None:
        self._node = node
        self._settings = settings
        self._metrics = metrics
        self._in_background = in_background
        self._send = send
        self._one_at_a_time = asyncio.Lock()
        self._told: set[tuple[Occasion, str]] = set()
        self._waiting = 0
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()

    def tell(self, message: Notify) -> None:
        """Logs the message and sends it to whom the settings name; at once, and without waiting for anything."""
        if self._is_told(message):
            return
        text = wording(message, self._settings(), self._node)
        _LOG.info("message to people: %s", text, extra={"occasion": message.occasion.value})
        targets = self._receivers()
        if not targets:
            return
        if self._waiting >= _MOST_WAITING:
            self._count([Outcome(service=target.service, why="too many messages wait") for target in targets])
            return
        self._waiting += 1
        self._is_quiet.clear()
        self._in_background(self._deliver(text, targets))

    def _receivers(self) -> tuple[Target, ...]:
        """Whom the settings and their files name now; what is wrong with a file counts as a message not sent."""
        settings = self._settings()
        found = notification_files.read(settings.notify_url_file)
        self._count([Outcome(service="file", why=why) for why in (*found.unread, *found.refused)])
        return receivers(settings, found.targets)

    def _is_told(self, message: Notify) -> bool:
        """Whether this occasion of this claim was told before; only those of the newest claim are remembered."""
        event = (message.occasion, message.claim)
        if not message.claim or event in self._told:
            return bool(message.claim)
        self._told = {event, *(each for each in self._told if each[1] == message.claim)}
        return False

    async def finish(self, *, seconds: float) -> None:
        """Waits until nothing is on its way any more, at most so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._is_quiet.wait()
        except TimeoutError:
            _LOG.info("a message to people is still on its way; it is left to itself")

    async def _deliver(self, text: str, targets: Sequence[Target]) -> None:
        try:
            async with self._one_at_a_time:
                self._count(await self._send(text, targets, seconds=self._settings().notify_timeout))
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._is_quiet.set()

    def _count(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            self._metrics.messages.labels(self._node, outcome.service, "failed" if outcome.why else "sent").inc()
            if outcome.why:
                _LOG.warning("the message to people by %s was not sent: %s", outcome.service, outcome.why)


def receivers(settings: Settings, in_files: tuple[Target, ...] = ()) -> tuple[Target, ...]:
    """Whom the settings name, each once; the deprecated flag counts only where the others are not given, as with
    kured."""
    if settings.notify_url or settings.notify_url_file:
        found: list[Target] = []
        for target in (*settings.notify_url, *in_files):
            if target not in found:
                found.append(target)
        return tuple(found)
    return (settings.slack_hook_url,) if settings.slack_hook_url else ()


_TEMPLATES = {
    Occasion.DRAIN: "message_template_drain",
    Occasion.REBOOT: "message_template_reboot",
    Occasion.UNCORDON: "message_template_uncordon",
}


def wording(message: Notify, settings: Settings, node: str) -> str:
    """The text: of the template for the occasion, or the message's own sentence where there is none."""
    template = getattr(settings, _TEMPLATES[message.occasion]) if message.occasion in _TEMPLATES else ""
    return lines(_filled(template, one_line(node)) or message.sentence)


def _filled(template: str, node: str) -> str:
    """`%s` is the node and `%%` a percent sign, read from left to right as Go reads them."""
    return "%".join(part.replace("%s", node) for part in template.split("%%"))

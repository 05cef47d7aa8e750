"""Messages to people, for example in Slack, on seven occasions, three of which are kured's. The settings have the
texts.

The loop waits for none. A message that cannot be sent is logged and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from careen.agent.telemetry.metrics import Metrics
from careen.core.actions import Notify, Occasion
from careen.core.people.templates import FIGURES, filled, spoken
from careen.core.plain_text import lines, one_line
from careen.services import notification_files
from careen.services.notification_urls import Target
from careen.services.notify import Delivery, send
from careen.settings.tree import Settings

if TYPE_CHECKING:
    from careen.core.people.rollout import Figures

_LOG = logging.getLogger("careen.messages")

# If a receiver hangs until its deadline, the last queued message is some minutes old; older ones are useless.
_MOST_WAITING = 10
_LONGEST = 16_000  # characters; chat programs take a few thousand, or cut the text themselves


class Messenger:
    """Sends messages one after another, in order."""

    def __init__(
        self,
        *,
        node: str,
        settings: Callable[[], Settings],
        metrics: Metrics,
        in_background: Callable[[Coroutine[Any, Any, object]], None],
        send: Callable[..., Awaitable[Sequence[Delivery]]] = send,
        figures: Callable[[], Awaitable[Figures | None]] | None = None,
    ) -> None:
        """`figures` reads the figures of a roll-out; called only for the message about its end."""
        self._node = node
        self._settings = settings
        self._metrics = metrics
        self._in_background = in_background
        self._send = send
        self._figures = figures
        self._one_at_a_time = asyncio.Lock()
        self._told: set[tuple[Occasion, str]] = set()
        self._waiting = 0
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()
        metrics.show_receivers(self._services())

    def tell(self, message: Notify) -> None:
        """Logs the message and sends it in the background, if the settings include its occasion."""
        if message.occasion not in self._settings().notify_on or self._is_told(message):
            return
        targets = self._receivers()
        if not targets:
            self._worded(message)
            return
        if self._waiting >= _MOST_WAITING:
            self._count(
                [Delivery(service=target.service, why="too many messages are waiting to be sent") for target in targets]
            )
            return
        self._waiting += 1
        self._is_quiet.clear()
        is_looked_up = message.occasion is Occasion.DONE and self._figures is not None
        self._in_background(self._deliver(message, "" if is_looked_up else self._worded(message), targets))

    def is_wanted(self, occasion: Occasion) -> bool:
        """Whether the settings include the occasion and there is a receiver: in the settings, in a file, or in kured's
        deprecated --slack-hook-url."""
        settings = self._settings()
        is_anybody_told = settings.notify_url or settings.notify_url_file or settings.slack_hook_url
        return occasion in settings.notify_on and bool(is_anybody_told)

    def _worded(self, message: Notify, found: Figures | None = None) -> str:
        """The message's text, which is also logged."""
        text = wording(message, self._settings(), self._node, found)
        _LOG.info("the agent tells people: %s", text, extra={"occasion": message.occasion.value})
        return text

    def _receivers(self) -> tuple[Target, ...]:
        """The receivers in settings and files. A problem with a file counts as a failed message."""
        settings = self._settings()
        found = notification_files.read(settings.notify_url_file)
        self._count([Delivery(service="file", why=why) for why in (*found.unread, *found.refused)])
        return receivers(settings, found.targets)

    def _services(self) -> set[str]:
        """The services that may get messages; `file` if a file of receivers is configured."""
        settings = self._settings()
        targets = receivers(settings, notification_files.read(settings.notify_url_file).targets)
        return {target.service for target in targets} | ({"file"} if settings.notify_url_file else set())

    def _is_told(self, message: Notify) -> bool:
        """Whether `tell` has handled a message with this occasion and claim. Remembers the message if not, and forgets
        those of other claims. Never true for a message without a claim."""
        event = (message.occasion, message.claim)
        if not message.claim or event in self._told:
            return bool(message.claim)
        self._told = {event, *(each for each in self._told if each[1] == message.claim)}
        return False

    async def finish(self, *, seconds: float) -> None:
        """Waits until all messages are sent."""
        try:
            async with asyncio.timeout(seconds):
                await self._is_quiet.wait()
        except TimeoutError:
            _LOG.info("a message to people is still being sent; the agent ends without waiting for the receiver")

    async def _deliver(self, message: Notify, text: str, targets: Sequence[Target]) -> None:
        try:
            text = text or self._worded(message, await self._figures() if self._figures else None)
            async with self._one_at_a_time:
                self._count(await self._send(text, targets, seconds=self._settings().notify_timeout))
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._is_quiet.set()

    def _count(self, outcomes: Sequence[Delivery]) -> None:
        for outcome in outcomes:
            self._metrics.messages.labels(self._node, outcome.service, "failed" if outcome.why else "sent").inc()
            if outcome.why:
                _LOG.warning("the message to people through %s was not sent: %s", outcome.service, outcome.why)


def receivers(settings: Settings, in_files: tuple[Target, ...] = ()) -> tuple[Target, ...]:
    """The receivers in the settings and in `in_files`, each once. As in kured, the deprecated --slack-hook-url counts
    only if no other flag for receivers is set."""
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
    Occasion.BLOCKED: "message_template_blocked",
    Occasion.HALTED: "message_template_halted",
    Occasion.DONE: "message_template_done",
}


def wording(message: Notify, settings: Settings, node: str, figures: Figures | None = None) -> str:
    """The template for the message's occasion, filled in; without a template the message's own sentence."""
    template = getattr(settings, _TEMPLATES[message.occasion]) if message.occasion in _TEMPLATES else ""
    values = _values(message, settings, node, figures)
    text = filled(template, values) or _own_words(message, values, figures)
    return lines(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def _values(message: Notify, settings: Settings, node: str, figures: Figures | None) -> dict[str, str]:
    """The fields of a template; unknown ones are `unknown`."""
    seconds = figures.seconds if figures is not None else message.seconds
    found = {name: str(getattr(figures, name)) if figures is not None else "unknown" for name in FIGURES}
    values = {
        "node": node,
        "cluster": settings.cluster_name,
        "reason": message.reason or "unknown",
        "duration": "unknown" if seconds is None else spoken(seconds),
        "forecast": message.forecast or "no forecast",
        **found,
    }
    return {name: one_line(value) for name, value in values.items()}


def _own_words(message: Notify, values: Mapping[str, str], figures: Figures | None) -> str:
    if message.occasion is not Occasion.DONE or figures is None:
        return message.sentence
    counted = (("nodes", "node"), ("pods", "pod"), ("failures", "failed try"))
    nodes, pods, failures = (_count(getattr(figures, name), word) for name, word in counted)
    return f"{message.sentence}: {nodes} in {values['duration']}, {pods} moved, {failures}"


def _count(number: int, word: str) -> str:
    many = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{number} {word if number == 1 else many}"

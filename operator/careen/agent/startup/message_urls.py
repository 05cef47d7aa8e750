"""Checks the receivers of messages, as far as possible without sending one."""

from __future__ import annotations

import logging

from careen.core.plain_text import one_line
from careen.services import notification_files
from careen.services.notify import Delivery, refusals
from careen.settings.sources import BadSettings, Resolved

_LOG = logging.getLogger("careen.config")

# apprise loads all its services to check one URL: a second, and longer on a busy node.
_JUDGE_SECONDS = 30.0


async def judge(resolved: Resolved) -> None:
    """Checks each URL in --notify-url and each line of the files in --notify-url-file; apprise checks the URLs of its
    own form.

    Warns about unreadable files. Raises `BadSettings` for URLs that can never work.
    """
    settings = resolved.settings
    where, files = resolved.origins["notify_url"].where, resolved.origins["notify_url_file"].where
    found = notification_files.read(settings.notify_url_file)
    for sentence in found.unread:
        _LOG.warning(
            "%s: %s; the receivers in this file get messages as soon as the agent can read the file", files, sentence
        )
    for target in found.targets:
        if target.remark:
            _LOG.warning("%s: a receiver in these files has a problem: %s", files, target.remark)
    problems = [f"{files}: {sentence}" for sentence in found.refused]
    for given, targets in ((where, settings.notify_url), (files, found.targets)):
        problems += [_sentence(given, outcome) for outcome in await refusals(targets, seconds=_JUDGE_SECONDS)]
    if problems:
        raise BadSettings(problems)


async def tell(resolved: Resolved) -> None:
    """Checks the receivers of changed settings, and only logs the problems."""
    try:
        await judge(resolved)
    except BadSettings as error:
        for problem in error.problems:
            _LOG.error("the agent cannot send messages to a configured receiver: %s", problem)


def _sentence(given: str, outcome: Delivery) -> str:
    return f"{given}: {outcome.service}: {one_line(outcome.why)}"

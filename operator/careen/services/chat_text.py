"""Text for programs that read markup in messages: a name or a reason must not notify a channel, or look like a link.

The programs have many dialects (Slack's entities and `<!channel>`, Discord's and Mattermost's Markdown and `@everyone`,
Telegram's and Matrix's HTML, Teams' cards), and libraries translate between them. No escape is right in all of them, so
the few characters that begin a mention, a link, a tag or code become others that look like them. `*` and `_` stay:
people use them in templates, and in a name they change only its look.
"""

from __future__ import annotations

import re

from careen.services.notification_urls import DeliveryMethod, Target

_LOOK_ALIKES = str.maketrans({"<": "‹", ">": "›", "&": "＆", "@": "＠", "[": "［", "]": "］", "`": "'", "\\": "＼"})
_MENTION = re.compile(r"!(?=\w)")  # apprise makes Slack's `<!channel>` of `!channel`
_PLAIN = frozenset(
    "amqp amqps form forms json jsons mailto mailtos mqtt mqtts rsyslog sns syslog xml xmls".split()  # noqa: SIM905
)
"""apprise's schemes whose receivers are programs or mail, which shows text as it is."""


def for_target(text: str, target: Target) -> str:
    """The text as this receiver may get it. Programs get it unchanged."""
    if target.way is DeliveryMethod.APPRISE:
        reads_markup = target.url.partition("://")[0].lower() not in _PLAIN
    else:
        reads_markup = target.way is DeliveryMethod.CARD or target.service == "teams"
    return without_markup(text) if reads_markup else text


def without_markup(text: str) -> str:
    """Without mentions, links, tags and code."""
    return _MENTION.sub("！", text.translate(_LOOK_ALIKES))

"""The two kinds of Microsoft Teams URLs: workflows of Power Automate, which expect a card, and connectors, which
Microsoft has switched off.

Sources: the URLs of "When an HTTP request is received" (Power Automate and Logic Apps, Microsoft Learn), the adaptive
card that "Post to a channel when a webhook request is received" expects, and the retirement of Office 365 connectors
within Teams (Microsoft 365 developer blog).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

# Hosts of workflows in the public cloud and in those of the US government and of China. The first form is from before
# 2025.
_HOSTS = re.compile(
    r"([a-z0-9-]+\.)+("
    r"logic\.azure\.(com|us|cn)"
    r"|environment\.api\.powerplatform\.com"
    r"|environment\.api\.(gov|high)\.powerplatform\.microsoft\.us"
    r"|environment\.api\.appsplatform\.us"
    r"|environment\.api\.powerplatform\.partner\.microsoftonline\.cn"
    r")"
)
_WORKFLOW = re.compile(r"(/[A-Za-z0-9_-]+)*/workflows/[A-Za-z0-9_-]+/triggers/[A-Za-z0-9_-]+/paths/invoke/?")
_CONNECTORS = re.compile(r"(outlook\.office(365)?\.com|[a-z0-9-]+\.webhook\.office\.com)")

CONNECTORS_ARE_OFF = (
    "the URL belongs to an Office 365 connector of Teams, and Microsoft has switched these connectors off: create a "
    'workflow in the channel ("Post to a channel when a webhook request is received") and give the URL of the workflow '
    "unchanged"
)


def is_workflow(url: str) -> bool:
    """Raises ValueError, without any part of the URL, if a workflow's URL is incomplete or unencrypted."""
    parts = urlsplit(url)
    if not _HOSTS.fullmatch(parts.hostname or ""):
        return False
    if parts.scheme.lower() != "https" or parts.username is not None:
        raise ValueError("teams: expected a workflow URL that begins with https:// and contains no user name")
    if not _WORKFLOW.fullmatch(parts.path) or not "".join(parse_qs(parts.query).get("sig", [])).strip():
        raise ValueError(
            "teams: expected the whole URL of the workflow, …/workflows/ID/triggers/…/paths/invoke?…&sig=SIGNATURE; "
            "only signed-in users may call a URL without sig="
        )
    return True


def is_connector(url: str) -> bool:
    """Whether the URL belongs to an Office 365 connector."""
    parts = urlsplit(url)
    return (
        parts.scheme.lower() == "https"
        and _CONNECTORS.fullmatch(parts.hostname or "") is not None
        and parts.path.startswith(("/webhook/", "/webhookb2/"))
    )


def card(text: str) -> dict[str, Any]:
    """The adaptive card that a workflow expects. Line breaks are doubled, because in Markdown a single one begins no
    new line."""
    return {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": None,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [{"type": "TextBlock", "text": "\n\n".join(text.splitlines()), "wrap": True}],
                    "msteams": {"width": "Full"},
                },
            }
        ],
    }

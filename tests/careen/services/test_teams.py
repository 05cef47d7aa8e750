"""Tests URLs of Microsoft Teams: workflows as people paste them, and connectors, which no longer work."""

from __future__ import annotations

import json

import pytest

from careen.services.notification_urls import DeliveryMethod, Target, parse
from careen.services.notify import Delivery, send
from careen.services.teams import card
from tests.careen.services.webhook import running_webhook
from tests.patience import LONG_SECONDS

WORKFLOW = "/workflows/643e69f83c8944438d68119179a10a64/triggers/manual/paths/invoke"
QUERY = "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=SECRETWORDbWbDGYFr0z0eu-6Rj8aUKz7108"
DIRECT = "/powerautomate/automations/direct"

PASTED = [
    f"https://prod-161.westeurope.logic.azure.com:443{WORKFLOW}{QUERY}",
    f"https://prod-161.westeurope.logic.azure.com{DIRECT}{WORKFLOW}{QUERY}",
    f"https://prod-01.usgovtexas.logic.azure.us:443{WORKFLOW}{QUERY}",
    f"https://defaultabc0123.09.environment.api.powerplatform.com:443{DIRECT}{WORKFLOW}{QUERY}",
    f"https://abc0123.d7.environment.api.powerplatform.com{DIRECT}/cu/05{WORKFLOW}{QUERY}",
    f"https://abc0123.d7.environment.api.gov.powerplatform.microsoft.us{DIRECT}{WORKFLOW}{QUERY}",
    f"https://Prod-161.WestEurope.logic.azure.com:443{WORKFLOW.replace('manual', 'When_a_request_is_received')}{QUERY}",
]


@pytest.mark.parametrize("url", PASTED)
def test_the_url_of_a_teams_workflow_is_accepted_unchanged(url: str) -> None:
    target = parse(url)
    assert (target.service, target.way, target.url, target.remark) == ("teams", DeliveryMethod.CARD, url, "")
    assert not target.is_native, "the ConfigMap may contain this URL"
    assert "SECRETWORD" not in repr(target)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (f"http://prod-161.westeurope.logic.azure.com{WORKFLOW}{QUERY}", "URL that begins with https://"),
        (f"https://me:pw@prod-161.westeurope.logic.azure.com{WORKFLOW}{QUERY}", "URL that begins with https://"),
        (f"https://prod-161.westeurope.logic.azure.com{WORKFLOW}", "teams: expected the whole URL of the workflow"),
        (
            f"https://prod-161.westeurope.logic.azure.com{WORKFLOW}?api-version=1&sig=",
            "teams: expected the whole URL of the workflow",
        ),
        (f"https://prod-161.westeurope.logic.azure.com/{QUERY}", "teams: expected the whole URL of the workflow"),
        (f"https://logic.azure.com.example.com{WORKFLOW}{QUERY}", "expected a shoutrrr URL"),
        (f"https://example.com/logic.azure.com{WORKFLOW}{QUERY}", "expected a shoutrrr URL"),
        (f"https://examplelogic.azure.com{WORKFLOW}{QUERY}", "expected a shoutrrr URL"),
    ],
)
def test_an_incomplete_workflow_url_is_refused_without_showing_its_secret(url: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as error:
        parse(url)
    assert "SECRETWORD" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "teams://group@tenant/alternative/owner?host=example.webhook.office.com",
        "https://example.webhook.office.com/webhookb2/group@tenant/IncomingWebhook/alternative/owner",
        "https://outlook.office.com/webhook/group@tenant/IncomingWebhook/alternative/owner",
    ],
)
def test_a_connector_url_is_accepted_with_a_warning_that_shows_the_remedy(url: str) -> None:
    target = parse(url)
    assert (target.service, target.way) == ("teams", DeliveryMethod.JSON)
    assert "Microsoft has switched these connectors off: create a workflow" in target.remark


async def test_a_teams_workflow_receives_a_card_with_the_message() -> None:
    with running_webhook(status=202) as hook:
        target = Target(service="teams", way=DeliveryMethod.CARD, url=f"http://{hook.address}{WORKFLOW}{QUERY}")
        assert await send("Draining node n1\nin prod", [target], seconds=LONG_SECONDS) == (Delivery(service="teams"),)
    ((verb, path, body, headers),) = hook.got
    assert (verb, path, headers["Content-Type"]) == ("POST", f"{WORKFLOW}{QUERY}", "application/json")
    (attachment,) = json.loads(body)["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attachment["content"]["body"][0]["text"] == "Draining node n1\n\nin prod"


async def test_a_refusal_by_a_teams_workflow_is_reported_with_its_status() -> None:
    with running_webhook(status=401) as hook:
        target = Target(service="teams", way=DeliveryMethod.CARD, url=f"http://{hook.address}{WORKFLOW}{QUERY}")
        assert await send("x", [target], seconds=LONG_SECONDS) == (Delivery(service="teams", why="status 401"),)


def test_an_empty_message_is_also_sent_as_a_card() -> None:
    assert card("")["attachments"][0]["content"]["body"][0]["text"] == ""

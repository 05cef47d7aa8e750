"""Tests that a name or a reason in a message notifies nobody and is no link in a chat program."""

from __future__ import annotations

import json

import pytest

from careen.services.chat_text import for_target, without_markup
from careen.services.notification_urls import DeliveryMethod, Target, parse
from careen.services.notify import send
from tests.careen.services.webhook import running_webhook
from tests.patience import LONG_SECONDS

HOSTILE = (
    "@everyone @here @channel @room <!channel> <!here|x> <@U123> <@&456> <#C1> !channel &lt;!channel&gt; "
    "[x](http://evil) ![x](http://evil/y.png) <http://evil|n1> `rm` ```x``` <b>n1</b> <script>x</script> "
    "<a href=http://evil>n1</a> <at>all</at> \\@everyone"
)
BEGINNINGS = ("@", "<", ">", "&", "[", "]", "`", "!c", "!h", "\\")


def test_a_hostile_name_has_nothing_that_begins_a_mention_a_link_a_tag_or_code() -> None:
    shown = without_markup(HOSTILE)
    assert [each for each in BEGINNINGS if each in shown] == []
    assert len(shown) == len(HOSTILE)


@pytest.mark.parametrize("text", ["Draining node n1", "*Rebooting* node_1: 3 pods moved!", "n1 failed: 5 of 7 (71 %)"])
def test_ordinary_messages_and_formatting_of_templates_stay_as_they_are(text: str) -> None:
    assert without_markup(text) == text


def target(url: str) -> Target:
    return Target(service="x", url=url)


@pytest.mark.parametrize(
    "url",
    ["slack://a/b/c", "discord://1/x", "mmost://h/x", "mmosts://h/x", "tgram://x/1", "matrixs://h/x", "rocket://h/x",
     "workflows://h/x", "wxteams://x", "gchat://x", "zulip://x", "a-scheme-of-tomorrow://x"],
)  # fmt: skip
def test_chat_programs_get_no_markup(url: str) -> None:
    assert for_target(HOSTILE, target(url)) == without_markup(HOSTILE)


@pytest.mark.parametrize("url", ["mailto://x", "json://x", "syslog://", "XML://x"])
def test_mail_and_programs_get_the_text_unchanged(url: str) -> None:
    assert for_target(HOSTILE, target(url)) == HOSTILE


def test_generic_webhooks_get_the_text_unchanged_and_teams_cards_do_not() -> None:
    assert for_target(HOSTILE, parse("generic+https://h/x")) == HOSTILE
    card = Target(service="teams", way=DeliveryMethod.CARD, url="https://x")
    assert for_target(HOSTILE, card) == without_markup(HOSTILE)
    assert for_target(HOSTILE, Target(service="teams", way=DeliveryMethod.JSON)) == without_markup(HOSTILE)


async def test_what_a_chat_server_receives_contains_no_mention_and_no_link() -> None:
    with running_webhook() as hook:
        url = f"mattermost://{hook.address}/abcdefghijklmnopqrstuvwx?disabletls=yes"
        (outcome,) = await send(HOSTILE, [parse(url)], seconds=LONG_SECONDS)
        assert outcome.why == ""
    (sent,) = hook.texts
    text = json.loads(sent)["text"]
    assert "everyone" in text
    for each in ("@everyone", "<!channel", "!channel", "&lt;", "](http", "<http", "`", "<script"):
        assert each not in text

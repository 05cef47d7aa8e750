"""Tests the URLs of shoutrrr. careen converts each documented form to an address that apprise accepts, and no error
message contains a secret."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.services.notification_urls import DeliveryMethod, Target, parse, secrets_of, slack_hook

# apprise imports a deprecated module of Python for picture types.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

# Each form in shoutrrr's documentation, and the parts of it that must occur in apprise's URL.
KNOWN = [
    ("bark://:devicekey@bark.example.com", ["barks://bark.example.com/devicekey"]),
    (
        "discord://token_x-Y@123456789012345678?thread_id=42&username=careen",
        ["discord://careen@123456789012345678/token_x-Y/", "thread=42"],
    ),
    ("googlechat://chat.googleapis.com/v1/spaces/FOO/messages?key=bar&token=baz", ["gchat://FOO/bar/baz"]),
    (
        "gotify://gotify.example.com:8443/base/AzyoeNS.D4iJLVa?priority=8",
        ["gotifys://gotify.example.com:8443/base/AzyoeNS.D4iJLVa"],
    ),
    ("gotify://gotify.example.com/AzyoeNS.D4iJLVa?disabletls=yes", ["gotify://gotify.example.com/AzyoeNS.D4iJLVa"]),
    ("ifttt://keyABC/?events=one,two", ["ifttt://keyABC@one/two"]),
    (
        "join://shoutrrr:0123456789abcdef0123456789abcdef@join/?devices=0123456789abcdef0123456789abcdee",
        ["join://0123456789abcdef0123456789abcdef/0123456789abcdef0123456789abcdee"],
    ),
    (
        "matrix://user:pass%2Fword@matrix.example.com:8448/?rooms=!abc:example.com",
        ["matrixs://user:pass/word@matrix.example.com:8448/!abc:example.com"],
    ),
    ("matrix://:tokentoken@matrix.example.com/?rooms=ops", ["matrixs://tokentoken@matrix.example.com/ops"]),
    (
        "mattermost://bot@mm.example.com/abcdefghijklmnopqrstuvwx/town-square",
        ["mmosts://bot@mm.example.com/abcdefghijklmnopqrstuvwx", "to=#town-square"],
    ),
    (
        "ntfy://u:p@ntfy.example.com/alerts?priority=4&tags=a,b",
        ["ntfys://u:p@ntfy.example.com/alerts", "priority=high", "tags=a,b"],
    ),
    (
        "ntfy://:tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2@ntfy.sh/alerts",
        ["ntfys://tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2@ntfy.sh/alerts", "auth=token"],
    ),
    (
        "opsgenie://api.eu.opsgenie.com/eb243592-faa2-4ba2-a551q-1afdf565c889",
        ["opsgenie://eb243592-faa2-4ba2-a551q-1afdf565c889", "region=eu"],
    ),
    ("pushbullet://o.abcdefghijklmnopqrstuvwxyz012345#chan", ["pbul://o.abcdefghijklmnopqrstuvwxyz012345/#chan"]),
    (
        "pushover://shoutrrr:azGDORePK8gMaC0QOYAMyEEuzJnyUi@uQiRzpo4DXghDmr9QzzfQu27cmVRsG/?devices=phone",
        ["pover://uQiRzpo4DXghDmr9QzzfQu27cmVRsG@azGDORePK8gMaC0QOYAMyEEuzJnyUi/phone"],
    ),
    (
        "rocketchat://bot@chat.example.com:8443/8eGdRzc9r4YYNyvge/2XYQcX9NBwJBKfQnphpebPcnXZcPEi32Nt4NKJfrnbhsbRfX/general",
        [
            "rockets://bot:8eGdRzc9r4YYNyvge/2XYQcX9NBwJBKfQnphpebPcnXZcPEi32Nt4NKJfrnbhsbRfX@chat.example.com:8443/#general"
        ],
    ),
    (
        "rocketchat://chat.example.com/8eGdRzc9r4YYNyvge/2XYQcX9NBwJBKfQnphpebPcnXZcPEi32Nt4NKJfrnbhsbRfX/@bob",
        ["@chat.example.com/@bob"],
    ),
    (
        "slack://careen@T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        ["slack://careen@T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "mode=hook"],
    ),
    (
        "slack://hook:T00000000-B00000000-XXXXXXXXXXXXXXXXXXXXXXXX@webhook",
        ["slack://T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "mode=hook"],
    ),
    (
        "slack://xoxb:123456789012-1234567890123-4mt0t4l1YL3g1T5L4cK70k3N@C001CHANNEL?botname=careen",
        ["slack://careen@xoxb-123456789012-1234567890123-4mt0t4l1YL3g1T5L4cK70k3N/+C001CHANNEL", "mode=bot"],
    ),
    (
        "slack://xoxb:123456789012-1234567890123-4mt0t4l1YL3g1T5L4cK70k3N@ops",
        ["slack://xoxb-123456789012-1234567890123-4mt0t4l1YL3g1T5L4cK70k3N/#ops"],
    ),
    (
        "smtp://user:pass@mail.example.com:587/?from=a@example.com&to=b@example.com,c@example.com",
        ["mailtos://user:pass@mail.example.com", "/b@example.com/c@example.com", "mode=starttls", "from=a@example.com"],
    ),
    (
        "smtp://mail.example.com/?fromAddress=a@example.com&toAddresses=b@example.com&useStartTLS=no",
        ["mailto://mail.example.com/b@example.com"],
    ),
    (
        "telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?chats=@channel,-1001234567890",
        ["tgram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/", "-1001234567890", "@channel"],
    ),
    (
        "zulip://careen-bot%40example.zulipchat.com:MHJhmYxZkYYzZmZmYxZkYYzZmZmYxZkY@example.zulipchat.com/?stream=ops&topic=reboots",
        ["zulip://careen@example/MHJhmYxZkYYzZmZmYxZkYYzZmZmYxZkY/ops"],
    ),
]


@pytest.mark.parametrize(
    ("url", "expected"), KNOWN, ids=[url.split(":")[0] + str(number) for number, (url, _) in enumerate(KNOWN)]
)
def test_a_documented_url_is_accepted_by_apprise(url: str, expected: list[str]) -> None:
    import apprise

    target = parse(url)
    assert target.way is DeliveryMethod.APPRISE
    accepted = apprise.Apprise.instantiate(target.url)
    assert accepted is not None
    text = unquote(accepted.url(privacy=False))
    assert [piece for piece in expected if piece not in text] == []


def test_messages_to_teams_workflows_are_sent_without_apprise() -> None:
    target = parse("teams://group@tenant/alternative/owner?host=example.webhook.office.com")
    assert (target.way, target.message_key) == (DeliveryMethod.JSON, "text")
    assert target.url == "https://example.webhook.office.com/webhookb2/group@tenant/IncomingWebhook/alternative/owner"


@pytest.mark.parametrize(
    ("url", "way", "expected"),
    [
        ("generic://hook.example.com/a/b?x=1", DeliveryMethod.TEXT, "https://hook.example.com/a/b?x=1"),
        ("generic+http://hook.example.com:8080", DeliveryMethod.TEXT, "http://hook.example.com:8080/"),
        (
            "generic+https://u:p@hook.example.com/a?template=json&messagekey=text",
            DeliveryMethod.JSON,
            "https://u:p@hook.example.com/a",
        ),
        ("generic://hook.example.com?disabletls=yes", DeliveryMethod.TEXT, "http://hook.example.com/"),
        ("generic://[::1]:8080/a", DeliveryMethod.TEXT, "https://[::1]:8080/a"),
    ],
)
def test_a_generic_url_posts_to_any_web_server(url: str, way: DeliveryMethod, expected: str) -> None:
    target = parse(url)
    assert (target.way, target.url) == (way, expected)


def test_headers_and_fields_in_a_generic_url_are_not_sent_as_part_of_the_url() -> None:
    target = parse(
        "generic://h.example.com/?template=json&messagekey=text&@Authorization=Bearer%20x&$team=ops&method=put&contenttype=text/plain"
    )
    assert target.headers == {"Content-Type": "text/plain", "Authorization": "Bearer x"}
    assert (target.fields, target.message_key, target.method, target.url) == (
        {"team": "ops"},
        "text",
        "PUT",
        "https://h.example.com/",
    )


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("", "starttls"),
        ("&encryption=None", "insecure"),
        ("&encryption=ImplicitTLS", "ssl"),
        ("&useStartTLS=No", "insecure"),
        ("&encryption=ExplicitTLS&useStartTLS=no", "starttls"),
    ],
)
def test_mail_is_encrypted_unless_the_url_switches_encryption_off(query: str, mode: str) -> None:
    assert f"mode={mode}" in parse(f"smtp://mail.example.com/?from=a@example.com&to=b@example.com{query}").url


def test_port_465_of_a_mail_url_means_implicit_tls() -> None:
    assert "mode=ssl" in parse("smtp://mail.example.com:465/?from=a@example.com&to=b@example.com").url


def test_quotes_around_a_url_are_removed() -> None:
    assert parse('"slack://T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"') == parse(
        "slack://T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
    )


def test_a_slack_webhook_url_is_accepted_unchanged() -> None:
    assert slack_hook('"https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"') == parse(
        "slack://T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
    )
    assert slack_hook("") is None


REFUSED = [
    ("SECRETWORD", "expected a shoutrrr URL"),
    ("https://hooks.slack.com/services/SECRETWORD", "expected a shoutrrr URL of one of bark, discord"),
    ("xmpp://SECRETWORD@host", "expected a shoutrrr URL of one of"),
    ("discord://SECRETWORD@name/more", "discord: expected discord://TOKEN@WEBHOOK-ID"),
    ("ntfy://SECRETWORD@ntfy.example.com", "ntfy: expected"),
    ("slack+https://SECRETWORD@host", "expected a shoutrrr URL of one of"),
    ("slack://SECRETWORD", "slack: expected slack://[BOT@]TOKEN-A/TOKEN-B/TOKEN-C"),
    ("slack://T/B/SECRETWORD/more", "slack: expected"),
    (
        "slack://T00000000/B00000000/SECRETWORD?thread_ts=12",
        "slack: leave out each parameter that careen does not know (known parameters: botname, username)",
    ),
    (
        "telegram://1:TOKEN@telegram?chats=1&SECRETWORD",
        "telegram: leave out each parameter that careen does not know (known parameters: channels, chats)",
    ),
    (
        "mattermost://host/TOKEN&?user=a&SECRETWORD=",
        "mattermost: leave out each parameter that careen does not know (known parameters: disabletls)",
    ),
    (
        "pushbullet://TOKEN?SECRETWORD=1",
        "pushbullet: leave out each parameter that careen does not know (known parameters: none)",
    ),
    ("discord://SECRETWORD", "discord: expected discord://TOKEN@WEBHOOK-ID"),
    ("smtp://SECRETWORD@host:port/?from=a&to=b", "expected a host name, and a number as the port"),
    (
        "smtp://user:SECRETWORD@host/?to=b@example.com",
        "smtp: expected smtp://USER:PASSWORD@HOST:PORT/?from=ADDRESS&to=ADDRESS",
    ),
    (
        "smtp://user:SECRETWORD@host/?from=a@example.com&to=b@example.com&encryption=rot13",
        "smtp: encryption must be Auto, None, ExplicitTLS or ImplicitTLS",
    ),
    ("telegram://SECRETWORD@telegram?chats=1", "telegram: expected"),
    ("telegram://1:SECRETWORD@telegram", "telegram: expected telegram://TOKEN@telegram?chats=CHAT"),
    ("generic://host?template=SECRETWORD", "generic: the only supported template is json"),
    ("gotify://host/SECRETWORD?disabletls=perhaps", "gotify: disabletls must be yes or no"),
    ("opsgenie://evil.example.com/SECRETWORD", "opsgenie: expected the host api.opsgenie.com"),
    ("teams://group@tenant/a/SECRETWORD?host=evil.example.com", "teams: expected host=ORGANIZATION.webhook.office.com"),
    ("rocketchat://host/SECRETWORD", "rocketchat: expected"),
    ("slack://T/B/SECRET WORD", "expected a shoutrrr URL"),
]


@pytest.mark.parametrize(("url", "sentence"), REFUSED)
def test_the_refusal_of_an_unusable_notify_url_shows_no_secret(url: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        parse(url)
    assert "SECRET" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://mattermost.example.com/hooks/SECRET",
        "slack://T/B/SECRET",
        "http://hooks.slack.com/services/T/B/SECRET",
        "https://hooks.slack.com/services/T/SECRET",
    ],
)
def test_a_slack_webhook_on_another_host_is_refused_without_showing_its_secret(url: str) -> None:
    with pytest.raises(
        ValueError, match=re.escape("expected https://hooks.slack.com/services/TOKEN-A/TOKEN-B/TOKEN-C")
    ) as error:
        slack_hook(url)
    assert "SECRET" not in str(error.value)


@pytest.mark.parametrize("url", [url for url, _ in KNOWN])
def test_the_repr_of_a_target_shows_only_its_service(url: str) -> None:
    target = parse(url)
    shown = repr(target)
    assert [
        secret for secret in secrets_of(target) if secret in shown and secret not in (target.service, "https", "text")
    ] == []


def test_every_part_of_a_notify_url_is_treated_as_secret() -> None:
    target = Target(
        service="x", url="x://user:pass%2Fword@host.example.com/token?key=value1", headers={"A": "Bearer abcdef"}
    )
    assert {"user", "word", "host.example.com", "token", "value1", "Bearer", "abcdef"} <= set(secrets_of(target))


@given(
    st.one_of(
        st.text(),
        st.builds(
            "{}://{}".format,
            st.sampled_from(sorted({url.split(":")[0] for url, _ in KNOWN} | {"generic", "teams"})),
            st.text(),
        ),
    )
)
def test_any_notify_url_is_either_accepted_or_refused_with_a_message(text: str) -> None:
    try:
        found: Target | str = parse(text)
    except ValueError as error:
        found = str(error)
    assert found
    assert isinstance(found, str) or found.way is DeliveryMethod.LOG or found.url

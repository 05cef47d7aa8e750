"""Tests how careen distinguishes apprise URLs from shoutrrr URLs, and that apprise gets its URLs unchanged."""

from __future__ import annotations

import warnings

import pytest

from careen.services.apprise_urls import is_scheme
from careen.services.notification_urls import DeliveryMethod, is_native, parse

# apprise imports a deprecated module of Python for picture types.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

SLACK = "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
TOKEN = "MHJhmYxZkYYzZmZmYxZkYYzZmZmYxZkY"

NATIVE = [
    "json://localhost:8080/path?+X-Token=abc",
    "jsons://user:password@example.com/",
    "JSONS://Example.com/CaseMatters",
    "mailto://user:password@gmail.com",
    "tgram://123456789:abcdefg_hijklmnop/12315544/",
    "workflows://prod-1.westeurope.logic.azure.com:443/643e69f83c8944438d68119179a10a64/KODuebWbDGYFr0z0eu-6Rj8a",
    "pagerduty://A1B2C3D4E5F6@0123456789abcdef0123456789abcdef",
    "o365://tenant:me@example.com/client/secret/to@example.com",
    "46elks://user:password@+15551234567",
    "apprise://localhost/a-token",
    "ntfys://ntfy.example.com/alerts",
    "mmosts://mm.example.com/abcdefghijklmnopqrstuvwx",
    f"slack://{SLACK}/#general",
    f"slack://careen@{SLACK}/%23general",
    "slack://xoxb-1234-1234-4ddbc191d40ee098cbaae6f3523ada2d/#general",
    "discord://123456789012345678/token_x-Y",
    "discord://careen@123456789012345678/token_x-Y",
    "ntfy://alerts",
    "ntfy://ntfy.example.com/alerts/more",
    "ifttt://keyABC@event",
    "join://0123456789abcdef0123456789abcdef/group.all",
    "matrix://user:password@matrix.example.com/%23ops",
    "opsgenie://eb243592-faa2-4ba2-a551q-1afdf565c889/ops@example.com",
    "bark://bark.example.com/devicekey",
    f"zulip://careen@example/{TOKEN}/ops",
    f"https://hooks.slack.com/services/{SLACK}",
    "https://discord.com/api/webhooks/123456789012345678/token_x-Y",
    "https://discordapp.com/api/webhooks/123456789012345678/token_x-Y",
    "https://mattermost.example.com/hooks/abcdefghijklmnopqrstuvwx",
]


@pytest.mark.parametrize("url", NATIVE)
def test_an_apprise_url_is_passed_to_the_library_unchanged(url: str) -> None:
    import apprise

    target = parse(url)
    assert (target.url, target.way, target.is_native) == (url, DeliveryMethod.APPRISE, True)
    if not url.startswith("o365"):  # since apprise 2.2 it requires more than the URL shows
        assert apprise.Apprise.instantiate(url) is not None
    assert repr(target).count("/") == 0, "the representation shows only the service"


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("gotify://gotify.example.com/AzyoeNS.D4iJLVa", "gotify://gotify.example.com/AzyoeNS.D4iJLVa"),
        (f"slack://{SLACK}", f"slack://{SLACK}"),
        ("ntfy://ntfy.example.com/alerts", "ntfy://ntfy.example.com/alerts"),
    ],
)
def test_a_url_that_shoutrrr_and_apprise_accept_is_treated_as_a_shoutrrr_url(url: str, own: str) -> None:
    assert not parse(url).is_native
    chosen = parse(f"apprise+{url}")
    assert (chosen.url, chosen.is_native, chosen.service) == (own, True, url.partition(":")[0])


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "nonsense://SECRETWORD",
        "apprise+nonsense://SECRETWORD",
        "apprise+://SECRETWORD",
        "slack+json://SECRETWORD",
        "file:///etc/SECRETWORD",
        "dbus://SECRETWORD",  # it needs a desktop
        "xmpp://user:SECRETWORD@host",  # it needs a package that the image does not contain
        "https://example.com/SECRETWORD",
        "http://hooks.slack.com/services/SECRETWORD",
        "https://",
        "https://[SECRETWORD",
        "json://host/SECRET WORD",
        "",
    ],
)
def test_the_refusal_of_an_unknown_notify_url_shows_no_secret(url: str) -> None:
    with pytest.raises(ValueError, match="expected a") as error:
        parse(url)
    assert "SECRET" not in str(error.value)


def test_the_refusal_of_an_https_url_suggests_another_scheme() -> None:
    """The suggested scheme is `generic+https`."""
    with pytest.raises(ValueError, match=r"for any other web server, use generic\+https"):
        parse("https://example.com/hook")


def test_careen_lists_the_same_url_schemes_as_the_library_apprise() -> None:
    """If this test fails after an update of apprise, add the new schemes to careen's list, and remove the schemes that
    apprise no longer has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from apprise.manager_plugins import NotificationManager

        plugins = NotificationManager()  # type: ignore[no-untyped-call]
        known = {scheme for scheme in plugins.schemas() if plugins[scheme].enabled}
    assert {scheme for scheme in known if not is_scheme(scheme)} == set()
    assert {scheme for scheme in (*known, *["dbus", "xmpp", "mqtt", "kde", "windows"]) if is_scheme(scheme)} == known


def test_an_apprise_url_is_found_among_several_urls() -> None:
    assert is_native(f"slack://{SLACK}\njson://localhost")
    assert is_native(f"slack://{SLACK},apprise+slack://{SLACK}")
    assert not is_native(f"slack://{SLACK}\nnonsense://x")

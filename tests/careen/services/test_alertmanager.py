"""Tests how careen reads active alerts from an Alertmanager. If the server fails, the result is "unknown", never
"none".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from careen.core.facts.observation import Alert, Unknown
from careen.services.alertmanager import Alertmanager, Several
from careen.services.wire.asking import Access
from tests.careen.services.test_prometheus import Serve, serve
from tests.patience import LONG_SECONDS

__all__ = ["serve"]  # a fixture


def an_alert(name: str = "Slow", state: str = "active", **status: Any) -> dict[str, Any]:
    """Return an alert as GET /api/v2/alerts returns it (api/v2/openapi.yaml, gettableAlert)."""
    return {
        "annotations": {"summary": "x"},
        "endsAt": "2026-03-04T12:05:00.000Z",
        "fingerprint": "0f1e",
        "receivers": [{"name": "default"}],
        "startsAt": "2026-03-04T12:00:00.000Z",
        "status": {"inhibitedBy": [], "silencedBy": [], "mutedBy": [], "state": state, **status},
        "updatedAt": "2026-03-04T12:01:00.000Z",
        "generatorURL": "http://p/graph",
        "labels": {"alertname": name, "node": "n1"},
    }


async def ask(url: str, access: Access | None = None) -> tuple[Alert, ...] | Unknown:
    return await Alertmanager(url, timeout_seconds=LONG_SECONDS, access=access).active_alerts()


async def test_silenced_and_inhibited_alerts_are_not_treated_as_active(serve: Serve) -> None:
    asked: list[str] = []
    rows = [
        an_alert("Slow"),
        an_alert("Quiet", "suppressed", silencedBy=["7d1c"]),
        an_alert("Behind", "suppressed", inhibitedBy=["0f1e"]),
        an_alert("Between", "active", silencedBy=["7d1c"]),
        an_alert("New", "unprocessed"),
    ]
    url = serve(json.dumps(rows).encode(), asked=asked)
    assert await ask(f"{url}/am/") == (
        Alert(name="New", labels={"node": "n1"}),
        Alert(name="Slow", labels={"node": "n1"}),
    )
    request, check = asked
    assert check == "/am/api/v2/status"
    assert urlsplit(request).path == "/am/api/v2/alerts"
    assert dict(parse_qsl(urlsplit(request).query)) == {
        "active": "true",
        "silenced": "false",
        "inhibited": "false",
        "unprocessed": "true",
    }


async def test_an_empty_list_means_that_no_alert_is_active(serve: Serve) -> None:
    assert await ask(serve(b"[]")) == ()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 200),
        (b"{}", 200),
        (b"null", 200),
        (b"<html>log in</html>", 200),
        (b'{"status":"success","data":[]}', 200),
        (b"[{}]", 200),
        (b"[null]", 200),
        (json.dumps([an_alert(state="dreaming")]).encode(), 200),
        (json.dumps([{**an_alert(), "labels": {"alertname": 5}}]).encode(), 200),
        (json.dumps([{**an_alert(), "status": None}]).encode(), 200),
        (b"[]", 500),
        (b"[]", 401),
        (b"[]", 204),
    ],
)
async def test_an_answer_that_is_not_a_list_of_alerts_makes_the_alerts_unknown(
    serve: Serve, body: bytes, status: int
) -> None:
    answer = await ask(serve(body, status=status))
    assert isinstance(answer, Unknown)
    assert answer.why.startswith("Alertmanager at http://127.0.0.1")


async def test_a_redirect_by_the_alertmanager_is_not_followed(serve: Serve) -> None:
    asked: list[str] = []
    elsewhere = serve(b"[]", asked=asked)
    assert isinstance(await ask(serve(b"", status=302, location=elsewhere)), Unknown)
    assert asked == []


async def test_the_error_about_an_unreachable_alertmanager_shows_no_password() -> None:
    answer = await ask("http://me:secret@127.0.0.1:9")
    assert isinstance(answer, Unknown)
    assert "secret" not in answer.why


@pytest.mark.parametrize("status", [401, 403])
async def test_the_message_about_refused_credentials_shows_their_source(
    serve: Serve, tmp_path: Path, status: int
) -> None:
    (tmp_path / "token").write_text("s3cret")
    url = serve(b"", status=status)
    assert await ask(url, Access(token_file=f"{tmp_path}/token")) == Unknown(
        f"Alertmanager at {url} refuses the credentials of careen (status {status}: careen sent the token in "
        f"{tmp_path}/token)"
    )
    assert await ask(url) == Unknown(
        f"Alertmanager at {url} refuses the credentials of careen (status {status}: careen sent no credentials; give "
        "--alertmanager-token-file)"
    )


async def test_an_unreadable_token_file_is_reported(tmp_path: Path) -> None:
    answer = await ask("http://127.0.0.1:9", Access(token_file=str(tmp_path / "none")))
    assert isinstance(answer, Unknown)
    assert "was not queried" in answer.why


class FixedAlerts:
    def __init__(self, answer: tuple[Alert, ...] | Unknown) -> None:
        self.answer = answer

    async def active_alerts(self) -> tuple[Alert, ...] | Unknown:
        return self.answer


async def test_the_alerts_are_unknown_if_one_of_several_alert_sources_fails() -> None:
    slow, down = Alert(name="Slow"), Unknown("down")
    assert await Several([FixedAlerts((slow,)), FixedAlerts(())]).active_alerts() == (slow,)
    assert await Several([FixedAlerts((slow,)), FixedAlerts(down)]).active_alerts() == down

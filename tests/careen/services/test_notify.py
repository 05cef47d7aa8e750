"""Tests that a child process sends each message within a deadline, and that no error message contains a secret."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from careen.services.notification_urls import Target, parse
from careen.services.notify import Delivery, refusals, send
from tests.careen.services.webhook import running_webhook
from tests.patience import LONG_SECONDS, growing, run

GOTIFY_TOKEN = "AzyoeNS.D4iJLVa"


def mattermost(address: str) -> Target:
    return parse(f"mattermost://{address}/abcdefghijklmnopqrstuvwx?disabletls=yes")


async def test_a_message_is_sent_to_every_target() -> None:
    with running_webhook() as first, running_webhook() as second:
        targets = [parse(f"generic+http://{first.address}/hook"), mattermost(second.address)]
        assert await send("Draining node n1", targets, seconds=LONG_SECONDS) == (
            Delivery(service="generic"),
            Delivery(service="mattermost"),
        )
    assert [(verb, path, body) for verb, path, body, _ in first.got] == [("POST", "/hook", "Draining node n1")]
    assert [path for _, path, _, _ in second.got] == ["/hooks/abcdefghijklmnopqrstuvwx"]
    assert json.loads(second.texts[0])["text"] == "Draining node n1"


async def test_a_json_message_has_the_configured_key_and_fields() -> None:
    with running_webhook() as hook:
        target = parse(
            f"generic+http://{hook.address}/?template=json&messagekey=text&$team=ops&@X-Token=abc&method=put"
        )
        assert await send("A & B", [target], seconds=LONG_SECONDS) == (Delivery(service="generic"),)
    ((verb, path, body, headers),) = hook.got
    assert (verb, path, json.loads(body), headers["X-Token"]) == ("PUT", "/", {"team": "ops", "text": "A & B"}, "abc")


async def test_the_error_of_a_failed_delivery_shows_the_http_status_and_no_secret() -> None:
    with running_webhook(status=403) as hook:
        targets = [
            parse(f"generic+http://{hook.address}/SECRETWORD"),
            parse(f"gotify://{hook.address}/{GOTIFY_TOKEN}?disabletls=yes"),
        ]
        posted, by_library = await send("x", targets, seconds=LONG_SECONDS)
    assert posted == Delivery(service="generic", why="status 403")
    assert by_library.why
    assert GOTIFY_TOKEN not in by_library.why


async def test_a_hanging_target_fails_in_time_and_does_not_delay_other_targets() -> None:
    with running_webhook(hangs=True) as slow, running_webhook() as quick:
        targets = [parse(f"generic+http://{slow.address}"), parse(f"generic+http://{quick.address}")]
        for seconds in growing(6):
            outcomes = await send("x", targets, seconds=seconds)
            if quick.got and slow.got and outcomes[1] == Delivery(service="generic"):
                break
    assert outcomes == (
        Delivery(service="generic", why=f"the process that sends messages did not answer within {seconds:.0f} s"),
        Delivery(service="generic"),
    )


async def test_sending_to_an_unreachable_target_is_a_failure(unused_tcp_port: int) -> None:
    (outcome,) = await send(
        "x", [parse(f"generic+http://127.0.0.1:{unused_tcp_port}/SECRETWORD")], seconds=LONG_SECONDS
    )
    assert outcome.why == "ConnectionError"


async def test_a_logger_url_starts_no_child_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio, "create_subprocess_exec", None)
    assert await send("x", [parse("logger://")], seconds=1) == ()


async def test_a_child_process_that_cannot_start_is_reported_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (outcome,) = await send("x", [parse("generic://h")], seconds=LONG_SECONDS)
    assert outcome.why == "the process that sends messages could not be started: No such file or directory"


async def test_a_child_process_that_dies_is_reported_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (outcome,) = await send("x", [parse("generic://h")], seconds=LONG_SECONDS)
    assert outcome.why == "the process that sends messages ended with exit code 1"


async def test_the_child_process_gets_no_secret_by_command_line_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAREEN_NOTIFY_URL", "generic://SECRETWORD")
    seen: set[str] = set()
    with running_webhook(hangs=True) as hook:
        task = asyncio.create_task(
            send("x", [parse(f"generic+http://{hook.address}/SECRETWORD")], seconds=LONG_SECONDS)
        )
        while not hook.got:
            await asyncio.sleep(0.05)
        for child in _children(os.getpid()):
            seen |= {
                Path(f"/proc/{child}/{name}").read_bytes().decode(errors="replace") for name in ("cmdline", "environ")
            }
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert _children(os.getpid()) == [], "the cancelled caller has ended its child process"
    assert any("careen.services.notify_child" in text for text in seen)
    assert [text for text in seen if "SECRETWORD" in text] == []


async def test_apprise_checks_apprise_urls_and_the_error_messages_show_no_secret() -> None:
    targets = [
        parse("json://localhost/SECRETWORD"),
        parse("tgram://SECRETWORD"),
        parse("slack://T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"),
        parse("pagerduty://SECRETWORD"),
    ]
    refused = await refusals(targets, seconds=LONG_SECONDS)
    assert [outcome.service for outcome in refused] == ["tgram", "pagerduty"]
    assert refused[0].why.startswith("apprise does not accept this URL; it expects tgram://{bot_token} or ")
    assert "SECRET" not in str(refused)


async def test_a_message_is_sent_to_an_apprise_url_exactly_as_written() -> None:
    with running_webhook() as hook:
        target = parse(f"json://{hook.address}/a%2Cb?+X-Token=abc&:team=ops")
        assert await send("Draining node n1", [target], seconds=LONG_SECONDS) == (Delivery(service="json"),)
    ((_, path, body, headers),) = hook.got
    assert (path, headers["X-Token"]) == ("/a%2Cb", "abc")
    assert (json.loads(body)["message"], json.loads(body)["team"]) == ("Draining node n1", "ops")


async def test_careen_accepts_an_apprise_url_if_apprise_cannot_check_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for executable in ("/nowhere/python", "/bin/false"):
        monkeypatch.setattr(sys, "executable", executable)
        assert await refusals([parse("tgram://SECRETWORD")], seconds=LONG_SECONDS) == ()


async def test_careen_does_not_start_apprise_to_check_a_list_without_apprise_urls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asyncio, "create_subprocess_exec", None)
    assert await refusals([parse("generic://h"), parse("logger://")], seconds=1) == ()


def _children(pid: int) -> list[str]:
    tasks = Path(f"/proc/{pid}/task")
    return [child for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def test_the_agent_process_does_not_import_apprise() -> None:
    check = (
        "import sys, careen.agent.messages, careen.agent.startup.start, careen.settings.tree; sys.exit(any(each in "
        "sys.modules for each in ('apprise', 'requests', 'careen.services.apprise_urls', 'careen.services.teams')))"
    )
    assert run([sys.executable, "-c", check]).returncode == 0

"""Tests the child process that sends messages: its error messages, and that it exits by itself."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from dataclasses import asdict

import pytest

from careen.services import notify_child
from careen.services.notification_urls import DeliveryMethod, Target, parse
from careen.services.notify_child import blotted
from tests import patience
from tests.careen.services.webhook import running_webhook


def ordered(*targets: Target, seconds: float = patience.LONG_SECONDS) -> str:
    return json.dumps({"text": "x", "seconds": seconds, "targets": [asdict(target) for target in targets]})


def run(order: str) -> subprocess.CompletedProcess[str]:
    return patience.run([sys.executable, "-m", "careen.services.notify_child"], input=order)


def test_the_child_process_prints_a_line_for_each_target() -> None:
    with running_webhook() as hook:
        done = run(ordered(parse(f"generic+http://{hook.address}"), Target(service="slack", url="slack://SECRETWORD")))
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [
        '{"target": 0, "why": ""}',
        '{"target": 1, "why": "apprise does not accept the URL of this receiver"}',
    ]
    assert "SECRETWORD" not in done.stdout + done.stderr


def test_the_child_process_that_sends_messages_ends_itself_at_its_deadline() -> None:
    """apprise alone would wait for four seconds, and then try again."""
    with running_webhook(hangs=True) as hook:
        done = run(ordered(parse(f"mattermost://{hook.address}/abcdefghijklmnopqrstuvwx?disabletls=yes"), seconds=0.5))
    assert done.returncode == -signal.SIGALRM


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "Failed to send to host.example.com: token abcdef1 is bad, error=403.",
            "Failed to send to …: token … is bad, error=403.",
        ),
        ("two\nlines", "two lines"),
    ],
)
def test_every_part_of_the_url_is_removed_from_error_messages_of_libraries(sentence: str, expected: str) -> None:
    assert (
        blotted(sentence, Target(service="x", url="x://host.example.com/abcdef1", way=DeliveryMethod.APPRISE))
        == expected
    )


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # apprise's, and only at import
def test_the_error_about_one_target_does_not_contain_the_warning_about_an_earlier_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """apprise has logged a warning about an earlier target. The warning contains a secret. For the next target, apprise
    fails without a warning."""
    said = notify_child._Said()
    said.last[threading.get_ident()] = "Failed to send to https://hooks/another-secret"
    monkeypatch.setattr("apprise.Apprise.notify", lambda *_, **__: False)
    told = notify_child._by_library("text", Target(service="json", url="json://localhost"), said)
    assert told == "not sent"
